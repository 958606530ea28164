//! Stopping a controller.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use embedded_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::controller::Phase;
use kube_informer::{Action, Controller, SharedInformerFactory};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::scene::{Running, SECOND, map, run, run_idle, scene};

/// Two objects, one worker, and reconciles of ten seconds each.
fn slow(
    change: impl FnOnce(Controller<ConfigMap>) -> Controller<ConfigMap>,
) -> (ApiServer, SharedInformerFactory, Running, Arc<AtomicUsize>) {
    let (server, factory) = scene();
    server.create(map("a")).unwrap();
    server.create(map("b")).unwrap();
    let finished = Arc::new(AtomicUsize::new(0));
    let count = finished.clone();
    let controller = change(Controller::new(&factory.informer::<ConfigMap>()));
    let running = run(controller, move |_| {
        let count = count.clone();
        async move {
            tokio::time::sleep(10 * SECOND).await;
            count.fetch_add(1, Ordering::SeqCst);
            Ok(Action::await_change())
        }
    });
    (server, factory, running, finished)
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_what_runs_finish_and_begins_nothing() {
    let (stop, stopped) = oneshot::channel::<()>();
    let (_server, _factory, mut running, finished) = slow(|controller| controller.stop_on(stopped));
    running.next().await;
    let began = Instant::now();
    stop.send(()).unwrap();
    running.task.await.unwrap().unwrap();
    assert_eq!((began.elapsed().as_secs(), finished.load(Ordering::SeqCst)), (10, 1));
    let status = running.handle.status();
    assert_eq!((status.phase, status.queue.running), (Phase::Stopped, 0));
    assert!(status.queue.is_shut_down);
    assert!(running.reconciled.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn what_takes_longer_than_it_may_is_dropped() {
    let (_server, _factory, mut running, finished) =
        slow(|controller| controller.graceful_stop(3 * SECOND));
    running.next().await;
    let began = Instant::now();
    running.handle.stop();
    running.task.await.unwrap().unwrap();
    assert_eq!((began.elapsed().as_secs(), finished.load(Ordering::SeqCst)), (3, 0));
}

/// The informer may be stopped while the controller's handlers are still catching up: that is a stop, not
/// a failure to sync.
#[tokio::test(start_paused = true)]
async fn a_controller_ends_well_whenever_its_informer_is_stopped() {
    for turns in 0..40 {
        let (server, factory) = scene();
        server.create(map("a")).unwrap();
        let maps = factory.informer::<ConfigMap>();
        maps.start();
        maps.wait_for_sync().await.unwrap();
        let running = run_idle(Controller::new(&maps));
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        maps.stop();
        running.task.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_future_is_dropped_reconciles_nothing_more() {
    let (server, factory, mut running, finished) = slow(|controller| controller);
    running.next().await;
    running.task.abort();
    assert!(running.task.await.unwrap_err().is_cancelled());
    server.create(map("c")).unwrap();
    assert!(running.reconciled.recv().await.is_none(), "the reconciler is gone");
    assert_eq!(finished.load(Ordering::SeqCst), 0);
    // Its handlers are removed with it: the informer stays usable.
    assert!(factory.informer::<ConfigMap>().wait_for_sync().await.is_ok());
    assert_eq!(running.handle.status().phase, Phase::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_factory_that_is_shut_down_ends_its_controllers() {
    let (server, factory) = scene();
    server.create(map("a")).unwrap();
    let mut running = run_idle(Controller::new(&factory.informer::<ConfigMap>()));
    running.next().await;
    factory.shutdown().await;
    running.task.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_caches_are_synced_ends_it_at_once() {
    let (server, factory) = scene();
    server.refuse_connections();
    let running = run_idle(Controller::new(&factory.informer::<ConfigMap>()));
    tokio::time::sleep(SECOND).await;
    let began = Instant::now();
    running.handle.stop();
    running.task.await.unwrap().unwrap();
    assert_eq!(began.elapsed().as_secs(), 0);
}
