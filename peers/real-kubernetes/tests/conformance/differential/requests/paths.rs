//! Paths and methods that are not served.

use anyhow::Result;
use serde_json::json;

use super::super::run::compare;
use super::super::script::Script;
use super::MAPS;

#[tokio::test]
async fn paths_that_are_not_served_are_refused_alike() -> Result<()> {
    let mut script = Script::new("paths");
    script.get("nothing", "/nothing");
    script.get("api-v2", "/api/v2");
    script.get("api-v2-pods", "/api/v2/pods");
    script.get("unknown-resource", "/api/v1/nonsenses");
    script.get("unknown-resource-in-a-namespace", "/api/v1/namespaces/<ns>/nonsenses");
    script.get("unknown-object", "/api/v1/namespaces/<ns>/nonsenses/a");
    script.get("unknown-group", "/apis/none.example.com");
    script.get("unknown-group-version", "/apis/none.example.com/v1");
    script.get("unknown-group-resource", "/apis/none.example.com/v1/widgets");
    script.post(
        "unknown-group-create",
        "/apis/none.example.com/v1/namespaces/<ns>/widgets",
        json!({}),
    );
    script.get("unknown-version", "/apis/apps/v9");
    script.get("unknown-version-resource", "/apis/apps/v9/deployments");
    script.get("unknown-resource-of-a-group", "/apis/apps/v1/nonsenses");
    script.get("cluster-resource-in-a-namespace", "/api/v1/namespaces/<ns>/nodes");
    script.get("object-without-namespace", "/api/v1/configmaps/a");
    script.get("unknown-subresource", &format!("{MAPS}/a/nonsense"));
    script.get("status-of-a-map", &format!("{MAPS}/a/status"));
    script.get("too-deep", &format!("{MAPS}/a/status/more"));
    script.get("slash-at-the-end", &format!("{MAPS}/"));
    script.get("two-slashes", "/api/v1//namespaces/<ns>/configmaps?labelSelector=none");
    script.get("empty-namespace", "/api/v1/namespaces//configmaps?labelSelector=none");
    script.get("name-escaped", &format!("{MAPS}/a%2Fb"));
    script.get("namespace-upper-case", "/api/v1/namespaces/NS/configmaps/a");
    script.get("list-in-no-namespace", "/api/v1/namespaces/none/configmaps");
    script.send("put-collection", "PUT", MAPS).json(json!({}));
    script.send("post-object", "POST", &format!("{MAPS}/a")).json(json!({}));
    script.post("create-everywhere", "/api/v1/configmaps", json!({"metadata": {"name": "a"}}));
    script.delete("delete-everywhere", "/api/v1/configmaps");
    script.delete("delete-namespaces", "/api/v1/namespaces");
    script.delete("delete-status", "/api/v1/namespaces/<ns>/pods/a/status");
    script.post("create-status", "/api/v1/namespaces/<ns>/pods/a/status", json!({}));
    script.post("post-discovery", "/api/v1", json!({}));
    script.post("post-version", "/version", json!({}));
    script.delete("delete-api", "/api");
    script.send("options", "OPTIONS", MAPS);
    script.send("trace", "TRACE", MAPS);
    script.send("nonsense-method", "JUMP", MAPS);
    script.get("version", "/version");
    for (name, path) in [
        ("healthz", "/healthz"),
        ("livez", "/livez"),
        ("readyz", "/readyz"),
        ("healthz-ping", "/healthz/ping"),
        ("healthz-none", "/healthz/none"),
        ("livez-verbose-none", "/livez/none?verbose"),
        ("healthz-etcd", "/healthz/etcd"),
        ("readyz-shutdown", "/readyz/shutdown"),
        ("livez-shutdown", "/livez/shutdown"),
        ("timeout-nonsense", "/api/v1/namespaces/<ns>/configmaps?timeout=nonsense"),
        ("timeout-without-unit", "/api/v1/namespaces/<ns>/configmaps?timeout=1"),
        ("timeout-empty", "/api/v1/namespaces/<ns>/configmaps?timeout=&labelSelector=none"),
        ("timeout-valid", "/api/v1/namespaces/<ns>/configmaps?timeout=1m30s&labelSelector=none"),
        ("timeout-of-nothing", "/nothing?timeout=x"),
    ] {
        script.get(name, path);
    }
    script.get("root", "/");
    compare(script).await
}
