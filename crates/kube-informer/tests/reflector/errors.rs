//! E-1 to E-3, R-48: every error is reported, with the reaction to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use embedded_apiserver::{Fault, Verb};
use kube_informer::State;

use super::reflecting::{reflect, reflect_with};
use super::scene::{Errors, Listed, Maps, asked, gaps, maps_of, pause, seconds, server, settle};

#[tokio::test(start_paused = true)]
async fn r48_b5_errors_in_a_stream_are_reported_as_those_of_requests() {
    for (fault, next) in [
        (Fault::Gone, "relist"),
        (Fault::status(500), "resume"),
        (Fault::status(429), "resume"),
        (Fault::status(403), "resume"),
        (Fault::Reset, "resume"),
        (Fault::MalformedUtf8, "relist"),
    ] {
        let server = server();
        let reflecting = reflect(maps_of(&server));
        settle().await;
        let name = fault.name();
        server.faults().on(Verb::Watch).after_events(1).inject(fault);
        server.add("a", "1");
        settle().await;
        let report = reflecting.errors.last();
        assert_eq!(reflecting.errors.nexts(), [next], "{name}");
        assert!(matches!(report.during, State::Watching), "{report}");
        assert_eq!(&*report.informer, "configmaps");
        let text = report.to_string();
        assert!(text.contains("watch") && text.contains("while watching"), "{text}");
        reflecting.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn e1_attempts_count_consecutive_failures() {
    let server = server();
    server.faults().on(Verb::List).times(3).inject(Fault::status(503));
    let reflecting = reflect(Listed(maps_of(&server)));
    seconds(30).await;
    assert_eq!(reflecting.errors.attempts(), [1, 2, 3]);
    assert!(reflecting.errors.all().iter().all(|report| matches!(report.during, State::Listing)));
    // Watches have their own count, which is reset by a watch that lasted.
    server.faults().on(Verb::Watch).times(2).nth(1).inject(Fault::status(503));
    server.restart();
    seconds(30).await;
    assert_eq!(reflecting.errors.attempts()[3..], [1, 2, 3]);
    server.add("a", "1");
    settle().await;
    server.restart();
    seconds(30).await;
    assert_eq!(reflecting.errors.attempts()[6..], [1]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn e2_a_report_comes_before_the_pause_and_says_how_long_it_is() {
    let server = server();
    server.faults().on(Verb::Watch).inject(Fault::status(503));
    let reflecting = reflect(maps_of(&server));
    settle().await;
    let after = pause(&reflecting.errors.last());
    assert!(!after.is_zero());
    assert_eq!(asked(&server).len(), 1, "it waits");
    tokio::time::sleep(after).await;
    let gaps = gaps(&server);
    assert_eq!(gaps.len(), 1);
    let waited = gaps[0];
    assert!(waited >= after && waited.as_millis() <= after.as_millis() + 2, "{waited:?} {after:?}");
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn e3_several_observers_are_all_told() {
    // client-go has only one: the last that was set.
    let server = server();
    let more = Errors::default();
    server.faults().on(Verb::Watch).inject(Fault::status(503));
    let reflecting =
        reflect_with(maps_of(&server), |reflector| reflector.on_error(more.recorder()));
    settle().await;
    assert_eq!((reflecting.errors.len(), more.len()), (1, 1));
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_is_contained() {
    let server = server();
    let panics = Arc::new(AtomicUsize::new(0));
    let counted = panics.clone();
    server.faults().on(Verb::Watch).inject(Fault::status(503));
    let reflecting = reflect_with(maps_of(&server), |reflector| {
        reflector.on_state(|_| panic!("a state that it does not like")).on_error(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            panic!("an error that it does not like")
        })
    });
    seconds(5).await;
    assert_eq!(panics.load(Ordering::Relaxed), 1);
    assert_eq!(reflecting.written().len(), 1, "it goes on");
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i20_nothing_that_was_in_an_object_is_in_a_report() {
    let server = server();
    server.add("a", "a-secret-value");
    let reflecting = reflect(maps_of(&server));
    settle().await;
    for fault in [Fault::Truncated, Fault::MalformedUtf8, Fault::WrongType] {
        server.faults().on(Verb::Watch).inject(fault);
        server.change("a", "another-secret-value");
        server.change("a", "a-secret-value");
        seconds(30).await;
    }
    assert!(reflecting.errors.len() >= 2);
    for report in reflecting.errors.all() {
        assert!(!format!("{report} {report:?}").contains("secret-value"), "{report}");
    }
    reflecting.stop().await;
}
