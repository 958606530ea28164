//! Selectors.

use anyhow::Result;
use serde_json::json;

use super::on_both;
use crate::scene::{Scene, names};

on_both! {
    labels_select,
    fields_select,
    a_selector_that_cannot_be_read_is_refused,
    a_field_that_is_not_indexed_is_refused,
}

async fn labels_select(scene: Scene) -> Result<()> {
    for (name, labels) in [
        ("a", json!({"colour": "red", "size": "1"})),
        ("b", json!({"colour": "blue"})),
        ("c", json!({"size": "2"})),
    ] {
        let map = json!({"metadata": {"name": name, "labels": labels}});
        scene.post(&scene.maps, map).await?.ok()?;
    }
    let every = ["a", "b", "c"];
    for (selector, wanted) in [
        ("colour%3Dred", &["a"][..]),
        ("colour!%3Dred", &["b", "c"]),
        ("colour", &["a", "b"]),
        ("!colour", &["c"]),
        ("colour+in+(red,blue)", &["a", "b"]),
        ("colour+notin+(red)", &["b", "c"]),
        ("colour,size", &["a"]),
        ("size%3E1", &["c"]),
        ("size%3C2", &["a"]),
        ("", &every),
    ] {
        let list = scene.get(&format!("{}?labelSelector={selector}", scene.maps)).await?.ok()?;
        let found: Vec<_> = names(&list).into_iter().filter(|name| name.len() == 1).collect();
        assert_eq!(found, wanted, "{selector}");
    }
    Ok(())
}

async fn fields_select(scene: Scene) -> Result<()> {
    scene.create("a").await?;
    scene.create("b").await?;
    let by = |selector: &str| format!("{}?fieldSelector={selector}", scene.maps);
    assert_eq!(names(&scene.get(&by("metadata.name%3Da")).await?.ok()?), ["a"]);
    let both = by("metadata.name!%3Da,metadata.name!%3Dkube-root-ca.crt");
    assert_eq!(names(&scene.get(&both).await?.ok()?), ["b"]);
    let elsewhere = by("metadata.namespace%3Dnone");
    assert!(names(&scene.get(&elsewhere).await?.ok()?).is_empty());
    Ok(())
}

async fn a_selector_that_cannot_be_read_is_refused(scene: Scene) -> Result<()> {
    for selector in ["%3Dred", "colour+in+(red", "a+b", "a%3D%3D%3Db"] {
        let path = format!("{}?labelSelector={selector}", scene.maps);
        scene.get(&path).await?.failed(400, "BadRequest")?;
        scene.get(&format!("{path}&watch=1")).await?.failed(400, "BadRequest")?;
    }
    Ok(())
}

async fn a_field_that_is_not_indexed_is_refused(scene: Scene) -> Result<()> {
    let path = format!("{}?fieldSelector=spec.colour%3Dred", scene.maps);
    let status = scene.get(&path).await?.failed(400, "BadRequest")?;
    let wanted = r#""spec.colour" is not a known field selector: only "metadata.name", "metadata.namespace""#;
    assert_eq!(status["message"], wanted);
    Ok(())
}
