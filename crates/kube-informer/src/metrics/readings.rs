//! The values of all metrics at the time of a scrape.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use crate::controller::ControllerStatus;
use crate::informer::Core;
use crate::leader_election::LeaderElectorStatus;
use crate::measure::Histogram;
use crate::requests::{ByMethod, Requests};
use crate::shown::shown;
use crate::wait::Watched as _;
use crate::workqueue::{Measured, QueueStatus};
use crate::{InformerStatus, Registration};

/// The limit for names, which contain namespaces and selectors. More does not help to distinguish them.
const NAME_CHARS_MAX: usize = 200;

/// A function that reads a source, unless it is gone.
type Reader<R> = Box<dyn Fn() -> Option<R> + Send + Sync>;

/// All sources that were added, held weakly.
#[derive(Default)]
pub(super) struct Sources {
    pub(super) informers: Vec<Reader<Vec<Arc<Core>>>>,
    pub(super) queues: Vec<Reader<QueueReading>>,
    pub(super) controllers: Vec<Reader<ControllerReading>>,
    pub(super) electors: Vec<Reader<LeaderElectorStatus>>,
    clients: Vec<Weak<Requests>>,
}

#[derive(Default)]
pub(super) struct Readings {
    pub(super) informers: Vec<InformerReading>,
    pub(super) handlers: Vec<HandlerReading>,
    pub(super) relists: Vec<ReasonReading>,
    pub(super) restarts: Vec<ReasonReading>,
    pub(super) queues: Vec<QueueReading>,
    pub(super) controllers: Vec<ControllerReading>,
    pub(super) electors: Vec<LeaderElectorStatus>,
    pub(super) requests: Vec<RequestReading>,
    pub(super) results: Vec<ResultReading>,
}

pub(super) struct InformerReading {
    pub(super) name: String,
    pub(super) core: Arc<Core>,
    pub(super) status: InformerStatus,
}

pub(super) struct HandlerReading {
    pub(super) informer: String,
    pub(super) name: String,
    pub(super) registration: Registration,
}

/// A count for an informer or a controller, by reason or result.
pub(super) struct ReasonReading {
    pub(super) of: String,
    pub(super) reason: &'static str,
    pub(super) count: u64,
}

pub(super) struct QueueReading {
    pub(super) name: String,
    pub(super) controller: Option<String>,
    pub(super) ready: usize,
    pub(super) adds: u64,
    pub(super) retries: u64,
    pub(super) unfinished: f64,
    pub(super) longest_running: f64,
    pub(super) waited: HistogramReading,
    pub(super) worked: HistogramReading,
}

/// The requests to a host with one method.
pub(super) struct RequestReading {
    pub(super) host: String,
    pub(super) method: &'static str,
    pub(super) measured: Arc<ByMethod>,
}

/// The requests to a host with one method and one result.
pub(super) struct ResultReading {
    pub(super) host: String,
    pub(super) method: &'static str,
    pub(super) code: String,
    pub(super) count: u64,
}

pub(super) struct ControllerReading {
    pub(super) name: String,
    pub(super) status: ControllerStatus,
    pub(super) reconcile_time: HistogramReading,
}

/// The values of a histogram: their sum, and the number in each bucket.
#[derive(Clone)]
pub(super) struct HistogramReading {
    pub(super) sum: f64,
    pub(super) buckets: Vec<(f64, u64)>,
}

impl From<&Histogram> for HistogramReading {
    fn from(histogram: &Histogram) -> Self {
        let (sum, buckets) = histogram.read();
        Self { sum, buckets }
    }
}

impl From<&HistogramReading> for HistogramReading {
    fn from(reading: &HistogramReading) -> Self {
        reading.clone()
    }
}

pub(super) fn queue<T>(status: QueueStatus<T>, measured: &Measured) -> QueueReading {
    QueueReading {
        name: name_of(&status.name),
        controller: None,
        ready: status.ready,
        adds: status.adds,
        retries: status.retries,
        unfinished: status.unfinished_work.as_secs_f64(),
        longest_running: status.longest_running.map_or(0.0, |(_, since)| since.as_secs_f64()),
        waited: (&measured.waited).into(),
        worked: (&measured.worked).into(),
    }
}

pub(super) fn controller(
    status: ControllerStatus,
    reconcile_time: &Histogram,
) -> ControllerReading {
    let name = name_of(&status.name);
    ControllerReading { name, status, reconcile_time: reconcile_time.into() }
}

impl QueueReading {
    /// Names the queue after its controller, as controller-runtime does.
    pub(super) fn of_controller(self, controller: &str) -> Self {
        let name = name_of(controller);
        Self { controller: Some(name.clone()), name, ..self }
    }
}

impl Sources {
    /// Returns the requests to a host, which all its clients share: scrapers reject duplicate series.
    pub(super) fn requests_to(&mut self, host: &str) -> Arc<Requests> {
        let host = name_of(host);
        let mut known = self.clients.iter().filter_map(Weak::upgrade);
        known.find(|requests| requests.host() == host).unwrap_or_else(|| {
            let requests = Arc::new(Requests::new(host));
            self.clients.push(Arc::downgrade(&requests));
            requests
        })
    }

    /// Reads all sources, and removes those that are gone.
    pub(super) fn read(&mut self) -> Readings {
        let mut cores: Vec<Arc<Core>> = Vec::new();
        for core in read(&mut self.informers).into_iter().flatten() {
            if !cores.iter().any(|known| Arc::ptr_eq(known, &core)) {
                cores.push(core);
            }
        }
        let mut readings = Readings {
            queues: read(&mut self.queues),
            controllers: read(&mut self.controllers),
            electors: read(&mut self.electors),
            ..Readings::default()
        };
        self.clients.retain(|requests| requests.strong_count() > 0);
        self.clients.iter().filter_map(Weak::upgrade).for_each(|each| readings.client(&each));
        tell_apart(readings.queues.iter_mut().map(|queue| &mut queue.name));
        tell_apart(readings.controllers.iter_mut().map(|controller| &mut controller.name));
        let mut names: Vec<_> = cores.iter().map(|core| name_of(core.name())).collect();
        tell_apart(&mut names);
        for (core, name) in cores.into_iter().zip(names) {
            readings.informer(core, name);
        }
        readings
    }
}

impl Readings {
    fn client(&mut self, requests: &Requests) {
        let host = requests.host().to_owned();
        for (method, measured) in requests.by_method() {
            self.results.extend(measured.results().into_iter().map(|(code, count)| {
                ResultReading { host: host.clone(), method, code: code.to_string(), count }
            }));
            self.requests.push(RequestReading { host: host.clone(), method, measured });
        }
    }

    fn informer(&mut self, core: Arc<Core>, name: String) {
        let registrations = core.processor.registrations();
        let mut handlers: Vec<_> =
            registrations.iter().map(|handler| name_of(handler.name())).collect();
        tell_apart(&mut handlers);
        let handlers = registrations.into_iter().zip(handlers);
        self.handlers.extend(handlers.map(|(registration, handler)| HandlerReading {
            informer: name.clone(),
            name: handler,
            registration,
        }));
        let reasons = |counts: &BTreeMap<_, _>| {
            counts
                .iter()
                .map(|(&reason, &count)| ReasonReading { of: name.clone(), reason, count })
                .collect::<Vec<_>>()
        };
        let status = core.status();
        self.relists.extend(reasons(&status.requests.relists));
        self.restarts.extend(reasons(&status.requests.restarts));
        self.informers.push(InformerReading { name, core, status });
    }
}

fn read<R>(readers: &mut Vec<Reader<R>>) -> Vec<R> {
    let mut readings = Vec::new();
    readers.retain(|read| read().map(|reading| readings.push(reading)).is_some());
    readings
}

fn name_of(name: &str) -> String {
    shown(name, NAME_CHARS_MAX).into_owned()
}

/// Appends a number to names that occur more than once.
fn tell_apart<'a>(names: impl IntoIterator<Item = &'a mut String>) {
    let mut known: HashMap<String, u32> = HashMap::new();
    for name in names {
        let count = known.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            *name = format!("{name} ({count})");
        }
    }
}
