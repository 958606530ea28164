//! Namespaces.

use anyhow::Result;
use serde_json::json;

use super::on_both;
use crate::scene::Scene;

on_both! {
    nothing_is_created_in_no_namespace,
    a_namespace_is_labelled_with_its_name,
    a_namespace_with_something_in_it_waits_and_takes_nothing_new,
    some_namespaces_are_there_for_good,
}

async fn nothing_is_created_in_no_namespace(scene: Scene) -> Result<()> {
    let path = "/api/v1/namespaces/none/configmaps";
    let answer = scene.post(path, json!({"metadata": {"name": "a"}})).await?;
    let status = answer.failed(404, "NotFound")?;
    assert_eq!(status["message"], r#"namespaces "none" not found"#);
    Ok(())
}

async fn a_namespace_is_labelled_with_its_name(scene: Scene) -> Result<()> {
    let namespace = &scene.namespace;
    let found = scene.get(&format!("/api/v1/namespaces/{namespace}")).await?.ok()?;
    assert_eq!(found["metadata"]["labels"]["kubernetes.io/metadata.name"], *namespace);
    assert_eq!(found["status"]["phase"], "Active");
    assert_eq!(found["spec"]["finalizers"], json!(["kubernetes"]));
    Ok(())
}

async fn a_namespace_with_something_in_it_waits_and_takes_nothing_new(scene: Scene) -> Result<()> {
    scene.create("a").await?;
    let path = format!("/api/v1/namespaces/{}", scene.namespace);
    let marked = scene.delete(&path).await?.ok()?;
    assert_eq!(marked["status"]["phase"], "Terminating");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let answer = scene.post(&scene.maps, json!({"metadata": {"name": "b"}})).await?;
    let status = answer.failed(403, "Forbidden")?;
    assert_eq!(status["details"]["causes"][0]["reason"], "NamespaceTerminating");
    // Existing objects can still be changed.
    scene.merge(&scene.map("a"), json!({"data": {"k": "v"}})).await?.ok()?;
    assert_eq!(scene.get(&path).await?.ok()?["status"]["phase"], "Terminating");
    Ok(())
}

async fn some_namespaces_are_there_for_good(scene: Scene) -> Result<()> {
    for name in ["default", "kube-system", "kube-public"] {
        let answer = scene.delete(&format!("/api/v1/namespaces/{name}")).await?;
        answer.failed(403, "Forbidden")?;
    }
    Ok(())
}
