//! Discovery.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::on_both;
use crate::scene::Scene;

on_both! {
    groups_and_versions_are_listed,
    resources_are_listed_with_their_verbs,
    everything_is_told_at_once_to_those_who_ask,
    the_version_is_told,
    health_is_told,
}

fn find<'a>(list: &'a Value, field: &str, value: &str) -> Result<&'a Value> {
    let items = list.as_array().into_iter().flatten();
    let found = items.into_iter().find(|item| item.pointer(field) == Some(&json!(value)));
    found.with_context(|| format!("{value} is listed in {list}"))
}

async fn groups_and_versions_are_listed(scene: Scene) -> Result<()> {
    let core = scene.get("/api").await?.ok()?;
    assert_eq!((&core["kind"], &core["versions"]), (&json!("APIVersions"), &json!(["v1"])));
    let groups = scene.get("/apis").await?.ok()?;
    let apps = find(&groups["groups"], "/name", "apps")?;
    assert_eq!(apps["preferredVersion"], json!({"groupVersion": "apps/v1", "version": "v1"}));
    let alone = scene.get("/apis/apps").await?.ok()?;
    assert_eq!((&alone["kind"], &alone["name"]), (&json!("APIGroup"), &json!("apps")));
    Ok(())
}

async fn resources_are_listed_with_their_verbs(scene: Scene) -> Result<()> {
    let list = scene.get("/api/v1").await?.ok()?;
    let pods = find(&list["resources"], "/name", "pods")?;
    assert_eq!((&pods["kind"], &pods["namespaced"]), (&json!("Pod"), &json!(true)));
    assert_eq!((&pods["shortNames"], &pods["categories"]), (&json!(["po"]), &json!(["all"])));
    let all = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    assert_eq!(pods["verbs"], json!(all));
    let status = find(&list["resources"], "/name", "pods/status")?;
    assert_eq!(status["verbs"], json!(["get", "patch", "update"]));
    let namespaces = find(&list["resources"], "/name", "namespaces")?;
    assert_eq!(namespaces["namespaced"], false);
    Ok(())
}

async fn everything_is_told_at_once_to_those_who_ask(scene: Scene) -> Result<()> {
    let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let answer = scene.get_as("/apis", &format!("{v2},application/json")).await?;
    assert_eq!(answer.header("content-type"), v2);
    let list = answer.ok()?;
    assert_eq!(list["kind"], "APIGroupDiscoveryList");
    let apps = find(&list["items"], "/metadata/name", "apps")?;
    let resources = &apps["versions"][0]["resources"];
    let deployments = find(resources, "/resource", "deployments")?;
    assert_eq!(deployments["responseKind"]["kind"], "Deployment");
    find(&deployments["subresources"], "/subresource", "status")?;
    Ok(())
}

async fn the_version_is_told(scene: Scene) -> Result<()> {
    let version = scene.get("/version").await?.ok()?;
    assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("36")));
    Ok(())
}

async fn health_is_told(scene: Scene) -> Result<()> {
    for path in ["/healthz", "/livez", "/readyz"] {
        let answer = scene.get(path).await?;
        assert_eq!((answer.code, &*answer.text), (200, "ok"), "{path}");
    }
    Ok(())
}
