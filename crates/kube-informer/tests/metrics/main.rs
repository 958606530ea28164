//! Metrics: names, labels and buckets are those that dashboards know, and values are those of what happened.

#![allow(clippy::float_cmp, reason = "counts, and sums of paused time, are exact")]

mod dashboards;
mod exposition;
mod names;
mod requests;
mod values;

use embedded_apiserver::ApiServer;
use kube_informer::Metrics;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use exposition::Exposition;

/// A server, and a registry that is scraped.
struct Scene {
    server: ApiServer,
    registry: Registry,
    metrics: Metrics,
}

impl Scene {
    fn new() -> Self {
        let mut registry = Registry::default();
        let metrics = Metrics::registered_in(&mut registry);
        Self { server: ApiServer::start(), registry, metrics }
    }

    fn scrape(&self) -> Exposition {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("a string takes it");
        Exposition::parse(&text)
    }
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": name}})
}
