//! Connections that fail.

use std::io::ErrorKind;
use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{
    Frames, MAPS, add, broken_get, delivered, fired, get, is_silent, send, server,
};

#[tokio::test(start_paused = true)]
async fn refused() {
    let server = server();
    let revision = add(&server, "a");
    server.faults().on(Verb::List).inject(Fault::Refused);
    assert_eq!(broken_get(&server, MAPS).await, ErrorKind::ConnectionRefused);
    assert_eq!(fired(&server), ("refused", revision, 0));
    assert_eq!(server.requests()[0].status, None);
    assert_eq!(get(&server, MAPS).await.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn down() {
    let server = server();
    let mut watch = Frames::watch_from_now(&server).await;
    server.faults().on(Verb::List).inject(Fault::Down(Duration::from_secs(30)));
    assert_eq!(broken_get(&server, MAPS).await, ErrorKind::ConnectionReset);
    assert_eq!(watch.breaks().await, ErrorKind::ConnectionReset);
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert_eq!(broken_get(&server, MAPS).await, ErrorKind::ConnectionRefused);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(get(&server, MAPS).await.code, 200);
    assert_eq!(fired(&server).0, "down");
}

#[tokio::test(start_paused = true)]
async fn reset_before_the_answer() {
    let server = server();
    server.faults().on(Verb::Create).inject(Fault::Reset);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let error = send(&server, "POST", MAPS, &map).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(server.count("configmaps", ""), 0, "it is not carried out");
    assert_eq!(fired(&server).0, "reset");
}

#[tokio::test(start_paused = true)]
async fn reset_after_bytes() {
    let server = server();
    add(&server, "a");
    server.faults().on(Verb::List).after_bytes(20).inject(Fault::Reset);
    let mut list = Frames::of(&server, MAPS).await;
    assert_eq!(list.next().await.unwrap().unwrap().len(), 20);
    assert_eq!(list.breaks().await, ErrorKind::ConnectionReset);
    assert!(list.ends().await);
    assert_eq!(fired(&server).0, "reset");
}

#[tokio::test(start_paused = true)]
async fn reset_after_events() {
    let server = server();
    for name in ["a", "b", "c"] {
        add(&server, name);
    }
    server.faults().on(Verb::Watch).after_events(2).inject(Fault::Reset);
    let mut watch = Frames::watch(&server, "").await;
    assert_eq!(watch.event().await, "ADDED a");
    assert_eq!(watch.event().await, "ADDED b");
    assert_eq!(watch.breaks().await, ErrorKind::ConnectionReset);
    assert!(watch.ends().await);
    assert_eq!(fired(&server), ("reset", server.store().revision(), 2));
    assert_eq!(delivered(&server), ["ADDED a", "ADDED b"]);
}

#[tokio::test(start_paused = true)]
async fn lost_answer() {
    let server = server();
    server.faults().on(Verb::Create).inject(Fault::LostAnswer);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let error = send(&server, "POST", MAPS, &map).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(server.count("configmaps", ""), 1, "it is carried out");
    assert_eq!(fired(&server).0, "lost-answer");
}

#[tokio::test(start_paused = true)]
async fn half_open_before_the_answer() {
    let server = server();
    server.faults().on(Verb::List).inject(Fault::HalfOpen);
    let call = send(&server, "GET", MAPS, &Value::Null);
    tokio::pin!(call);
    assert!(is_silent(&mut call).await);
    server.restart();
    assert_eq!(call.await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(fired(&server).0, "half-open");
}

#[tokio::test(start_paused = true)]
async fn half_open_in_a_running_watch() {
    let server = server();
    let mut watch = Frames::watch_from_now(&server).await;
    add(&server, "a");
    assert_eq!(watch.event().await, "ADDED a");
    assert!(is_silent(watch.next()).await);
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::HalfOpen);
    assert!(is_silent(watch.next()).await);
    assert_eq!(fired(&server), ("half-open", server.store().revision(), 1));
    add(&server, "b");
    assert!(is_silent(watch.next()).await);
    assert_eq!(delivered(&server), ["ADDED a"]);
    server.restart();
    assert_eq!(watch.breaks().await, ErrorKind::ConnectionReset);
    assert!(watch.ends().await, "what broke says so once");
}

/// The rule reaches an idle watch, without an event to wake it.
#[tokio::test(start_paused = true)]
async fn a_waiting_watch_is_struck_at_once() {
    let server = server();
    let mut watch = Frames::watch_from_now(&server).await;
    let reader = tokio::spawn(async move { watch.breaks().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let injected = Instant::now();
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Reset);
    assert_eq!(reader.await.unwrap(), ErrorKind::ConnectionReset);
    assert_eq!(injected.elapsed(), Duration::ZERO);
}

/// A rule applies to later writes, even if the watch sees both at once.
#[tokio::test(start_paused = true)]
async fn a_waiting_watch_is_struck_before_the_next_event() {
    let server = server();
    let mut watch = Frames::watch_from_now(&server).await;
    let waiting = tokio::spawn(async move { watch.breaks().await });
    tokio::task::yield_now().await;
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Reset);
    add(&server, "a");
    assert_eq!(waiting.await.unwrap(), ErrorKind::ConnectionReset);
    assert_eq!(delivered(&server), [""; 0]);
}

/// The same holds for a rule that affects the event itself.
#[tokio::test(start_paused = true)]
async fn a_waiting_watch_loses_the_next_event() {
    let server = server();
    let mut watch = Frames::watch_from_now(&server).await;
    let waiting = tokio::spawn(async move { watch.event().await });
    tokio::task::yield_now().await;
    server.faults().on(Verb::Watch).inject(Fault::DropEvent);
    add(&server, "a");
    add(&server, "b");
    assert_eq!(waiting.await.unwrap(), "ADDED b");
}

/// A fault fires before the error with which a watch would start.
#[tokio::test(start_paused = true)]
async fn reset_before_the_first_event() {
    let server = server();
    let version = add(&server, "a");
    add(&server, "b");
    server.store().compact(u64::MAX);
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Reset);
    let expired = format!("resourceVersion={version}");
    let mut watch = Frames::watch(&server, &expired).await;
    assert_eq!(watch.breaks().await, ErrorKind::ConnectionReset);
    assert!(watch.ends().await);
    assert_eq!(Frames::watch(&server, &expired).await.event().await, "ERROR 410");
    assert_eq!(delivered(&server), ["ERROR 0"]);
}

#[tokio::test(start_paused = true)]
async fn stalled_headers() {
    let server = server();
    server.faults().on(Verb::List).inject(Fault::StalledHeaders);
    let call = send(&server, "GET", MAPS, &Value::Null);
    tokio::pin!(call);
    assert!(is_silent(&mut call).await);
    assert_eq!(get(&server, MAPS).await.code, 200, "others are answered");
    server.restart();
    assert_eq!(call.await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(fired(&server).0, "stalled-headers");
}

#[tokio::test(start_paused = true)]
async fn stalled_body() {
    let server = server();
    add(&server, "a");
    server.faults().on(Verb::List).inject(Fault::StalledBody);
    let mut list = Frames::of(&server, MAPS).await;
    assert!(is_silent(list.next()).await);
    server.restart();
    assert_eq!(list.breaks().await, ErrorKind::ConnectionReset);
    assert_eq!(fired(&server).0, "stalled-body");

    server.faults().on(Verb::List).after_bytes(7).inject(Fault::StalledBody);
    let mut list = Frames::of(&server, MAPS).await;
    assert_eq!(list.next().await.unwrap().unwrap().len(), 7);
    assert!(is_silent(list.next()).await);
}

#[tokio::test(start_paused = true)]
async fn stalled_body_of_a_watch() {
    let server = server();
    add(&server, "a");
    server.faults().on(Verb::Watch).after_events(1).inject(Fault::StalledBody);
    let mut watch = Frames::watch(&server, "").await;
    assert_eq!(watch.event().await, "ADDED a");
    add(&server, "b");
    assert!(is_silent(watch.next()).await);
    assert_eq!(fired(&server).2, 1);
}

#[tokio::test(start_paused = true)]
async fn slow_bytes() {
    let server = server();
    add(&server, "a");
    let whole = get(&server, MAPS).await.bytes;
    let every = Duration::from_secs(1);
    server.faults().on(Verb::List).inject(Fault::SlowBytes { bytes: 10, every });
    let start = Instant::now();
    let mut list = Frames::of(&server, MAPS).await;
    let mut bytes = Vec::new();
    let mut frames = 0;
    while let Some(frame) = list.next().await {
        let frame = frame.unwrap();
        assert!(frame.len() <= 10);
        bytes.extend_from_slice(&frame);
        frames += 1;
    }
    assert_eq!(bytes, whole);
    assert_eq!(start.elapsed(), every * frames);
    assert_eq!(fired(&server).0, "slow-bytes");
}

#[tokio::test(start_paused = true)]
async fn slow_bytes_of_a_watch_go_on() {
    let server = server();
    let every = Duration::from_millis(10);
    server.faults().on(Verb::Watch).inject(Fault::SlowBytes { bytes: 1, every });
    let mut watch = Frames::watch_from_now(&server).await;
    for name in ["a", "b"] {
        add(&server, name);
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            line.extend_from_slice(&watch.next().await.unwrap().unwrap());
        }
        let event: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(event["object"]["metadata"]["name"], name);
    }
    assert_eq!(fired(&server).0, "slow-bytes");
    add(&server, "c");
    watch.next().await.unwrap().unwrap();
    server.restart();
    assert_eq!(watch.breaks().await, ErrorKind::ConnectionReset);
}

#[tokio::test(start_paused = true)]
async fn latency() {
    let server = server();
    let time = Duration::from_secs(3);
    server.faults().any().inject(Fault::Latency(time));
    let start = Instant::now();
    assert_eq!(get(&server, "/readyz").await.code, 200);
    assert_eq!(start.elapsed(), time);
    assert_eq!(fired(&server).0, "latency");
    assert_eq!(get(&server, "/readyz").await.code, 200);
    assert_eq!(start.elapsed(), time, "once");
}

#[tokio::test(start_paused = true)]
async fn latency_of_an_event() {
    let server = server();
    let time = Duration::from_secs(3);
    server.faults().on(Verb::Watch).after_events(1).always().inject(Fault::Latency(time));
    let mut watch = Frames::watch_from_now(&server).await;
    for (name, late) in [("a", Duration::ZERO), ("b", time), ("c", time)] {
        assert!(is_silent(watch.next()).await);
        add(&server, name);
        let start = Instant::now();
        assert_eq!(watch.event().await, format!("ADDED {name}"));
        assert_eq!(start.elapsed(), late);
    }
}
