//! The separation of spec and status, and generations.

use anyhow::Result;
use serde_json::{Value, json};

use super::on_both;
use crate::scene::{Scene, deployment, version};

on_both! {
    a_create_sets_no_status,
    an_update_leaves_the_status,
    a_status_update_leaves_the_rest,
    generations_count_changes_of_the_spec,
    a_status_update_from_an_old_version_is_a_conflict,
}

async fn created(scene: &Scene) -> Result<(String, String, Value)> {
    let all = scene.path("/apis/apps/v1", "deployments");
    let made = scene.post(&all, deployment(1)).await?.ok()?;
    Ok((format!("{all}/a"), format!("{all}/a/status"), made))
}

async fn a_create_sets_no_status(scene: Scene) -> Result<()> {
    let (_, _, made) = created(&scene).await?;
    assert!(made["status"].get("replicas").is_none(), "{made}");
    assert_eq!(made["metadata"]["generation"], 1);
    Ok(())
}

async fn an_update_leaves_the_status(scene: Scene) -> Result<()> {
    let (path, status, _) = created(&scene).await?;
    scene.merge(&status, json!({"status": {"replicas": 3}})).await?.ok()?;
    let updated = scene.put(&path, deployment(2)).await?.ok()?;
    assert_eq!(
        (&updated["spec"]["replicas"], &updated["status"]["replicas"]),
        (&json!(2), &json!(3))
    );
    let patched = scene.merge(&path, json!({"status": {"replicas": 9}})).await?.ok()?;
    assert_eq!(version(&patched), version(&updated));
    Ok(())
}

async fn a_status_update_leaves_the_rest(scene: Scene) -> Result<()> {
    let (_, status, made) = created(&scene).await?;
    let patch = json!({"status": {"replicas": 3}, "spec": {"replicas": 9}});
    let patched = scene.merge(&status, patch).await?.ok()?;
    assert_eq!(patched["status"]["replicas"], 3);
    assert_eq!(patched["spec"], made["spec"]);
    assert_eq!(patched["metadata"]["generation"], 1);
    assert_eq!(scene.get(&status).await?.ok()?, patched);
    Ok(())
}

async fn generations_count_changes_of_the_spec(scene: Scene) -> Result<()> {
    let (path, status, _) = created(&scene).await?;
    for (place, patch, generation) in [
        (&path, json!({"spec": {"replicas": 2}}), 2),
        (&path, json!({"metadata": {"labels": {"x": "y"}}}), 2),
        (&status, json!({"status": {"replicas": 2}}), 2),
        (&path, json!({"spec": {"replicas": 3}}), 3),
        (&path, json!({"metadata": {"generation": 9}}), 3),
    ] {
        let patched = scene.merge(place, patch.clone()).await?.ok()?;
        assert_eq!(patched["metadata"]["generation"], generation, "{patch}");
    }
    Ok(())
}

async fn a_status_update_from_an_old_version_is_a_conflict(scene: Scene) -> Result<()> {
    let (path, status, made) = created(&scene).await?;
    scene.merge(&path, json!({"spec": {"replicas": 2}})).await?.ok()?;
    let stale = json!({"metadata": {"resourceVersion": version(&made)}, "status": {"replicas": 1}});
    scene.merge(&status, stale).await?.failed(409, "Conflict")?;
    Ok(())
}
