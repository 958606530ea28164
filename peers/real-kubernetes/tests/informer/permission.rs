//! Permissions and tokens that are revoked and granted again.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use real_kubernetes::RealKubernetes;
use serde_json::json;

use super::mirror::Mirror;
use super::scene::Scene;

/// Lets `reader` list and watch the config maps of a scene.
async fn grant(scene: &Scene) -> Result<()> {
    let (client, namespace) = (scene.client.clone(), &*scene.namespace);
    let roles: Api<Role> = Api::namespaced(client.clone(), namespace);
    if roles.get_opt("reads").await?.is_none() {
        let role = json!({
            "metadata": {"name": "reads"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}],
        });
        roles.create(&PostParams::default(), &serde_json::from_value(role)?).await?;
    }
    let binding = json!({
        "metadata": {"name": "reads"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}],
    });
    let bindings: Api<RoleBinding> = Api::namespaced(client, namespace);
    bindings.create(&PostParams::default(), &serde_json::from_value(binding)?).await?;
    Ok(())
}

async fn revoke(scene: &Scene) -> Result<()> {
    let bindings: Api<RoleBinding> = Api::namespaced(scene.client.clone(), &scene.namespace);
    bindings.delete("reads", &DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_is_given_taken_away_and_given_back() -> Result<()> {
    let Some(kubernetes) = RealKubernetes::start().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "permission").await?;
    scene.create("a").await?;
    scene.create("b").await?;
    let (gate, _, reader) = kubernetes.gate().await?;
    let mirror = Mirror::<ConfigMap>::start(reader, scene.client.clone(), &scene.all());
    let refused = mirror.error(|report| report.error.is_forbidden()).await?;
    assert!(refused.to_string().contains("reader"), "{refused}");
    assert!(mirror.all(|informer| !informer.has_synced()));
    grant(&scene).await?;
    assert_eq!(mirror.settle().await?, 2);

    let before = mirror.reported();
    revoke(&scene).await?;
    // An open watch continues until it ends by itself.
    gate.close();
    scene.delete("a").await?;
    scene.create("c").await?;
    // The server's authorizer learns of it a moment later.
    let maps: Api<ConfigMap> = Api::namespaced(kubernetes.reader().await?, &scene.namespace);
    while maps.list(&ListParams::default()).await.is_ok() {}
    gate.open();
    mirror.error_after(&before, |report| report.error.is_forbidden()).await?;
    assert!(mirror.all(|informer| informer.lister().len() == 2), "what was known stays known");
    assert!(mirror.all(|informer| !informer.is_live()));
    grant(&scene).await?;
    assert_eq!(mirror.settle().await?, 2);
    mirror.end().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_revoked_and_restored() -> Result<()> {
    let Some(mut kubernetes) = RealKubernetes::start().await? else { return Ok(()) };
    let scene = Scene::new(kubernetes.client().await?, "token").await?;
    grant(&scene).await?;
    scene.create("a").await?;
    scene.create("b").await?;
    let reader = kubernetes.reader().await?;
    let mirror = Mirror::<ConfigMap>::start(reader, scene.client.clone(), &scene.all());
    assert_eq!(mirror.settle().await?, 2);

    kubernetes.revoke_reader().await?;
    scene.delete("a").await?;
    mirror.error(|report| report.error.is_unauthorized()).await?;
    scene.create("c").await?;
    scene.create("d").await?;
    assert!(mirror.all(|informer| !informer.is_live()));
    kubernetes.restore_reader().await?;
    assert_eq!(mirror.settle().await?, 3);
    mirror.end().await;
    Ok(())
}
