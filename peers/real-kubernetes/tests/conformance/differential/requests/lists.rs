//! Lists: pages, versions, and combinations of options.

use anyhow::Result;
use serde_json::json;

use super::super::run::{compare, compare_forgetting};
use super::super::script::Script;
use super::MAPS;

/// Creates `a` to `e`, and saves the version of the first and the last.
fn scene(topic: &'static str) -> Script {
    let mut script = Script::new(topic);
    for name in ["a", "b", "c", "d", "e"] {
        let map = json!({"metadata": {"name": name, "labels": {"name": name, "vowel": (name == "a" || name == "e").to_string()}}});
        let step = script.post(&format!("scene-{name}"), MAPS, map);
        match name {
            "a" => drop(step.save("first", "/metadata/resourceVersion")),
            "e" => drop(step.save("last", "/metadata/resourceVersion")),
            _ => {}
        }
    }
    script
}

#[tokio::test]
async fn lists_are_paged_alike() -> Result<()> {
    let mut script = scene("pages");
    let list = |query: &str| format!("{MAPS}?{query}");
    script.get("all", MAPS);
    script.get("nothing", "/api/v1/namespaces/<ns>/secrets");
    script.get("limit", &list("limit=2")).save("second", "/metadata/continue");
    let page = script.get("second-page", &list("limit=2&continue=<second>"));
    page.save("third", "/metadata/continue");
    script.get("last-page", &list("limit=2&continue=<third>"));
    script.get("rest-at-once", &list("continue=<second>"));
    script.get("same-page-again", &list("limit=2&continue=<second>"));
    script.get("larger-page", &list("limit=100&continue=<second>"));
    script.delete("delete-meanwhile", &format!("{MAPS}/d"));
    script.get("page-of-a-moment", &list("limit=1&continue=<third>"));
    script.get("page-of-a-moment-2", &list("limit=2&continue=<second>"));
    script.get("limit-exact", &list("limit=4"));
    script.get("limit-large", &list("limit=500"));
    script.get("limit-zero", &list("limit=0"));
    script.get("limit-negative", &list("limit=-1"));
    script.get("limit-of-no-number", &list("limit=x"));
    script.get("limit-huge", &list("limit=99999999999999999999"));
    script.get("selected-pages", &list("limit=1&labelSelector=vowel%3Dtrue"));
    script.get("selected-fields", &list("limit=1&fieldSelector=metadata.name!%3Da"));
    script.get("continue-nonsense", &list("continue=nonsense"));
    script.get("continue-empty", &list("continue="));
    script.get("continue-with-version", &list("continue=<second>&resourceVersion=<last>"));
    script.get("continue-with-zero", &list("limit=2&continue=<second>&resourceVersion=0"));
    script.get("continue-with-match", &list("continue=<second>&resourceVersionMatch=Exact"));
    let both = "continue=<second>&resourceVersion=<last>&resourceVersionMatch=Exact";
    script.get("continue-with-both", &list(both));
    script.get("continue-elsewhere", "/api/v1/namespaces/<ns>/secrets?limit=2&continue=<second>");
    script.get("pretty", &list("limit=1&pretty=1"));
    script.get("timeout", &list("timeoutSeconds=5&limit=1"));
    script.get("timeout-of-no-number", &list("timeoutSeconds=x"));
    script.get("unknown-option", &list("nonsense=1"));
    compare(script).await
}

#[tokio::test]
async fn versions_of_lists_mean_the_same() -> Result<()> {
    let mut script = scene("versions");
    let versions = [
        ("none", ""),
        ("zero", "resourceVersion=0"),
        ("empty", "resourceVersion="),
        ("first", "resourceVersion=<first>"),
        ("last", "resourceVersion=<last>"),
        ("future", "resourceVersion=999999999"),
        ("word", "resourceVersion=x"),
        ("negative", "resourceVersion=-1"),
    ];
    let matches = [
        ("any", ""),
        ("exact", "resourceVersionMatch=Exact"),
        ("not-older", "resourceVersionMatch=NotOlderThan"),
        ("unknown", "resourceVersionMatch=Nonsense"),
    ];
    for (version, version_query) in versions {
        for (rule, rule_query) in matches {
            for (limit, limit_query) in [("", ""), ("-limited", "limit=2")] {
                let parts = [version_query, rule_query, limit_query];
                let query: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                let path = format!("{MAPS}?{}", query.join("&"));
                script.get(&format!("{version}-{rule}{limit}"), &path);
            }
        }
    }
    script.get("initial-events", &format!("{MAPS}?sendInitialEvents=true"));
    let both = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0";
    script.get("initial-events-match", &format!("{MAPS}?{both}"));
    script.get("bookmarks", &format!("{MAPS}?allowWatchBookmarks=true&limit=1"));
    compare(script).await
}

#[tokio::test]
async fn versions_are_forgotten_alike() -> Result<()> {
    let mut script = scene("forgotten");
    let list = |query: &str| format!("{MAPS}?{query}");
    script.get("page", &list("limit=2")).save("token", "/metadata/continue");
    script.merge("change", &format!("{MAPS}/d"), json!({"data": {"k": "v"}}));
    script.delete("delete", &format!("{MAPS}/c"));
    let before = script.steps.len();
    script.get("exact", &list("resourceVersion=<first>&resourceVersionMatch=Exact"));
    script.get("exact-by-limit", &list("resourceVersion=<first>&limit=2"));
    let not_older = "resourceVersion=<first>&resourceVersionMatch=NotOlderThan";
    script.get("not-older", &list(not_older));
    script.get("any", &list("resourceVersion=<first>"));
    script.watch_to_the_end("watch", &list("watch=1&resourceVersion=<first>"));
    let expired = script.get("next-page", &list("limit=1&continue=<token>"));
    expired.save("onwards", "/metadata/continue");
    // Continues with the current state.
    let next = script.get("onwards", &list("limit=1&continue=<onwards>"));
    next.save("last", "/metadata/continue");
    script.get("last", &list("continue=<last>"));
    compare_forgetting(script, before).await
}
