//! The start of a watch.

use std::time::Duration;

use embedded_apiserver::ApiServer;
use serde_json::json;

use crate::harness::{Client, Event, MAPS, failure, map, version};

const INITIAL: &str =
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

fn briefs(events: &[Event]) -> Vec<(&str, &str, u64)> {
    events.iter().map(Event::brief).collect()
}

/// Creates two objects, of which one is then changed and the other deleted. Returns the version.
async fn history(server: &ApiServer) -> (Client, u64) {
    let client = Client::of(server);
    let first = version(&client.post(MAPS, map("a")).await.ok());
    client.post(MAPS, map("b")).await.ok();
    client.merge(&format!("{MAPS}/a"), json!({"data": {"x": "y"}})).await.ok();
    client.delete(&format!("{MAPS}/b")).await.ok();
    (client, first)
}

#[tokio::test(start_paused = true)]
async fn from_a_version_come_all_changes_after_it() {
    let server = ApiServer::start();
    let (client, v) = history(&server).await;
    let all = [
        ("ADDED", "a", v),
        ("ADDED", "b", v + 1),
        ("MODIFIED", "a", v + 2),
        ("DELETED", "b", v + 3),
    ];
    for skipped in 0..=4 {
        let from = v - 1 + skipped;
        let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion={from}")).await;
        let want = &all[usize::try_from(skipped).unwrap()..];
        assert_eq!(briefs(&watch.events(want.len()).await), want);
        watch.is_quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_version_or_from_0_comes_first_what_is_there() {
    let server = ApiServer::start();
    let (client, v) = history(&server).await;
    for query in ["", "&resourceVersion=", "&resourceVersion=0"] {
        let mut watch = client.watch(&format!("{MAPS}?watch=1{query}")).await;
        assert_eq!(watch.event().await.brief(), ("ADDED", "a", v + 2), "{query}");
        watch.is_quiet().await;
        let next = version(&server.create(map("z")).unwrap());
        assert_eq!(watch.event().await.brief(), ("ADDED", "z", next), "{query}");
        server.delete("configmaps", "default", "z").unwrap();
    }
}

/// A streaming list sends the state, then a bookmark that marks its end, then changes.
#[tokio::test(start_paused = true)]
async fn initial_events_end_with_an_annotated_bookmark() {
    let server = ApiServer::start();
    let (client, v) = history(&server).await;
    server
        .create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}))
        .unwrap();
    let now = server.store().revision();
    for version in ["", "&resourceVersion=", "&resourceVersion=0", &format!("&resourceVersion={v}")]
    {
        let mut watch = client.watch(&format!("{MAPS}?{INITIAL}{version}")).await;
        assert_eq!(watch.event().await.brief(), ("ADDED", "a", v + 2));
        let end = watch.event().await;
        let want = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"resourceVersion": now.to_string(),
                         "annotations": {"k8s.io/initial-events-end": "true"}},
        });
        assert_eq!((end.kind.as_str(), end.object), ("BOOKMARK", want));
        watch.is_quiet().await;
    }
}

/// As of 1.36, clients that accept bookmarks also receive one at the end of a plain watch's initial
/// events.
#[tokio::test(start_paused = true)]
async fn the_end_of_initial_events_is_told_to_those_who_take_bookmarks() {
    let server = ApiServer::start();
    let (client, _) = history(&server).await;
    for (query, bookmark) in [
        ("watch=1&allowWatchBookmarks=true", true),
        ("watch=1&allowWatchBookmarks=true&resourceVersion=0", true),
        ("watch=1", false),
        ("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", false),
    ] {
        let mut watch = client.watch(&format!("{MAPS}?{query}")).await;
        assert_eq!(watch.event().await.kind, "ADDED");
        if bookmark {
            let annotations = &watch.event().await.object["metadata"]["annotations"];
            assert_eq!(*annotations, json!({"k8s.io/initial-events-end": "true"}), "{query}");
        }
        watch.is_quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn initial_events_that_are_declined_do_not_come() {
    let server = ApiServer::start();
    let (client, _) = history(&server).await;
    let path = format!("{MAPS}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
    let mut watch = client.watch(&path).await;
    watch.is_quiet().await;
    server.create(map("z")).unwrap();
    assert_eq!(watch.event().await.brief().1, "z");
}

#[tokio::test(start_paused = true)]
async fn options_that_do_not_go_together_are_422() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let field = "resourceVersionMatch";
    let requires = (
        "FieldValueForbidden",
        "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    );
    let unless = (
        "FieldValueForbidden",
        "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
         provided",
    );
    let exact = (
        "FieldValueNotSupported",
        "Unsupported value: \"Exact\": supported values: \"NotOlderThan\"",
    );
    let unknown = (
        "FieldValueNotSupported",
        "Unsupported value: \"Foo\": supported values: \"NotOlderThan\"",
    );
    let continued = (
        "FieldValueForbidden",
        "Forbidden: resourceVersionMatch is forbidden when continue is provided",
    );
    for (query, errors) in [
        ("sendInitialEvents=true", vec![requires]),
        ("sendInitialEvents=false", vec![requires]),
        ("sendInitialEvents=true&resourceVersionMatch=Exact", vec![requires, exact]),
        ("resourceVersionMatch=NotOlderThan", vec![unless]),
        ("resourceVersionMatch=Foo", vec![unless, unknown]),
        ("continue=abc", vec![continued]),
    ] {
        let all: Vec<_> = errors.iter().map(|(_, why)| format!("{field}: {why}")).collect();
        let all = if let [one] = &*all { one.clone() } else { format!("[{}]", all.join(", ")) };
        let message = format!("ListOptions.meta.k8s.io \"\" is invalid: {all}");
        let causes: Vec<_> = errors
            .iter()
            .map(|(reason, why)| json!({"reason": reason, "field": field, "message": why}))
            .collect();
        let details = json!({"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes});
        let answer = client.get(&format!("{MAPS}?watch=1&{query}")).await;
        assert_eq!(answer.json(), failure(422, "Invalid", &message, details), "{query}");
    }
}

/// A limit applies only to lists.
#[tokio::test(start_paused = true)]
async fn a_limit_does_not_limit_a_watch() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for name in ["a", "b", "c"] {
        server.create(map(name)).unwrap();
    }
    let mut watch = client.watch(&format!("{MAPS}?watch=1&limit=1")).await;
    assert_eq!(watch.events(3).await.len(), 3);
}

/// The error for a version that is too old is sent in the stream, where clients expect it.
#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_is_a_410_in_the_stream() {
    let server = ApiServer::start();
    let (client, v) = history(&server).await;
    let oldest = server.store().revision();
    server.store().compact(oldest);
    let events = client.watch(&format!("{MAPS}?watch=1&resourceVersion={v}")).await.rest().await;
    let message = format!("too old resource version: {v} ({oldest})");
    let want = failure(410, "Expired", &message, json!(null));
    assert_eq!(events, [Event { kind: "ERROR".to_owned(), object: want }]);
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion={oldest}")).await;
    watch.is_quiet().await;
}

/// An open watch survives compaction of the events that it has read.
#[tokio::test(start_paused = true)]
async fn a_watch_that_keeps_up_survives_compaction() {
    let server = ApiServer::start();
    let (client, v) = history(&server).await;
    let mut up = client.watch(&format!("{MAPS}?watch=1&resourceVersion={v}")).await;
    up.events(3).await;
    up.is_quiet().await;
    server.create(map("z")).unwrap();
    assert_eq!(up.event().await.brief().1, "z");
    up.is_quiet().await;
    server.store().compact(server.store().revision());
    server.create(map("y")).unwrap();
    assert_eq!(up.event().await.brief().1, "y");
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_the_future_waits_for_it() {
    let server = ApiServer::start();
    let (client, _) = history(&server).await;
    let future = server.store().revision() + 2;
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion={future}")).await;
    for name in ["p", "q", "r"] {
        server.create(map(name)).unwrap();
    }
    assert_eq!(watch.event().await.brief(), ("ADDED", "r", future + 1));
}

#[tokio::test(start_paused = true)]
async fn initial_events_from_the_future_are_a_504_in_the_stream_or_come_in_time() {
    let server = ApiServer::start();
    let (client, _) = history(&server).await;
    let future = server.store().revision() + 1;
    let path = format!("{MAPS}?{INITIAL}&resourceVersion={future}");
    let events = client.watch(&path).await.rest().await;
    assert_eq!((events.len(), events[0].kind.as_str()), (1, "ERROR"));
    assert_eq!(events[0].object["code"], 504);
    let cause = &events[0].object["details"]["causes"][0]["reason"];
    assert_eq!(cause, "ResourceVersionTooLarge");

    let write = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        server.create(map("z")).unwrap();
    };
    let (mut watch, ()) = tokio::join!(client.watch(&path), write);
    assert_eq!(watch.events(3).await[2].version(), future);
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_a_version_that_is_no_number_is_400() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.get(&format!("{MAPS}?watch=1&resourceVersion=x")).await.failed(400);
}

#[tokio::test(start_paused = true)]
async fn the_old_path_of_a_watch_is_served() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    server.create(map("a")).unwrap();
    for path in ["/api/v1/watch/namespaces/default/configmaps", "/api/v1/watch/configmaps"] {
        assert_eq!(client.watch(path).await.event().await.brief().1, "a");
    }
}
