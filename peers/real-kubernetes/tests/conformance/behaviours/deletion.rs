//! Deletes, preconditions, finalizers.

use anyhow::Result;
use serde_json::json;

use super::on_both;
use crate::scene::{Scene, names, version};

on_both! {
    what_is_deleted_is_gone,
    a_delete_under_conditions_wants_them_met,
    finalizers_hold_what_is_deleted,
    no_finalizer_is_added_to_what_is_deleted,
    a_deletion_is_not_taken_back,
    a_collection_is_deleted_by_its_selector,
    a_policy_that_is_unknown_is_refused,
}

async fn what_is_deleted_is_gone(scene: Scene) -> Result<()> {
    let created = scene.create("a").await?;
    let status = scene.delete(&scene.map("a")).await?.ok()?;
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(status["details"]["uid"], created["metadata"]["uid"]);
    scene.get(&scene.map("a")).await?.failed(404, "NotFound")?;
    let again = scene.create("a").await?;
    assert_ne!(again["metadata"]["uid"], created["metadata"]["uid"]);
    Ok(())
}

async fn a_delete_under_conditions_wants_them_met(scene: Scene) -> Result<()> {
    let created = scene.create("a").await?;
    let path = scene.map("a");
    for wrong in [json!({"uid": "another"}), json!({"resourceVersion": "1"})] {
        let options = json!({"preconditions": wrong});
        scene.delete_with(&path, options).await?.failed(409, "Conflict")?;
    }
    let uid = &created["metadata"]["uid"];
    let right = json!({"preconditions": {"uid": uid, "resourceVersion": version(&created)}});
    scene.delete_with(&path, right).await?.ok()?;
    Ok(())
}

async fn finalizers_hold_what_is_deleted(scene: Scene) -> Result<()> {
    let held = json!({"metadata": {"name": "a", "finalizers": ["example.com/f", "example.com/g"]}});
    scene.post(&scene.maps, held).await?.ok()?;
    let path = scene.map("a");
    let marked = scene.delete(&path).await?.ok()?;
    assert!(marked["metadata"]["deletionTimestamp"].is_string(), "{marked}");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    // A second delete changes nothing.
    let again = scene.delete(&path).await?.ok()?;
    assert_eq!(version(&again), version(&marked));
    scene.merge(&path, json!({"metadata": {"finalizers": ["example.com/g"]}})).await?.ok()?;
    scene.get(&path).await?.ok()?;
    scene.merge(&path, json!({"metadata": {"finalizers": null}})).await?.ok()?;
    scene.get(&path).await?.failed(404, "NotFound")?;
    Ok(())
}

async fn no_finalizer_is_added_to_what_is_deleted(scene: Scene) -> Result<()> {
    let held = json!({"metadata": {"name": "a", "finalizers": ["example.com/f"]}});
    scene.post(&scene.maps, held).await?.ok()?;
    scene.delete(&scene.map("a")).await?.ok()?;
    let more = json!({"metadata": {"finalizers": ["example.com/f", "example.com/g"]}});
    scene.merge(&scene.map("a"), more).await?.failed(422, "Invalid")?;
    Ok(())
}

async fn a_deletion_is_not_taken_back(scene: Scene) -> Result<()> {
    let held = json!({"metadata": {"name": "a", "finalizers": ["example.com/f"]}});
    scene.post(&scene.maps, held).await?.ok()?;
    let marked = scene.delete(&scene.map("a")).await?.ok()?;
    let back = json!({"metadata": {"deletionTimestamp": null}});
    let kept = scene.merge(&scene.map("a"), back).await?.ok()?;
    assert_eq!(kept["metadata"]["deletionTimestamp"], marked["metadata"]["deletionTimestamp"]);
    Ok(())
}

async fn a_collection_is_deleted_by_its_selector(scene: Scene) -> Result<()> {
    for (name, colour) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        let map = json!({"metadata": {"name": name, "labels": {"colour": colour}}});
        scene.post(&scene.maps, map).await?.ok()?;
    }
    let red = format!("{}?labelSelector=colour%3Dred", scene.maps);
    scene.delete(&red).await?.ok()?;
    let left = scene.get(&format!("{}?labelSelector=colour", scene.maps)).await?.ok()?;
    assert_eq!(names(&left), ["b"]);
    Ok(())
}

async fn a_policy_that_is_unknown_is_refused(scene: Scene) -> Result<()> {
    scene.create("a").await?;
    let path = format!("{}?propagationPolicy=Sideways", scene.map("a"));
    scene.delete(&path).await?.failed(422, "Invalid")?;
    Ok(())
}
