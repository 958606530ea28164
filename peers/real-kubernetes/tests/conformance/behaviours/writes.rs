//! Creates and updates.

use anyhow::Result;
use serde_json::json;

use super::on_both;
use crate::scene::{Scene, name, version};

on_both! {
    what_is_created_is_read,
    a_name_is_taken_once,
    a_generated_name_begins_as_asked,
    an_update_from_an_old_version_is_a_conflict,
    an_update_without_a_version_wins,
    an_update_that_changes_nothing_writes_nothing,
    an_update_of_another_uid_is_a_conflict,
    what_is_the_servers_stays_the_servers,
    a_dry_run_leaves_nothing,
    what_is_not_there_is_not_updated,
    bad_metadata_are_named_one_by_one,
    a_body_of_another_kind_is_refused,
    a_body_of_another_type_is_refused,
    versions_only_grow,
}

async fn what_is_created_is_read(scene: Scene) -> Result<()> {
    let map = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}});
    let answer = scene.post(&scene.maps, map).await?;
    assert_eq!(answer.code, 201);
    let created = answer.ok()?;
    assert_eq!((&created["kind"], &created["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
    assert_eq!(created["metadata"]["namespace"], scene.namespace);
    for given in ["uid", "resourceVersion", "creationTimestamp"] {
        assert!(created["metadata"][given].is_string(), "{given} in {created}");
    }
    assert_eq!(scene.get(&scene.map("a")).await?.ok()?, created);
    Ok(())
}

async fn a_name_is_taken_once(scene: Scene) -> Result<()> {
    scene.create("a").await?;
    let again = scene.post(&scene.maps, json!({"metadata": {"name": "a"}})).await?;
    let status = again.failed(409, "AlreadyExists")?;
    assert_eq!(status["details"], json!({"name": "a", "kind": "configmaps"}));
    Ok(())
}

async fn a_generated_name_begins_as_asked(scene: Scene) -> Result<()> {
    let map = json!({"metadata": {"generateName": "made-"}});
    let first = scene.post(&scene.maps, map.clone()).await?.ok()?;
    let second = scene.post(&scene.maps, map).await?.ok()?;
    for made in [&first, &second] {
        assert!(name(made).starts_with("made-") && name(made).len() == 10, "{made}");
    }
    assert_ne!(name(&first), name(&second));
    Ok(())
}

async fn an_update_from_an_old_version_is_a_conflict(scene: Scene) -> Result<()> {
    let mut map = scene.create("a").await?;
    map["data"] = json!({"k": "1"});
    let updated = scene.put(&scene.map("a"), map.clone()).await?.ok()?;
    assert_ne!(version(&updated), version(&map));
    map["data"] = json!({"k": "2"});
    let status = scene.put(&scene.map("a"), map).await?.failed(409, "Conflict")?;
    assert_eq!(status["details"], json!({"name": "a", "kind": "configmaps"}));
    assert_eq!(scene.get(&scene.map("a")).await?.ok()?, updated);
    Ok(())
}

async fn an_update_without_a_version_wins(scene: Scene) -> Result<()> {
    scene.create("a").await?;
    let map = json!({"metadata": {"name": "a"}, "data": {"k": "1"}});
    let updated = scene.put(&scene.map("a"), map).await?.ok()?;
    assert_eq!(updated["data"]["k"], "1");
    Ok(())
}

async fn an_update_that_changes_nothing_writes_nothing(scene: Scene) -> Result<()> {
    let created = scene.create("a").await?;
    let updated = scene.put(&scene.map("a"), created.clone()).await?.ok()?;
    assert_eq!(version(&updated), version(&created));
    let patched = scene.merge(&scene.map("a"), json!({})).await?.ok()?;
    assert_eq!(version(&patched), version(&created));
    Ok(())
}

async fn an_update_of_another_uid_is_a_conflict(scene: Scene) -> Result<()> {
    scene.create("a").await?;
    let map = json!({"metadata": {"name": "a", "uid": "another"}});
    scene.put(&scene.map("a"), map).await?.failed(409, "Conflict")?;
    Ok(())
}

async fn what_is_the_servers_stays_the_servers(scene: Scene) -> Result<()> {
    let map = json!({"metadata": {
        "name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
    }});
    let created = scene.post(&scene.maps, map).await?.ok()?;
    assert_ne!(created["metadata"]["uid"], "mine");
    assert_ne!(created["metadata"]["creationTimestamp"], "2001-01-01T00:00:00Z");
    assert!(created["metadata"]["deletionTimestamp"].is_null());
    Ok(())
}

async fn a_dry_run_leaves_nothing(scene: Scene) -> Result<()> {
    let dry = format!("{}?dryRun=All", scene.maps);
    let map = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    let would = scene.post(&dry, map).await?;
    assert_eq!((would.code, &would.ok()?["data"]["k"]), (201, &json!("v")));
    scene.get(&scene.map("a")).await?.failed(404, "NotFound")?;
    let created = scene.create("a").await?;
    let dry = format!("{}?dryRun=All", scene.map("a"));
    let would = scene.merge(&dry, json!({"data": {"k": "v"}})).await?.ok()?;
    assert_eq!(would["data"]["k"], "v");
    scene.delete(&dry).await?.ok()?;
    assert_eq!(scene.get(&scene.map("a")).await?.ok()?, created);
    let wrong = format!("{}?dryRun=Some", scene.maps);
    scene.post(&wrong, json!({"metadata": {"name": "b"}})).await?.failed(422, "Invalid")?;
    Ok(())
}

async fn what_is_not_there_is_not_updated(scene: Scene) -> Result<()> {
    let map = json!({"metadata": {"name": "none"}});
    let status = scene.put(&scene.map("none"), map).await?.failed(404, "NotFound")?;
    assert_eq!(status["message"], r#"configmaps "none" not found"#);
    scene.merge(&scene.map("none"), json!({})).await?.failed(404, "NotFound")?;
    scene.get(&scene.map("none")).await?.failed(404, "NotFound")?;
    scene.delete(&scene.map("none")).await?.failed(404, "NotFound")?;
    Ok(())
}

async fn bad_metadata_are_named_one_by_one(scene: Scene) -> Result<()> {
    let bad = json!({"metadata": {"name": "A", "labels": {"a b": "c", "d": "e f"}}});
    let status = scene.post(&scene.maps, bad).await?.failed(422, "Invalid")?;
    let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
    let fields: Vec<_> = causes.iter().filter_map(|cause| cause["field"].as_str()).collect();
    assert_eq!(fields, ["metadata.name", "metadata.labels", "metadata.labels"]);
    let none = scene.post(&scene.maps, json!({"metadata": {}})).await?;
    none.failed(422, "Invalid")?;
    Ok(())
}

async fn a_body_of_another_kind_is_refused(scene: Scene) -> Result<()> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    scene.post(&scene.maps, secret).await?.failed(400, "BadRequest")?;
    let version = json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}});
    scene.post(&scene.maps, version).await?.failed(400, "BadRequest")?;
    let place = json!({"metadata": {"name": "a", "namespace": "default"}});
    scene.post(&scene.maps, place).await?.failed(400, "BadRequest")?;
    Ok(())
}

async fn a_body_of_another_type_is_refused(scene: Scene) -> Result<()> {
    let answer = scene.write("POST", &scene.maps, "text/plain", "{}".to_owned()).await?;
    answer.failed(415, "UnsupportedMediaType")?;
    let broken = scene.write("POST", &scene.maps, "application/json", "{".to_owned()).await?;
    broken.failed(400, "BadRequest")?;
    Ok(())
}

async fn versions_only_grow(scene: Scene) -> Result<()> {
    let mut highest = 0;
    for round in 0..10 {
        let written = match round {
            0 => scene.create("a").await?,
            _ => scene
                .merge(&scene.map("a"), json!({"data": {"k": round.to_string()}}))
                .await?
                .ok()?,
        };
        let next: u64 = version(&written).parse()?;
        assert!(next > highest, "{next} after {highest}");
        highest = next;
    }
    let list = scene.get(&scene.maps).await?.ok()?;
    assert!(version(&list).parse::<u64>()? >= highest);
    Ok(())
}
