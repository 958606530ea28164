//! Every metric by name, with its type, labels and buckets.

use http::Uri;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ListParams};
use kube_informer::{
    Action, Controller, LeaderElector, Metrics, Request, SharedInformerFactory, WorkQueue,
};

use super::exposition::Exposition;
use super::{Scene, map};

/// Name, type, labels: those of client-go and controller-runtime first.
const METRICS: &[(&str, &str, &[&str])] = &[
    ("informer_queued_items", "gauge", &["group", "name", "resource", "version"]),
    ("informer_processing_latency_seconds", "histogram", &["group", "name", "resource", "version"]),
    ("informer_store_resource_version", "gauge", &["group", "name", "resource", "version"]),
    ("reflector_lists", "counter", &["name"]),
    ("reflector_list_duration_seconds", "histogram", &["name"]),
    ("reflector_items_per_list", "histogram", &["name"]),
    ("reflector_watches", "counter", &["name"]),
    ("reflector_short_watches", "counter", &["name"]),
    ("reflector_watch_duration_seconds", "histogram", &["name"]),
    ("reflector_items_per_watch", "histogram", &["name"]),
    ("reflector_last_resource_version", "gauge", &["name"]),
    ("workqueue_depth", "gauge", &["controller", "name"]),
    ("workqueue_adds", "counter", &["controller", "name"]),
    ("workqueue_queue_duration_seconds", "histogram", &["controller", "name"]),
    ("workqueue_work_duration_seconds", "histogram", &["controller", "name"]),
    ("workqueue_unfinished_work_seconds", "gauge", &["controller", "name"]),
    ("workqueue_longest_running_processor_seconds", "gauge", &["controller", "name"]),
    ("workqueue_retries", "counter", &["controller", "name"]),
    ("controller_runtime_reconcile", "counter", &["controller", "result"]),
    ("controller_runtime_reconcile_errors", "counter", &["controller"]),
    ("controller_runtime_terminal_reconcile_errors", "counter", &["controller"]),
    ("controller_runtime_reconcile_panics", "counter", &["controller"]),
    ("controller_runtime_reconcile_timeouts", "counter", &["controller"]),
    ("controller_runtime_reconcile_time_seconds", "histogram", &["controller"]),
    ("controller_runtime_max_concurrent_reconciles", "gauge", &["controller"]),
    ("controller_runtime_active_workers", "gauge", &["controller"]),
    ("rest_client_requests", "counter", &["code", "host", "method"]),
    ("rest_client_request_duration_seconds", "histogram", &["host", "verb"]),
    ("rest_client_request_size_bytes", "histogram", &["host", "verb"]),
    ("rest_client_response_size_bytes", "histogram", &["host", "verb"]),
    ("leader_election_master_status", "gauge", &["name"]),
    ("leader_election_slowpath", "counter", &["name"]),
    ("kube_informer_objects", "gauge", &["name"]),
    ("kube_informer_store_bytes_estimate", "gauge", &["name"]),
    ("kube_informer_synced", "gauge", &["name"]),
    ("kube_informer_live", "gauge", &["name"]),
    ("kube_informer_staleness_seconds", "gauge", &["name"]),
    ("kube_informer_poison_objects", "gauge", &["name"]),
    ("kube_informer_decode_errors", "counter", &["name"]),
    ("kube_informer_index_panics", "counter", &["name"]),
    ("kube_informer_relists", "counter", &["name", "reason"]),
    ("kube_informer_watch_restarts", "counter", &["name", "reason"]),
    ("kube_informer_notifications_pending", "gauge", &["handler", "name"]),
    ("kube_informer_notifications_merged", "counter", &["handler", "name"]),
    ("kube_informer_notifications_skipped", "counter", &["handler", "name"]),
    ("kube_informer_handler_panics", "counter", &["handler", "name"]),
    ("kube_informer_handler_slow", "counter", &["handler", "name"]),
    ("kube_informer_handler_duration_seconds", "histogram", &["handler", "name"]),
];

/// Scrapes a program that uses everything that has metrics.
pub(crate) async fn whole_scrape() -> Exposition {
    let scene = Scene::new();
    let server = Uri::from_static("https://10.0.0.1:6443");
    let client = scene.metrics.client(scene.server.client(), &server);
    let factory = SharedInformerFactory::new(client.clone());
    let maps = factory.informer::<ConfigMap>();
    let controller = Controller::new(&maps).name("maps");
    let elector = LeaderElector::builder(client.clone(), "kube-system", "operator")
        .build()
        .expect("it is valid");
    Api::<Secret>::all(client.clone()).list(&ListParams::default()).await.expect("it is listed");
    let (handle, queue) = (controller.handle(), WorkQueue::<u32>::new().name("work"));
    scene.metrics.factory(&factory).controller(&handle).leader_elector(&elector).queue(&queue);
    let reconcile = async |_: Request<ConfigMap>| Ok::<_, kube::Error>(Action::await_change());
    let running = tokio::spawn(controller.run(reconcile));
    factory.start();
    factory.wait_for_sync().await.expect("it syncs");
    super::values::fail_once(&scene.server, &maps).await;
    let scrape = scene.scrape();
    handle.stop();
    running.await.expect("it does not panic").expect("it ran");
    scrape
}

#[tokio::test(start_paused = true)]
async fn every_metric_has_the_type_and_labels_that_dashboards_know() {
    let scrape = whole_scrape().await;
    for (name, kind, labels) in METRICS {
        assert_eq!(scrape.types.get(*name).map(String::as_str), Some(*kind), "{name}");
        let found = scrape.labels(name);
        assert!(found.iter().eq(labels.iter()), "{name} has the labels {found:?}");
    }
    let known = |name: &&String| METRICS.iter().any(|(metric, ..)| metric == name);
    let unknown: Vec<_> = scrape.types.keys().filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "not in the table: {unknown:?}");
}

/// The metrics that client-go and controller-runtime register, as their own programs in `peers/metrics-check` print them.
const UPSTREAM: &str = include_str!("upstream.txt");

/// The metrics of theirs that have no counterpart, by prefix. `src/metrics.rs` has the reasons; the last are of webhooks.
const ABSENT: &[&str] = &[
    "rest_client_exec_plugin_",
    "rest_client_rate_limiter_duration_seconds",
    "rest_client_request_retries_total",
    "rest_client_transport_",
    "controller_runtime_conversion_webhook_panics_total",
    "controller_runtime_webhook_panics_total",
];

#[tokio::test(start_paused = true)]
async fn types_labels_and_buckets_are_those_of_upstream() {
    let scrape = whole_scrape().await;
    let mut compared = 0;
    for line in UPSTREAM.lines() {
        let (kind, series) = line.split_once(' ').unwrap().1.split_once(' ').unwrap();
        let (name, rest) = series.split_once('{').unwrap();
        let (labels, bounds) = rest.split_once('}').unwrap();
        if ABSENT.iter().any(|absent| name.starts_with(absent)) {
            assert!(!scrape.types.contains_key(name), "{name} is not absent");
            continue;
        }
        compared += 1;
        let metric = name.strip_suffix("_total").unwrap_or(name);
        assert_eq!(scrape.types.get(metric).map(String::as_str), Some(kind), "{line}");
        let mut labels: Vec<_> = labels.split(',').map(str::to_owned).collect();
        if name == "workqueue_depth" {
            // A priority queue of controller-runtime has one depth for each priority.
            labels.retain(|label| label != "priority");
        }
        let found = scrape.label_sets(metric);
        assert!(found.contains(&labels), "{line}: ours have {found:?}");
        let bounds: Vec<f64> = bounds.split_whitespace().map(|it| it.parse().unwrap()).collect();
        let mut found = scrape.bounds(metric);
        if line.starts_with("client-go histogram workqueue_") {
            // The buckets of queues are controller-runtime's: client-go's, and two more.
            found.truncate(bounds.len());
        }
        assert_eq!(found, bounds, "{line}");
    }
    assert!(compared > 30, "{compared}");
}

/// Every metric that is named like one of theirs is one of theirs, except those of reflectors, which client-go removed.
#[test]
fn no_metric_has_a_name_that_upstream_could_take() {
    for (name, kind, _) in METRICS {
        let name = if *kind == "counter" { format!("{name}_total") } else { (*name).to_owned() };
        let theirs = UPSTREAM.lines().any(|line| line.contains(&format!(" {name}{{")));
        let ours = name.starts_with("kube_informer_") || name.starts_with("reflector_");
        assert!(theirs != ours, "{name}");
    }
}

/// Every line of the table in the documentation names metrics that exist, and every metric is in it.
#[test]
fn the_documentation_names_every_metric() {
    let source = include_str!("../../src/metrics.rs");
    for (name, kind, _) in METRICS {
        let name = if *kind == "counter" { format!("{name}_total") } else { (*name).to_owned() };
        assert!(source.contains(&format!("`{name}`")), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn things_of_one_name_are_told_apart() {
    let scene = Scene::new();
    let (one, two) =
        (WorkQueue::<u32>::new().name("work"), WorkQueue::<String>::new().name("work"));
    one.add(1);
    scene.metrics.queue(&one).queue(&two);
    let factory = SharedInformerFactory::new(scene.server.client());
    let informers: Vec<_> = ["data", "metadata.annotations"]
        .iter()
        .map(|field| factory.builder_for::<ConfigMap>().drop_fields([*field]).build())
        .collect();
    for _ in 0..2 {
        informers[0].handler().name("same").for_each(|_| {});
    }
    // Once by itself and once with its factory is once.
    scene.metrics.informer(&informers[0]).factory(&factory);
    let scrape = scene.scrape();
    assert_eq!(scrape.value("workqueue_depth{name=\"work\"}"), 1.0);
    assert_eq!(scrape.value("workqueue_depth{name=\"work (2)\"}"), 0.0);
    assert_eq!(scrape.value("kube_informer_synced{name=\"configmaps\"}"), 0.0);
    assert_eq!(scrape.value("kube_informer_synced{name=\"configmaps (2)\"}"), 0.0);
    let second = "kube_informer_notifications_pending{name=\"configmaps\",handler=\"same (2)\"}";
    assert_eq!(scrape.value(second), 0.0);
    assert!(!scrape.mentions("configmaps (3)"));
}

#[tokio::test(start_paused = true)]
async fn hostile_names_stay_within_their_label() {
    let scene = Scene::new();
    let name = format!("a\"}} 1\nworkqueue_depth{{name=\"b\\{}", "x".repeat(10_000));
    let queue = WorkQueue::<u32>::new().name(name);
    scene.metrics.queue(&queue);
    let scrape = scene.scrape();
    let depths = scrape.series.keys().filter(|key| key.starts_with("workqueue_depth"));
    assert_eq!(depths.map(|key| key.len() < 300).collect::<Vec<_>>(), [true]);
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_is_not_reported_any_more() {
    let scene = Scene::new();
    scene.server.create(map("web")).expect("it is valid");
    let factory = SharedInformerFactory::new(scene.server.client());
    let maps = factory.informer::<ConfigMap>();
    let handler = maps.handler().name("counts").for_each(|_| {});
    let queue = WorkQueue::<u32>::new().name("work");
    let secrets = Controller::new(&factory.informer::<Secret>()).name("secrets");
    scene.metrics.factory(&factory).queue(&queue).controller(&secrets.handle());
    let all = [
        "\"configmaps\"",
        "\"secrets\"",
        "handler=\"counts\"",
        "\"work\"",
        "controller=\"secrets\"",
    ];
    let found = |scene: &Scene| all.map(|label| scene.scrape().mentions(label));
    assert_eq!(found(&scene), [true; 5]);
    handler.remove().await;
    drop((queue, secrets));
    assert_eq!(found(&scene), [true, true, false, false, false]);
    drop((factory, maps));
    assert_eq!(found(&scene), [false; 5]);
    assert_eq!(scene.scrape().series.len(), 0);
}

#[test]
fn a_collector_can_be_made_before_there_is_a_registry() {
    let metrics = Metrics::new();
    metrics.queue(&WorkQueue::<u32>::new());
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register_collector(Box::new(metrics));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("a string takes it");
    assert_eq!(text, "# EOF\n", "the queue is gone");
}
