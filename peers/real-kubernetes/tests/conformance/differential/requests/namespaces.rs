//! Namespaces are created, and terminate slowly.

use anyhow::Result;
use serde_json::json;

use super::super::run::compare;
use super::super::script::Script;

#[tokio::test]
async fn namespaces_come_and_go_alike() -> Result<()> {
    let mut script = Script::new("namespaces");
    let all = "/api/v1/namespaces";
    let one = "/api/v1/namespaces/<ns>-one";
    script.post("create", all, json!({"metadata": {"name": "<ns>-one"}}));
    script.get("get", one);
    script.post("again", all, json!({"metadata": {"name": "<ns>-one"}}));
    let label = json!({"metadata": {"labels": {"kubernetes.io/metadata.name": null}}});
    script.merge("label-is-put-back", one, label);
    let wrong = json!({"metadata": {"labels": {"kubernetes.io/metadata.name": "x"}}});
    script.merge("label-is-fixed", one, wrong);
    script.post(
        "status",
        all,
        json!({"metadata": {"name": "<ns>-two"}, "status": {"phase": "Terminating"}}),
    );
    script.put(
        "finalize-other",
        "/api/v1/namespaces/<ns>-two/finalize",
        json!({"metadata": {"name": "x"}}),
    );
    let maps = &format!("{one}/configmaps");
    script.post("fill", maps, json!({"metadata": {"name": "a"}}));
    script.delete("delete", one);
    script.get("terminating", one);
    script.delete("delete-again", one);
    script.post("create-inside", maps, json!({"metadata": {"name": "b"}}));
    script.post("create-generated-inside", maps, json!({"metadata": {"generateName": "b-"}}));
    script.merge("change-inside", &format!("{maps}/a"), json!({"data": {"k": "v"}}));
    script.delete("delete-inside", &format!("{maps}/a"));
    script.delete("delete-default", "/api/v1/namespaces/default");
    script.delete("delete-system", "/api/v1/namespaces/kube-system");
    script.get("system", "/api/v1/namespaces/kube-system");
    script.get("node-lease", "/api/v1/namespaces/kube-node-lease");
    script.delete("delete-none", "/api/v1/namespaces/<ns>-none");
    script.get("list-in-none", "/api/v1/namespaces/<ns>-none/configmaps");
    script
        .get("table", "/api/v1/namespaces/<ns>")
        .accept("application/json;as=Table;g=meta.k8s.io;v=v1");
    compare(script).await
}
