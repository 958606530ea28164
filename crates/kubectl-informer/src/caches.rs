//! The caches of a command: informers for its types, and the wait until they have synced.

use std::sync::Arc;
use std::time::Duration;

use kube_informer::{
    ErrorReport, NotSynced, NotSyncedReason, SharedInformer, SharedInformerFactory, State, Untyped,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::chosen::Chosen;
use crate::connect::Cluster;
use crate::discovery::Type;
use crate::plain::{self, Asked};
use crate::scope;
use crate::screen::Screen;
use crate::signals::Stop;
use crate::status::{self, Context, Informed, counted};

/// The delay before progress is shown. A list that completes sooner needs none.
const MOMENT: Duration = Duration::from_millis(300);

/// How often the progress line is updated.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The number of error reports that wait to be read. They are read before anything else, so that
/// more than a few wait only while the output is blocked.
const REPORTS_MAX: usize = 64;

/// The errors of informers, each with the position of its informer.
pub(crate) type Reports = mpsc::Receiver<(usize, ErrorReport)>;

/// A sender of errors.
pub(crate) struct Reporter(mpsc::Sender<(usize, ErrorReport)>);

/// Creates a bounded channel for the errors of informers.
pub(crate) fn reports() -> (Reporter, Reports) {
    let (sender, receiver) = mpsc::channel(REPORTS_MAX);
    (Reporter(sender), receiver)
}

impl Reporter {
    /// Returns the error handler for the informer at this position. If the channel is full, the
    /// report is dropped: an informer repeats what persists, and its status always has the last
    /// error.
    pub(crate) fn of(&self, place: usize) -> impl Fn(&ErrorReport) + Send + Sync + 'static {
        let sender = self.0.clone();
        move |report| drop(sender.try_send((place, report.clone())))
    }
}

/// A type and its informer.
pub(crate) struct Cache {
    pub(crate) of: Arc<Type>,
    pub(crate) informer: SharedInformer<Untyped>,
}

/// The informers of a command. They start with [`start`](Self::start) and stop when this is
/// dropped.
pub(crate) struct Caches {
    pub(crate) all: Vec<Cache>,
    pub(crate) namespaces: Vec<String>,
    pub(crate) errors: Reports,
    factory: SharedInformerFactory,
    started: Instant,
}

impl Caches {
    pub(crate) fn new<'a>(
        chosen: impl Iterator<Item = &'a Chosen>,
        cluster: &Cluster,
        scope: &scope::Options,
    ) -> Result<Self, String> {
        Ok(Self::within(chosen, cluster, scope, scope.namespaces(cluster)?))
    }

    /// Creates informers for these namespaces instead of those of the scope.
    pub(crate) fn within<'a>(
        chosen: impl Iterator<Item = &'a Chosen>,
        cluster: &Cluster,
        scope: &scope::Options,
        namespaces: Vec<String>,
    ) -> Self {
        // Objects are printed as the server sends them, including fields that this client does not
        // know.
        let factory =
            SharedInformerFactory::builder(cluster.client.clone()).protobuf(false).build();
        let (reporter, errors) = reports();
        let build = |(place, each): (usize, &Chosen)| {
            let informer = each
                .informer(&factory, scope, &namespaces)
                .on_error(reporter.of(place))
                .build()
                .cast::<Untyped>();
            Cache { of: each.of.clone(), informer }
        };
        let all = chosen.enumerate().map(build).collect();
        Self { all, namespaces, errors, factory, started: Instant::now() }
    }

    pub(crate) fn start(&mut self) {
        self.started = Instant::now();
        self.factory.start();
    }

    /// Returns the time since the informers were started.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Waits until every cache has synced. Returns false if the user interrupts the wait. The error
    /// is a message for the user.
    pub(crate) async fn synced(
        &mut self,
        cluster: &Cluster,
        limit: Duration,
        screen: &mut Screen,
        stop: &mut Stop,
    ) -> Result<bool, String> {
        let mut synced = self.factory.wait_for_sync().timeout(limit).into_future();
        let mut looks = interval_at(Instant::now() + MOMENT, LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.requested() => return Ok(false),
                Some((place, report)) = self.errors.recv() => {
                    if let Some(refusal) = self.refusal(place, &report, cluster) {
                        return Err(refusal);
                    }
                }
                result = &mut synced => {
                    let result = result.map(|()| true);
                    return result.map_err(|error| self.incomplete(&error, cluster));
                }
                _ = looks.tick() => self.show_progress(cluster, screen),
            }
        }
    }

    /// Describes an error that retrying cannot fix, unless the informer has synced before.
    pub(crate) fn refusal(
        &self,
        place: usize,
        report: &ErrorReport,
        cluster: &Cluster,
    ) -> Option<String> {
        let (cache, error) = (&self.all[place], &report.error);
        let asked = Asked {
            of: &cache.of,
            namespaces: &self.namespaces,
            place: &cluster.place,
            during: Some(&report.during),
        };
        (plain::is_final(error) && !cache.informer.has_synced())
            .then(|| plain::message(error, &asked))
    }

    /// Returns a line about the current problem of one of the informers, if there is one.
    pub(crate) fn trouble(&self, cluster: &Cluster, counts: impl Fn(usize) -> bool) -> String {
        let mut each = self.all.iter().enumerate().filter(|(place, _)| counts(*place));
        let troubled = each.find_map(|(_, cache)| match cache.informer.state() {
            State::BackingOff { why, .. } => Some((cache, why)),
            _ => None,
        });
        let Some((cache, why)) = troubled else { return String::new() };
        let asked = Asked {
            of: &cache.of,
            namespaces: &self.namespaces,
            place: &cluster.place,
            during: None,
        };
        format!("▲ {}: trying again\n", plain::problem(&why, &asked))
    }

    fn show_progress(&self, cluster: &Cluster, screen: &mut Screen) {
        let informed = |cache: &Cache| cache.informer.status();
        let informers: Vec<_> = self
            .all
            .iter()
            .map(|cache| Informed {
                of: &cache.of,
                name: None,
                matching: None,
                status: informed(cache),
            })
            .collect();
        let context = Context {
            place: &cluster.place,
            namespaces: &self.namespaces,
            reconnects: 0,
            last: None,
            started: self.started,
            waiting: None,
        };
        screen.status(status::line(&informers, &context));
    }

    fn incomplete(&self, error: &NotSynced, cluster: &Cluster) -> String {
        let after = match error.reason {
            NotSyncedReason::TimedOut(limit) => format!("after {limit:?}"),
            reason => format!("({reason})"),
        };
        let mut text = String::new();
        for cache in self.all.iter().filter(|cache| !cache.informer.has_synced()) {
            let status = cache.informer.status();
            let name = cache.of.name();
            let so_far = counted(status.received, "object");
            let asked = Asked {
                of: &cache.of,
                namespaces: &self.namespaces,
                place: &cluster.place,
                during: None,
            };
            let why = match &status.last_error {
                Some(error) => plain::problem(error, &asked),
                None => format!("{} has not sent all of them", cluster.place.address),
            };
            text.push_str(&format!("{name} are not complete {after}, {so_far} so far: {why}\n"));
        }
        text.push_str("more time may help: --timeout 5m");
        text
    }
}

impl Drop for Caches {
    fn drop(&mut self) {
        self.factory.stop();
    }
}

#[cfg(test)]
mod tests {
    use embedded_apiserver::{ApiServer, Fault, Verb};
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::chosen::choose;

    const LIMIT: Duration = Duration::from_millis(50);

    #[tokio::test(start_paused = true)]
    async fn reports_that_are_not_read_are_bounded() {
        let server = ApiServer::start();
        for verb in [Verb::List, Verb::Watch] {
            server.faults().on(verb).resource("pods").always().inject(Fault::status(500));
        }
        let factory = SharedInformerFactory::new(server.client());
        let (reporter, mut reports) = reports();
        let (report, told) = (reporter.of(3), mpsc::channel(1));
        let (first, mut first_told) = told;
        let informer = factory
            .builder_with::<kube_core::DynamicObject>(&kube_core::ApiResource::erase::<Pod>(&()))
            .on_error(move |error| drop(first.try_send(error.clone())))
            .build();
        factory.start();
        let error = first_told.recv().await.unwrap();
        drop(informer);
        (0..REPORTS_MAX + 10).for_each(|_| report(&error));
        let mut waiting = 0;
        while let Ok((place, _)) = reports.try_recv() {
            assert_eq!(place, 3);
            waiting += 1;
        }
        assert_eq!(waiting, REPORTS_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn it_gives_up_with_the_reason() {
        let server = ApiServer::start();
        for verb in [Verb::List, Verb::Watch] {
            server.faults().on(verb).resource("pods").always().inject(Fault::status(500));
        }
        let cluster = Cluster::of(&server);
        let chosen = choose("pods", &cluster, LIMIT).await.unwrap();
        let scope = scope::Options::default();
        let mut caches = Caches::new(chosen.iter(), &cluster, &scope).unwrap();
        caches.start();
        let error = caches.factory.wait_for_sync().timeout(LIMIT).await.unwrap_err();
        assert_eq!(caches.age(), LIMIT);
        let problem = caches.incomplete(&error, &cluster);
        let expected = "pods are not complete after 50ms, 0 objects so far: ";
        assert!(problem.starts_with(expected), "{problem}");
        assert!(problem.contains("500") && problem.ends_with("--timeout 5m"), "{problem}");
    }
}
