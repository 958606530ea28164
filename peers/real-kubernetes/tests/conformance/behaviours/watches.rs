//! Events of watches.

use anyhow::Result;
use serde_json::json;

use super::on_both;
use crate::scene::{Scene, name, version};

on_both! {
    a_watch_tells_what_happens_after_its_version,
    a_watch_goes_on_from_where_another_was,
    entering_and_leaving_a_selector_are_told,
    a_watch_of_one_object_is_about_that_one,
    what_is_deleted_is_shown_with_the_version_of_its_deletion,
    a_finalizer_is_seen_going,
    watches_see_one_order,
    bookmarks_are_for_those_who_ask,
}

async fn a_watch_tells_what_happens_after_its_version(scene: Scene) -> Result<()> {
    let before = scene.create("before").await?;
    let from = version(&before).to_owned();
    let mut watch = scene.watch(&format!("{}?watch=1&resourceVersion={from}", scene.maps)).await?;
    let created = scene.create("a").await?;
    let changed = scene.merge(&scene.map("a"), json!({"data": {"k": "v"}})).await?.ok()?;
    scene.delete(&scene.map("a")).await?.ok()?;
    let events = [watch.event().await?, watch.event().await?, watch.event().await?];
    assert_eq!((&*events[0].kind, &events[0].object), ("ADDED", &created));
    assert_eq!((&*events[1].kind, &events[1].object), ("MODIFIED", &changed));
    assert_eq!((&*events[2].kind, name(&events[2].object)), ("DELETED", "a"));
    assert_eq!(events[2].object["data"], changed["data"]);
    Ok(())
}

async fn a_watch_goes_on_from_where_another_was(scene: Scene) -> Result<()> {
    let first = scene.create("a").await?;
    for round in ["1", "2", "3"] {
        scene.merge(&scene.map("a"), json!({"data": {"k": round}})).await?.ok()?;
    }
    let path = |version: &str| format!("{}?watch=1&resourceVersion={version}", scene.maps);
    let mut broken = scene.watch(&path(version(&first))).await?;
    let seen = broken.event().await?;
    assert_eq!(seen.object["data"]["k"], "1");
    drop(broken);
    let mut again = scene.watch(&path(version(&seen.object))).await?;
    assert_eq!(again.event().await?.object["data"]["k"], "2");
    assert_eq!(again.event().await?.object["data"]["k"], "3");
    Ok(())
}

async fn entering_and_leaving_a_selector_are_told(scene: Scene) -> Result<()> {
    let from = scene.get(&scene.maps).await?.ok()?;
    let from = version(&from);
    let path = format!("{}?watch=1&labelSelector=colour%3Dred&resourceVersion={from}", scene.maps);
    let mut watch = scene.watch(&path).await?;
    let colour = |colour: &str| json!({"metadata": {"labels": {"colour": colour}}});
    scene.create("a").await?;
    scene.merge(&scene.map("a"), colour("red")).await?.ok()?;
    scene.merge(&scene.map("a"), json!({"data": {"k": "v"}})).await?.ok()?;
    let left = scene.merge(&scene.map("a"), colour("blue")).await?.ok()?;
    scene.merge(&scene.map("a"), json!({"data": {"k": "w"}})).await?.ok()?;
    scene.merge(&scene.map("a"), colour("red")).await?.ok()?;
    scene.delete(&scene.map("a")).await?.ok()?;
    assert_eq!(watch.briefs(2).await?, ["ADDED a", "MODIFIED a"]);
    let gone = watch.event().await?;
    assert_eq!(gone.kind, "DELETED");
    // The object as it was while it was red, with the version at which it stopped being so.
    assert_eq!(gone.object["metadata"]["labels"]["colour"], "red");
    assert_eq!(version(&gone.object), version(&left));
    assert_eq!(watch.briefs(2).await?, ["ADDED a", "DELETED a"]);
    Ok(())
}

async fn a_watch_of_one_object_is_about_that_one(scene: Scene) -> Result<()> {
    let from = scene.create("other").await?;
    let from = version(&from);
    let path =
        format!("{}?watch=1&fieldSelector=metadata.name%3Da&resourceVersion={from}", scene.maps);
    let mut watch = scene.watch(&path).await?;
    scene.create("b").await?;
    scene.create("a").await?;
    scene.delete(&scene.map("b")).await?.ok()?;
    scene.delete(&scene.map("a")).await?.ok()?;
    assert_eq!(watch.briefs(2).await?, ["ADDED a", "DELETED a"]);
    Ok(())
}

async fn what_is_deleted_is_shown_with_the_version_of_its_deletion(scene: Scene) -> Result<()> {
    let created = scene.create("a").await?;
    let from = version(&created);
    let mut watch = scene.watch(&format!("{}?watch=1&resourceVersion={from}", scene.maps)).await?;
    scene.delete(&scene.map("a")).await?.ok()?;
    let next = scene.create("b").await?;
    let gone = watch.event().await?;
    let number = |object: &serde_json::Value| version(object).parse::<u64>();
    assert!(number(&gone.object)? > number(&created)?);
    assert!(number(&gone.object)? < number(&next)?);
    Ok(())
}

async fn a_finalizer_is_seen_going(scene: Scene) -> Result<()> {
    let held = json!({"metadata": {"name": "a", "finalizers": ["example.com/f"]}});
    let created = scene.post(&scene.maps, held).await?.ok()?;
    let from = version(&created);
    let mut watch = scene.watch(&format!("{}?watch=1&resourceVersion={from}", scene.maps)).await?;
    scene.delete(&scene.map("a")).await?.ok()?;
    scene.merge(&scene.map("a"), json!({"metadata": {"finalizers": null}})).await?.ok()?;
    let marked = watch.event().await?;
    assert_eq!(marked.kind, "MODIFIED");
    assert!(marked.object["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(watch.event().await?.kind, "DELETED");
    Ok(())
}

async fn watches_see_one_order(scene: Scene) -> Result<()> {
    let from = scene.create("zero").await?;
    let path = format!("{}?watch=1&resourceVersion={}", scene.maps, version(&from));
    let mut early = scene.watch(&path).await?;
    for name in ["a", "b", "c", "d"] {
        scene.create(name).await?;
    }
    for name in ["d", "b"] {
        scene.delete(&scene.map(name)).await?.ok()?;
    }
    let mut late = scene.watch(&path).await?;
    let story = early.briefs(6).await?;
    assert_eq!(story, ["ADDED a", "ADDED b", "ADDED c", "ADDED d", "DELETED d", "DELETED b"]);
    assert_eq!(late.briefs(6).await?, story);
    Ok(())
}

/// Only the bookmark that ends the initial events is tested; the others are sent once a minute.
async fn bookmarks_are_for_those_who_ask(scene: Scene) -> Result<()> {
    scene.create("a").await?;
    let initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let path = format!("{}?watch=1&{initial}", scene.maps);
    let mut with = scene.watch(&format!("{path}&allowWatchBookmarks=true")).await?;
    let mut without = scene.watch(&path).await?;
    assert_eq!(with.briefs(1).await?, ["ADDED a"]);
    assert_eq!(with.event().await?.kind, "BOOKMARK");
    scene.create("b").await?;
    assert_eq!(with.briefs(1).await?, ["ADDED b"]);
    for wanted in ["a", "b"] {
        let event = without.event().await?;
        assert_eq!((&*event.kind, name(&event.object)), ("ADDED", wanted));
    }
    Ok(())
}
