//! Custom resources.

use anyhow::Result;
use serde_json::{Value, json};

use super::on_both;
use crate::http::Ask;
use crate::scene::{Scene, names, version};

on_both! {
    a_definition_is_established_and_served,
    custom_objects_are_written_and_read,
    the_status_of_custom_objects_is_apart,
    a_custom_object_says_what_it_is,
    versions_of_a_definition_show_the_same_objects,
    what_is_no_longer_defined_is_gone,
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Creates a definition and waits until it is served. Returns its group, and the path of its objects.
async fn defined(scene: &Scene) -> Result<(String, String)> {
    let group = format!("{}.example.com", scene.namespace);
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"openAPIV3Schema": open});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}},
                {"name": "v2", "served": true, "storage": false, "schema": schema},
            ],
        },
    });
    scene.post(DEFINITIONS, definition).await?.ok()?;
    let all = scene.path(&format!("/apis/{group}/v1"), "widgets");
    scene.http.send_until(&Ask::new("GET", all.as_str()), |answer| answer.code == 200).await?;
    Ok((group, all))
}

fn widget(group: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": name},
        "spec": {"size": 1}, "status": {"ready": false},
    })
}

async fn a_definition_is_established_and_served(scene: Scene) -> Result<()> {
    let (group, all) = defined(&scene).await?;
    let ask = Ask::new("GET", format!("{DEFINITIONS}/widgets.{group}"));
    // Objects may be served a moment before the definition is established.
    let definition = scene.http.send_until(&ask, |answer| {
        let conditions = answer.json()["status"]["conditions"].as_array().cloned();
        ["NamesAccepted", "Established"].iter().all(|wanted| {
            let met =
                |condition: &Value| condition["type"] == *wanted && condition["status"] == "True";
            conditions.iter().flatten().any(met)
        })
    });
    let definition = definition.await?.ok()?;
    let names = &definition["status"]["acceptedNames"];
    assert_eq!((&names["singular"], &names["listKind"]), (&json!("widget"), &json!("WidgetList")));
    assert_eq!(scene.get(&all).await?.ok()?["kind"], "WidgetList");
    Ok(())
}

async fn custom_objects_are_written_and_read(scene: Scene) -> Result<()> {
    let (group, all) = defined(&scene).await?;
    let made = scene.post(&all, widget(&group, "a")).await?.ok()?;
    let path = format!("{all}/a");
    assert_eq!(made["metadata"]["generation"], 1);
    let mut watch =
        scene.watch(&format!("{all}?watch=1&resourceVersion={}", version(&made))).await?;
    let patched = scene.merge(&path, json!({"spec": {"size": 2}})).await?.ok()?;
    assert_eq!(patched["metadata"]["generation"], 2);
    scene.put(&path, made).await?.failed(409, "Conflict")?;
    assert_eq!(names(&scene.get(&all).await?.ok()?), ["a"]);
    scene.delete(&path).await?.ok()?;
    assert_eq!(watch.briefs(2).await?, ["MODIFIED a", "DELETED a"]);
    let status = scene.get(&path).await?.failed(404, "NotFound")?;
    assert_eq!(status["details"]["group"], group);
    Ok(())
}

async fn the_status_of_custom_objects_is_apart(scene: Scene) -> Result<()> {
    let (group, all) = defined(&scene).await?;
    let made = scene.post(&all, widget(&group, "a")).await?.ok()?;
    assert!(made.get("status").is_none(), "{made}");
    let patch = json!({"spec": {"size": 9}, "status": {"ready": true}});
    let patched = scene.merge(&format!("{all}/a/status"), patch.clone()).await?.ok()?;
    assert_eq!((&patched["spec"]["size"], &patched["status"]["ready"]), (&json!(1), &json!(true)));
    assert_eq!(patched["metadata"]["generation"], 1);
    let patched = scene.merge(&format!("{all}/a"), patch).await?.ok()?;
    assert_eq!(
        (&patched["spec"]["size"], &patched["metadata"]["generation"]),
        (&json!(9), &json!(2))
    );
    Ok(())
}

async fn a_custom_object_says_what_it_is(scene: Scene) -> Result<()> {
    let (group, all) = defined(&scene).await?;
    let nothing = json!({"metadata": {"name": "a"}});
    scene.post(&all, nothing).await?.failed(400, "BadRequest")?;
    let mut other = widget(&group, "a");
    other["apiVersion"] = "other.example.com/v1".into();
    scene.post(&all, other).await?.failed(400, "BadRequest")?;
    Ok(())
}

async fn versions_of_a_definition_show_the_same_objects(scene: Scene) -> Result<()> {
    let (group, all) = defined(&scene).await?;
    let made = scene.post(&all, widget(&group, "a")).await?.ok()?;
    let path = scene.path(&format!("/apis/{group}/v2"), "widgets/a");
    let other = scene.get(&path).await?.ok()?;
    assert_eq!(other["apiVersion"], format!("{group}/v2"));
    assert_eq!((version(&other), &other["spec"]), (version(&made), &made["spec"]));
    Ok(())
}

async fn what_is_no_longer_defined_is_gone(scene: Scene) -> Result<()> {
    let (group, all) = defined(&scene).await?;
    let made = scene.post(&all, widget(&group, "a")).await?.ok()?;
    let mut watch =
        scene.watch(&format!("{all}?watch=1&resourceVersion={}", version(&made))).await?;
    scene.delete(&format!("{DEFINITIONS}/widgets.{group}")).await?.ok()?;
    assert_eq!(watch.briefs(1).await?, ["DELETED a"]);
    scene.http.send_until(&Ask::new("GET", all.as_str()), |answer| answer.code == 404).await?;
    watch.ends().await
}
