//! Panics in user code are contained and counted, and affect nothing else. H-10, H-11.

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::list_watch::{ListOptions, ListStream, WatchOptions, WatchStream};
use kube_informer::{Event, ListWatch, NotSyncedReason, Result};

use embedded_apiserver::{Fault, Verb};

use super::running::{Book, Running};
use super::scene::{Maps, maps_of, seconds, server, settle};

fn dislikes(object: Option<&kube_informer::Object<ConfigMap>>) {
    let bad = object.is_some_and(|object| object.name() == "bad");
    assert!(!bad, "it does not like it");
}

#[tokio::test(start_paused = true)]
async fn h10_h11_a_handler_that_panics_goes_on_and_does_become_synced() {
    let server = server();
    server.add("bad", "1");
    server.add("good", "1");
    let running = Running::new(server);
    let book = Book::default();
    let mut write = book.writer();
    let registration = running.informer.handler().for_each(move |event: Event<ConfigMap>| {
        dislikes(event.object());
        write(event);
    });
    let other = Book::keep(&running.informer);
    let running = running.sync().await;
    registration.wait_for_sync().await.unwrap();
    running.server.change("bad", "2");
    running.server.change("good", "2");
    settle().await;
    assert_eq!(registration.panics(), 2);
    assert_eq!(book.news(), ["add good initially", "synced", "update good"]);
    assert!(other.is_right(&running.informer));
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_panics_lets_nothing_pass() {
    let running = Running::synced(server()).await;
    let book = Book::default();
    let registration = running
        .informer
        .handler()
        .filter(|object| {
            dislikes(Some(object));
            true
        })
        .for_each(book.writer());
    running.server.add("bad", "1");
    running.server.add("good", "1");
    settle().await;
    assert_eq!(book.news(), ["synced", "add good"]);
    assert_eq!(registration.panics(), 1);
}

#[tokio::test(start_paused = true)]
async fn s14_an_index_function_that_panics_leaves_out_that_object() {
    let running = Running::new(server());
    let book = Book::keep(&running.informer);
    let index = running.informer.index_by("all", |object| {
        dislikes(Some(object));
        ["all".to_owned()]
    });
    let index = index.unwrap();
    let running = running.sync().await;
    running.server.add("bad", "1");
    running.server.add("good", "1");
    settle().await;
    assert_eq!(running.names(), ["bad", "good"]);
    assert_eq!(index.keys("all").len(), 1);
    assert!(book.is_right(&running.informer));
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_an_error_handler_is_contained() {
    let server = server();
    let source = maps_of(&server);
    let running = Running::from_source(server, source, |builder| {
        builder.on_error(|_| panic!("it does not like errors"))
    });
    running.server.faults().on(Verb::Watch).inject(Fault::status(503));
    running.informer.start();
    seconds(5).await;
    assert!(running.informer.has_synced());
    assert_eq!(running.errors.len(), 1);
}

/// A source that panics when a watch is requested.
struct Panics;

impl ListWatch for Panics {
    fn name(&self) -> &'static str {
        "panics"
    }
    fn list(&self, _: ListOptions) -> BoxFuture<'_, Result<ListStream>> {
        panic!("no list")
    }
    fn watch(&self, _: WatchOptions) -> BoxFuture<'_, Result<WatchStream>> {
        panic!("no watch")
    }
}

#[tokio::test(start_paused = true)]
async fn l4_l5_a_source_that_panics_stops_the_informer() {
    let running = Running::from_source(server(), Panics, |builder| builder);
    let mut stream = running.informer.events();
    running.informer.start();
    let error = running.informer.wait_for_sync().await.unwrap_err();
    assert_eq!(error.reason, NotSyncedReason::Stopped);
    assert!(stream.next().await.is_none());
    assert_eq!(running.state(), "stopped");
    running.informer.shutdown().await;
}

/// client-go's behaviour. The process that crashes is this test, started again.
#[test]
fn h10_c5_a_panic_ends_the_process_of_a_handler_that_says_so() {
    const CHILD: &str = "KUBE_INFORMER_TEST_CRASHES";
    if std::env::var_os(CHILD).is_some() {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let running = Running::new(server());
            running.informer.handler().crash_on_panic().for_each(|_| panic!("on purpose"));
            let _running = running.sync().await;
            std::future::pending::<()>().await;
        });
    }
    let name = "panics::h10_c5_a_panic_ends_the_process_of_a_handler_that_says_so";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(CHILD, "1")
        .output()
        .unwrap();
    // Ended by a signal, not by the test harness.
    assert_eq!(child.status.code(), None, "{child:?}");
}
