//! The requests that a rule matches, and how often it fires.

use std::io::ErrorKind;

use bytes::Bytes;
use embedded_apiserver::{ApiServer, Fault, FiredFault, Verb};
use http::Request;
use http_body_util::Full;
use tower_service::Service as _;

use crate::support::{Frames, MAPS, add, broken_get, get, is_silent, record, server};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Returns the codes of this many lists.
async fn codes(server: &ApiServer, lists: usize) -> Vec<u16> {
    let mut out = Vec::new();
    for _ in 0..lists {
        out.push(get(server, MAPS).await.code.as_u16());
    }
    out
}

#[tokio::test(start_paused = true)]
async fn once_unless_told_otherwise() {
    let server = server();
    server.faults().on(Verb::List).inject(Fault::status(500));
    assert_eq!(server.faults().pending(), 1);
    assert_eq!(codes(&server, 3).await, [500, 200, 200]);
    assert_eq!(server.faults().pending(), 0);
}

/// Otherwise anyone who can reach a socket could consume the faults of a test.
#[tokio::test(start_paused = true)]
async fn requests_without_a_token_use_no_fault_up() {
    let server = server();
    server.faults().any().inject(Fault::status(500));
    server.faults().on(Verb::List).nth(2).inject(Fault::status(503));
    for _ in 0..3 {
        let request = Request::get(MAPS).body(Full::<Bytes>::default()).unwrap();
        assert_eq!(server.service().call(request).await.unwrap().status(), 401);
    }
    assert_eq!(server.faults().pending(), 2);
    assert_eq!(codes(&server, 3).await, [500, 503, 200]);
}

#[tokio::test(start_paused = true)]
async fn nth_and_times() {
    let server = server();
    codes(&server, 1).await;
    server.faults().on(Verb::List).nth(3).inject(Fault::status(500));
    assert_eq!(codes(&server, 5).await, [200, 200, 500, 200, 200]);
    server.faults().on(Verb::List).times(2).inject(Fault::status(500));
    assert_eq!(codes(&server, 4).await, [500, 500, 200, 200]);
    server.faults().on(Verb::List).nth(2).times(2).inject(Fault::status(500));
    assert_eq!(codes(&server, 5).await, [200, 500, 500, 200, 200]);
}

#[tokio::test(start_paused = true)]
async fn always_until_removed() {
    let server = server();
    let id = server.faults().on(Verb::List).always().inject(Fault::status(500));
    assert_eq!(codes(&server, 3).await, [500, 500, 500]);
    assert!(server.faults().remove(id));
    assert!(!server.faults().remove(id));
    assert_eq!(codes(&server, 2).await, [200, 200]);

    server.faults().any().always().inject(Fault::status(500));
    server.faults().on(Verb::Watch).inject(Fault::Reset);
    server.faults().clear();
    assert_eq!(server.faults().pending(), 0);
    assert_eq!(codes(&server, 2).await, [200, 200]);
    assert_eq!(server.faults().fired().len(), 3, "the log stays");
}

#[tokio::test(start_paused = true)]
async fn a_removed_rule_leaves_watches_alone() {
    let server = server();
    let id = server.faults().on(Verb::Watch).after_events(1).always().inject(Fault::DropEvent);
    let mut watch = Frames::watch_from_now(&server).await;
    for name in ["a", "b"] {
        add(&server, name);
    }
    assert_eq!(watch.event().await, "ADDED a");
    server.faults().remove(id);
    assert_eq!(watch.event().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn by_verb_resource_namespace_and_user() {
    let server = server();
    add(&server, "a");
    let faults = server.faults();
    let rule = faults.on(Verb::List).resource("configmaps").group("").namespace("default");
    rule.user("tester").always().inject(Fault::status(500));
    assert_eq!(get(&server, MAPS).await.code, 500);
    for uri in [PODS, "/api/v1/configmaps", &format!("{MAPS}/a"), "/api", "/readyz"] {
        assert_eq!(get(&server, uri).await.code, 200, "{uri}");
    }
    let request = http::Request::get(MAPS).body(http_body_util::Empty::new()).unwrap();
    let mut other = server.service_as("other");
    let answer = tower_service::Service::call(&mut other, request).await.unwrap();
    assert_eq!(answer.status(), 200);

    server.faults().clear();
    server.faults().any().always().inject(Fault::status(500));
    for uri in [PODS, "/api", "/readyz", "/apis/apps/v1", "/nowhere"] {
        assert_eq!(get(&server, uri).await.code, 500, "{uri}");
    }
}

#[tokio::test(start_paused = true)]
async fn several_on_one_request() {
    let server = server();
    let time = std::time::Duration::from_secs(1);
    server.faults().any().inject(Fault::Latency(time));
    server.faults().any().inject(Fault::status(500));
    server.faults().any().inject(Fault::Reset);
    let start = tokio::time::Instant::now();
    assert_eq!(get(&server, MAPS).await.code, 500);
    assert_eq!(start.elapsed(), time);
    assert_eq!(record(&server, 1).faults, ["latency", "status"]);
    // The third did not reach its point, and waits for the next request.
    assert_eq!(broken_get(&server, MAPS).await, ErrorKind::ConnectionReset);
}

#[tokio::test(start_paused = true)]
async fn nth_watch_and_after_events() {
    let server = server();
    for name in ["a", "b", "c"] {
        add(&server, name);
    }
    let mut running = Frames::watch(&server, "").await;
    server.faults().on(Verb::Watch).nth(2).after_events(1).inject(Fault::Reset);
    let mut first = Frames::watch(&server, "").await;
    let mut second = Frames::watch(&server, "").await;
    for watch in [&mut running, &mut first] {
        for expected in ["ADDED a", "ADDED b", "ADDED c"] {
            assert_eq!(watch.event().await, expected);
        }
    }
    assert_eq!(second.event().await, "ADDED a");
    assert_eq!(second.breaks().await, ErrorKind::ConnectionReset);
    let fired = server.faults().fired();
    assert_eq!((fired[0].request, fired[0].after_events), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn of_two_watches_the_first_takes_it() {
    let server = server();
    server.faults().on(Verb::Watch).after_events(1).inject(Fault::DropEvent);
    let mut one = Frames::watch_from_now(&server).await;
    let mut other = Frames::watch_from_now(&server).await;
    for name in ["a", "b", "c"] {
        add(&server, name);
    }
    for expected in ["ADDED a", "ADDED c"] {
        assert_eq!(other.event().await, expected);
    }
    for expected in ["ADDED a", "ADDED b", "ADDED c"] {
        assert_eq!(one.event().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn after_events_is_for_watches() {
    let server = server();
    server.faults().any().after_events(0).always().inject(Fault::Reset);
    assert_eq!(get(&server, MAPS).await.code, 200);
    let mut watch = Frames::watch_from_now(&server).await;
    assert_eq!(watch.breaks().await, ErrorKind::ConnectionReset);
}

/// Returns the effects of a server with this seed on the same requests.
async fn trace(seed: u64) -> (Vec<u16>, Vec<(&'static str, u64, u64)>) {
    let server = ApiServer::builder().seed(seed).build();
    server.faults().on(Verb::List).always().probability(0.3).inject(Fault::status(500));
    server.faults().on(Verb::Watch).always().probability(0.3).inject(Fault::DropEvent);
    let codes = codes(&server, 60).await;
    let mut watch = Frames::watch_from_now(&server).await;
    for name in 0..60 {
        add(&server, &format!("map-{name}"));
    }
    while !is_silent(watch.next()).await {}
    let fired = server.faults().fired().into_iter();
    let fired =
        fired.map(|FiredFault { name, request, after_events, .. }| (name, request, after_events));
    (codes, fired.collect())
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_faults() {
    let (codes, fired) = trace(1).await;
    assert_eq!((codes.clone(), fired.clone()), trace(1).await);
    assert_ne!((codes.clone(), fired), trace(2).await);
    let failed = codes.iter().filter(|code| **code == 500).count();
    assert!((8..30).contains(&failed), "{failed} of 60 at 0.3");
}

#[tokio::test(start_paused = true)]
async fn compression_does_not_hide_faults() {
    let server = server();
    for at in 0..2000 {
        add(&server, &format!("map-{at:04}"));
    }
    server.faults().on(Verb::List).inject(Fault::MalformedUtf8);
    for compressed in [false, true] {
        let request = http::Request::get(MAPS).header("accept-encoding", "gzip");
        let request = request.body(http_body_util::Empty::new()).unwrap();
        let mut service = server.service_as("tester");
        let answer = tower_service::Service::call(&mut service, request).await.unwrap();
        assert_eq!(answer.headers().contains_key("content-encoding"), compressed);
        http_body_util::BodyExt::collect(answer.into_body()).await.unwrap();
    }
}
