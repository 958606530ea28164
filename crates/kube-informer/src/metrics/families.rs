//! The metrics by name, one table per type of source.

use std::fmt;

use kube_core::ApiResource;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::leader_election::LeaderElectorStatus;
use crate::measure::Histogram;

use super::readings::{
    ControllerReading, HandlerReading, HistogramReading, InformerReading, QueueReading, Readings,
    ReasonReading, RequestReading, ResultReading,
};

/// The number of digits of the store's version that fit into a float. As in client-go, the last ones are shown.
const VERSION_DIGITS: usize = 15;

type Labels = Vec<(&'static str, String)>;

enum Value {
    Gauge(f64),
    Counter(u64),
    Histogram(HistogramReading),
}

/// A metric: its name (without the suffix `_total` of counters), its description, and its value, if it has one.
type Family<R> = (&'static str, &'static str, fn(&R) -> Option<Value>);

pub(super) fn encode(readings: &Readings, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let Readings { informers, handlers, relists, restarts, queues, controllers, electors, .. } =
        readings;
    table(encoder, INFORMERS_BY_RESOURCE, informers, informer_with_resource)?;
    table(encoder, INFORMERS, informers, |informer| vec![("name", informer.name.clone())])?;
    table(encoder, HANDLERS, handlers, |handler| {
        vec![("name", handler.informer.clone()), ("handler", handler.name.clone())]
    })?;
    table(encoder, RELISTS, relists, with_reason)?;
    table(encoder, RESTARTS, restarts, with_reason)?;
    table(encoder, QUEUES, queues, |queue| {
        let controller = queue.controller.clone().map(|name| ("controller", name));
        [("name", queue.name.clone())].into_iter().chain(controller).collect()
    })?;
    let results: Vec<_> = controllers.iter().flat_map(results).collect();
    table(encoder, RESULTS, &results, |result| {
        vec![("controller", result.of.clone()), ("result", result.reason.to_owned())]
    })?;
    table(encoder, CONTROLLERS, controllers, |controller| {
        vec![("controller", controller.name.clone())]
    })?;
    table(encoder, ELECTORS, electors, |elector| vec![("name", elector.lease.to_string())])?;
    table(encoder, REQUEST_RESULTS, &readings.results, |result| {
        let ResultReading { host, method, code, .. } = result;
        vec![("code", code.clone()), ("method", (*method).to_owned()), ("host", host.clone())]
    })?;
    table(encoder, REQUESTS, &readings.requests, |requests| {
        vec![("verb", requests.method.to_owned()), ("host", requests.host.clone())]
    })
}

const INFORMERS_BY_RESOURCE: &[Family<InformerReading>] = &[
    ("informer_queued_items", "Changes that wait to be written to the cache", |informer| {
        gauge(informer.status.queued as f64)
    }),
    (
        "informer_processing_latency_seconds",
        "Time to write changes to the cache and to hand them to the handlers",
        |informer| histogram(&informer.core.processing),
    ),
    (
        "informer_store_resource_version",
        "The 15 least significant digits of the resourceVersion of the cache",
        version,
    ),
];

const INFORMERS: &[Family<InformerReading>] = &[
    ("reflector_lists", "Lists that were begun", |informer| {
        counter(informer.status.requests.lists)
    }),
    ("reflector_list_duration_seconds", "Time to list and to hand over all objects", |informer| {
        histogram(&informer.core.reflections().list_duration)
    }),
    ("reflector_items_per_list", "Objects of each list", |informer| {
        histogram(&informer.core.reflections().items_per_list)
    }),
    ("reflector_watches", "Watches that were opened", |informer| {
        counter(informer.status.requests.watches)
    }),
    (
        "reflector_short_watches",
        "Watches that ended within a second, without an event",
        |informer| counter(informer.status.requests.short_watches),
    ),
    ("reflector_watch_duration_seconds", "Time until a watch ended", |informer| {
        histogram(&informer.core.reflections().watch_duration)
    }),
    ("reflector_items_per_watch", "Events and bookmarks of each watch", |informer| {
        histogram(&informer.core.reflections().items_per_watch)
    }),
    (
        "reflector_last_resource_version",
        "The 15 least significant digits of the last resourceVersion that was seen",
        version,
    ),
    ("kube_informer_objects", "Objects in the cache", |informer| {
        gauge(informer.status.objects as f64)
    }),
    ("kube_informer_store_bytes_estimate", "Memory that the objects take, about", |informer| {
        gauge(informer.status.bytes as f64)
    }),
    ("kube_informer_synced", "1 if the first list is in the cache", |informer| {
        gauge(f64::from(informer.status.synced))
    }),
    (
        "kube_informer_live",
        "1 if a watch is up, was heard within the silence limit, and the cache keeps up with it",
        |informer| gauge(f64::from(informer.status.live)),
    ),
    (
        "kube_informer_staleness_seconds",
        "Time since the server last confirmed that the cache is up to date",
        |informer| gauge(informer.status.staleness?.as_secs_f64()),
    ),
    ("kube_informer_poison_objects", "Objects that cannot be kept, now", |informer| {
        gauge(informer.status.failed as f64)
    }),
    ("kube_informer_decode_errors", "Objects that could not be read or kept", |informer| {
        counter(informer.status.requests.skipped)
    }),
    ("kube_informer_index_panics", "Panics of index functions", |informer| {
        counter(informer.status.index_panics)
    }),
];

const HANDLERS: &[Family<HandlerReading>] = &[
    ("kube_informer_notifications_pending", "Events that wait for the handler", |handler| {
        gauge(handler.registration.backlog() as f64)
    }),
    (
        "kube_informer_notifications_merged",
        "Events that became part of a later one of the same object, because the handler was far behind",
        |handler| counter(handler.registration.merged()),
    ),
    (
        "kube_informer_notifications_skipped",
        "Repetitions (resyncs, unchanged objects of relists) that were left out",
        |handler| counter(handler.registration.skipped()),
    ),
    ("kube_informer_handler_panics", "Panics of the handler or its filter", |handler| {
        counter(handler.registration.panics())
    }),
    ("kube_informer_handler_slow", "Callbacks that took longer than `slow_after`", |handler| {
        counter(handler.registration.slow())
    }),
    ("kube_informer_handler_duration_seconds", "Time that callbacks take", |handler| {
        histogram(handler.registration.callbacks())
    }),
];

const RELISTS: &[Family<ReasonReading>] =
    &[("kube_informer_relists", "Lists because of an error, by the error", |reading| {
        counter(reading.count)
    })];

const RESTARTS: &[Family<ReasonReading>] = &[(
    "kube_informer_watch_restarts",
    "Watches that were resumed after an error, by the error",
    |reading| counter(reading.count),
)];

const QUEUES: &[Family<QueueReading>] = &[
    ("workqueue_depth", "Current depth of the queue", |queue| gauge(queue.ready as f64)),
    ("workqueue_adds", "Adds handled by the queue", |queue| counter(queue.adds)),
    (
        "workqueue_queue_duration_seconds",
        "Time that a task is ready before a worker takes it",
        |queue| histogram(&queue.waited),
    ),
    ("workqueue_work_duration_seconds", "Time that a worker takes for a task", |queue| {
        histogram(&queue.worked)
    }),
    (
        "workqueue_unfinished_work_seconds",
        "Time that the tasks in progress have taken so far, added up; large values mean stuck workers",
        |queue| gauge(queue.unfinished),
    ),
    (
        "workqueue_longest_running_processor_seconds",
        "Time that the longest task in progress has taken so far",
        |queue| gauge(queue.longest_running),
    ),
    ("workqueue_retries", "Adds for later: retries and delays", |queue| counter(queue.retries)),
];

const CONTROLLERS: &[Family<ControllerReading>] = &[
    ("controller_runtime_reconcile_errors", "Reconciles that failed", |controller| {
        counter(controller.status.failed)
    }),
    (
        "controller_runtime_terminal_reconcile_errors",
        "Reconciles that failed and are not retried",
        |controller| counter(controller.status.terminal),
    ),
    ("controller_runtime_reconcile_panics", "Reconciles that panicked", |controller| {
        counter(controller.status.panicked)
    }),
    ("controller_runtime_reconcile_timeouts", "Reconciles that took too long", |controller| {
        counter(controller.status.timed_out)
    }),
    ("controller_runtime_reconcile_time_seconds", "Time that reconciles take", |controller| {
        histogram(&controller.reconcile_time)
    }),
    (
        "controller_runtime_max_concurrent_reconciles",
        "Reconciles that can run at the same time",
        |controller| gauge(controller.status.workers as f64),
    ),
    ("controller_runtime_active_workers", "Reconciles that run now", |controller| {
        gauge(controller.status.queue.running as f64)
    }),
];

const ELECTORS: &[Family<LeaderElectorStatus>] = &[
    ("leader_election_master_status", "1 if this candidate leads", |elector| {
        gauge(f64::from(elector.is_leader))
    }),
    (
        "leader_election_slowpath",
        "Renewals that had to read the Lease first, because a write without that failed",
        |elector| counter(elector.slow_path_total),
    ),
];

const REQUEST_RESULTS: &[Family<ResultReading>] =
    &[("rest_client_requests", "HTTP requests, by the status code of the response", |result| {
        counter(result.count)
    })];

/// Streams, such as watches, are absent here.
const REQUESTS: &[Family<RequestReading>] = &[
    (
        "rest_client_request_duration_seconds",
        "Time until a response has arrived completely",
        |requests| recorded(&requests.measured.duration),
    ),
    ("rest_client_request_size_bytes", "Size of the bodies of requests", |requests| {
        recorded(&requests.measured.request_bytes)
    }),
    ("rest_client_response_size_bytes", "Size of the bodies of responses", |requests| {
        recorded(&requests.measured.response_bytes)
    }),
];

const RESULTS: &[Family<ReasonReading>] =
    &[("controller_runtime_reconcile", "Reconciles, by their result", |result| {
        counter(result.count)
    })];

fn results(controller: &ControllerReading) -> impl Iterator<Item = ReasonReading> + use<'_> {
    let status = &controller.status;
    let results = [
        ("success", status.succeeded.saturating_sub(status.requeued)),
        ("requeue_after", status.requeued),
        ("error", status.failed),
    ];
    results.into_iter().map(|(reason, count)| ReasonReading {
        of: controller.name.clone(),
        reason,
        count,
    })
}

/// Writes all metrics of one type of source. A metric without a value is left out.
fn table<R>(
    encoder: &mut DescriptorEncoder<'_>,
    families: &[Family<R>],
    readings: &[R],
    labels: impl Fn(&R) -> Labels,
) -> fmt::Result {
    for (name, help, value) in families {
        let values = readings.iter().filter_map(|reading| Some((labels(reading), value(reading)?)));
        let mut values = values.peekable();
        let Some((_, first)) = values.peek() else { continue };
        let mut family = encoder.encode_descriptor(name, help, None, first.kind())?;
        for (labels, value) in values {
            value.encode(&mut family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

impl Value {
    fn kind(&self) -> MetricType {
        match self {
            Value::Gauge(_) => MetricType::Gauge,
            Value::Counter(_) => MetricType::Counter,
            Value::Histogram(_) => MetricType::Histogram,
        }
    }

    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        match self {
            Value::Gauge(value) => encoder.encode_gauge(value),
            Value::Counter(count) => encoder.encode_counter::<NoLabelSet, _, f64>(count, None),
            Value::Histogram(HistogramReading { sum, buckets }) => {
                let count = buckets.iter().map(|(_, count)| count).sum();
                encoder.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
            }
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "others have no value at times")]
fn gauge(value: f64) -> Option<Value> {
    Some(Value::Gauge(value))
}

#[expect(clippy::unnecessary_wraps, reason = "others have no value at times")]
fn counter(count: u64) -> Option<Value> {
    Some(Value::Counter(count))
}

#[expect(clippy::unnecessary_wraps, reason = "others have no value at times")]
fn histogram(histogram: impl Into<HistogramReading>) -> Option<Value> {
    Some(Value::Histogram(histogram.into()))
}

/// Returns a histogram, or `None` if it has no values.
fn recorded(values: &Histogram) -> Option<Value> {
    let reading = HistogramReading::from(values);
    reading.buckets.iter().any(|(_, count)| *count > 0).then_some(Value::Histogram(reading))
}

/// Returns the version of the cache, or `None` if the server's versions are not numbers.
fn version(informer: &InformerReading) -> Option<Value> {
    let digits = informer.status.resource_version.as_str();
    let digits = digits.get(digits.len().saturating_sub(VERSION_DIGITS)..)?;
    gauge(digits.parse::<u64>().ok()? as f64)
}

fn informer_with_resource(informer: &InformerReading) -> Labels {
    let resource = informer.core.resource();
    let of = |part: fn(&ApiResource) -> &String| resource.map(part).cloned().unwrap_or_default();
    vec![
        ("name", informer.name.clone()),
        ("group", of(|resource| &resource.group)),
        ("version", of(|resource| &resource.version)),
        ("resource", of(|resource| &resource.plural)),
    ]
}

fn with_reason(reading: &ReasonReading) -> Labels {
    vec![("name", reading.of.clone()), ("reason", reading.reason.to_owned())]
}
