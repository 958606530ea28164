//! Patches.

use anyhow::Result;
use serde_json::json;

use super::on_both;
use crate::scene::{Scene, version};

on_both! {
    a_merge_patch_changes_what_it_names,
    a_merge_patch_from_an_old_version_is_a_conflict,
    a_json_patch_is_all_or_nothing,
    a_test_for_null_is_met_by_nothing,
    a_patch_does_not_rename,
    a_patch_of_no_known_type_is_refused,
}

async fn a_merge_patch_changes_what_it_names(scene: Scene) -> Result<()> {
    let map = json!({"metadata": {"name": "a"}, "data": {"k": "1", "l": "2"}});
    scene.post(&scene.maps, map).await?.ok()?;
    let patch = json!({"data": {"k": null, "m": "3"}});
    let patched = scene.merge(&scene.map("a"), patch).await?.ok()?;
    assert_eq!(patched["data"], json!({"l": "2", "m": "3"}));
    Ok(())
}

async fn a_merge_patch_from_an_old_version_is_a_conflict(scene: Scene) -> Result<()> {
    let created = scene.create("a").await?;
    scene.merge(&scene.map("a"), json!({"data": {"k": "1"}})).await?.ok()?;
    let stale = json!({"metadata": {"resourceVersion": version(&created)}, "data": {"k": "2"}});
    scene.merge(&scene.map("a"), stale).await?.failed(409, "Conflict")?;
    Ok(())
}

async fn a_json_patch_is_all_or_nothing(scene: Scene) -> Result<()> {
    let map = json!({"metadata": {"name": "a"}, "data": {"k": "1"}});
    let created = scene.post(&scene.maps, map).await?.ok()?;
    let fails = json!([
        {"op": "replace", "path": "/data/k", "value": "2"},
        {"op": "test", "path": "/data/k", "value": "3"},
    ]);
    scene.json_patch(&scene.map("a"), fails).await?.failed(422, "Invalid")?;
    assert_eq!(scene.get(&scene.map("a")).await?.ok()?, created);
    let works = json!([
        {"op": "test", "path": "/data/k", "value": "1"},
        {"op": "add", "path": "/data/l", "value": "2"},
        {"op": "remove", "path": "/data/k"},
    ]);
    let patched = scene.json_patch(&scene.map("a"), works).await?.ok()?;
    assert_eq!(patched["data"], json!({"l": "2"}));
    Ok(())
}

async fn a_test_for_null_is_met_by_nothing(scene: Scene) -> Result<()> {
    scene.create("a").await?;
    let patch = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/f"]},
    ]);
    let patched = scene.json_patch(&scene.map("a"), patch.clone()).await?.ok()?;
    assert_eq!(patched["metadata"]["finalizers"], json!(["example.com/f"]));
    scene.json_patch(&scene.map("a"), patch).await?.failed(422, "Invalid")?;
    Ok(())
}

async fn a_patch_does_not_rename(scene: Scene) -> Result<()> {
    scene.create("a").await?;
    let renamed = scene.merge(&scene.map("a"), json!({"metadata": {"name": "b"}})).await?;
    renamed.failed(400, "BadRequest")?;
    let reborn = scene.merge(&scene.map("a"), json!({"metadata": {"uid": "b"}})).await?;
    reborn.failed(422, "Invalid")?;
    Ok(())
}

async fn a_patch_of_no_known_type_is_refused(scene: Scene) -> Result<()> {
    scene.create("a").await?;
    let answer = scene.write("PATCH", &scene.map("a"), "text/plain", "{}".to_owned()).await?;
    answer.failed(415, "UnsupportedMediaType")?;
    Ok(())
}
