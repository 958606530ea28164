//! The requests of a client: `rest_client_*`.

use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use http::Uri;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use kube_informer::{SharedInformerFactory, State};
use tokio::time::timeout;

use super::exposition::Exposition;
use super::{Scene, map};

const HOUR: Duration = Duration::from_secs(3600);

fn client(scene: &Scene) -> Client {
    let server = Uri::from_static("https://user:secret@10.0.0.1:6443/prefix");
    scene.metrics.client(scene.server.client(), &server)
}

/// The number of requests with this result.
fn total(scrape: &Exposition, code: &str, method: &str) -> f64 {
    scrape.value(&format!(
        "rest_client_requests_total{{code=\"{code}\",method=\"{method}\",host=\"10.0.0.1:6443\"}}"
    ))
}

fn measured(scrape: &Exposition, metric: &str, verb: &str) -> f64 {
    let labels = format!("{{verb=\"{verb}\",host=\"10.0.0.1:6443\"}}");
    scrape.value(&format!("rest_client_{metric}{labels}"))
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_by_result_and_measured() {
    let scene = Scene::new();
    let maps = Api::<ConfigMap>::default_namespaced(client(&scene));
    let web: ConfigMap = serde_json::from_value(map("web")).expect("it is one");
    let sent = serde_json::to_vec(&web).expect("it is JSON").len();
    maps.create(&PostParams::default(), &web).await.expect("it is new");
    let again = maps.create(&PostParams::default(), &web).await;
    assert!(matches!(again, Err(kube::Error::Api(status)) if status.code == 409));
    assert_eq!(maps.list(&ListParams::default()).await.expect("it is listed").items.len(), 1);
    scene.server.faults().on(Verb::Get).inject(Fault::Latency(Duration::from_secs(3)));
    maps.get("web").await.expect("it is there");

    let scrape = scene.scrape();
    let totals = [("201", "POST"), ("409", "POST"), ("200", "GET")];
    assert_eq!(totals.map(|(code, method)| total(&scrape, code, method)), [1.0, 1.0, 2.0]);
    assert_eq!(measured(&scrape, "request_duration_seconds_count", "GET"), 2.0);
    assert_eq!(measured(&scrape, "request_duration_seconds_sum", "GET"), 3.0);
    assert_eq!(measured(&scrape, "request_size_bytes_count", "POST"), 2.0);
    assert_eq!(measured(&scrape, "request_size_bytes_sum", "POST"), 2.0 * sent as f64);
    assert_eq!(measured(&scrape, "response_size_bytes_count", "GET"), 2.0);
    assert!(measured(&scrape, "response_size_bytes_sum", "GET") > 100.0);
    assert!(!scrape.mentions("secret"), "credentials in the address are not part of the host");
}

#[tokio::test(start_paused = true)]
async fn watches_are_counted_but_not_measured() {
    let scene = Scene::new();
    let factory = SharedInformerFactory::builder(client(&scene)).streaming_lists(false).build();
    let maps = factory.informer::<ConfigMap>();
    factory.start();
    maps.watch_state().wait_for(State::is_watching).await.expect("it runs");
    let made = scene.server.create(map("web")).expect("it is valid");
    let version = made["metadata"]["resourceVersion"].as_str().expect("it has one").to_owned();
    maps.wait_for_version(version).await.expect("it is seen through the measured client");

    let scrape = scene.scrape();
    assert_eq!(total(&scrape, "200", "GET"), 2.0);
    assert_eq!(measured(&scrape, "request_duration_seconds_count", "GET"), 1.0);
    assert_eq!(measured(&scrape, "response_size_bytes_count", "GET"), 1.0);
    assert_eq!(measured(&scrape, "request_size_bytes_sum", "GET"), 0.0);
}

/// Errors pass through a measured client, and mean the same to the informer.
#[tokio::test(start_paused = true)]
async fn informers_recover_alike_through_a_measured_client() {
    let scene = Scene::new();
    let factory = SharedInformerFactory::new(client(&scene));
    let maps = factory.informer::<ConfigMap>();
    scene.metrics.factory(&factory);
    factory.start();
    factory.wait_for_sync().await.expect("it syncs");
    super::values::fail_once(&scene.server, &maps).await;
    let scrape = scene.scrape();
    for (metric, reason) in [("watch_restarts", "connection_broken"), ("relists", "expired")] {
        let labels = format!("{{name=\"configmaps\",reason=\"{reason}\"}}");
        assert_eq!(scrape.value(&format!("kube_informer_{metric}_total{labels}")), 1.0);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_without_a_response_are_errors() {
    let scene = Scene::new();
    let maps = Api::<ConfigMap>::default_namespaced(client(&scene));
    scene.server.faults().on(Verb::Get).inject(Fault::Reset);
    assert!(maps.get("web").await.is_err());
    scene.server.faults().on(Verb::Get).inject(Fault::StalledHeaders);
    assert!(timeout(HOUR, maps.get("web")).await.is_err(), "its caller gives up");
    scene.server.create(map("web")).expect("it is valid");
    scene.server.faults().on(Verb::Get).inject(Fault::StalledBody);
    assert!(timeout(HOUR, maps.get("web")).await.is_err(), "its caller gives up");

    let scrape = scene.scrape();
    assert_eq!(total(&scrape, "<error>", "GET"), 2.0);
    assert_eq!(total(&scrape, "200", "GET"), 1.0);
    assert_eq!(measured(&scrape, "request_duration_seconds_sum", "GET"), 7200.0);
    assert!(!scrape.mentions("rest_client_response_size_bytes"), "no response was read");
}

#[tokio::test(start_paused = true)]
async fn clients_of_one_server_are_reported_together_until_dropped() {
    let scene = Scene::new();
    for client in [client(&scene), client(&scene)] {
        let maps = Api::<ConfigMap>::default_namespaced(client);
        maps.list(&ListParams::default()).await.expect("it is listed");
    }
    let kept = client(&scene);
    assert_eq!(kept.default_namespace(), "default");
    assert_eq!(total(&scene.scrape(), "200", "GET"), 2.0);
    drop(kept);
    // The task of a client ends after its last handle.
    while !scene.scrape().series.is_empty() {
        tokio::task::yield_now().await;
    }
}
