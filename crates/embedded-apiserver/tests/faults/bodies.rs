//! Damaged and split bodies.

use embedded_apiserver::{Fault, Verb};
use serde_json::{Value, json};

use crate::support::{Frames, MAPS, add, delivered, fired, get, server};

#[tokio::test(start_paused = true)]
async fn truncated() {
    let server = server();
    add(&server, "a");
    let whole = get(&server, MAPS).await.bytes;
    server.faults().on(Verb::List).inject(Fault::Truncated);
    let half = get(&server, MAPS).await;
    assert_eq!(half.code, 200);
    assert_eq!(half.bytes, whole[..whole.len() / 2]);
    assert_eq!(fired(&server).0, "truncated");
    for n in [0, 33] {
        server.faults().on(Verb::List).after_bytes(n).inject(Fault::Truncated);
        assert_eq!(get(&server, MAPS).await.bytes, whole[..n as usize]);
    }
    let beyond = whole.len() as u64;
    server.faults().on(Verb::List).after_bytes(beyond).inject(Fault::Truncated);
    assert_eq!(get(&server, MAPS).await.bytes, whole);
    assert_eq!(server.faults().pending(), 1);
}

#[tokio::test(start_paused = true)]
async fn truncated_event() {
    let server = server();
    server.faults().on(Verb::Watch).after_events(1).inject(Fault::Truncated);
    let mut watch = Frames::watch_from_now(&server).await;
    for name in ["a", "b", "c"] {
        add(&server, name);
    }
    assert_eq!(watch.event().await, "ADDED a");
    let half = watch.next().await.unwrap().unwrap();
    assert!(half.starts_with(br#"{"type":"ADDED","object":"#));
    assert!(serde_json::from_slice::<Value>(&half).unwrap_err().is_eof());
    assert!(watch.ends().await);
    assert_eq!(fired(&server).2, 1);
    assert_eq!(delivered(&server), ["ADDED a", "ADDED b !truncated"]);
}

/// Asserts that every chunk but the last ends after the first byte of a sequence.
fn assert_split(pieces: &[bytes::Bytes]) {
    assert!(pieces.len() > 1);
    for piece in &pieces[..pieces.len() - 1] {
        assert!(*piece.last().unwrap() >= 0xC0);
        assert!(std::str::from_utf8(piece).is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn split_utf8() {
    let server = server();
    add(&server, "a");
    let whole = get(&server, MAPS).await.bytes;
    server.faults().on(Verb::List).inject(Fault::SplitUtf8);
    let mut list = Frames::of(&server, MAPS).await;
    let mut pieces = Vec::new();
    while let Some(piece) = list.next().await {
        pieces.push(piece.unwrap());
    }
    assert_split(&pieces);
    assert_eq!(pieces.concat(), whole);
    assert_eq!(fired(&server).0, "split-utf8");
}

#[tokio::test(start_paused = true)]
async fn split_utf8_in_a_watch() {
    let server = server();
    server.faults().on(Verb::Watch).inject(Fault::SplitUtf8);
    let mut watch = Frames::watch_from_now(&server).await;
    let ascii = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ascii"}});
    server.create(ascii).unwrap();
    assert_eq!(watch.event().await, "ADDED ascii");
    assert_eq!(server.faults().pending(), 1, "there was nothing to split");
    for name in ["a", "b"] {
        add(&server, name);
        let mut pieces = vec![watch.next().await.unwrap().unwrap()];
        while !pieces.last().unwrap().ends_with(b"\n") {
            pieces.push(watch.next().await.unwrap().unwrap());
        }
        assert_split(&pieces);
        let event: Value = serde_json::from_slice(&pieces.concat()).unwrap();
        assert_eq!(event["object"]["metadata"]["name"], name);
    }
    assert_eq!(fired(&server).0, "split-utf8");
    assert_eq!(delivered(&server), ["ADDED ascii", "ADDED a", "ADDED b"]);
}

#[tokio::test(start_paused = true)]
async fn malformed_utf8() {
    let server = server();
    add(&server, "a");
    server.faults().on(Verb::Get).inject(Fault::MalformedUtf8);
    let answer = get(&server, &format!("{MAPS}/a")).await;
    assert!(std::str::from_utf8(&answer.bytes).is_err());
    assert!(serde_json::from_slice::<Value>(&answer.bytes).is_err());
    let mended = String::from_utf8_lossy(&answer.bytes).into_owned();
    assert!(serde_json::from_str::<Value>(&mended).is_ok(), "all else is right");
    assert_eq!(fired(&server).0, "malformed-utf8");
}

#[tokio::test(start_paused = true)]
async fn malformed_utf8_in_a_watch() {
    let server = server();
    server.faults().on(Verb::Watch).inject(Fault::MalformedUtf8);
    let mut watch = Frames::watch_from_now(&server).await;
    add(&server, "a");
    add(&server, "b");
    let line = watch.next().await.unwrap().unwrap();
    assert!(std::str::from_utf8(&line).is_err());
    let mended: Value = serde_json::from_str(&String::from_utf8_lossy(&line)).unwrap();
    assert_eq!(mended["type"], "ADDED");
    assert_eq!(watch.event().await, "ADDED b");
    assert_eq!(delivered(&server), ["ADDED a !malformed-utf8", "ADDED b"]);
}
