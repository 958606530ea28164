//! E-: observers of errors.

use std::sync::Arc;

use embedded_apiserver::{Fault, Verb};
use kube_informer::{SharedInformer, State};
use parking_lot::Mutex;

use crate::scene::{Maps, Notes, builder, seconds, server, settle, source};

#[tokio::test(start_paused = true)]
async fn e1_e3_c7_every_error_reaches_everybody_who_asked() {
    let server = server();
    server.faults().on(Verb::Watch).inject(Fault::status(503));
    let (one, other) = (Notes::default(), Notes::default());
    let maps: Maps = SharedInformer::from_source(source(&server))
        .on_error(one.reporter())
        .on_error(other.reporter())
        .build();
    maps.start();
    maps.wait_for_sync().await.unwrap();
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Reset);
    seconds(10).await;
    assert_eq!(one.nexts(), ["relist", "resume"]);
    assert_eq!(other.nexts(), ["relist", "resume"]);
    // It is a complete log line.
    let report = one.take().remove(1).to_string();
    assert!(report.contains("configmaps") && report.contains("resuming the watch in"), "{report}");
}

#[tokio::test(start_paused = true)]
async fn e2_an_observer_is_called_before_the_pause_and_may_panic() {
    let server = server();
    server.faults().on(Verb::Watch).times(2).inject(Fault::status(503));
    let informer: Arc<Mutex<Option<Maps>>> = Arc::default();
    let (states, observed) = (Notes::default(), informer.clone());
    let noted = states.clone();
    let maps = builder(&server).on_error(move |_| {
        let state = observed.lock().as_ref().map(Maps::state);
        noted.push(matches!(state, Some(State::Streaming)));
        panic!("an observer of somebody's own");
    });
    let maps = maps.build();
    *informer.lock() = Some(maps.clone());
    maps.start();
    maps.wait_for_sync().await.unwrap();
    assert_eq!(states.take(), [true, true], "not waiting yet");
    informer.lock().take();
    maps.shutdown().await;
    settle().await;
}
