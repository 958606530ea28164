//! C-: client-go's low-level controller, built from the parts.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use embedded_apiserver::{ApiServer, Fault, Verb};
use futures::FutureExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{DeltaFifo, Indexer, Lister, Reflector};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::scene::{
    Lists, Notes, Own, add, change, remove, seconds, server, settle, short, source,
};

/// A controller that runs in a task.
struct Parts {
    queue: DeltaFifo,
    lister: Lister<ConfigMap>,
    seen: Notes<String>,
    errors: Notes<kube_informer::ErrorReport>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

fn start(server: &ApiServer, queue: fn(Lister) -> DeltaFifo) -> Parts {
    let mut store = Indexer::<ConfigMap>::new();
    let (lister, queue) = (store.lister(), queue(store.lister().cast()));
    let (seen, errors, stop) = (Notes::default(), Notes::default(), CancellationToken::new());
    let reflector =
        Reflector::new(source(server), queue.clone()).seed(7).on_error(errors.reporter());
    let (noted, stopped) = (seen.clone(), stop.clone());
    let task = tokio::spawn(async move {
        let process =
            |deltas| store.process(deltas).iter().for_each(|event| noted.push(short(event)));
        reflector.process_until(stopped.cancelled(), process).await;
    });
    Parts { queue, lister, seen, errors, stop, task }
}

#[tokio::test(start_paused = true)]
async fn c1_c2_c12_the_parts_list_watch_and_stop() {
    for (queue, synced) in [
        (DeltaFifo::in_order as fn(Lister) -> DeltaFifo, &["*a", "*b", "synced"][..]),
        (DeltaFifo::by_key, &["*a", "*b"]),
    ] {
        let server = server();
        add(&server, "a");
        add(&server, "b");
        let parts = start(&server, queue);
        assert!(!parts.queue.has_synced() && parts.lister.is_empty());
        settle().await;
        assert!(parts.queue.has_synced());
        assert_eq!(parts.seen.take(), synced);
        change(&server, "a", "second");
        settle().await;
        remove(&server, "b");
        add(&server, "c");
        settle().await;
        assert_eq!(parts.seen.take(), ["~a", "-b", "+c"]);
        assert_eq!(parts.lister.keys().len(), 2);

        assert_eq!(server.watches(), 1);
        parts.stop.cancel();
        parts.task.await.unwrap();
        settle().await;
        assert_eq!(server.watches(), 0);
        assert!(parts.queue.pop().await.is_none(), "it is closed");
    }
}

#[tokio::test(start_paused = true)]
async fn c3_after_the_stop_nothing_more_is_processed() {
    let server = server();
    for name in ["a", "b", "c"] {
        add(&server, name);
    }
    let queue = DeltaFifo::by_key(Indexer::new().lister());
    let (stop, popped) = (CancellationToken::new(), Notes::default());
    let process = |deltas: kube_informer::Deltas| {
        popped.push(deltas.len());
        stop.cancel();
    };
    let parts = Reflector::new(source(&server), queue.clone());
    parts.process_until(stop.cancelled(), process).await;
    assert_eq!(popped.take(), [1]);
    assert_eq!(queue.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn c3_a_source_that_hangs_does_not_delay_the_stop() {
    let source = Own { lists: Lists::Hang, ..Own::default() };
    let queue = DeltaFifo::in_order(Indexer::new().lister());
    let began = tokio::time::Instant::now();
    Reflector::new(source, queue).process_until(seconds(5), |_| panic!("nothing came")).await;
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn c1_closing_the_queue_ends_it() {
    let server = server();
    let Parts { queue, task, .. } = start(&server, DeltaFifo::in_order);
    settle().await;
    queue.close();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c5_a_panic_reaches_the_caller() {
    let queue = DeltaFifo::in_order(Indexer::new().lister());
    let parts = Reflector::new(Own::default(), queue)
        .process_until(std::future::pending::<()>(), |_| panic!("a handler of the program's own"));
    assert!(AssertUnwindSafe(parts).catch_unwind().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn c7_errors_reach_on_error_and_are_retried() {
    let server = server();
    add(&server, "a");
    server.faults().on(Verb::Watch).times(1).inject(Fault::status(503));
    let parts = start(&server, DeltaFifo::in_order);
    seconds(10).await;
    assert_eq!(parts.errors.nexts(), ["relist"]);
    assert_eq!(parts.seen.take(), ["*a", "synced"]);
}

#[tokio::test(start_paused = true)]
async fn r60_c15_a_program_resyncs_its_queue_itself() {
    let server = server();
    add(&server, "a");
    let parts = start(&server, DeltaFifo::by_key);
    settle().await;
    parts.queue.resync();
    settle().await;
    assert_eq!(parts.seen.take(), ["*a", "resync a"]);
}

/// More objects than fit into the queue, read and processed in turns.
#[tokio::test(start_paused = true)]
async fn i19_neither_end_of_the_queue_starves() {
    let server = server();
    for number in 0..1500 {
        add(&server, &number.to_string());
    }
    let parts = start(&server, DeltaFifo::by_key);
    settle().await;
    assert_eq!(parts.seen.take().len(), 1500);
    for number in 0..1500 {
        change(&server, &number.to_string(), "second");
    }
    settle().await;
    assert_eq!(parts.seen.take().len(), 1500);
}

/// The same by hand, with public API only.
#[tokio::test(start_paused = true)]
async fn c1_the_loop_can_be_written_by_hand() {
    let server = server();
    add(&server, "a");
    let mut store = Indexer::<ConfigMap>::new();
    let queue = DeltaFifo::in_order(store.lister().cast());
    let reflecting = Reflector::new(source(&server), queue.clone());
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let process = async {
        while let Some(deltas) = queue.pop().await {
            seen.lock().extend(store.process(deltas).iter().map(short));
            if queue.has_synced() {
                queue.close();
            }
        }
    };
    tokio::select! {
        biased;
        () = process => {}
        _ = reflecting.run_until(std::future::pending::<()>()) => {}
    }
    assert_eq!(*seen.lock(), ["*a", "synced"]);
}
