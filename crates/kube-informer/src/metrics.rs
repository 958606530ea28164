//! Metrics of informers, work queues, controllers, leader election and clients, for Prometheus.
//!
//! [`Metrics`] is a collector for a [`Registry`]. It reads everything that was added to it whenever the registry is encoded,
//! and keeps nothing alive: a dropped informer or queue is absent from the next scrape.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_informer::{Metrics, SharedInformerFactory};
//! use prometheus_client::registry::Registry;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = embedded_apiserver::ApiServer::start();
//! # let client = server.client();
//! let factory = SharedInformerFactory::new(client);
//! let pods = factory.informer::<Pod>();
//!
//! let mut registry = Registry::default();
//! Metrics::registered_in(&mut registry).factory(&factory);
//!
//! factory.start();
//! factory.wait_for_sync().await?;
//! let mut text = String::new();
//! prometheus_client::encoding::text::encode(&mut text, &registry)?; // for GET /metrics
//! assert!(text.contains("kube_informer_synced{name=\"pods\"} 1"));
//! # Ok(())
//! # }
//! ```
//!
//! # Names
//!
//! Metrics that client-go or controller-runtime also export have the same name and meaning here, so that dashboards and alerts
//! can be reused. The metrics of reflectors, which client-go removed in 1.14, are included. Two details differ: the histograms
//! of work queues have controller-runtime's twelve buckets, which are client-go's ten and two more, and `workqueue_depth` has no
//! label `priority`, which controller-runtime adds.
//!
//! | metric | labels | from |
//! | --- | --- | --- |
//! | `informer_queued_items`, `informer_processing_latency_seconds`, `informer_store_resource_version` | `name`, `group`, `version`, `resource` | client-go |
//! | `reflector_lists_total`, `reflector_list_duration_seconds`, `reflector_items_per_list`, `reflector_watches_total`, `reflector_short_watches_total`, `reflector_watch_duration_seconds`, `reflector_items_per_watch`, `reflector_last_resource_version` | `name` | client-go before 1.14 |
//! | `workqueue_depth`, `workqueue_adds_total`, `workqueue_queue_duration_seconds`, `workqueue_work_duration_seconds`, `workqueue_unfinished_work_seconds`, `workqueue_longest_running_processor_seconds`, `workqueue_retries_total` | `name`; for the queue of a controller also `controller` | client-go, controller-runtime |
//! | `controller_runtime_reconcile_total` | `controller`, `result` | controller-runtime |
//! | `controller_runtime_reconcile_errors_total`, `controller_runtime_terminal_reconcile_errors_total`, `controller_runtime_reconcile_panics_total`, `controller_runtime_reconcile_timeouts_total`, `controller_runtime_reconcile_time_seconds`, `controller_runtime_max_concurrent_reconciles`, `controller_runtime_active_workers` | `controller` | controller-runtime |
//! | `rest_client_requests_total` | `code`, `method`, `host` | client-go, controller-runtime |
//! | `rest_client_request_duration_seconds`, `rest_client_request_size_bytes`, `rest_client_response_size_bytes` | `verb`, `host` | client-go |
//! | `leader_election_master_status`, `leader_election_slowpath_total` | `name` | client-go |
//! | `kube_informer_objects`, `kube_informer_store_bytes_estimate`, `kube_informer_synced`, `kube_informer_live`, `kube_informer_staleness_seconds`, `kube_informer_poison_objects`, `kube_informer_decode_errors_total`, `kube_informer_index_panics_total` | `name` | |
//! | `kube_informer_relists_total`, `kube_informer_watch_restarts_total` | `name`, `reason` | |
//! | `kube_informer_notifications_pending`, `kube_informer_notifications_merged_total`, `kube_informer_notifications_skipped_total`, `kube_informer_handler_panics_total`, `kube_informer_handler_slow_total`, `kube_informer_handler_duration_seconds` | `name`, `handler` | |
//!
//! Label values are bounded: names come from the program, and reasons are a fixed set. Of two informers, handlers, queues or
//! controllers with the same name, the second is reported as `name (2)`, because scrapers reject duplicate series.
//!
//! # Requests
//!
//! [`Metrics::client`] wraps any `kube::Client`, and the result measures every request that is sent through it, by informers
//! and by everything else in the program. As in client-go, a request without a response has the code `<error>`, and a watch is
//! only counted: it has no duration and no size. This also applies to logs that are followed and to `exec`. Status codes that no
//! standard defines have the code `other`, so that a server cannot make the number of series grow.
//!
//! Some metrics of client-go's REST client have no counterpart:
//!
//! | metric | reason |
//! | --- | --- |
//! | `rest_client_rate_limiter_duration_seconds` | requests are not rate-limited on the client side |
//! | `rest_client_request_retries_total` | a client that `kube_informer::client` builds does not retry; retries of informers are in `kube_informer_watch_restarts_total` and `kube_informer_relists_total`; those of kube's own client happen below the measured one |
//! | `rest_client_dns_resolution_duration_seconds` | not measured; component-base defines it, but does not register it before 1.38 |
//! | `rest_client_exec_plugin_*` | kube runs credential plugins, and does not report their calls |
//! | `rest_client_transport_*` | there is no cache of transports: connections belong to their client |
//!
//! # Cost
//!
//! Most values are read from the `status` of informers, queues and controllers at the time of a scrape. Only histograms are
//! recorded as events happen: one value per batch that is written to the cache, per callback and per task of a queue. Recording
//! takes no lock and allocates nothing, and without the feature `metrics` it is compiled out. A measured request takes two short
//! locks; an event of a watch takes none.

mod families;
mod readings;

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use crate::controller::ControllerHandle;
use crate::list_watch::Client;
use crate::requests::{self, Uri};
use crate::workqueue::Task;
use crate::{LeaderElector, SharedInformer, SharedInformerFactory, WorkQueue};

use readings::Sources;

/// A Prometheus collector for informers, queues, controllers, leader election and clients. Cheap to clone; see the [module](self).
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<Sources>>);

impl Metrics {
    /// Returns an empty collector, to be registered with [`Registry::register_collector`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty collector that is registered in `registry`.
    pub fn registered_in(registry: &mut Registry) -> Self {
        let metrics = Self::new();
        registry.register_collector(Box::new(metrics.clone()));
        metrics
    }

    /// Adds all informers of a factory, including those that it makes later.
    pub fn factory(&self, factory: &SharedInformerFactory) -> &Self {
        self.0.lock().informers.push(Box::new(factory.reader()));
        self
    }

    /// Adds an informer. If its factory was added too, it is still reported only once.
    pub fn informer<K: 'static>(&self, informer: &SharedInformer<K>) -> &Self {
        let core = Arc::downgrade(informer.core());
        self.0.lock().informers.push(Box::new(move || Some(vec![core.upgrade()?])));
        self
    }

    /// Adds a work queue, under its [name](WorkQueue::name). The queue of a controller comes with the controller.
    pub fn queue<T: Task>(&self, queue: &WorkQueue<T>) -> &Self {
        self.0.lock().queues.push(Box::new(queue.reader(readings::queue)));
        self
    }

    /// Adds a controller and its queue, by the controller's [handle](crate::Controller::handle).
    pub fn controller(&self, controller: &ControllerHandle) -> &Self {
        let mut sources = self.0.lock();
        sources.controllers.push(Box::new(controller.reader(readings::controller)));
        let of_controller = controller.reader(|status, _| status.name);
        let queue = controller.queue().reader(readings::queue);
        sources.queues.push(Box::new(move || Some(queue()?.of_controller(&of_controller()?))));
        drop(sources);
        self
    }

    /// Adds a candidate of a leader election, under the name of its Lease.
    pub fn leader_elector(&self, elector: &LeaderElector) -> &Self {
        self.0.lock().electors.push(Box::new(elector.reader()));
        self
    }

    /// Returns a client that measures its requests, and sends them through `client`. `server` is the address of the server, as
    /// in `kube::Config::cluster_url`: its host and port become the label `host`.
    ///
    /// Several clients of the same server are reported together. Requires a Tokio runtime.
    ///
    /// ```
    /// # use kube_informer::{Metrics, SharedInformerFactory};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// # let server = embedded_apiserver::ApiServer::start();
    /// # let (client, config) = (server.client(), kube::Config::new("https://10.0.0.1:6443".parse().unwrap()));
    /// # let metrics = Metrics::new();
    /// let client = metrics.client(client, &config.cluster_url);
    /// let factory = SharedInformerFactory::new(client);
    /// # }
    /// ```
    #[must_use = "requests of the original client are not measured"]
    pub fn client(&self, client: Client, server: &Uri) -> Client {
        self.0.lock().requests_to(&requests::host(server)).measured(client)
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let readings = self.0.lock().read();
        families::encode(&readings, &mut encoder)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
