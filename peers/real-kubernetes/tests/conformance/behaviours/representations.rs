//! Tables, metadata, and unsupported representations.

use anyhow::Result;
use serde_json::json;

use super::on_both;
use crate::scene::Scene;

on_both! {
    a_list_is_a_table,
    metadata_are_enough_for_some,
    a_watch_of_metadata_is_of_metadata,
    what_is_not_served_is_not_acceptable,
    the_first_that_is_served_is_taken,
}

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

async fn a_list_is_a_table(scene: Scene) -> Result<()> {
    let map = json!({"metadata": {"name": "a"}, "data": {"k": "v", "l": "w"}});
    scene.post(&scene.maps, map).await?.ok()?;
    let table = scene.get_as(&scene.maps, TABLE).await?.ok()?;
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    let columns = table["columnDefinitions"].as_array().cloned().unwrap_or_default();
    let columns: Vec<_> = columns.iter().filter_map(|column| column["name"].as_str()).collect();
    assert_eq!(columns, ["Name", "Data", "Age"]);
    let row = &table["rows"][0];
    assert_eq!((&row["cells"][0], &row["cells"][1]), (&json!("a"), &json!(2)));
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    let whole = format!("{}?includeObject=Object", scene.maps);
    let table = scene.get_as(&whole, TABLE).await?.ok()?;
    assert_eq!(table["rows"][0]["object"]["data"]["k"], "v");
    let bare = format!("{}?includeObject=None", scene.maps);
    let table = scene.get_as(&bare, TABLE).await?.ok()?;
    assert!(table["rows"][0]["object"].is_null());
    Ok(())
}

async fn metadata_are_enough_for_some(scene: Scene) -> Result<()> {
    let map = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    let made = scene.post(&scene.maps, map).await?.ok()?;
    let one = scene.get_as(&scene.map("a"), METADATA).await?.ok()?;
    assert_eq!(one["kind"], "PartialObjectMetadata");
    assert_eq!(one["metadata"], made["metadata"]);
    assert!(one.get("data").is_none());
    let list = scene.get_as(&scene.maps, METADATA_LIST).await?.ok()?;
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["metadata"], made["metadata"]);
    scene.get_as(&scene.maps, METADATA).await?.failed(406, "NotAcceptable")?;
    Ok(())
}

async fn a_watch_of_metadata_is_of_metadata(scene: Scene) -> Result<()> {
    scene.create("a").await?;
    let initial = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let path = format!("{}?{initial}&allowWatchBookmarks=true", scene.maps);
    let mut watch = scene.watch_as(&path, METADATA).await?;
    for kind in ["ADDED", "BOOKMARK"] {
        let event = watch.event().await?;
        assert_eq!((&*event.kind, &event.object["kind"]), (kind, &json!("PartialObjectMetadata")));
    }
    Ok(())
}

async fn what_is_not_served_is_not_acceptable(scene: Scene) -> Result<()> {
    for accept in ["application/xml", "application/json;as=Nonsense;g=meta.k8s.io;v=v1"] {
        scene.get_as(&scene.maps, accept).await?.failed(406, "NotAcceptable")?;
        let watch = format!("{}?watch=1", scene.maps);
        scene.get_as(&watch, accept).await?.failed(406, "NotAcceptable")?;
    }
    Ok(())
}

async fn the_first_that_is_served_is_taken(scene: Scene) -> Result<()> {
    for (accept, kind) in [
        (format!("{TABLE},application/json"), "Table"),
        (format!("application/json,{TABLE}"), "ConfigMapList"),
        ("application/xml,*/*".to_owned(), "ConfigMapList"),
        (
            format!("application/json;as=Table;g=meta.k8s.io;v=v9,{METADATA_LIST}"),
            "PartialObjectMetadataList",
        ),
    ] {
        let list = scene.get_as(&scene.maps, &accept).await?.ok()?;
        assert_eq!(list["kind"], kind, "{accept}");
    }
    Ok(())
}
