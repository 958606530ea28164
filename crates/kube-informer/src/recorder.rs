//! Kubernetes events about objects: aggregated, rate limited, and written in the background.

mod bucket;
mod correlator;
mod occurrence;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, fmt, fs};

use k8s_openapi::api::core::v1::ObjectReference;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use correlator::Correlator;
use occurrence::{Occurrence, Source};
use writer::{Command, Counts, Trouble, Writer, add_one};

use crate::selector::is_qualified_name;
use crate::shown::beginning;
use crate::wire::Client;
use crate::{Error, Result};

pub use occurrence::EventType;

/// Number of events that may wait to be written: client-go's `maxQueuedEvents`.
const QUEUED_MAX: usize = 1000;

/// The longest instance name that the server accepts, in bytes.
const INSTANCE_BYTES_MAX: usize = 128;

/// Time that [`Recorder::shutdown`] has to write the remaining events. A process that is told to terminate has
/// some thirty seconds for everything.
const SHUTDOWN_WAIT_MAX: Duration = Duration::from_secs(5);

/// Records Kubernetes events about objects, as `kubectl describe` and `kubectl events` show them.
///
/// [`event`](Self::event) only queues the event: it never blocks, and works outside of a Tokio runtime. A
/// background task writes events as `events.k8s.io/v1`. Clones share the queue and the task. Create one
/// recorder per program, because repetitions are recognised only among the events of one recorder.
///
/// The task ends when the last clone has been dropped and the queue is empty; [`shutdown`](Self::shutdown) ends
/// it sooner.
///
/// # What is written
///
/// Limits and times are client-go's.
///
/// - **Series.** An event that repeats within six minutes is not written anew: it becomes a series with a
///   count. The first repetition is written at once, further ones every thirty minutes and when the series is
///   over. Events are the same if object, related object, type, reason, action and note are; the version of the
///   object does not matter.
/// - **Similar events.** From the tenth different note on, within ten minutes of each other, events that differ
///   only in their notes are combined into one event, `(combined from similar events): …`.
/// - **Limits.** For each object and type, 25 events can be written in a burst, and then one every five
///   minutes. Repetitions in a series do not count.
/// - **Failures.** If the server cannot be reached or is overloaded, an event is retried every ten seconds
///   until it is two minutes old. An event that the server rejects is not retried.
/// - **Bounds.** Up to 1000 events are queued; further ones are dropped. [`counts`](Self::counts) has the
///   outcome of all events.
///
/// A warning is logged when writing starts to fail, and a message when it works again; neither is repeated.
///
/// Events about cluster-scoped objects are written to the namespace `default`. The program needs the verbs
/// `create` and `patch` on `events` of the group `events.k8s.io`.
///
/// # Examples
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_informer::{EventType, Object, Recorder};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kube_informer::Error> {
/// # let server = embedded_apiserver::ApiServer::start();
/// # let client = server.client();
/// # let pod: Object<Pod> = Object::from_json(
/// #     r#"{"metadata": {"name": "web-0", "namespace": "default", "uid": "7d5c"}}"#)?;
/// let recorder = Recorder::new(client, "example.com/shop-controller")?;
/// recorder.event(&pod, EventType::Normal, "Registered", "Register", "web-0 takes orders");
/// recorder.event(&pod, EventType::Normal, "Registered", "Register", "web-0 takes orders");
/// recorder.shutdown().await;
///
/// let events = server.list("events", "default");
/// assert_eq!(events.len(), 1);
/// assert_eq!(events[0]["series"]["count"], 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

struct Shared {
    source: Source,
    commands: mpsc::Sender<Command>,
    /// `None` once it runs.
    writer: Mutex<Option<Writer>>,
    /// The runtime in which the recorder was created, if any.
    runtime: Option<Handle>,
    counts: Arc<Counts>,
    closed: AtomicBool,
    warned: AtomicBool,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// Counts of the events of a [`Recorder`], by outcome.
///
/// ```
/// # use kube_informer::Recorder;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kube_informer::Error> {
/// # let client = embedded_apiserver::ApiServer::start().client();
/// let recorder = Recorder::new(client, "example.com/shop-controller")?;
/// let counts = recorder.counts();
/// assert_eq!(counts.dropped + counts.failed, 0, "no event was lost");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct EventCounts {
    /// Number of requests that succeeded: events created, and series updated.
    pub written: u64,
    /// Number of repetitions that were only counted in a series.
    pub counted: u64,
    /// Number of events that were not written because there were too many about their object.
    pub limited: u64,
    /// Number of events that were dropped because the queue was full or the recorder had been shut
    /// down.
    pub dropped: u64,
    /// Number of events that were not sent because the server would reject them: the reason or action is
    /// missing or too long, or there is no object.
    pub refused: u64,
    /// Number of requests that failed: the server could not be reached for too long, or rejected
    /// them.
    pub failed: u64,
}

impl Recorder {
    /// Creates a recorder for a controller, whose name has the form of a label name:
    /// `example.com/shop-controller`.
    ///
    /// The instance in the events is made of the controller's and the host's name. If the recorder is created
    /// in a Tokio runtime, that one runs the task; otherwise, the first call within a runtime starts it there.
    ///
    /// # Errors
    ///
    /// If the name is not valid.
    pub fn new(client: Client, controller: &str) -> Result<Self> {
        let instance = match host() {
            Some(host) => format!("{controller}-{host}"),
            None => format!("{controller}-{:08x}", fastrand::u32(..)),
        };
        Self::with_instance(client, controller, beginning(&instance, INSTANCE_BYTES_MAX))
    }

    /// Creates a recorder with a name for this instance of the controller, such as that of its pod.
    ///
    /// # Errors
    ///
    /// If the name of the controller is not valid, or that of the instance does not have 1 to 128
    /// bytes.
    ///
    /// ```
    /// # use kube_informer::Recorder;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let client = embedded_apiserver::ApiServer::start().client();
    /// assert!(Recorder::with_instance(client.clone(), "shop-controller", "shop-7d5c-x2x9q").is_ok());
    /// assert!(Recorder::with_instance(client, "shop controller", "").unwrap_err().is_invalid());
    /// # }
    /// ```
    pub fn with_instance(client: Client, controller: &str, instance: &str) -> Result<Self> {
        if !is_qualified_name(controller) {
            return Err(Error::invalid(format!(
                "{controller:?} is not a valid controller name for events; expected a name like example.com/shop-controller"
            )));
        }
        if instance.is_empty() || instance.len() > INSTANCE_BYTES_MAX {
            return Err(Error::invalid(format!(
                "{instance:?} is not a valid instance name for events; expected 1 to {INSTANCE_BYTES_MAX} bytes"
            )));
        }
        let source = Source { controller: controller.to_owned(), instance: instance.to_owned() };
        let (commands, receiver) = mpsc::channel(QUEUED_MAX);
        let counts = Arc::<Counts>::default();
        let writer = Writer {
            client,
            source: source.clone(),
            commands: receiver,
            counts: counts.clone(),
            correlator: Correlator::default(),
            trouble: Trouble::default(),
        };
        Ok(Self(Arc::new(Shared {
            source,
            commands,
            writer: Mutex::new(Some(writer)),
            runtime: Handle::try_current().ok(),
            counts,
            closed: AtomicBool::new(false),
            warned: AtomicBool::new(false),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })))
    }

    /// Records that something has happened to an object.
    ///
    /// `regarding` is an [`Object`](crate::Object) of a kind or an `ObjectReference`. `reason` is a word in
    /// `CamelCase` that programs can look for, and `action` says what the controller did or failed to do.
    /// `note` is for people, and truncated after 1024 bytes.
    ///
    /// Returns at once. Events that cannot be recorded are [counted](Self::counts), and logged the first time.
    pub fn event(
        &self,
        regarding: impl Into<ObjectReference>,
        type_: EventType,
        reason: &str,
        action: &str,
        note: &str,
    ) {
        self.record(Occurrence::new(regarding.into(), None, type_, (reason, action), note));
    }

    /// Records an event that also involves another object, such as one that was created or that is in the way.
    ///
    /// ```
    /// # use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
    /// # use kube_informer::{EventType, Object, Recorder};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), kube_informer::Error> {
    /// # let server = embedded_apiserver::ApiServer::start();
    /// # let recorder = Recorder::new(server.client(), "example.com/shop-controller")?;
    /// # let set: Object<ReplicaSet> =
    /// #     Object::from_json(r#"{"metadata": {"name": "web", "namespace": "default"}}"#)?;
    /// # let pod: Object<Pod> =
    /// #     Object::from_json(r#"{"metadata": {"name": "web-0", "namespace": "default"}}"#)?;
    /// recorder.related_event(&set, &pod, EventType::Normal, "Created", "Create", "made web-0");
    /// # recorder.shutdown().await;
    /// # let event = &server.list("events", "default")[0];
    /// # assert_eq!(event["related"]["name"], "web-0");
    /// # Ok(())
    /// # }
    /// ```
    pub fn related_event(
        &self,
        regarding: impl Into<ObjectReference>,
        related: impl Into<ObjectReference>,
        type_: EventType,
        reason: &str,
        action: &str,
        note: &str,
    ) {
        let related = Some(related.into());
        self.record(Occurrence::new(regarding.into(), related, type_, (reason, action), note));
    }

    /// Waits until every event recorded so far is written or has failed, including the counts of all series.
    ///
    /// If the server cannot be reached, that takes up to two minutes.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not cancel the writes.
    pub async fn flush(&self) {
        self.start();
        let runs = self.0.writer.lock().is_none();
        let (done, waited) = oneshot::channel();
        if runs && self.0.commands.send(Command::Flush(done)).await.is_ok() {
            // An error means that the task has ended.
            let _ = waited.await;
        }
    }

    /// Writes the remaining events for up to five seconds, and ends the task. Later events are dropped.
    pub async fn shutdown(&self) {
        self.0.closed.store(true, Ordering::Relaxed);
        // Without a runtime there are no timers. The remaining events then expire by their age.
        match Handle::try_current() {
            Ok(_) => drop(timeout(SHUTDOWN_WAIT_MAX, self.flush()).await),
            Err(_) => self.flush().await,
        }
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Returns the outcome of the events so far.
    pub fn counts(&self) -> EventCounts {
        let Counts { written, counted, limited, dropped, refused, failed } = &*self.0.counts;
        EventCounts {
            written: written.load(Ordering::Relaxed),
            counted: counted.load(Ordering::Relaxed),
            limited: limited.load(Ordering::Relaxed),
            dropped: dropped.load(Ordering::Relaxed),
            refused: refused.load(Ordering::Relaxed),
            failed: failed.load(Ordering::Relaxed),
        }
    }

    fn record(&self, new: Result<Occurrence>) {
        let shared = &self.0;
        match new {
            Err(error) => {
                add_one(&shared.counts.refused);
                self.warn(&error);
            }
            Ok(_) if shared.closed.load(Ordering::Relaxed) => add_one(&shared.counts.dropped),
            Ok(new) => {
                if shared.commands.try_send(Command::Event(Box::new(new))).is_err() {
                    add_one(&shared.counts.dropped);
                    self.warn(&"too many events are waiting to be written");
                }
                self.start();
            }
        }
    }

    /// Starts the task, unless it runs already or there is no runtime for it.
    fn start(&self) {
        let shared = &self.0;
        let mut writer = shared.writer.lock();
        let runtime = shared.runtime.clone().or_else(|| Handle::try_current().ok());
        let Some(runtime) = runtime.filter(|_| writer.is_some()) else { return };
        let Some(mut writer) = writer.take() else { return };
        let stop = shared.stop.clone();
        let task = async move {
            stop.run_until_cancelled(writer.run()).await;
            writer.abandon();
        };
        shared.tasks.spawn_on(task, &runtime);
    }

    fn warn(&self, why: &dyn fmt::Display) {
        if !self.0.warned.swap(true, Ordering::Relaxed) {
            let controller = &*self.0.source.controller;
            tracing::warn!(
                controller,
                "an event was not recorded: {why}; further ones are only counted"
            );
        }
    }
}

/// Prints the names of the controller and of this instance.
impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Source { controller, instance } = &self.0.source;
        write!(f, "Recorder({controller}, {instance})")
    }
}

/// Returns the name of this host; in a cluster, that of the pod.
fn host() -> Option<String> {
    let named = env::var("HOSTNAME").ok().or_else(|| fs::read_to_string("/etc/hostname").ok())?;
    Some(named.trim().to_owned()).filter(|host| !host.is_empty())
}
