//! The status subresource through `Api`.

use embedded_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::harness::status;

fn a_pod(server: &ApiServer) -> Api<Pod> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    server.create(pod).unwrap();
    Api::default_namespaced(server.client())
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref().and_then(|status| status.phase.as_deref())
}

#[tokio::test(start_paused = true)]
async fn status_is_written_through_its_own_path_only() {
    let server = ApiServer::start();
    let pods = a_pod(&server);
    let both = Patch::Merge(json!({
        "metadata": {"labels": {"l": "m"}}, "status": {"phase": "Running"},
    }));
    let patched = pods.patch("p", &PatchParams::default(), &both).await.unwrap();
    assert_eq!((phase(&patched), patched.labels()["l"].as_str()), (Some("Pending"), "m"));

    let spec_too = Patch::Merge(json!({
        "spec": {"nodeName": "n"}, "status": {"phase": "Running"},
    }));
    let patched = pods.patch_status("p", &PatchParams::default(), &spec_too).await.unwrap();
    assert_eq!(phase(&patched), Some("Running"));
    assert_eq!(patched.spec.as_ref().unwrap().node_name, None);
    assert_eq!(patched.metadata.generation, Some(1));
    assert_eq!(pods.get_status("p").await.unwrap(), patched);

    let mut replaced = patched.clone();
    let succeeded = PodStatus { phase: Some("Succeeded".to_owned()), ..PodStatus::default() };
    replaced.status = Some(succeeded);
    let replaced = pods.replace_status("p", &PostParams::default(), &replaced).await.unwrap();
    assert_eq!(phase(&replaced), Some("Succeeded"));
    let stale = pods.replace_status("p", &PostParams::default(), &patched).await;
    assert!(status(stale).is_conflict());
}

#[tokio::test(start_paused = true)]
async fn a_patch_of_the_status_can_be_a_dry_run_and_a_json_patch() {
    let server = ApiServer::start();
    let pods = a_pod(&server);
    let operations = json!([{"op": "replace", "path": "/status/phase", "value": "Failed"}]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(operations).unwrap());
    let dry = PatchParams::default().dry_run();
    assert_eq!(phase(&pods.patch_status("p", &dry, &patch).await.unwrap()), Some("Failed"));
    assert_eq!(phase(&pods.get("p").await.unwrap()), Some("Pending"));
    pods.patch_status("p", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(phase(&pods.get("p").await.unwrap()), Some("Failed"));
}
