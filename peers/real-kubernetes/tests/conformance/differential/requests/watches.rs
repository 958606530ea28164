//! Watches: their start, their events and their end.

use anyhow::Result;
use serde_json::{Value, json};

use super::super::run::compare;
use super::super::script::Script;
use super::MAPS;

fn labelled(name: &str, colour: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"colour": colour}}})
}

/// Changes `a`, `b` and `c` after the version `<start>`.
fn history(topic: &'static str) -> Script {
    let mut script = Script::new(topic);
    script.get("scene-list", MAPS).save("start", "/metadata/resourceVersion");
    script.post("scene-a", MAPS, labelled("a", "red"));
    script.post("scene-b", MAPS, labelled("b", "blue")).save("b", "/metadata/resourceVersion");
    let a = &format!("{MAPS}/a");
    script.merge("scene-recolour", a, json!({"metadata": {"labels": {"colour": "blue"}}}));
    script.merge("scene-fill", a, json!({"data": {"k": "v"}}));
    script.merge("scene-recolour-back", a, json!({"metadata": {"labels": {"colour": "red"}}}));
    script.delete("scene-delete", &format!("{MAPS}/b"));
    let c = json!({"metadata": {"name": "c", "finalizers": ["example.com/f"]}});
    script.post("scene-c", MAPS, c);
    script.delete("scene-delete-c", &format!("{MAPS}/c"));
    let unfinalized = json!({"metadata": {"finalizers": null}});
    script.merge("scene-c-goes", &format!("{MAPS}/c"), unfinalized);
    script
}

#[tokio::test]
async fn watches_tell_the_same_story() -> Result<()> {
    let mut script = history("watch");
    let watch = |query: &str| format!("{MAPS}?watch=1&{query}");
    script.watch("from-the-start", &watch("resourceVersion=<start>"), 9);
    script.watch("from-the-middle", &watch("resourceVersion=<b>"), 7);
    let selected = |selector: &str| watch(&format!("resourceVersion=<start>&{selector}"));
    script.watch("red", &selected("labelSelector=colour%3Dred"), 3);
    script.watch("blue", &selected("labelSelector=colour%3Dblue"), 5);
    script.watch("not-red", &selected("labelSelector=colour!%3Dred"), 8);
    script.watch("named", &selected("fieldSelector=metadata.name%3Da"), 4);
    script.watch("old-form", "/api/v1/watch/namespaces/<ns>/configmaps?resourceVersion=<start>", 9);
    let old = "/api/v1/watch/namespaces/<ns>/configmaps/b?resourceVersion=<start>";
    script.watch("old-form-named", old, 2);
    script.watch("without-version", &watch(""), 1);
    script.watch("version-zero", &watch("resourceVersion=0"), 1);
    let initial =
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    script.watch("initial-events", &watch(initial), 2);
    script.watch("initial-events-zero", &watch(&format!("{initial}&resourceVersion=0")), 2);
    script.watch("initial-events-version", &watch(&format!("{initial}&resourceVersion=<b>")), 2);
    let none = &watch(&format!("{initial}&labelSelector=colour%3Dnone"));
    script.watch("initial-events-of-nothing", none, 1);
    let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    script.watch("metadata", &selected("fieldSelector=metadata.name%3Db"), 2).accept(metadata);
    script.watch("metadata-initial", &watch(initial), 2).accept(metadata);
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    script.watch("table", &selected("fieldSelector=metadata.name%3Db"), 2).accept(table);
    script.watch("table-initial", &watch(initial), 2).accept(table);
    let both = &format!("{metadata},application/json");
    script.watch("metadata-or-json", &selected("fieldSelector=metadata.name%3Db"), 2).accept(both);
    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    script.watch("metadata-list", &selected("fieldSelector=metadata.name%3Db"), 2).accept(list);
    let everywhere = "/api/v1/configmaps?watch=1&resourceVersion=<start>&labelSelector=colour%3Dred&fieldSelector=metadata.namespace%3D<ns>";
    script.watch("everywhere", everywhere, 3);
    script.watch("initial-events-paged", &watch(&format!("{initial}&limit=1")), 2);
    script.watch(
        "no-initial-events",
        &watch("sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=<b>"),
        7,
    );
    script.watch("whatever-watch-is", &format!("{MAPS}?watch=yes&resourceVersion=<b>"), 7);
    let stream = "application/json;stream=watch";
    script.watch("as-a-stream", &selected("fieldSelector=metadata.name%3Db"), 2).accept(stream);
    compare(script).await
}

#[tokio::test]
async fn watches_end_alike() -> Result<()> {
    let mut script = history("watch-end");
    let watch = |query: &str| format!("{MAPS}?watch=1&{query}");
    script.watch_to_the_end("too-old", &watch("resourceVersion=1"));
    // Enough for a busy machine to tell the whole history.
    script.watch_to_the_end("timeout", &watch("resourceVersion=<start>&timeoutSeconds=10"));
    let future = watch("resourceVersion=999999999&timeoutSeconds=1");
    script.watch_to_the_end("future", &future);
    script.watch("word", &watch("resourceVersion=x"), 1);
    script.watch("negative", &watch("resourceVersion=-1"), 1);
    script.watch("timeout-of-no-number", &watch("timeoutSeconds=x"), 1);
    script.watch("bad-selector", &watch("labelSelector=%3D"), 1);
    script.watch("bad-field", &watch("fieldSelector=spec.x%3D1"), 1);
    script.watch("match-alone", &watch("resourceVersionMatch=Exact"), 1);
    script.watch("match-not-older", &watch("resourceVersionMatch=NotOlderThan"), 1);
    script.watch(
        "match-not-older-version",
        &watch("resourceVersionMatch=NotOlderThan&resourceVersion=<start>"),
        1,
    );
    script.watch("match-unknown", &watch("resourceVersionMatch=Nonsense"), 1);
    script.watch("initial-without-match", &watch("sendInitialEvents=true"), 1);
    script.watch("initial-false-without-match", &watch("sendInitialEvents=false"), 1);
    script.watch(
        "initial-exact",
        &watch("sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=<start>"),
        1,
    );
    script.watch(
        "initial-unknown",
        &watch("sendInitialEvents=true&resourceVersionMatch=Nonsense"),
        1,
    );
    let future =
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=999999999";
    script.watch("initial-future", &watch(future), 1);
    script.watch("continue", &watch("continue=abc"), 1);
    script.watch("elsewhere", "/api/v1/namespaces/<ns>/nonsenses?watch=1", 1);
    script.get("one-object", &format!("{MAPS}/a?watch=1"));
    script.get("watch-false", &format!("{MAPS}?watch=false&limit=1"));
    script.watch("accept-xml", &watch(""), 1).accept("application/xml");
    compare(script).await
}
