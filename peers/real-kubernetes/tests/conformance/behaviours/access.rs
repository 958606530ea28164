//! Forbidden requests, and missing resources.

use anyhow::Result;
use serde_json::json;

use super::on_both;
use crate::http::{Ask, User};
use crate::scene::Scene;

on_both! {
    a_token_that_is_unknown_is_refused,
    who_may_do_nothing_is_told_what,
    what_is_not_served_is_not_found,
    a_method_that_a_resource_has_not_is_refused,
    a_group_that_is_unknown_is_no_status,
}

async fn a_token_that_is_unknown_is_refused(scene: Scene) -> Result<()> {
    for path in [scene.maps.as_str(), "/api/v1", "/none"] {
        let answer = scene.get_by(path, User::Stranger).await?;
        let status = answer.failed(401, "Unauthorized")?;
        assert_eq!(status["message"], "Unauthorized");
    }
    Ok(())
}

async fn who_may_do_nothing_is_told_what(scene: Scene) -> Result<()> {
    let answer = scene.get_by(&scene.map("a"), User::Reader).await?;
    let status = answer.failed(403, "Forbidden")?;
    let namespace = &scene.namespace;
    let wanted = format!(
        r#"configmaps "a" is forbidden: User "reader" cannot get resource "configmaps" in API group "" in the namespace "{namespace}""#
    );
    assert_eq!(status["message"], wanted);
    assert_eq!(status["details"], json!({"name": "a", "kind": "configmaps"}));
    let watch = format!("{}?watch=1", scene.maps);
    scene.get_by(&watch, User::Reader).await?.failed(403, "Forbidden")?;
    // A user without permission does not learn what else would be wrong.
    let ask = Ask::new("POST", scene.maps.as_str());
    let nonsense = Ask { body: "{".to_owned(), user: User::Reader, ..ask };
    scene.http.send(&nonsense).await?.failed(403, "Forbidden")?;
    Ok(())
}

async fn what_is_not_served_is_not_found(scene: Scene) -> Result<()> {
    for path in [
        scene.path("/api/v1", "nonsenses"),
        scene.path("/apis/apps/v1", "nonsenses/a"),
        scene.path("/api/v1", "configmaps/a/nonsense"),
        scene.path("/api/v1", "nodes"),
        "/api/v1/configmaps/a".to_owned(),
    ] {
        let status = scene.get(&path).await?.failed(404, "NotFound")?;
        let wanted = "the server could not find the requested resource";
        assert_eq!(status["message"], wanted, "{path}");
    }
    Ok(())
}

async fn a_method_that_a_resource_has_not_is_refused(scene: Scene) -> Result<()> {
    let everywhere = scene.post("/api/v1/configmaps", json!({"metadata": {"name": "a"}})).await?;
    everywhere.failed(405, "MethodNotAllowed")?;
    scene.put(&scene.maps, json!({})).await?.failed(405, "MethodNotAllowed")?;
    scene.delete("/api/v1/namespaces").await?.failed(405, "MethodNotAllowed")?;
    Ok(())
}

async fn a_group_that_is_unknown_is_no_status(scene: Scene) -> Result<()> {
    let answer = scene.get(&scene.path("/apis/none.example.com/v1", "widgets")).await?;
    assert_eq!((answer.code, &*answer.text), (404, "404 page not found\n"));
    Ok(())
}
