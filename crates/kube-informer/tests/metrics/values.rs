//! The values, of things that happened at known times.

use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::controller::Terminal;
use kube_informer::{
    Action, BoxError, Controller, Request, SharedInformer, SharedInformerFactory, State, WorkQueue,
};
use tokio::time::advance;

use super::{Scene, map};

const SECOND: Duration = Duration::from_secs(1);

/// Has the watch cut off, and then its version forgotten, and waits until the informer has recovered from both.
pub(crate) async fn fail_once(server: &ApiServer, maps: &SharedInformer<ConfigMap>) {
    for (fault, name) in [(Fault::Reset, "after-reset"), (Fault::Gone, "after-gone")] {
        let fired = server.faults().fired().len();
        server.faults().on(Verb::Watch).resource("configmaps").after_events(0).inject(fault);
        while server.faults().fired().len() == fired {
            tokio::time::sleep(SECOND).await;
        }
        let made = server.create(map(name)).expect("it is valid");
        let version = made["metadata"]["resourceVersion"].as_str().expect("it has one").to_owned();
        maps.wait_for_version(version).await.expect("it recovers");
        watching(maps).await;
    }
}

/// The cache has a list before the watch that follows it is open.
async fn watching(maps: &SharedInformer<ConfigMap>) {
    maps.watch_state().wait_for(State::is_watching).await.expect("it runs");
}

#[tokio::test(start_paused = true)]
async fn lists_watches_and_recoveries_are_counted() {
    let scene = Scene::new();
    for name in ["one", "two", "three"] {
        scene.server.create(map(name)).expect("it is valid");
    }
    let factory = SharedInformerFactory::new(scene.server.client());
    let maps = factory.informer::<ConfigMap>();
    scene.metrics.factory(&factory);
    let value = |name: &str| scene.scrape().value(&format!("{name}{{name=\"configmaps\"}}"));
    assert_eq!((value("kube_informer_synced"), value("kube_informer_live")), (0.0, 0.0));
    factory.start();
    factory.wait_for_sync().await.expect("it syncs");
    watching(&maps).await;
    assert_eq!((value("kube_informer_synced"), value("kube_informer_live")), (1.0, 1.0));
    assert_eq!(value("kube_informer_objects"), 3.0);
    assert_eq!((value("reflector_lists_total"), value("reflector_watches_total")), (1.0, 1.0));
    assert_eq!(value("reflector_items_per_list_sum"), 3.0);
    assert!(value("kube_informer_store_bytes_estimate") > 100.0);

    fail_once(&scene.server, &maps).await;
    let scrape = scene.scrape();
    let reason = |name: &str, reason: &str| {
        scrape.value(&format!("{name}{{name=\"configmaps\",reason=\"{reason}\"}}"))
    };
    assert_eq!(reason("kube_informer_watch_restarts_total", "connection_broken"), 1.0);
    assert_eq!(reason("kube_informer_relists_total", "expired"), 1.0);
    assert_eq!((value("reflector_lists_total"), value("reflector_watches_total")), (2.0, 3.0));
    assert_eq!(value("reflector_items_per_list_count"), 2.0);
    assert_eq!(value("reflector_watch_duration_seconds_count"), 2.0);
    let version = maps.resource_version().to_string();
    let shown = value("reflector_last_resource_version") as u64;
    assert!(version.ends_with(&shown.to_string()), "{version} and {shown}");
}

#[tokio::test(start_paused = true)]
async fn callbacks_and_panics_are_counted_per_handler() {
    let scene = Scene::new();
    let factory = SharedInformerFactory::new(scene.server.client());
    let maps = factory.informer::<ConfigMap>();
    scene.metrics.factory(&factory);
    let fine = maps.handler().name("fine").on_add(|_, _| {}).register();
    let bad = maps.handler().name("bad").on_add(|_, _| panic!("on purpose")).register();
    for name in ["one", "two"] {
        scene.server.create(map(name)).expect("it is valid");
    }
    factory.start();
    for handler in [fine, bad] {
        handler.wait_for_sync().await.expect("it syncs");
    }
    let scrape = scene.scrape();
    let of = |name: &str, handler: &str| {
        scrape.value(&format!("{name}{{name=\"configmaps\",handler=\"{handler}\"}}"))
    };
    assert_eq!(of("kube_informer_handler_panics_total", "bad"), 2.0);
    assert_eq!(of("kube_informer_handler_panics_total", "fine"), 0.0);
    // Two objects, and that this was all.
    assert_eq!(of("kube_informer_handler_duration_seconds_count", "fine"), 3.0);
    assert_eq!(of("kube_informer_notifications_pending", "fine"), 0.0);
}

#[tokio::test(start_paused = true)]
async fn queues_report_how_long_tasks_wait_and_take() {
    let scene = Scene::new();
    let queue = WorkQueue::new().name("work");
    scene.metrics.queue(&queue);
    queue.add("one");
    queue.add("two");
    queue.add("one");
    advance(2 * SECOND).await;
    let one = queue.get().await.expect("it is ready");
    advance(3 * SECOND).await;
    let value = |name: &str| scene.scrape().value(&format!("{name}{{name=\"work\"}}"));
    assert_eq!((value("workqueue_depth"), value("workqueue_adds_total")), (1.0, 2.0));
    assert_eq!(value("workqueue_queue_duration_seconds_sum"), 2.0);
    let two = queue.get().await.expect("it is ready");
    advance(SECOND).await;
    assert_eq!(value("workqueue_longest_running_processor_seconds"), 4.0);
    assert_eq!(value("workqueue_unfinished_work_seconds"), 4.0 + 1.0);
    one.done();
    two.retry();
    assert_eq!(value("workqueue_work_duration_seconds_sum"), 4.0 + 1.0);
    assert_eq!(value("workqueue_work_duration_seconds_count"), 2.0);
    assert_eq!(value("workqueue_unfinished_work_seconds"), 0.0);
    assert_eq!((value("workqueue_retries_total"), value("workqueue_depth")), (1.0, 0.0));
}

#[tokio::test(start_paused = true)]
async fn reconciles_are_counted_by_their_result() {
    let scene = Scene::new();
    for name in ["fine", "later", "terminal", "panics"] {
        scene.server.create(map(name)).expect("it is valid");
    }
    let factory = SharedInformerFactory::new(scene.server.client());
    let controller = Controller::new(&factory.informer::<ConfigMap>()).name("maps").workers(4);
    let handle = controller.handle();
    scene.metrics.controller(&handle);
    let running = tokio::spawn(controller.run(async |request: Request<ConfigMap>| {
        tokio::time::sleep(SECOND).await;
        match request.key.name() {
            "later" => Ok(Action::requeue(3600 * SECOND)),
            "terminal" => Err(BoxError::from(Terminal::new("on purpose"))),
            "panics" => panic!("on purpose"),
            _ => Ok(Action::await_change()),
        }
    }));
    while handle.status().failed < 2 || handle.status().succeeded < 2 {
        advance(SECOND / 2).await;
    }
    let scrape = scene.scrape();
    let result = |result: &str| {
        let name = "controller_runtime_reconcile_total";
        scrape.value(&format!("{name}{{controller=\"maps\",result=\"{result}\"}}"))
    };
    assert_eq!((result("success"), result("requeue_after"), result("error")), (1.0, 1.0, 2.0));
    let value = |name: &str| scrape.value(&format!("{name}{{controller=\"maps\"}}"));
    assert_eq!(value("controller_runtime_terminal_reconcile_errors_total"), 1.0);
    assert_eq!(value("controller_runtime_reconcile_panics_total"), 1.0);
    assert_eq!(value("controller_runtime_max_concurrent_reconciles"), 4.0);
    assert_eq!(value("controller_runtime_reconcile_time_seconds_count"), 4.0);
    assert!(value("controller_runtime_reconcile_time_seconds_sum") >= 4.0);
    handle.stop();
    running.await.expect("it does not panic").expect("it ran");
}
