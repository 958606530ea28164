//! Requests without permission.

use anyhow::Result;
use serde_json::json;

use super::super::run::compare;
use super::super::script::Script;
use super::MAPS;
use crate::http::User;

#[tokio::test]
async fn those_who_may_not_are_refused_alike() -> Result<()> {
    let mut script = Script::new("access");
    script.get("no-token", MAPS).user(User::Stranger);
    script.get("wrong-token-discovery", "/apis").user(User::Stranger);
    script.get("wrong-token-nothing", "/nothing").user(User::Stranger);
    script.get("wrong-token-health", "/healthz").user(User::Stranger);
    script.get("anonymous-list", MAPS).user(User::Nobody);
    script.get("anonymous-health", "/healthz").user(User::Nobody);
    script.get("anonymous-version", "/version").user(User::Nobody);
    let a = &format!("{MAPS}/a");
    script.get("get", a).user(User::Reader);
    script.get("list", MAPS).user(User::Reader);
    script.get("list-everywhere", "/api/v1/configmaps").user(User::Reader);
    script.get("watch", &format!("{MAPS}?watch=1")).user(User::Reader);
    script.post("create", MAPS, json!({"metadata": {"name": "a"}})).user(User::Reader);
    script.post("create-nonsense", MAPS, json!({})).text("{").user(User::Reader);
    script.put("update", a, json!({})).user(User::Reader);
    script.merge("patch", a, json!({})).user(User::Reader);
    script.delete("delete", a).user(User::Reader);
    script.delete("delete-collection", MAPS).user(User::Reader);
    let deployment = "/apis/apps/v1/namespaces/<ns>/deployments/a";
    script.get("of-a-group", deployment).user(User::Reader);
    script.put("status", &format!("{deployment}/status"), json!({})).user(User::Reader);
    script.get("nodes", "/api/v1/nodes").user(User::Reader);
    script.get("a-node", "/api/v1/nodes/a").user(User::Reader);
    script.get("a-namespace", "/api/v1/namespaces/<ns>").user(User::Reader);
    script.get("unknown-resource", "/api/v1/namespaces/<ns>/nonsenses").user(User::Reader);
    script.get("discovery", "/api").user(User::Reader);
    compare(script).await
}
