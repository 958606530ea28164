//! The start and the end of watches.

use anyhow::{Result, bail};
use serde_json::json;

use super::on_both;
use crate::scene::{Scene, name, version};

on_both! {
    a_watch_without_a_version_begins_with_what_is_there,
    initial_events_end_with_a_bookmark,
    initial_events_of_nothing_are_a_bookmark,
    initial_events_want_their_version,
    a_version_that_is_forgotten_is_expired,
    a_watch_ends_when_its_time_is_up,
    a_watch_from_the_future_is_quiet,
    a_version_that_is_none_is_refused,
}

async fn a_watch_without_a_version_begins_with_what_is_there(scene: Scene) -> Result<()> {
    scene.create("a").await?;
    scene.create("b").await?;
    for version in ["", "&resourceVersion=0"] {
        let mut watch = scene.watch(&format!("{}?watch=1{version}", scene.maps)).await?;
        let mut first = watch.briefs(2).await?;
        // The order is unspecified.
        first.sort();
        assert_eq!(first, ["ADDED a", "ADDED b"]);
        let path = scene.map("a");
        scene.merge(&path, json!({"data": {"k": version}})).await?.ok()?;
        assert_eq!(watch.briefs(1).await?, ["MODIFIED a"]);
    }
    Ok(())
}

const INITIAL: &str =
    "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

async fn initial_events_end_with_a_bookmark(scene: Scene) -> Result<()> {
    scene.create("a").await?;
    let last = scene.create("b").await?;
    let mut watch = scene.watch(&format!("{}?{INITIAL}", scene.maps)).await?;
    assert_eq!(watch.briefs(2).await?, ["ADDED a", "ADDED b"]);
    let bookmark = watch.event().await?;
    assert_eq!(bookmark.kind, "BOOKMARK");
    assert_eq!(bookmark.object["kind"], "ConfigMap");
    let annotations = &bookmark.object["metadata"]["annotations"];
    assert_eq!(*annotations, json!({"k8s.io/initial-events-end": "true"}));
    assert!(version(&bookmark.object).parse::<u64>()? >= version(&last).parse()?);
    scene.delete(&scene.map("a")).await?.ok()?;
    assert_eq!(watch.briefs(1).await?, ["DELETED a"]);
    Ok(())
}

async fn initial_events_of_nothing_are_a_bookmark(scene: Scene) -> Result<()> {
    let path = scene.path("/api/v1", "secrets");
    let mut watch = scene.watch(&format!("{path}?{INITIAL}")).await?;
    let bookmark = watch.event().await?;
    assert_eq!(bookmark.kind, "BOOKMARK");
    assert_eq!(bookmark.object["kind"], "Secret");
    Ok(())
}

async fn initial_events_want_their_version(scene: Scene) -> Result<()> {
    for query in [
        "watch=1&sendInitialEvents=true",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
        "watch=1&resourceVersionMatch=NotOlderThan",
    ] {
        let answer = scene.get(&format!("{}?{query}", scene.maps)).await?;
        answer.failed(422, "Invalid")?;
    }
    Ok(())
}

async fn a_version_that_is_forgotten_is_expired(scene: Scene) -> Result<()> {
    // Older than the first version of either server.
    let path = format!("{}?watch=1&resourceVersion=1", scene.maps);
    let mut watch = scene.watch(&path).await?;
    let event = watch.event().await?;
    assert_eq!(event.kind, "ERROR");
    let status = &event.object;
    assert_eq!((&status["kind"], &status["reason"]), (&json!("Status"), &json!("Expired")));
    assert_eq!(status["code"], 410);
    watch.ends().await
}

async fn a_watch_ends_when_its_time_is_up(scene: Scene) -> Result<()> {
    let from = scene.create("a").await?;
    let from = version(&from);
    // Created before the watch, because one second may be too short for it.
    scene.create("b").await?;
    // On a busy machine it may even be too short to tell anything.
    for seconds in [1, 10, 60] {
        let time = format!("timeoutSeconds={seconds}");
        let path = format!("{}?watch=1&{time}&resourceVersion={from}", scene.maps);
        let mut watch = scene.watch(&path).await?;
        let Some(event) = watch.next().await? else { continue };
        assert_eq!((&*event.kind, name(&event.object)), ("ADDED", "b"));
        return watch.ends().await;
    }
    bail!("no watch has told anything")
}

async fn a_watch_from_the_future_is_quiet(scene: Scene) -> Result<()> {
    let path = format!("{}?watch=1&timeoutSeconds=1&resourceVersion=999999999", scene.maps);
    let mut watch = scene.watch(&path).await?;
    scene.create("a").await?;
    watch.ends().await
}

async fn a_version_that_is_none_is_refused(scene: Scene) -> Result<()> {
    let answer = scene.get(&format!("{}?watch=1&resourceVersion=x", scene.maps)).await?;
    // Ours blames the client.
    assert!(matches!(answer.code, 400 | 500), "{answer:?}");
    Ok(())
}
