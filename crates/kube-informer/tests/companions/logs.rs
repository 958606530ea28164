//! Problems with events are logged when they start and when they clear, not once per event.

use std::time::Duration;

use embedded_apiserver::{Denial, Verb};
use k8s_openapi::api::core::v1::ObjectReference;
use kube_informer::{EventType, Recorder};
use tokio::time::sleep;

use crate::log::Log;
use crate::scene::{create, server};

/// Returns whether there are as many lines as these, and each has its prefix.
fn has(log: &Log, beginnings: &[&str]) -> bool {
    let lines = log.lines();
    let fits = lines.iter().zip(beginnings).all(|(line, start)| line.starts_with(start));
    lines.len() == beginnings.len() && fits || panic!("{lines:#?}")
}

#[tokio::test(start_paused = true)]
async fn outage_is_logged_when_it_begins_and_when_it_is_over() {
    let (log, _guard) = Log::capture();
    let server = server();
    let map = create(&server, "a");
    let recorder = Recorder::new(server.client(), "example.com/controller").unwrap();
    for _ in 0..2 {
        server.refuse_connections();
        for nth in 0..20 {
            recorder.event(&map, EventType::Normal, &format!("R{nth}"), "Start", "");
        }
        sleep(Duration::from_secs(60)).await;
        assert!(has(&log, &["WARN events are delayed, and will be lost after 2 minutes: cannot "]));
        server.accept_connections();
        recorder.flush().await;
        assert!(has(&log, &["INFO events are written again"]));
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_are_logged_once() {
    let (log, _guard) = Log::capture();
    let server = server();
    let map = create(&server, "a");
    server.access().deny(Denial::verbs([Verb::Create]).user("jane"));
    let recorder = Recorder::new(server.client_as("jane"), "example.com/controller").unwrap();
    for nth in 0..10 {
        recorder.event(&map, EventType::Normal, &format!("R{nth}"), "Start", "");
    }
    recorder.flush().await;
    assert!(has(&log, &["WARN an event was lost"]));
    for _ in 0..10 {
        recorder.event(ObjectReference::default(), EventType::Normal, "Up", "Start", "");
    }
    recorder.flush().await;
    assert!(has(&log, &["WARN an event was not recorded: an event is about an object"]));
}
