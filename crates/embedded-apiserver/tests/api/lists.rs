//! The version that a list returns.

use std::time::Duration;

use embedded_apiserver::ApiServer;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::harness::{Client, MAPS, failure, map, names, version};

/// Creates three objects. Returns the versions at which each of them was the latest.
async fn three(server: &ApiServer) -> (Client, [u64; 3]) {
    let client = Client::of(server);
    let mut versions = [0; 3];
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        versions[at] = version(&client.post(MAPS, map(name)).await.ok());
    }
    (client, versions)
}

/// The table of "Semantics for resourceVersion and resourceVersionMatch" in Kubernetes' API
/// concepts, for get and list.
#[tokio::test(start_paused = true)]
async fn a_list_is_at_the_version_that_was_asked_for_or_newer_as_the_match_says() {
    let server = ApiServer::start();
    let (client, [first, _, newest]) = three(&server).await;
    for (query, want, at) in [
        (String::new(), vec!["a", "b", "c"], newest),
        ("resourceVersion=".to_owned(), vec!["a", "b", "c"], newest),
        ("resourceVersion=0".to_owned(), vec!["a", "b", "c"], newest),
        // The watch cache, which serves "0", does not page.
        ("resourceVersion=0&limit=1".to_owned(), vec!["a", "b", "c"], newest),
        (
            "resourceVersion=0&resourceVersionMatch=NotOlderThan".to_owned(),
            vec!["a", "b", "c"],
            newest,
        ),
        (format!("resourceVersion={first}"), vec!["a", "b", "c"], newest),
        (
            format!("resourceVersion={first}&resourceVersionMatch=NotOlderThan"),
            vec!["a", "b", "c"],
            newest,
        ),
        (format!("resourceVersion={first}&resourceVersionMatch=Exact"), vec!["a"], first),
        (
            format!("resourceVersion={first}&resourceVersionMatch=NotOlderThan&limit=2"),
            vec!["a", "b"],
            newest,
        ),
        // A limit without a match has always meant exactly that version.
        (format!("resourceVersion={first}&limit=2"), vec!["a"], first),
        ("limit=-1".to_owned(), vec!["a", "b", "c"], newest),
    ] {
        let list = client.get(&format!("{MAPS}?{query}")).await.ok();
        assert_eq!((names(&list), version(&list)), (want, at), "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_version_of_a_list_is_that_of_the_store_not_of_its_items() {
    let server = ApiServer::start();
    let (client, [.., newest]) = three(&server).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    server.create(secret).unwrap();
    assert_eq!(version(&client.get(MAPS).await.ok()), newest + 1);
    let empty = client.get("/apis/apps/v1/deployments").await.ok();
    assert_eq!((version(&empty), &empty["items"]), (newest + 1, &json!([])));
}

#[tokio::test(start_paused = true)]
async fn a_past_version_shows_what_was_then() {
    let server = ApiServer::start();
    let (client, [.., before]) = three(&server).await;
    let then = client.get(MAPS).await.ok();
    client.merge(&format!("{MAPS}/a"), json!({"data": {"x": "y"}})).await.ok();
    client.delete(&format!("{MAPS}/b")).await.ok();
    client.post(MAPS, map("d")).await.ok();
    let exact = format!("{MAPS}?resourceVersion={before}&resourceVersionMatch=Exact");
    assert_eq!(client.get(&exact).await.ok(), then);
    assert_eq!(names(&client.get(MAPS).await.ok()), ["a", "c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn options_that_do_not_go_together_are_422() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let unless = (
        "FieldValueForbidden",
        "resourceVersionMatch",
        "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
    );
    let initial = (
        "FieldValueForbidden",
        "sendInitialEvents",
        "Forbidden: sendInitialEvents is forbidden for list",
    );
    let unknown = (
        "FieldValueNotSupported",
        "resourceVersionMatch",
        "Unsupported value: \"Foo\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
    );
    let zero = (
        "FieldValueForbidden",
        "resourceVersionMatch",
        "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
    );
    let continued = (
        "FieldValueForbidden",
        "resourceVersionMatch",
        "Forbidden: resourceVersionMatch is forbidden when continue is provided",
    );
    for (query, errors) in [
        ("resourceVersionMatch=Exact", vec![unless]),
        ("resourceVersionMatch=NotOlderThan&resourceVersion=", vec![unless]),
        ("resourceVersionMatch=Exact&resourceVersion=0", vec![zero]),
        ("resourceVersionMatch=Foo&resourceVersion=1", vec![unknown]),
        ("resourceVersionMatch=Foo", vec![unless, unknown]),
        ("resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=abc", vec![continued]),
        ("sendInitialEvents=true", vec![initial]),
        ("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", vec![unless, initial]),
    ] {
        let all: Vec<_> = errors.iter().map(|(_, field, why)| format!("{field}: {why}")).collect();
        let all = if let [one] = &*all { one.clone() } else { format!("[{}]", all.join(", ")) };
        let message = format!("ListOptions.meta.k8s.io \"\" is invalid: {all}");
        let causes: Vec<_> = errors
            .iter()
            .map(|(reason, field, why)| json!({"reason": reason, "field": field, "message": why}))
            .collect();
        let details = json!({"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes});
        let answer = client.get(&format!("{MAPS}?{query}")).await;
        assert_eq!(answer.json(), failure(422, "Invalid", &message, details), "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_no_number_is_400() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for bad in ["x", "-1", "1.5", "99999999999999999999999"] {
        let answer = client.get(&format!("{MAPS}?resourceVersion={bad}")).await;
        let message = answer.failed(400)["message"].as_str().unwrap().to_owned();
        let start = format!(
            "invalid resource version: resourceVersion: Invalid value: \"{bad}\": \
             strconv.ParseUint: parsing \"{bad}\": "
        );
        assert!(message.starts_with(&start), "{message}");
    }
}

/// A client that has seen a version must never receive an older one, whichever server it asks. It
/// is told to retry later.
#[tokio::test(start_paused = true)]
async fn a_version_from_the_future_is_a_504_after_a_while() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    server.create(map("a")).unwrap();
    let newest = server.store().revision();
    let future = newest + 1;
    for (path, waits) in [
        (format!("{MAPS}?resourceVersion={future}"), true),
        (format!("{MAPS}?resourceVersion={future}&resourceVersionMatch=NotOlderThan"), true),
        (format!("{MAPS}/a?resourceVersion={future}"), true),
        (format!("{MAPS}?resourceVersion={future}&resourceVersionMatch=Exact"), false),
        (format!("{MAPS}?resourceVersion={future}&limit=1"), false),
    ] {
        let started = Instant::now();
        let answer = client.get(&path).await;
        let message = format!("Timeout: Too large resource version: {future}, current: {newest}");
        let details = json!({
            "causes": [{"reason": "ResourceVersionTooLarge",
                        "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        });
        assert_eq!(answer.json(), failure(504, "Timeout", &message, details), "{path}");
        assert_eq!((answer.code, answer.header("retry-after")), (504, "1"));
        let waited = if waits { Duration::from_secs(3) } else { Duration::ZERO };
        let took = started.elapsed();
        assert!(took >= waited && took < waited + Duration::from_secs(1), "{path}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_from_the_near_future_is_waited_for() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for path in [MAPS, &format!("{MAPS}/a")] {
        let future = server.store().revision() + 1;
        let write = async {
            sleep(Duration::from_secs(2)).await;
            server.create(map("a")).unwrap();
        };
        let path = format!("{path}?resourceVersion={future}");
        let (answer, ()) = tokio::join!(client.get(&path), write);
        let found = answer.ok();
        assert_eq!(version(&found), future, "{path}");
        server.delete("configmaps", "default", "a").unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_get_is_of_the_newest_state_whatever_version_was_seen() {
    let server = ApiServer::start();
    let (client, [first, ..]) = three(&server).await;
    let changed = client.merge(&format!("{MAPS}/a"), json!({"data": {"x": "y"}})).await.ok();
    for version in ["", "0", &first.to_string()] {
        let path = format!("{MAPS}/a?resourceVersion={version}");
        assert_eq!(client.get(&path).await.ok(), changed);
    }
    client.get(&format!("{MAPS}/nope?resourceVersion=0")).await.failed(404);
}

#[tokio::test(start_paused = true)]
async fn items_are_sorted_by_namespace_and_name() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for (namespace, name) in [
        ("kube-system", "a"),
        ("default", "b"),
        ("kube-public", "c"),
        ("default", "a-1"),
        ("default", "a"),
        ("default", "a.b"),
    ] {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        client.post(&path, map(name)).await.ok();
    }
    let list = client.get("/api/v1/configmaps").await.ok();
    assert_eq!(names(&list), ["a", "a-1", "a.b", "b", "c", "a"]);
    assert_eq!(list["kind"], "ConfigMapList");
    assert_eq!(list["items"][0].get("kind"), None, "items of built-in kinds say it no more");
}
