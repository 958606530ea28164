//! Events, which belong to two groups.

use anyhow::Result;
use serde_json::json;

use super::super::run::compare;
use super::super::script::Script;

#[tokio::test]
async fn events_are_shared_alike() -> Result<()> {
    let mut script = Script::new("events");
    let core = "/api/v1/namespaces/<ns>/events";
    let group = "/apis/events.k8s.io/v1/namespaces/<ns>/events";
    let about = json!({"kind": "Pod", "name": "a", "namespace": "<ns>", "uid": "u"});
    script.get("list", core).save("start", "/metadata/resourceVersion");
    // All fields that the two groups share, so that none is defaulted.
    let old = json!({
        "metadata": {"name": "old"}, "involvedObject": about, "reason": "R", "message": "M",
        "type": "Warning", "count": 2, "source": {"component": "me", "host": "h"},
        "firstTimestamp": "2024-01-01T00:00:00Z", "lastTimestamp": "2024-01-01T00:00:05Z",
        "eventTime": null, "reportingComponent": "", "reportingInstance": "",
    });
    let new = json!({
        "metadata": {"name": "new"}, "regarding": about, "reason": "R", "note": "M",
        "type": "Normal", "action": "A", "reportingController": "example.com/me",
        "reportingInstance": "i", "eventTime": "2024-01-01T00:00:00.123456Z",
        "series": {"count": 3, "lastObservedTime": "2024-01-01T00:00:01.000000Z"},
        "deprecatedSource": {}, "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null,
    });
    script.post("create-old", core, old);
    script.post("create-new", group, new);
    for (name, path) in [("core", core), ("group", group)] {
        script.get(&format!("old-in-{name}"), &format!("{path}/old"));
        script.get(&format!("new-in-{name}"), &format!("{path}/new"));
        script.get(&format!("list-in-{name}"), path);
        let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
        script.get(&format!("table-in-{name}"), path).accept(table);
        let watch = format!("{path}?watch=1&resourceVersion=<start>");
        script.watch(&format!("watch-in-{name}"), &watch, 2);
    }
    script.get("select", &format!("{core}?fieldSelector=involvedObject.name%3Da,type%3DWarning"));
    script.get("select-in-group", &format!("{group}?fieldSelector=regarding.name%3Da"));
    script.merge("patch", &format!("{group}/old"), json!({"note": "N"}));
    script.delete("delete", &format!("{group}/old"));
    script.get("deleted", &format!("{core}/old"));
    script.post("elsewhere", core, json!({
        "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
    }));
    compare(script).await
}
