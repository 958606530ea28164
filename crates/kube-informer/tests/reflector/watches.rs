//! how a watch is opened, followed, and reopened.

use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::list_watch::KubeListWatch;

use super::reflecting::{Reflecting, reflect, reflect_with};
use super::scene::{
    Listed, Maps, asked, count, gaps, maps_of, parameter, requests, seconds, server, settle,
};
use super::script::{End, Script, bookmark, error, event, list, stored};

/// Starts a reflector that watches, with a record that starts there.
async fn watching(server: &embedded_apiserver::ApiServer) -> Reflecting {
    let reflecting = reflect(Listed(maps_of(server)));
    seconds(2).await;
    server.clear_record();
    reflecting.news();
    reflecting.states();
    reflecting
}

#[tokio::test(start_paused = true)]
async fn r40_a_watch_asks_for_bookmarks_and_a_random_end_and_no_more() {
    let mut timeouts = Vec::new();
    for seed in 1..=5 {
        let server = server();
        let reflecting = reflect_with(Listed(maps_of(&server)), |reflector| reflector.seed(seed));
        settle().await;
        let watch = &requests(&server)[1];
        assert_eq!(watch.verb, Some(Verb::Watch));
        assert_eq!(parameter(watch, "watch").as_deref(), Some("true"));
        assert_eq!(parameter(watch, "allowWatchBookmarks").as_deref(), Some("true"));
        assert_eq!(parameter(watch, "resourceVersion"), Some(server.version()));
        assert_eq!(parameter(watch, "sendInitialEvents"), None);
        assert_eq!(parameter(watch, "resourceVersionMatch"), None);
        //
        let timeout: u64 = parameter(watch, "timeoutSeconds").unwrap().parse().unwrap();
        assert!((300..=600).contains(&timeout), "{timeout}");
        timeouts.push(timeout);
        reflecting.stop().await;
    }
    timeouts.sort_unstable();
    timeouts.dedup();
    assert!(timeouts.len() > 1, "they spread: {timeouts:?}");
}

#[tokio::test(start_paused = true)]
async fn r41_what_is_stopped_before_it_begins_asks_for_nothing() {
    let server = server();
    let reflecting = reflect(maps_of(&server));
    reflecting.stop().await;
    assert_eq!(asked(&server), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn r42_there_is_one_watch_at_most_however_the_last_one_ended() {
    let server = server();
    server.add("a", "0");
    let reflecting = reflect(Listed(maps_of(&server)));
    for (round, fault) in [
        Fault::HalfOpen,
        Fault::Reset,
        Fault::Gone,
        Fault::DropWatches,
        Fault::status(500),
        Fault::status(403),
        Fault::MalformedUtf8,
        Fault::Truncated,
    ]
    .into_iter()
    .enumerate()
    {
        seconds(2).await;
        assert_eq!(server.watches(), 1);
        server.faults().on(Verb::Watch).after_events(0).inject(fault);
        server.change("a", &(round + 1).to_string());
        for _ in 0..80 {
            seconds(2).await;
            assert!(server.watches() <= 1, "round {round}");
        }
    }
    assert_eq!(server.watches(), 1);
    assert_eq!(server.faults().fired().len(), 8, "all of them struck");
    reflecting.stop().await;
    assert_eq!(server.watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn r43_refused_watches_are_tried_again_without_a_list() {
    let server = server();
    let reflecting = watching(&server).await;
    server.refuse_connections();
    seconds(100).await;
    let version = server.add("a", "1");
    server.accept_connections();
    seconds(61).await;
    assert_eq!(count(&server, Verb::List), 0);
    assert_eq!(reflecting.news(), [format!("add a @{version}")]);
    let nexts = reflecting.errors.nexts();
    assert!(nexts.len() > 5 && nexts.iter().all(|next| *next == "resume"), "{nexts:?}");
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r43_too_many_requests_when_a_watch_is_opened_needs_no_list() {
    let server = server();
    let reflecting = watching(&server).await;
    server.faults().on(Verb::Watch).nth(1).times(4).inject(Fault::status(429));
    server.drop_watches();
    let version = server.add("a", "1");
    seconds(60).await;
    assert_eq!(asked(&server).len(), 5);
    assert_eq!(count(&server, Verb::List), 0);
    assert_eq!(reflecting.news(), [format!("add a @{version}")]);
    assert_eq!(reflecting.errors.nexts(), ["resume"; 4]);
    assert_eq!(reflecting.errors.attempts(), [1, 2, 3, 4]);
    // each pause is longer than the previous one could be.
    let pauses = gaps(&server);
    for (pause, least) in pauses.iter().zip([800, 1600, 3200, 6400]) {
        let least = Duration::from_millis(least);
        assert!(*pause >= least && *pause <= least * 2 + Duration::from_millis(5), "{pauses:?}");
    }
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r45_a_watch_that_ends_goes_on_at_once_from_the_last_version() {
    let server = server();
    let reflecting = watching(&server).await;
    let version = server.add("a", "1");
    settle().await;
    server.drop_watches();
    settle().await;
    assert_eq!(asked(&server), [format!("watch rv={version}")]);
    assert_eq!(reflecting.errors.len(), 0, "it is the way of the world");
    // The timeout of a watch is such an end too.
    seconds(1300).await;
    assert_eq!(count(&server, Verb::List), 0);
    assert!(count(&server, Verb::Watch) >= 2);
    assert_eq!(reflecting.errors.len(), 0);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r46_a_watch_that_ends_at_once_needs_no_list() {
    // client-go relists, which costs the server most when it can least afford it.
    let server = server();
    let reflecting = watching(&server).await;
    server.faults().on(Verb::Watch).nth(1).after_events(0).times(3).inject(Fault::DropWatches);
    server.drop_watches();
    seconds(30).await;
    let (watches, others): (Vec<_>, Vec<_>) =
        asked(&server).into_iter().partition(|asked| asked.starts_with("watch"));
    assert_eq!(others, ["list limit=1"], "the question which version the server is at");
    assert_eq!(watches.len(), 4);
    assert_eq!(reflecting.errors.nexts(), ["resume"; 3]);
    assert_eq!(reflecting.errors.attempts(), [1, 2, 3]);
    let gaps = gaps(&server);
    let waited: Duration = gaps[..3].iter().sum();
    assert!(waited >= Duration::from_millis(800 + 1600 + 3200), "{gaps:?}");
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r46_watches_of_one_event_each_are_opened_once_a_second() {
    // client-go opens them in a loop without pauses.
    let server = server();
    let reflecting = watching(&server).await;
    server.faults().on(Verb::Watch).after_events(1).always().inject(Fault::DropWatches);
    for turn in 0..10 {
        server.add(&format!("m{turn}"), "1");
    }
    seconds(30).await;
    assert_eq!(reflecting.news().len(), 10);
    assert_eq!(count(&server, Verb::List), 0);
    let gaps = gaps(&server);
    assert!(gaps.iter().all(|gap| *gap >= Duration::from_millis(999)), "{gaps:?}");
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r47_what_an_error_event_says_is_what_is_done() {
    for (fault, next, lists) in [
        (Fault::status_retry_after(429, "7"), "resume", 0),
        (Fault::status(500), "resume", 0),
        (Fault::Gone, "relist", 1),
    ] {
        let server = server();
        let reflecting = watching(&server).await;
        server.faults().on(Verb::Watch).after_events(0).inject(fault);
        settle().await;
        let version = server.add("a", "1");
        seconds(20).await;
        assert_eq!(reflecting.errors.nexts(), [next]);
        assert_eq!(count(&server, Verb::List), lists);
        assert!(reflecting.news().iter().any(|news| news.ends_with(&format!("@{version}"))));
        reflecting.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r47_r49_a_watch_that_keeps_failing_causes_a_list() {
    let server = server();
    let reflecting = watching(&server).await;
    server.faults().on(Verb::Watch).after_events(0).times(5).inject(Fault::status(500));
    seconds(120).await;
    assert_eq!(reflecting.errors.nexts(), ["resume", "resume", "resume", "resume", "poll"]);
    assert_eq!(reflecting.errors.attempts(), [1, 2, 3, 4, 5]);
    assert_eq!(count(&server, Verb::List), 1);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r53_r45_a_bookmark_advances_the_version_and_no_object() {
    let server = server();
    let reflecting = watching(&server).await;
    // A write to another resource: the watch receives only a bookmark.
    for _ in 0..3 {
        server
            .create(serde_json::json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "s-"},
            }))
            .unwrap();
    }
    seconds(60).await;
    let version = server.version();
    assert_eq!(reflecting.news(), [format!("bookmark @{version}")]);
    server.drop_watches();
    settle().await;
    assert_eq!(asked(&server), [format!("watch rv={version}")]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r51_another_kind_in_the_stream_is_reported_and_skipped() {
    let server = server();
    let script = Script::default();
    let secret = serde_json::json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "a", "namespace": "default", "resourceVersion": "60", "uid": "s"},
    });
    script.list(&list("50", "", [stored("a", "1", "40")]));
    script.watch([event("DELETED", &secret)], End::Closed);
    script.watch([event("ADDED", &stored("b", "1", "51"))], End::Silent);
    let source = KubeListWatch::of::<ConfigMap>(script.client(&server));
    let reflecting = reflect(Listed(source));
    seconds(5).await;
    assert_eq!(reflecting.written(), ["replace a @50", "add b @51"]);
    let text = reflecting.errors.all()[0].to_string();
    assert!(text.contains("Secret"), "{text}");
    // It advances no version, and does not count as an event of the watch.
    assert_eq!(reflecting.errors.nexts(), ["skip", "resume"]);
    assert_eq!(asked(&server)[1..], ["watch rv=50", "watch rv=50"]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r54_events_of_an_unknown_type_are_reported_and_skipped() {
    let server = server();
    let script = Script::default();
    script.list(&list("50", "", []));
    let changed = event("CHANGED", &stored("a", "1", "60"));
    script.watch([changed, event("ADDED", &stored("b", "1", "51"))], End::Silent);
    let source = KubeListWatch::of::<ConfigMap>(script.client(&server));
    let reflecting = reflect(Listed(source));
    seconds(5).await;
    assert_eq!(reflecting.errors.nexts(), ["skip"]);
    assert_eq!(reflecting.written(), ["replace @50", "add b @51"]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r58_a_store_read_error_is_listed_away() {
    let server = server();
    let script = Script::default();
    script.list(&list("50", "", [stored("a", "1", "40"), stored("corrupt", "1", "41")]));
    script.watch([error(500, "StoreReadError")], End::Closed);
    script.list(&list("55", "", [stored("a", "1", "40")]));
    let source = KubeListWatch::of::<ConfigMap>(script.client(&server));
    let reflecting = reflect(Listed(source));
    seconds(5).await;
    assert_eq!(reflecting.written(), ["replace a corrupt @50", "replace a @55"]);
    assert_eq!(reflecting.errors.nexts(), ["relist"]);
    assert_eq!(asked(&server)[2..], ["list rv>=50", "watch rv=55"]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i2_versions_that_go_back_are_an_error_and_begin_anew() {
    let server = server();
    let script = Script::default();
    script.list(&list("50", "", [stored("a", "2", "50")]));
    script.watch([event("MODIFIED", &stored("a", "1", "40"))], End::Silent);
    script.list(&list("30", "", [stored("a", "0", "30")]));
    script.watch([bookmark("31", None)], End::Silent);
    let source = KubeListWatch::of::<ConfigMap>(script.client(&server));
    let reflecting = reflect(Listed(source));
    seconds(5).await;
    // I21: the most recent version is the truth, even if it is older.
    assert_eq!(asked(&server)[2..], ["list limit=500", "watch rv=30"]);
    assert_eq!(reflecting.written(), ["replace a @50", "replace a @30", "bookmark @31"]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i8_an_event_that_comes_twice_is_one_change() {
    let server = server();
    let reflecting = watching(&server).await;
    server.faults().on(Verb::Watch).inject(Fault::DuplicateEvent);
    let version = server.add("a", "1");
    seconds(5).await;
    let news = reflecting.news();
    assert!(news.iter().all(|news| *news == format!("add a @{version}")), "{news:?}");
    assert_eq!(count(&server, Verb::List), 0);
    reflecting.stop().await;
}
