//! Lists: pages, versions.

use anyhow::Result;
use serde_json::{Value, json};

use super::on_both;
use crate::scene::{Scene, names, version};

on_both! {
    a_list_is_whole_and_sorted,
    pages_are_one_moment,
    the_rest_is_counted_where_nothing_is_selected,
    an_exact_version_is_the_state_of_that_version,
    a_version_that_is_not_older_is_any_since,
    a_version_of_the_future_is_not_waited_for_long,
    options_that_do_not_go_together_are_refused,
    a_list_in_no_namespace_is_empty,
    a_continuation_that_is_none_is_refused,
}

async fn five(scene: &Scene) -> Result<Vec<Value>> {
    let mut made = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        let map = json!({"metadata": {"name": name, "labels": {"of": "five"}}});
        made.push(scene.post(&scene.maps, map).await?.ok()?);
    }
    Ok(made)
}

/// Lists only the five: a controller of the real server may create another config map.
fn five_of(scene: &Scene, query: &str) -> String {
    format!("{}?labelSelector=of%3Dfive&{query}", scene.maps)
}

async fn a_list_is_whole_and_sorted(scene: Scene) -> Result<()> {
    let made = five(&scene).await?;
    let list = scene.get(&five_of(&scene, "")).await?.ok()?;
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("ConfigMapList"), &json!("v1")));
    assert_eq!(names(&list), ["a", "b", "c", "d", "e"]);
    // Items do not repeat the kind, which follows from the list's.
    assert!(list["items"][0].get("kind").is_none(), "{list}");
    assert!(version(&list).parse::<u64>()? >= version(&made[4]).parse()?);
    Ok(())
}

async fn pages_are_one_moment(scene: Scene) -> Result<()> {
    five(&scene).await?;
    let first = scene.get(&five_of(&scene, "limit=2")).await?.ok()?;
    assert_eq!(names(&first), ["a", "b"]);
    scene.delete(&scene.map("c")).await?.ok()?;
    scene.merge(&scene.map("d"), json!({"data": {"k": "later"}})).await?.ok()?;
    scene.create("bb").await?;
    let token = first["metadata"]["continue"].as_str().unwrap_or_default();
    let next = five_of(&scene, &format!("limit=2&continue={token}"));
    let second = scene.get(&next).await?.ok()?;
    assert_eq!(names(&second), ["c", "d"]);
    assert!(second["items"][1].get("data").is_none(), "{second}");
    assert_eq!(version(&second), version(&first));
    let token = second["metadata"]["continue"].as_str().unwrap_or_default();
    let third = scene.get(&five_of(&scene, &format!("limit=2&continue={token}"))).await?.ok()?;
    assert_eq!(names(&third), ["e"]);
    assert!(third["metadata"].get("continue").is_none(), "{third}");
    Ok(())
}

async fn the_rest_is_counted_where_nothing_is_selected(scene: Scene) -> Result<()> {
    five(&scene).await?;
    let page = scene.get(&format!("{}?limit=2", scene.maps)).await?.ok()?;
    assert_eq!(page["metadata"]["remainingItemCount"], 3);
    let page = scene.get(&five_of(&scene, "limit=2")).await?.ok()?;
    assert!(page["metadata"].get("remainingItemCount").is_none(), "{page}");
    Ok(())
}

async fn an_exact_version_is_the_state_of_that_version(scene: Scene) -> Result<()> {
    let made = five(&scene).await?;
    let exact = |version: &str| {
        five_of(&scene, &format!("resourceVersionMatch=Exact&resourceVersion={version}"))
    };
    let then = scene.get(&exact(version(&made[2]))).await?.ok()?;
    assert_eq!(names(&then), ["a", "b", "c"]);
    assert_eq!(version(&then), version(&made[2]));
    scene.get(&exact("0")).await?.failed(422, "Invalid")?;
    // A limit makes a version exact, too.
    let limited = five_of(&scene, &format!("limit=5&resourceVersion={}", version(&made[1])));
    assert_eq!(names(&scene.get(&limited).await?.ok()?), ["a", "b"]);
    Ok(())
}

async fn a_version_that_is_not_older_is_any_since(scene: Scene) -> Result<()> {
    let made = five(&scene).await?;
    for query in [
        format!("resourceVersion={}", version(&made[0])),
        format!("resourceVersion={}&resourceVersionMatch=NotOlderThan", version(&made[4])),
        format!("resourceVersion={}&resourceVersionMatch=NotOlderThan&limit=9", version(&made[4])),
    ] {
        let list = scene.get(&five_of(&scene, &query)).await?.ok()?;
        assert_eq!(names(&list).len(), 5, "{query}");
    }
    Ok(())
}

async fn a_version_of_the_future_is_not_waited_for_long(scene: Scene) -> Result<()> {
    let future = format!("{}?resourceVersion=999999999", scene.maps);
    let answer = scene.get(&future).await?;
    let status = answer.failed(504, "Timeout")?;
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert!(!answer.header("retry-after").is_empty());
    Ok(())
}

async fn options_that_do_not_go_together_are_refused(scene: Scene) -> Result<()> {
    for query in [
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=NotOlderThan",
        "resourceVersion=1&resourceVersionMatch=Nonsense",
        "sendInitialEvents=true",
    ] {
        let answer = scene.get(&format!("{}?{query}", scene.maps)).await?;
        answer.failed(422, "Invalid")?;
    }
    for query in ["limit=x", "resourceVersion=x", "timeoutSeconds=x"] {
        scene.get(&format!("{}?{query}", scene.maps)).await?.failed(400, "BadRequest")?;
    }
    Ok(())
}

async fn a_list_in_no_namespace_is_empty(scene: Scene) -> Result<()> {
    let list = scene.get("/api/v1/namespaces/none/configmaps").await?.ok()?;
    assert_eq!(list["items"], json!([]));
    Ok(())
}

async fn a_continuation_that_is_none_is_refused(scene: Scene) -> Result<()> {
    let answer = scene.get(&format!("{}?continue=nonsense", scene.maps)).await?;
    answer.failed(400, "BadRequest")?;
    Ok(())
}
