//! Connections that fill up, fall silent and close, in memory and in paused time. Tests that need sockets and
//! TLS are in `tests/client`.

mod network;

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::{join, join_all, join3};
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep, timeout};

use network::Network;

/// Longer than anything here takes; it passes at once in paused time.
const LONG: Duration = Duration::from_secs(600);

/// Beyond the limit, hyper's own pool makes requests wait for each other, here indefinitely.
#[tokio::test(start_paused = true)]
async fn l2_further_connections_are_opened_for_more_watches() {
    let network = Network::new(3);
    let watches = timeout(LONG, join_all((0..10).map(|_| network.watch()))).await;
    let mut watches = watches.expect("no watch waits for another");
    assert_eq!(network.server.dials(), 4);
    assert_eq!(timeout(LONG, network.is_answered()).await, Ok(true));
    network.server.tell_watches("changed");
    for watch in &mut watches {
        assert_eq!(watch.next().await.unwrap(), "changed");
    }
    // Places become free with their watches, and idle connections are closed.
    watches.clear();
    network.server.until_open(1).await;
    let _watches = timeout(LONG, join_all((0..3).map(|_| network.watch()))).await.unwrap();
    assert_eq!(network.server.dials(), 4);
}

#[tokio::test(start_paused = true)]
async fn many_watches_share_one_connection() {
    let network = Network::new(1000);
    let _watches = join_all((0..100).map(|_| network.watch())).await;
    assert_eq!(network.server.dials(), 1);
    let _another = network.watch().await;
    assert_eq!(network.server.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn l1_a_silent_connection_is_closed_and_others_live() {
    let network = Network::new(2);
    let mut watches = join_all((0..3).map(|_| network.watch())).await;
    let mut spared = watches.pop().unwrap();
    let began = Instant::now();
    network.server.link(0).silence.cancel();
    for watch in &mut watches {
        assert!(timeout(LONG, watch.next()).await.expect("silence is noticed").is_err());
    }
    let took = began.elapsed();
    assert!((30..46).contains(&took.as_secs()), "{took:?}");
    network.server.tell_watches("changed");
    assert_eq!(spared.next().await.unwrap(), "changed");
    watches = join_all((0..2).map(|_| network.watch())).await;
    assert_eq!(network.server.dials(), 3);
    drop((watches, spared));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_dies_while_it_is_not_used_is_replaced() {
    let network = Network::new(100);
    assert!(network.is_answered().await);
    network.server.link(0).silence.cancel();
    sleep(Duration::from_secs(60)).await;
    let began = Instant::now();
    assert!(network.is_answered().await);
    assert_eq!((began.elapsed(), network.server.dials()), (Duration::ZERO, 2));
}

#[tokio::test(start_paused = true)]
async fn a_watch_on_which_nothing_happens_is_kept() {
    let network = Network::new(100);
    let mut watch = network.watch().await;
    sleep(Duration::from_secs(24 * 3600)).await;
    network.server.tell_watches("changed");
    assert_eq!(watch.next().await.unwrap(), "changed");
    assert_eq!(network.server.dials(), 1);
}

/// An unread response may fill its own window, but not that of the connection.
#[tokio::test(start_paused = true)]
async fn unread_responses_do_not_delay_others() {
    let network = Network::new(100);
    let unread = join_all((0..3).map(|_| network.get("endless"))).await;
    // In paused time, this elapses when nothing else can happen.
    sleep(Duration::from_millis(1)).await;
    let answered = timeout(LONG, network.is_answered()).await;
    assert_eq!(answered, Ok(true));
    assert_eq!(network.server.dials(), 1);
    drop(unread);
}

#[tokio::test(start_paused = true)]
async fn l2_a_server_that_says_nothing_at_all_is_given_up() {
    let network = Network::new(100);
    network.server.mute.store(1, Ordering::SeqCst);
    let requests = join_all((0..3).map(|_| network.get("version")));
    let answers = timeout(LONG, requests).await.expect("silence is noticed");
    // The first had closed; the requests that waited for it used the next connection.
    assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), 1);
    assert_eq!(network.server.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_closing_connection_gets_no_new_requests() {
    let network = Network::new(100);
    let mut watch = network.watch().await;
    network.server.link(0).goaway.cancel();
    sleep(Duration::from_millis(1)).await;
    for _ in 0..3 {
        assert!(network.is_answered().await);
    }
    assert_eq!(network.server.dials(), 2);
    network.server.tell_watches("changed");
    assert_eq!(watch.next().await.unwrap(), "changed");
    drop(watch);
    network.server.until_open(1).await;
}

#[tokio::test(start_paused = true)]
async fn all_that_wait_for_a_connection_learn_why_there_is_none() {
    let network = Network::new(100);
    network.server.refuse.store(1, Ordering::SeqCst);
    network.server.gate.send_replace(false);
    let requests = join_all((0..5).map(|_| network.get("version")));
    // Polled after the requests.
    let opened = async { network.server.gate.send_replace(true) };
    for error in join(requests, opened).await.0 {
        let error = error.err().unwrap();
        let io = error.source().unwrap().downcast_ref::<std::io::Error>().unwrap();
        assert_eq!(io.kind(), std::io::ErrorKind::ConnectionRefused);
    }
    assert_eq!(network.server.dials(), 1);
    assert!(network.is_answered().await);
    assert_eq!(network.server.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_given_up_takes_nothing_from_others() {
    let network = Network::new(1);
    network.server.gate.send_replace(false);
    let short = Duration::from_secs(1);
    // No request waits any more, so the connection attempt is dropped.
    assert!(timeout(short, network.get("version")).await.is_err());
    let opened = async {
        sleep(2 * short).await;
        network.server.gate.send_replace(true);
    };
    let given_up = timeout(short, network.get("version"));
    let (given_up, kept, ()) = join3(given_up, network.get("version"), opened).await;
    assert!(given_up.is_err());
    assert_eq!(kept.unwrap().into_body().collect().await.unwrap().to_bytes(), "1.37");
    // Its place is free again as well.
    let watch = network.watch().await;
    drop(watch);
    assert!(network.is_answered().await);
    assert_eq!(network.server.links(), 1);
}

/// `exec` and similar requests change the protocol of their connection, which HTTP/2 does not
/// support.
#[tokio::test(start_paused = true)]
async fn requests_that_upgrade_go_over_http1() {
    let network = Network::new(100);
    let request = http::Request::get("http://127.0.0.1:1/exec").header("upgrade", "websocket");
    let request = request.body(kube_client::client::Body::empty()).unwrap();
    // There is no HTTP/1 server at the other end here.
    assert!(network.transport.clone().send(request).await.is_err());
    assert_eq!(network.server.dials(), 0);
}
