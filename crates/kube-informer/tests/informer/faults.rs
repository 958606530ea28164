//! The table of errors, row by row: the report, the reaction, and the recovery.

use std::time::Duration;

use embedded_apiserver::{Denial, Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::State;
use kube_informer::list_watch::KubeListWatch;

use super::running::{Book, Running};
use super::scene::{
    Listed, Maps, agrees, asked, count, gaps, maps_of, pause, seconds, server, settle, within,
};
use super::script::{End, Script, bookmark, event, list, stored};

/// An informer that has been watching for a while, with a record that starts there.
async fn watching() -> Running {
    let running = Running::synced(server()).await;
    running.server.add("a", "1");
    seconds(5).await;
    running.server.clear_record();
    running
}

/// Strikes the open watch, and makes a change that it does not see.
async fn strike(running: &Running, fault: Fault) {
    running.server.faults().on(Verb::Watch).after_events(0).inject(fault);
    settle().await;
    running.server.change("a", "2");
}

/// Strikes the next watch that is opened.
async fn strike_open(running: &Running, times: u64, fault: Fault) {
    running.server.faults().on(Verb::Watch).nth(1).times(times).inject(fault);
    running.server.drop_watches();
    settle().await;
    running.server.change("a", "2");
}

/// The error that the informer backs off for, and the pause.
fn backing_off(running: &Running) -> Duration {
    match running.informer.state() {
        State::BackingOff { until, why } => {
            assert_eq!(why, running.errors.last().error);
            assert!(!running.informer.is_live());
            until.duration_since(tokio::time::Instant::now())
        }
        other => panic!("{other} is not backing off"),
    }
}

/// Asserts that it watches again, and has missed nothing.
async fn recovers(running: &Running, limit: u64) {
    let recovered =
        || running.informer.is_live() && agrees(&running.server, &running.informer.lister());
    within(Duration::from_secs(limit), "L1", recovered).await;
    assert_eq!(running.state(), "watching");
}

#[tokio::test(start_paused = true)]
async fn error_table_a_clean_close_is_no_error() {
    let running = watching().await;
    running.server.drop_watches();
    settle().await;
    running.server.change("a", "2");
    recovers(&running, 1).await;
    assert_eq!(running.errors.len(), 0);
    assert_eq!(count(&running.server, Verb::Watch), 1);
}

#[tokio::test(start_paused = true)]
async fn error_table_a_reset_of_a_healthy_watch_is_resumed_at_once() {
    for fault in [Fault::Reset, Fault::Restart] {
        let running = watching().await;
        seconds(5).await;
        strike(&running, fault).await;
        assert_eq!(running.errors.nexts(), ["resume"]);
        assert_eq!(pause(&running.errors.last()), Duration::ZERO);
        recovers(&running, 1).await;
        assert_eq!(count(&running.server, Verb::List), 0);
        assert_eq!(asked(&running.server).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn error_table_an_event_that_ends_in_the_middle_is_no_event() {
    let running = watching().await;
    running.server.faults().on(Verb::Watch).inject(Fault::Truncated);
    running.server.change("a", "2");
    settle().await;
    assert_eq!(running.errors.len(), 1);
    recovers(&running, 3).await;
}

#[tokio::test(start_paused = true)]
async fn error_table_refused_stays_on_its_version() {
    let running = watching().await;
    let book = Book::keep(&running.informer);
    running.server.refuse_connections();
    running.server.change("a", "2");
    seconds(300).await;
    assert!(running.errors.last().error.is_connection_refused());
    assert!(running.errors.last().error.to_string().contains("watch configmaps"));
    backing_off(&running);
    assert_eq!(running.names(), ["a"], "the cache is served all the same");
    running.server.accept_connections();
    recovers(&running, 60).await;
    assert_eq!(count(&running.server, Verb::List), 0);
    assert!(asked(&running.server)[0].starts_with("watch rv="));
    assert_eq!(book.news(), ["add a initially", "synced", "update a"]);
}

#[tokio::test(start_paused = true)]
async fn error_table_a_watch_that_is_never_answered_is_tried_again() {
    let running = watching().await;
    strike_open(&running, 1, Fault::StalledHeaders).await;
    seconds(31).await;
    assert_eq!(running.errors.nexts(), ["resume"]);
    assert!(running.errors.last().error.to_string().contains("no answer within 30 s"));
    recovers(&running, 2).await;
    assert_eq!(count(&running.server, Verb::List), 0);
}

#[tokio::test(start_paused = true)]
async fn error_table_410_in_the_stream_lists_from_the_last_version() {
    let running = watching().await;
    let seen = running.informer.resource_version();
    strike(&running, Fault::Gone).await;
    assert_eq!(running.errors.nexts(), ["relist"]);
    assert!(running.errors.last().error.is_expired());
    backing_off(&running);
    recovers(&running, 2).await;
    assert_eq!(asked(&running.server), [format!("stream rv>={seen}")]);
}

#[tokio::test(start_paused = true)]
async fn error_table_410_as_an_answer_lists_the_newest_version() {
    let running = watching().await;
    strike_open(&running, 1, Fault::Gone).await;
    assert_eq!(running.errors.nexts(), ["relist"]);
    recovers(&running, 2).await;
    assert_eq!(asked(&running.server)[1..], ["stream"]);
}

#[tokio::test(start_paused = true)]
async fn error_table_504_a_version_too_large_lists_the_newest() {
    let server = server();
    let past = server.store().snapshot();
    let running = Running::synced(server).await;
    let book = Book::keep(&running.informer);
    running.server.add("a", "1");
    running.server.add("b", "1");
    settle().await;
    book.news();
    // The backup has neither, and its versions are long past.
    running.server.restore(&past);
    running.server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
    seconds(60).await;
    // I21: a new epoch; the missing objects are deleted.
    assert!(agrees(&running.server, &running.informer.lister()));
    assert_eq!(book.news(), ["miss a", "miss b"]);
    assert_eq!(asked(&running.server).last().unwrap(), "stream");
    let texts: Vec<_> = running.errors.all().iter().map(ToString::to_string).collect();
    assert!(texts.iter().any(|text| text.contains("504")), "{texts:#?}");
    assert_eq!(running.informer.resource_version(), *running.server.version());
}

#[tokio::test(start_paused = true)]
async fn error_table_429_waits_as_long_as_it_is_told_to() {
    for (after, least, most) in [
        ("20", 20, 22),
        // A day is a mistake, or malicious.
        ("86400", 300, 330),
        // Nonsense and past times ask for no pause.
        ("-5", 0, 2),
        ("soon", 0, 2),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 2),
    ] {
        let running = watching().await;
        strike_open(&running, 1, Fault::status_retry_after(429, after)).await;
        assert!(running.errors.last().error.is_too_many_requests());
        assert_eq!(running.errors.nexts(), ["resume"]);
        let wait = pause(&running.errors.last()).as_secs_f64();
        assert!(wait >= f64::from(least) && wait <= f64::from(most), "{after}: {wait}");
        assert!(backing_off(&running).as_secs_f64() <= wait);
        recovers(&running, most as u64 + 1).await;
        assert!(gaps(&running.server)[0].as_secs_f64() >= f64::from(least));
        assert_eq!(count(&running.server, Verb::List), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn error_table_429_for_the_first_list_is_waited_for_too() {
    let server = server();
    server.add("a", "1");
    server.faults().on(Verb::Watch).inject(Fault::status_retry_after(429, "9"));
    let running = Running::new(server);
    running.informer.start();
    settle().await;
    assert_eq!(running.errors.nexts(), ["relist"]);
    assert!(backing_off(&running) >= Duration::from_millis(8_900));
    recovers(&running, 11).await;
    assert_eq!(asked(&running.server), ["stream"; 2]);
}

#[tokio::test(start_paused = true)]
async fn error_table_repeated_500s_in_the_stream_cause_a_list() {
    let running = watching().await;
    running.server.faults().on(Verb::Watch).after_events(0).times(5).inject(Fault::status(500));
    settle().await;
    backing_off(&running);
    running.server.change("a", "2");
    recovers(&running, 60).await;
    assert_eq!(running.errors.nexts(), ["resume", "resume", "resume", "resume", "poll"]);
    assert_eq!(
        count(&running.server, Verb::List),
        1,
        "what is in the way of watches is of streams"
    );
}

#[tokio::test(start_paused = true)]
async fn error_table_5xx_and_proxy_pages_are_retried() {
    for (fault, text) in [
        (Fault::status(500), "500"),
        (Fault::html(502), "502"),
        (Fault::status(503), "503"),
        (Fault::html(200), "text/html"),
        (Fault::content_type("application/cbor"), "cbor"),
    ] {
        let running = watching().await;
        strike_open(&running, 2, fault).await;
        assert!(running.errors.last().error.to_string().contains(text));
        backing_off(&running);
        recovers(&running, 10).await;
        assert_eq!(running.errors.len(), 2, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn error_table_401_is_tried_once_more_at_once_and_then_later() {
    let running = watching().await;
    strike_open(&running, 3, Fault::status(401)).await;
    assert_eq!(running.errors.len(), 2, "the client may have got a new token meanwhile");
    assert_eq!(pause(&running.errors.all()[0]), Duration::ZERO);
    assert!(running.errors.last().error.is_unauthorized());
    assert!(running.errors.last().error.to_string().contains("expired"), "what to look for");
    backing_off(&running);
    recovers(&running, 10).await;
    assert_eq!(running.errors.nexts(), ["resume"; 3]);
    let gaps = gaps(&running.server);
    assert_eq!(gaps[0], Duration::ZERO);
    assert!(gaps[1] >= Duration::from_millis(800), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn error_table_403_on_watches_leads_to_polling() {
    let running = watching().await;
    let denial = Denial::verbs([Verb::Watch]).resource("configmaps");
    let denial = running.server.access().deny(denial);
    running.server.drop_watches();
    settle().await;
    running.server.change("a", "2");
    let text = running.errors.last().error.to_string();
    assert!(running.errors.last().error.is_forbidden());
    for part in ["\"watch\"", "\"configmaps\"", "ClusterRole", "403"] {
        assert!(text.contains(part), "{text}");
    }
    // Servers also send it for allowed requests right after they have started.
    assert!(backing_off(&running) <= Duration::from_secs(2));
    seconds(600).await;
    assert!(agrees(&running.server, &running.informer.lister()), "lists are allowed");
    assert!(!running.informer.is_live());
    assert!(running.errors.last().to_string().contains("polling with lists instead"));
    running.server.change("a", "3");
    let polled = || agrees(&running.server, &running.informer.lister());
    within(Duration::from_secs(60), "polled", polled).await;
    assert!(running.informer.staleness().unwrap() < Duration::from_secs(1));
    // L3: at most one list and one watch every half a minute.
    let gaps = gaps(&running.server);
    let mut pairs = gaps[7..].chunks_exact(2);
    assert!(pairs.all(|pair| pair[0] + pair[1] >= Duration::from_secs(30)), "{gaps:?}");
    running.server.access().allow(denial);
    recovers(&running, 60).await;
    assert_eq!(running.errors.nexts()[..5], ["resume", "resume", "resume", "resume", "poll"]);
}

#[tokio::test(start_paused = true)]
async fn error_table_403_for_one_namespace_names_it() {
    let server = server();
    server.access().deny(Denial::verbs([Verb::List]).resource("configmaps"));
    let source = Listed(maps_of(&server).namespace("shop"));
    let running = Running::from_source(server, source, |builder| builder);
    running.informer.start();
    settle().await;
    let text = running.errors.last().to_string();
    for part in ["\"list\"", "\"configmaps\"", "\"shop\"", "Role"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(matches!(running.errors.last().during, State::Listing));
}

#[tokio::test(start_paused = true)]
async fn error_table_4xx_of_a_watch_causes_a_list_after_a_pause() {
    for code in [400, 406, 415, 422] {
        let running = watching().await;
        // A 406 is first treated as a refusal of protobuf, and JSON is requested.
        let times = if code == 406 { 2 } else { 1 };
        strike_open(&running, times, Fault::status(code)).await;
        assert_eq!(running.errors.nexts(), ["relist"], "{code}");
        backing_off(&running);
        recovers(&running, 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn error_table_a_missing_end_bookmark_falls_back_to_a_list() {
    let server = server();
    server.add("a", "1");
    server.faults().on(Verb::Watch).always().inject(Fault::EndBookmarkMissing);
    let running = Running::new(server);
    running.informer.start();
    // L4: it does sync.
    running.informer.wait_for_sync().await.unwrap();
    assert_eq!(running.errors.nexts(), ["fall back"]);
    recovers(&running, 1).await;
}

#[tokio::test(start_paused = true)]
async fn error_table_what_is_not_utf8_ends_the_stream_and_is_listed() {
    let running = watching().await;
    running.server.faults().on(Verb::Watch).inject(Fault::MalformedUtf8);
    running.server.change("a", "2");
    settle().await;
    assert_eq!(running.errors.nexts(), ["relist"]);
    recovers(&running, 3).await;
}

#[tokio::test(start_paused = true)]
async fn error_table_another_kind_fails_loudly() {
    let server = server();
    let script = Script::default();
    let mut table = list("50", "", [stored("a", "1", "40")]);
    table["kind"] = "Table".into();
    table["apiVersion"] = "meta.k8s.io/v1".into();
    script.list(&table);
    let client = script.client(&server);
    let source = KubeListWatch::of::<ConfigMap>(client);
    let running = Running::from_source(server, Listed(source), |builder| builder);
    running.informer.start();
    settle().await;
    //
    let text = running.errors.last().error.to_string();
    assert!(text.contains("Table"), "{text}");
    assert!(running.names().is_empty());
    recovers(&running, 3).await;
}

#[tokio::test(start_paused = true)]
async fn error_table_versions_that_go_back_begin_a_new_epoch() {
    let server = server();
    let script = Script::default();
    script.watch(
        [
            event("ADDED", &stored("a", "1", "500")),
            event("ADDED", &stored("b", "1", "501")),
            bookmark("510", Some("true")),
            event("MODIFIED", &stored("a", "2", "90")),
        ],
        End::Silent,
    );
    let client = script.client(&server);
    let source = KubeListWatch::of::<ConfigMap>(client);
    let running = Running::from_source(server, source, |builder| builder);
    let book = Book::keep(&running.informer);
    running.informer.start();
    settle().await;
    assert_eq!(running.errors.nexts(), ["relist"]);
    let text = running.errors.last().error.to_string();
    assert!(text.contains("backup") && text.contains("90") && text.contains("510"), "{text}");
    assert_eq!(running.names(), ["a", "b"]);
    recovers(&running, 3).await;
    assert_eq!(asked(&running.server), ["stream"; 2], "the newest, whatever it is");
    assert_eq!(book.news(), ["add a initially", "add b initially", "synced", "miss a", "miss b"]);
}
