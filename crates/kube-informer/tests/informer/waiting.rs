//! L4: every wait ends. I-60 to I-62, reading your own writes.

use std::time::Duration;

use embedded_apiserver::{Denial, Fault, Verb};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use kube_informer::list_watch::{
    KubeListWatch, ListItem, ListOptions, ListStream, WatchOptions, WatchStream,
};
use kube_informer::{Error, ListWatch, NotSyncedReason, Result, SharedInformer};
use tokio::time::{Instant, timeout};

use super::running::{Book, Running};
use super::scene::{Listed, Maps, maps_of, seconds, server, settle};

#[tokio::test(start_paused = true)]
async fn l4_waiting_ends_when_the_first_list_is_in_the_cache() {
    let server = server();
    server.add("a", "1");
    server.faults().on(Verb::Watch).inject(Fault::Latency(Duration::from_secs(20)));
    let running = Running::new(server);
    running.informer.start();
    let began = Instant::now();
    running.informer.wait_for_sync().await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 20);
    assert_eq!(running.names(), ["a"]);
}

/// Nothing of a list is in the cache before it is complete, but its progress is visible.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_on_its_way_is_counted() {
    let server = server();
    for name in ["a", "b", "c", "d"] {
        server.add(name, "1");
    }
    server.faults().on(Verb::Watch).after_events(3).inject(Fault::StalledBody);
    let running = Running::new(server);
    running.informer.start();
    settle().await;
    let status = running.informer.status();
    assert_eq!((status.received, status.objects, status.synced), (3, 0, false));
}

#[tokio::test(start_paused = true)]
async fn l4_an_empty_list_is_a_list() {
    // F-24.
    let running = Running::synced(server()).await;
    assert!(running.informer.lister().is_empty());
    assert!(running.informer.lister().has_synced());
}

#[tokio::test(start_paused = true)]
async fn l4_what_may_never_be_read_is_given_up_and_says_what_to_grant() {
    let server = server();
    server.access().deny(Denial::all().resource("configmaps"));
    let running = Running::new(server);
    running.informer.start();
    let began = Instant::now();
    let error = running.informer.wait_for_sync().await.unwrap_err();
    assert!(began.elapsed() <= Duration::from_secs(121), "{:?}", began.elapsed());
    assert_eq!(error.reason, NotSyncedReason::NoProgress(Duration::from_secs(120)));
    assert!(error.informers[0].last_error.as_ref().unwrap().is_forbidden());
    let text = error.to_string();
    for part in ["configmaps is backing off", "grant the verb", "\"configmaps\"", "ClusterRole"] {
        assert!(text.contains(part), "{text}");
    }
    // The informer has not given up: a longer wait succeeds.
    running.server.access().allow_everything();
    running.informer.wait_for_sync().await.unwrap();
}

/// Each attempt brings two objects, which used to count as progress indefinitely.
#[tokio::test(start_paused = true)]
async fn l4_a_list_that_always_fails_on_its_second_page_is_given_up() {
    let server = server();
    for name in ["a", "b", "c", "d"] {
        server.add(name, "1");
    }
    let source = NoSecondPage(maps_of(&server));
    let running = Running::from_source(server, source, |builder| builder.page_size(2));
    running.informer.start();
    let began = Instant::now();
    let error = running.informer.wait_for_sync().await.unwrap_err();
    assert_eq!(error.reason, NotSyncedReason::NoProgress(Duration::from_secs(120)));
    assert!(began.elapsed() <= Duration::from_secs(125), "{:?}", began.elapsed());
    assert_eq!(running.informer.status().received, 2);
}

/// A source behind a proxy that blocks the second page of a list.
struct NoSecondPage(KubeListWatch);

impl ListWatch for NoSecondPage {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn list(&self, mut options: ListOptions) -> BoxFuture<'_, Result<ListStream>> {
        if options.continue_token.is_some() {
            return Box::pin(async { Err(Error::connection("no second page")) });
        }
        // A request for any version would be answered from the server's cache, in one piece.
        options.resource_version = None;
        self.0.list(options)
    }
    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream>> {
        self.0.watch(options)
    }
    fn streams_lists(&self) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn l4_a_list_that_takes_its_time_is_waited_for() {
    let server = server();
    for turn in 0..300 {
        server.add(&format!("m{turn}"), "1");
    }
    // An object every two seconds or so.
    let slow = Fault::SlowBytes { bytes: 200, every: Duration::from_secs(1) };
    server.faults().on(Verb::List).inject(slow);
    let source = Listed(maps_of(&server));
    let running = Running::from_source(server, source, |builder| builder);
    running.informer.start();
    let began = Instant::now();
    running.informer.wait_for_sync().await.unwrap();
    assert!(began.elapsed() > Duration::from_secs(300), "{:?}", began.elapsed());
    assert_eq!(running.errors.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn l4_a_stop_ends_the_wait() {
    let server = server();
    server.faults().on(Verb::Watch).inject(Fault::StalledHeaders);
    let running = Running::new(server);
    running.informer.start();
    let wait = tokio::spawn(running.informer.wait_for_sync().into_future());
    settle().await;
    running.informer.stop();
    settle().await;
    assert!(wait.is_finished());
    assert_eq!(wait.await.unwrap().unwrap_err().reason, NotSyncedReason::Stopped);
}

#[tokio::test(start_paused = true)]
async fn l4_what_was_never_started_is_not_waited_for() {
    let running = Running::new(server());
    let (_, registration) = Book::keep_registered(&running.informer);
    let began = Instant::now();
    let error = running.informer.wait_for_sync().await.unwrap_err();
    assert_eq!(error.reason, NotSyncedReason::NotStarted);
    assert!(error.to_string().contains("start()"), "{error}");
    assert_eq!(registration.wait_for_sync().await.unwrap_err().reason, NotSyncedReason::NotStarted);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn l4_a_timeout_is_one_and_says_what_was_going_on() {
    let server = server();
    server.faults().on(Verb::Watch).inject(Fault::StalledHeaders);
    let running = Running::new(server);
    running.informer.start();
    let limit = Duration::from_secs(5);
    let error = running.informer.wait_for_sync().timeout(limit).await.unwrap_err();
    assert_eq!(error.reason, NotSyncedReason::TimedOut(limit));
    assert!(error.to_string().contains("configmaps is streaming"), "{error}");
    let error = running.informer.wait_for_sync().progress_timeout(limit).await.unwrap_err();
    assert_eq!(error.reason, NotSyncedReason::NoProgress(limit));
}

#[tokio::test(start_paused = true)]
async fn l4_i6_waiting_for_a_handler_covers_its_initial_list() {
    let server = server();
    server.add("a", "1");
    let running = Running::synced(server).await;
    let mut stream = running.informer.handler().name("slow one").stream();
    let wait = stream.registration().wait_for_sync().progress_timeout(Duration::from_secs(5));
    let error = wait.await.unwrap_err();
    assert!(error.to_string().contains("slow one"), "{error}");
    let wait = tokio::spawn(stream.registration().wait_for_sync().into_future());
    while !stream.registration().has_synced() {
        stream.next().await.unwrap();
    }
    settle().await;
    wait.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn l4_a_removed_handler_is_not_waited_for() {
    let server = server();
    server.faults().on(Verb::Watch).inject(Fault::StalledHeaders);
    let running = Running::new(server);
    let (_, registration) = Book::keep_registered(&running.informer);
    running.informer.start();
    let wait = tokio::spawn(registration.wait_for_sync().into_future());
    settle().await;
    registration.remove().await;
    settle().await;
    assert_eq!(wait.await.unwrap().unwrap_err().reason, NotSyncedReason::HandlerRemoved);
}

#[tokio::test(start_paused = true)]
async fn one_reads_what_one_has_written() {
    let running = Running::synced(server()).await;
    let version = running.server.add("a", "1");
    running.informer.wait_for_version(version.as_str()).await.unwrap();
    assert_eq!(running.names(), ["a"]);
    running.informer.wait_for_version(version.as_str()).await.expect("it has been reached");

    // After a watch that breaks.
    running.server.faults().on(Verb::Watch).after_events(0).inject(Fault::Reset);
    settle().await;
    let version = running.server.change("a", "2");
    timeout(Duration::from_secs(5), running.informer.wait_for_version(version.as_str()))
        .await
        .unwrap()
        .unwrap();

    // A write to another resource: only a bookmark reports its version.
    running
        .server
        .create(serde_json::json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        }))
        .unwrap();
    let version = running.server.version();
    timeout(Duration::from_secs(61), running.informer.wait_for_version(version))
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_version_ends_with_the_informer() {
    let running = Running::synced(server()).await;
    let informer = running.informer.clone();
    let wait = tokio::spawn(async move { informer.wait_for_version(u64::MAX).await });
    seconds(1000).await;
    assert!(!wait.is_finished());
    running.informer.stop();
    settle().await;
    assert!(wait.await.unwrap().unwrap_err().is_stopped());
    let after = timeout(Duration::from_secs(1), running.informer.wait_for_version(u64::MAX)).await;
    assert!(after.expect("at once").unwrap_err().is_stopped());
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_version_ends_if_never_started() {
    let running = Running::new(server());
    let informer = running.informer.clone();
    let wait = tokio::spawn(async move { informer.wait_for_version(7_u64).await });
    settle().await;
    running.informer.shutdown().await;
    settle().await;
    assert!(wait.is_finished());
    assert!(wait.await.unwrap().unwrap_err().is_stopped());
}

#[tokio::test(start_paused = true)]
async fn l4_a_version_that_cannot_be_compared_is_an_error() {
    let running = Running::new(server());
    let informer = running.informer.clone();
    let early = tokio::spawn(async move { informer.wait_for_version("opaque").await });
    settle().await;
    assert!(!early.is_finished(), "the cache may become just that");
    let running = running.sync().await;
    let early = timeout(Duration::from_secs(60), early).await.expect("it ends");
    assert!(early.unwrap().unwrap_err().is_incomparable_version());
    let began = Instant::now();
    for version in ["opaque", "", "12x"] {
        let waiting = timeout(Duration::from_secs(60), running.informer.wait_for_version(version));
        let error = waiting.await.expect("it ends").unwrap_err();
        assert!(error.is_incomparable_version() && !error.is_stopped(), "{error}");
        assert!(error.to_string().contains(&format!("{version:?}")), "{error}");
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    running.informer.wait_for_version(running.server.version()).await.unwrap();
    running.informer.shutdown().await;
    let next = running.informer.wait_for_version(u64::MAX).await.unwrap_err();
    assert!(next.is_stopped() && !next.is_incomparable_version());
    let error = running.informer.wait_for_version("opaque").await.unwrap_err();
    assert!(error.is_incomparable_version());
}

#[tokio::test(start_paused = true)]
async fn l4_versions_that_are_not_numbers_can_only_be_equal() {
    let informer: SharedInformer = SharedInformer::from_source(Opaque).build();
    informer.start();
    informer.wait_for_sync().await.unwrap();
    informer.wait_for_version("v-1").await.unwrap();
    let waiting = timeout(Duration::from_secs(60), informer.wait_for_version("v-2"));
    let error = waiting.await.expect("it ends").unwrap_err();
    assert!(error.is_incomparable_version(), "{error}");
}

/// A source whose versions are not numbers.
struct Opaque;

impl ListWatch for Opaque {
    fn name(&self) -> &'static str {
        "opaque"
    }
    fn list(&self, _: ListOptions) -> BoxFuture<'_, Result<ListStream>> {
        let end = ListItem::End { resource_version: "v-1".into(), continue_token: None };
        Box::pin(async { Ok(stream::iter([Ok(end)]).boxed()) })
    }
    fn watch(&self, _: WatchOptions) -> BoxFuture<'_, Result<WatchStream>> {
        Box::pin(async { Ok(stream::pending().boxed()) })
    }
    fn streams_lists(&self) -> bool {
        false
    }
}
