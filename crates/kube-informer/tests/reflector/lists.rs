//! lists, their versions and pages.

use std::time::Duration;

use embedded_apiserver::{Fault, Verb};

use super::reflecting::{reflect, reflect_with};
use super::scene::{Listed, Maps, asked, gaps, map, maps_of, requests, seconds, server, settle};
use super::script::{End, Script, error, list, stored};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::list_watch::KubeListWatch;

#[tokio::test(start_paused = true)]
async fn r20_the_watch_starts_at_the_version_of_the_first_list() {
    let server = server();
    server.add("a", "1");
    let version = server.add("b", "1");
    let reflecting = reflect(Listed(maps_of(&server)));
    settle().await;
    assert_eq!(asked(&server), ["list rv=0 limit=500".to_owned(), format!("watch rv={version}")]);
    assert_eq!(reflecting.written(), [format!("replace a b @{version}")]);
    assert_eq!(reflecting.states(), ["listing", "watching"]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r20_a_relist_is_not_older_than_what_was_seen() {
    let server = server();
    let reflecting = reflect(Listed(maps_of(&server)));
    settle().await;
    let seen = server.add("a", "1");
    settle().await;
    server.clear_record();
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
    seconds(5).await;
    // a 410 in the stream does not make the version unavailable. R-22: no limit, so that the
    // server can answer from its cache.
    assert_eq!(asked(&server), [format!("list rv>={seen}"), format!("watch rv={seen}")]);
    assert_eq!(reflecting.errors.nexts(), ["relist"]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r20_after_a_refused_version_the_most_recent_is_asked_for() {
    let server = server();
    let reflecting = reflect(Listed(maps_of(&server)));
    settle().await;
    let seen = server.add("a", "1");
    settle().await;
    server.clear_record();
    server.faults().on(Verb::Watch).nth(1).inject(Fault::Gone);
    seconds(2).await;
    server.drop_watches();
    seconds(5).await;
    let watch = format!("watch rv={seen}");
    assert_eq!(asked(&server), [watch.clone(), "list limit=500".to_owned(), watch]);
    assert_eq!(reflecting.errors.nexts(), ["relist"]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r22_r23_further_pages_have_a_token_and_no_version() {
    let server = server();
    for name in ["a", "b", "c", "d", "e"] {
        server.add(name, "1");
    }
    let version = server.version();
    // The first list, from the cache, comes in one piece; refused, the second does not.
    server.faults().on(Verb::List).nth(1).inject(Fault::Gone);
    server.faults().on(Verb::List).nth(3).inject(Fault::Latency(Duration::from_secs(1)));
    let reflecting = reflect_with(Listed(maps_of(&server)), |reflector| reflector.page_size(2));
    settle().await;
    // Added after the first page: not part of this list, although its page has not been read yet.
    let later = server.add("f", "1");
    seconds(2).await;
    assert_eq!(
        asked(&server),
        [
            "list rv=0 limit=2".to_owned(),
            "list limit=2".to_owned(),
            "list next limit=2".to_owned(),
            "list next limit=2".to_owned(),
            format!("watch rv={version}"),
        ]
    );
    let replaced = format!("replace a b c d e @{version}");
    assert_eq!(reflecting.written(), [replaced, format!("add f @{later}")]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r22_pages_stay_on_servers_without_a_cache() {
    let server = server();
    let script = Script::default();
    script.list(&list("50", "more", [stored("a", "1", "40")]));
    script.list(&list("50", "", [stored("b", "1", "45")]));
    script.watch([error(410, "Expired")], End::Closed);
    let source = KubeListWatch::of::<ConfigMap>(script.client(&server));
    let reflecting = reflect(Listed(source));
    settle().await;
    assert_eq!(reflecting.written(), ["replace a b @50"]);
    script.list(&list("60", "", []));
    seconds(5).await;
    let asked = asked(&server);
    assert_eq!(asked[..2], ["list rv=0 limit=500", "list next limit=500"]);
    assert_eq!(asked[2..], ["watch rv=50", "list rv>=50 limit=500", "watch rv=60"]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r24_an_expired_token_causes_a_list_without_pages() {
    let server = server();
    for name in ["a", "b", "c"] {
        server.add(name, "1");
    }
    server.faults().on(Verb::List).nth(1).inject(Fault::Gone);
    server.faults().on(Verb::List).nth(3).inject(Fault::Gone);
    let reflecting = reflect_with(Listed(maps_of(&server)), |reflector| reflector.page_size(2));
    settle().await;
    let version = server.version();
    assert_eq!(
        asked(&server),
        [
            "list rv=0 limit=2".to_owned(),
            "list limit=2".to_owned(),
            "list next limit=2".to_owned(),
            "list".to_owned(),
            format!("watch rv={version}"),
        ]
    );
    // I4: it contains no page of the list that was given up.
    assert_eq!(reflecting.written(), [format!("replace a b c @{version}")]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r24_a_token_of_a_compacted_version_has_expired() {
    let server = server();
    for name in ["a", "b", "c"] {
        server.add(name, "1");
    }
    server.faults().on(Verb::List).nth(1).inject(Fault::Gone);
    server.faults().on(Verb::List).nth(3).inject(Fault::Latency(Duration::from_secs(1)));
    server.faults().on(Verb::List).nth(3).inject(Fault::Compact);
    let reflecting = reflect_with(Listed(maps_of(&server)), |reflector| reflector.page_size(2));
    settle().await;
    server.remove("a");
    server.change("c", "2");
    seconds(2).await;
    assert_eq!(asked(&server)[3..5], ["list".to_owned(), format!("watch rv={}", server.version())]);
    // I4: a mixture of both lists would have a in it, and the c of the second.
    assert_eq!(reflecting.written(), [format!("replace b c @{}", server.version())]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r25_an_expired_list_is_retried_at_once_then_later() {
    let server = server();
    server.faults().on(Verb::List).times(2).inject(Fault::Gone);
    let reflecting = reflect(Listed(maps_of(&server)));
    seconds(5).await;
    assert_eq!(asked(&server)[..3], ["list rv=0 limit=500", "list limit=500", "list limit=500"]);
    let gaps = gaps(&server);
    assert_eq!(gaps[0], Duration::ZERO);
    assert!(gaps[1] >= Duration::from_millis(800), "{gaps:?}");
    assert_eq!(reflecting.errors.nexts(), ["relist", "relist"]);
    assert_eq!(reflecting.errors.attempts(), [1, 2]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r25_r26_a_future_version_is_given_up() {
    let server = server();
    let past = server.store().snapshot();
    for name in ["a", "b", "c"] {
        server.add(name, "1");
    }
    let reflecting = reflect(Listed(maps_of(&server)));
    settle().await;
    let seen = server.version();
    reflecting.news();
    // The watch says that its version has expired; then the list that it is too large.
    server.restore(&past);
    server.clear_record();
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
    seconds(120).await;
    let asked = asked(&server);
    assert!(asked.contains(&format!("list rv>={seen}")), "{asked:?}");
    let consistent = asked.iter().position(|asked| asked == "list limit=500").expect("rv=\"\"");
    let version = server.version();
    assert_eq!(asked[consistent + 1..], [format!("watch rv={version}")], "{asked:?}");
    // I21: a new epoch, with an older version.
    assert_eq!(reflecting.news()[0], format!("replace @{version}"));
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn r30_a_list_that_hangs_is_dropped_at_once_when_stopped() {
    for fault in [Fault::StalledHeaders, Fault::StalledBody, Fault::HalfOpen] {
        let server = server();
        server.create(map("a", "1")).unwrap();
        server.faults().on(Verb::List).inject(fault);
        let reflecting = reflect(Listed(maps_of(&server)));
        seconds(10).await;
        assert_eq!(reflecting.states(), ["listing"]);
        reflecting.stop().await;
        assert_eq!(requests(&server).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn r30_a_list_that_hangs_ends_by_itself_and_is_tried_again() {
    for fault in [Fault::StalledHeaders, Fault::StalledBody, Fault::HalfOpen] {
        let server = server();
        server.create(map("a", "1")).unwrap();
        server.faults().on(Verb::List).inject(fault);
        let reflecting = reflect(Listed(maps_of(&server)));
        seconds(74).await;
        assert_eq!(reflecting.errors.len(), 0);
        seconds(6).await;
        assert_eq!(reflecting.errors.nexts(), ["relist"]);
        assert_eq!(reflecting.written(), [format!("replace a @{}", server.version())]);
        reflecting.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn half_of_a_list_is_not_a_list() {
    for fault in [Fault::Reset, Fault::Truncated] {
        let server = server();
        for name in ["a", "b", "c"] {
            server.add(name, "1");
        }
        server.faults().on(Verb::List).after_bytes(400).inject(fault);
        let reflecting = reflect(Listed(maps_of(&server)));
        seconds(3).await;
        assert_eq!(reflecting.errors.nexts(), ["relist"]);
        assert_eq!(reflecting.written(), [format!("replace a b c @{}", server.version())]);
        reflecting.stop().await;
    }
}
