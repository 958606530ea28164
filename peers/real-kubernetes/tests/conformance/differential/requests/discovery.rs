//! Discovery.

use anyhow::Result;

use super::super::run::compare;
use super::super::script::Script;

#[tokio::test]
async fn what_is_served_is_told_alike() -> Result<()> {
    let mut script = Script::new("discovery");
    script.get("api", "/api");
    script.get("api-slash", "/api/");
    script.get("core", "/api/v1");
    script.get("apps", "/apis/apps");
    for (name, path) in [
        ("apps-v1", "/apis/apps/v1"),
        ("batch-v1", "/apis/batch/v1"),
        ("autoscaling", "/apis/autoscaling"),
        ("autoscaling-v2", "/apis/autoscaling/v2"),
        ("policy-v1", "/apis/policy/v1"),
        ("networking-v1", "/apis/networking.k8s.io/v1"),
        ("rbac-v1", "/apis/rbac.authorization.k8s.io/v1"),
        ("storage-v1", "/apis/storage.k8s.io/v1"),
        ("coordination-v1", "/apis/coordination.k8s.io/v1"),
        ("events-v1", "/apis/events.k8s.io/v1"),
        ("discovery-v1", "/apis/discovery.k8s.io/v1"),
        ("scheduling-v1", "/apis/scheduling.k8s.io/v1"),
        ("node-v1", "/apis/node.k8s.io/v1"),
        ("apiextensions-v1", "/apis/apiextensions.k8s.io/v1"),
        ("admissionregistration-v1", "/apis/admissionregistration.k8s.io/v1"),
    ] {
        script.get(name, path);
    }
    let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    script.get("aggregated-core", "/api").accept(v2);
    script.get("kubectl-core", "/api").accept(&format!("{v2},application/json"));
    script.get("xml", "/api").accept("application/xml");
    script.get("xml-of-a-group", "/apis/apps/v1").accept("application/xml");
    script.get("table", "/api/v1").accept("application/json;as=Table;g=meta.k8s.io;v=v1");
    script.get("openapi-v3", "/openapi/v3").accept("application/json");
    compare(script).await
}
