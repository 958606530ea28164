//! W-1 to W-17: streaming lists.

use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::list_watch::KubeListWatch;

use super::reflecting::reflect;
use super::scene::{
    Maps, asked, count, gaps, maps_of, parameter, pause, requests, seconds, server, settle,
};
use super::script::{End, Script, bookmark, event, stored};

fn scripted(server: &embedded_apiserver::ApiServer, script: &Script) -> KubeListWatch {
    KubeListWatch::of::<ConfigMap>(script.client(server))
}

#[tokio::test(start_paused = true)]
async fn w1_w3_a_streamed_list_becomes_the_watch() {
    let server = server();
    server.add("a", "1");
    let version = server.add("b", "1");
    let reflecting = reflect(maps_of(&server));
    settle().await;
    assert_eq!(asked(&server), ["stream"]);
    let stream = &requests(&server)[0];
    assert_eq!(parameter(stream, "allowWatchBookmarks").as_deref(), Some("true"));
    assert_eq!(parameter(stream, "resourceVersionMatch").as_deref(), Some("NotOlderThan"));
    assert!(parameter(stream, "timeoutSeconds").is_some());
    assert_eq!(reflecting.news(), [format!("replace a b @{version}")]);
    assert_eq!(reflecting.states(), ["streaming", "watching"]);
    // The same stream.
    let version = server.change("a", "2");
    settle().await;
    assert_eq!(reflecting.news(), [format!("update a @{version}")]);
    assert_eq!(asked(&server), ["stream"]);
    reflecting.stop().await;
    assert_eq!(server.watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn w1_w8_relists_are_streamed_not_older_than_seen() {
    let server = server();
    let reflecting = reflect(maps_of(&server));
    settle().await;
    let seen = server.add("a", "1");
    settle().await;
    server.clear_record();
    server.faults().on(Verb::Watch).nth(1).inject(Fault::Gone);
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
    seconds(5).await;
    assert_eq!(asked(&server), [format!("stream rv>={seen}"), "stream".to_owned()]);
    assert_eq!(gaps(&server), [Duration::ZERO], "at once");
    assert_eq!(reflecting.errors.nexts(), ["relist", "relist"]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn w2_only_a_bookmark_that_says_so_ends_the_initial_events() {
    let server = server();
    let script = Script::default();
    let lines = [
        event("ADDED", &stored("a", "1", "10")),
        event("ADDED", &stored("b", "1", "11")),
        event("ADDED", &stored("c", "1", "12")),
        bookmark("20", None),
        bookmark("21", Some("false")),
        // Changes and deletes are applied before the end bookmark.
        event("MODIFIED", &stored("a", "2", "22")),
        event("DELETED", &stored("b", "1", "23")),
        bookmark("30", Some("true")),
        event("ADDED", &stored("d", "1", "31")),
    ];
    script.watch(lines, End::Silent);
    let reflecting = reflect(scripted(&server, &script));
    settle().await;
    assert_eq!(reflecting.written(), ["replace a c @30", "add d @31"]);
    assert_eq!(reflecting.errors.len(), 0);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn w4_w5_nothing_of_a_broken_stream_is_kept() {
    let server = server();
    server.add("a", "1");
    let script = Script::default();
    script.watch([event("ADDED", &stored("ghost", "1", "900"))], End::Closed);
    let reflecting = reflect(scripted(&server, &script));
    settle().await;
    assert_eq!(reflecting.written(), [""; 0]);
    seconds(5).await;
    assert_eq!(asked(&server), ["stream", "stream"]);
    assert_eq!(reflecting.written(), [format!("replace a @{}", server.version())]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn w6_w11_a_stream_without_its_end_times_out_after_30_s() {
    // client-go retries indefinitely.
    let server = server();
    server.add("a", "1");
    server.faults().on(Verb::Watch).always().inject(Fault::EndBookmarkMissing);
    let reflecting = reflect(maps_of(&server));
    seconds(29).await;
    assert_eq!(asked(&server), ["stream"]);
    assert_eq!(reflecting.written(), [""; 0]);
    seconds(2).await;
    assert_eq!(asked(&server)[1], "list rv=0 limit=500");
    assert_eq!(reflecting.errors.nexts(), ["fall back"]);
    assert_eq!(reflecting.written(), [format!("replace a @{}", server.version())]);
    // The fallback is remembered: relists are not streamed.
    server.clear_record();
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
    seconds(5).await;
    let version = server.version();
    assert_eq!(asked(&server), [format!("list rv>={version}"), format!("watch rv={version}")]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn w6_a_stream_that_goes_on_for_ever_is_given_up_too() {
    let server = server();
    // Something arrives every 20 s, but never the end bookmark.
    server.faults().on(Verb::Watch).always().inject(Fault::EndBookmarkMissing);
    let reflecting = reflect(maps_of(&server));
    for turn in 0..20 {
        seconds(20).await;
        server.add(&format!("m{turn}"), "1");
    }
    assert!(reflecting.written()[0].starts_with("replace "), "{:?}", reflecting.written());
    assert_eq!(reflecting.errors.nexts()[0], "fall back");
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn w7_a_busy_or_absent_server_is_asked_for_a_stream_again_later() {
    for fault in [Fault::status(429), Fault::Refused] {
        let server = server();
        server.faults().on(Verb::Watch).times(3).inject(fault);
        let reflecting = reflect(maps_of(&server));
        seconds(30).await;
        assert_eq!(asked(&server), ["stream"; 4]);
        assert_eq!(reflecting.errors.nexts(), ["relist"; 3]);
        assert_eq!(reflecting.errors.attempts(), [1, 2, 3]);
        assert_eq!(reflecting.written().len(), 1);
        reflecting.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn w7_b3_a_stop_does_not_wait_for_the_pause() {
    let server = server();
    server.faults().on(Verb::Watch).always().inject(Fault::status_retry_after(429, "60"));
    let reflecting = reflect(maps_of(&server));
    seconds(5).await;
    assert!(pause(&reflecting.errors.last()) >= Duration::from_secs(60));
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn w9_a_server_that_cannot_stream_is_listed_from_now_on() {
    for code in [400, 406, 415, 422] {
        let server = server();
        // A 406 is first treated as a refusal of protobuf, and JSON is requested.
        let times = if code == 406 { 2 } else { 1 };
        server.faults().on(Verb::Watch).times(times).inject(Fault::status(code));
        let reflecting = reflect(maps_of(&server));
        settle().await;
        let version = server.version();
        let listed = ["list rv=0 limit=500", &format!("watch rv={version}")];
        let asked_first = asked(&server);
        let (streams, rest) = asked_first.split_at(times as usize);
        assert!(streams.iter().all(|asked| asked == "stream"), "{code}: {streams:?}");
        assert_eq!(rest, listed, "{code}");
        assert_eq!(reflecting.errors.nexts(), ["fall back"]);
        server.clear_record();
        server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
        seconds(5).await;
        assert_eq!(asked(&server)[0], format!("list rv>={version}"), "remembered");
        reflecting.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn w9_streams_that_keep_breaking_are_given_up_for_one_list() {
    let server = server();
    server.add("a", "1");
    server.faults().on(Verb::Watch).after_events(1).times(3).inject(Fault::Reset);
    let reflecting = reflect(maps_of(&server));
    seconds(30).await;
    assert_eq!(asked(&server)[..4], ["stream", "stream", "stream", "list rv=0 limit=500"]);
    // Streaming may still work: the next relist is a stream again.
    server.clear_record();
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
    seconds(5).await;
    assert_eq!(asked(&server), [format!("stream rv>={}", server.version())]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn w10_stopped_while_it_streams_it_writes_nothing() {
    let server = server();
    server.add("a", "1");
    server.faults().on(Verb::Watch).after_events(1).inject(Fault::StalledBody);
    let reflecting = reflect(maps_of(&server));
    seconds(10).await;
    assert_eq!(reflecting.states(), ["streaming"]);
    assert_eq!(reflecting.written(), [""; 0]);
    reflecting.stop().await;
    assert_eq!(server.watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn w12_once_it_is_a_watch_it_is_opened_again_as_one() {
    let server = server();
    let reflecting = reflect(maps_of(&server));
    seconds(2).await;
    let version = server.add("a", "1");
    settle().await;
    server.drop_watches();
    settle().await;
    assert_eq!(asked(&server)[1..], [format!("watch rv={version}")]);
    assert_eq!(count(&server, Verb::List), 0);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn w13_a_watch_with_a_refused_version_is_streamed_again() {
    // client-go requests the refused version once more.
    let server = server();
    let reflecting = reflect(maps_of(&server));
    seconds(2).await;
    server.clear_record();
    server.faults().on(Verb::Watch).nth(1).inject(Fault::Gone);
    server.drop_watches();
    seconds(5).await;
    assert_eq!(asked(&server)[1..], ["stream"]);
    assert!(reflecting.errors.last().error.is_expired());
    assert_eq!(reflecting.errors.nexts(), ["relist"]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn w17_every_stream_is_closed_however_it_ended() {
    for fault in [Fault::EndBookmarkMissing, Fault::HalfOpen, Fault::Reset, Fault::Truncated] {
        let server = server();
        server.add("a", "1");
        server.add("b", "1");
        server.faults().on(Verb::Watch).after_events(1).inject(fault);
        let reflecting = reflect(maps_of(&server));
        for _ in 0..60 {
            seconds(1).await;
            assert!(server.watches() <= 1);
        }
        assert_eq!(server.watches(), 1);
        reflecting.stop().await;
        assert_eq!(server.watches(), 0);
    }
}
