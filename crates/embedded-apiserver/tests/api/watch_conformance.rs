//! Kubernetes' conformance tests of watches, restated: "should observe add, update, and delete
//! watch notifications on configmaps", "should be able to start watching from a specific resource
//! version", "should be able to restart watching from the last resource version observed by the
//! previous watch", "should observe an object deletion if it stops meeting the requirements of the
//! selector", "should receive events on concurrent watches in same order".

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Client, Event, MAPS, Watch, labelled, map, version};

fn of(label: &str) -> Value {
    json!({"watch-this-configmap": label})
}

async fn watch(client: &Client, selector: &str, from: u64) -> Watch {
    let path = format!("{MAPS}?watch=1&resourceVersion={from}&labelSelector=watch-this-configmap");
    client.watch(&format!("{path}{selector}")).await
}

async fn mutate(client: &Client, name: &str, mutation: u32) -> Value {
    let patch = json!({"data": {"mutation": mutation.to_string()}});
    client.merge(&format!("{MAPS}/{name}"), patch).await.ok()
}

#[tokio::test(start_paused = true)]
async fn adds_updates_and_deletes_are_observed_by_those_whose_selector_matches() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let from = server.store().revision();
    let mut a = watch(&client, "%3DA", from).await;
    let mut b = watch(&client, "%3DB", from).await;
    let mut both = watch(&client, "%20in%20(A,B)", from).await;
    for (label, own, other) in [("A", 0, 1), ("B", 1, 0)] {
        let mut wanted = vec![client.post(MAPS, labelled("c", of(label))).await.ok()];
        for mutation in 1..=2 {
            wanted.push(mutate(&client, "c", mutation).await);
        }
        client.delete(&format!("{MAPS}/c")).await.ok();
        let mut last = wanted[2].clone();
        last["metadata"]["resourceVersion"] = json!(server.store().revision().to_string());
        wanted.push(last);
        let kinds = ["ADDED", "MODIFIED", "MODIFIED", "DELETED"];
        let wanted: Vec<_> = kinds
            .into_iter()
            .zip(wanted)
            .map(|(kind, object)| Event { kind: kind.to_owned(), object })
            .collect();
        let watches = [&mut a, &mut b];
        let mut watches: Vec<_> = watches.into_iter().collect();
        assert_eq!(watches[own].events(4).await, wanted);
        watches[other].is_quiet().await;
        assert_eq!(both.events(4).await, wanted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_starts_from_the_version_of_an_update() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(MAPS, labelled("c", of("A"))).await.ok();
    let first = mutate(&client, "c", 1).await;
    let second = mutate(&client, "c", 2).await;
    client.delete(&format!("{MAPS}/c")).await.ok();
    let mut watch = watch(&client, "%3DA", version(&first)).await;
    let modified = watch.event().await;
    assert_eq!((modified.kind.as_str(), modified.object), ("MODIFIED", second));
    assert_eq!(watch.event().await.kind, "DELETED");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_closed_is_taken_up_from_the_last_version_observed() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut broken = watch(&client, "%3DA", server.store().revision()).await;
    client.post(MAPS, labelled("c", of("A"))).await.ok();
    mutate(&client, "c", 1).await;
    let last = broken.events(2).await[1].version();
    drop(broken);
    let second = mutate(&client, "c", 2).await;
    client.delete(&format!("{MAPS}/c")).await.ok();
    let mut restarted = watch(&client, "%3DA", last).await;
    let modified = restarted.event().await;
    assert_eq!((modified.kind.as_str(), modified.object), ("MODIFIED", second));
    assert_eq!(restarted.event().await.kind, "DELETED");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_stops_to_match_is_deleted_and_added_when_it_matches_again() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut watch = watch(&client, "%3DA", server.store().revision()).await;
    client.post(MAPS, labelled("c", of("A"))).await.ok();
    mutate(&client, "c", 1).await;
    let relabel = |label: &str| json!({"metadata": {"labels": of(label)}});
    client.merge(&format!("{MAPS}/c"), relabel("wrong")).await.ok();
    let events = watch.events(3).await;
    assert_eq!(events[2].kind, "DELETED");
    mutate(&client, "c", 2).await;
    watch.is_quiet().await;
    let restored = client.merge(&format!("{MAPS}/c"), relabel("A")).await.ok();
    mutate(&client, "c", 3).await;
    client.delete(&format!("{MAPS}/c")).await.ok();
    let events = watch.events(3).await;
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["ADDED", "MODIFIED", "DELETED"]);
    assert_eq!(events[0].object, restored);
    assert_eq!(events[2].object["data"]["mutation"], "3");
}

#[tokio::test(start_paused = true)]
async fn concurrent_watches_see_the_same_order_from_wherever_they_begin() {
    const ROUNDS: usize = 100;
    let server = ApiServer::start();
    let client = Client::of(&server);
    let path = |version: u64| format!("{MAPS}?watch=1&resourceVersion={version}");
    let mut first = client.watch(&path(server.store().revision())).await;
    let mut random = fastrand::Rng::with_seed(7);
    let (mut seen, mut opened) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let name = format!("c{}", random.usize(..5));
        let exists = server.get("configmaps", "default", &name).is_some();
        match (exists, random.bool()) {
            (false, _) => drop(client.post(MAPS, map(&name)).await.ok()),
            (true, true) => drop(mutate(&client, &name, u32::try_from(round).unwrap()).await),
            (true, false) => drop(client.delete(&format!("{MAPS}/{name}")).await.ok()),
        }
        let event = first.event().await;
        opened.push(client.watch(&path(event.version())).await);
        seen.push(event);
    }
    for (at, mut watch) in opened.into_iter().enumerate() {
        assert_eq!(watch.events(ROUNDS - 1 - at).await, seen[at + 1..], "from the event {at}");
    }
}
