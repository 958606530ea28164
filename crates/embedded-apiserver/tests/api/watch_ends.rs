//! The end of a watch.

use embedded_apiserver::ApiServer;
use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::Instant;
use tower_service::Service;

use crate::harness::{Client, MAPS, map};

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_time_is_up() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut watch = client.watch(&format!("{MAPS}?watch=1&timeoutSeconds=7")).await;
    let started = Instant::now();
    server.create(map("a")).unwrap();
    assert_eq!(watch.event().await.brief().1, "a");
    assert_eq!(watch.next().await, None);
    assert_eq!(started.elapsed().as_secs(), 7);
    drop(watch);
    assert_eq!(server.watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_says_no_time_ends_after_half_an_hour_to_an_hour() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for query in ["watch=1", "watch=1&timeoutSeconds=0"] {
        let started = Instant::now();
        assert!(client.watch(&format!("{MAPS}?{query}")).await.rest().await.is_empty());
        let minutes = started.elapsed().as_secs() / 60;
        assert!((30..60).contains(&minutes), "{minutes}");
    }
}

/// A server that shuts down ends its watches gracefully, and clients resume elsewhere.
#[tokio::test(start_paused = true)]
async fn watches_that_are_dropped_end_and_new_ones_begin() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let path = format!("{MAPS}?watch=1");
    let first = client.watch(&path).await;
    let second = client.watch("/api/v1/pods?watch=1").await;
    assert_eq!(server.watches(), 2);
    server.drop_watches();
    assert_eq!((first.rest().await, second.rest().await), (vec![], vec![]));
    assert_eq!(server.watches(), 0);
    let mut third = client.watch(&path).await;
    server.create(map("a")).unwrap();
    assert_eq!(third.event().await.brief().1, "a");
}

/// A crash is not graceful: the connection breaks.
#[tokio::test(start_paused = true)]
async fn a_restart_breaks_watches_and_keeps_objects() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    server.create(map("a")).unwrap();
    let request = http::Request::get(format!("{MAPS}?watch=1"));
    let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    let mut body = server.service_as("admin").call(request).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    server.restart();
    let error = body.frame().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    client.get(&format!("{MAPS}/a")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_does_not_read_is_cut_off() {
    let server = ApiServer::builder().watch_lag_max(10).build();
    let client = Client::of(&server);
    let path = format!("{MAPS}?watch=1");
    let (mut slow, mut quick) = (client.watch(&path).await, client.watch(&path).await);
    slow.is_quiet().await;
    for at in 0..11 {
        server.create(map(&format!("m{at}"))).unwrap();
        assert_eq!(quick.event().await.brief().1, format!("m{at}"));
    }
    assert_eq!(slow.rest().await, []);
    quick.is_quiet().await;
    // Events before the watch do not count as its lag.
    let from = server.store().revision() - 11;
    let mut late = client.watch(&format!("{path}&resourceVersion={from}")).await;
    assert_eq!(late.events(11).await.len(), 11);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_reads_now_and_then_is_not() {
    let server = ApiServer::builder().watch_lag_max(10).build();
    let client = Client::of(&server);
    let mut watch = client.watch(&format!("{MAPS}?watch=1")).await;
    watch.is_quiet().await;
    for round in 0..5 {
        for at in 0..10 {
            server.create(map(&format!("m{round}-{at}"))).unwrap();
        }
        assert_eq!(watch.events(10).await.len(), 10);
        watch.is_quiet().await;
    }
}

/// A watcher whose unread history was compacted receives an error in the stream.
#[tokio::test(start_paused = true)]
async fn a_watcher_that_lags_behind_compaction_gets_a_410() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut watch = client.watch(&format!("{MAPS}?watch=1")).await;
    watch.is_quiet().await;
    for name in ["a", "b"] {
        server.create(map(name)).unwrap();
    }
    server.store().compact(server.store().revision());
    let events = watch.rest().await;
    assert_eq!((events.len(), events[0].kind.as_str()), (1, "ERROR"));
    assert_eq!(
        (&events[0].object["code"], &events[0].object["reason"]),
        (&json!(410), &json!("Expired"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_closed_by_the_client_is_closed() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let watch = client.watch(&format!("{MAPS}?watch=1")).await;
    assert_eq!(server.watches(), 1);
    drop(watch);
    assert_eq!(server.watches(), 0);
}
