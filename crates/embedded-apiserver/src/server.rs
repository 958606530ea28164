//! The server: its state, its options and its operations for tests.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::access::{ADMIN, Access};
use crate::apply::Author;
use crate::chores::{Chore, Chores};
use crate::clock::{Clock, seconds};
use crate::faults::FaultState;
use crate::kinds::{Registry, crd};
use crate::limits;
use crate::object::Birth;
use crate::pods::{self, PodDelays};
use crate::record::{Delivery, Record, RequestRecord};
use crate::status::Status;
use crate::store::{PageRequest, Snapshot, Store};

/// A Kubernetes API server in this process. Cheap to clone: all clones are the same server.
///
/// See the [crate's documentation](crate) for what is and is not supported.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) shared: Arc<Shared>,
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer")
            .field("revision", &self.store().revision())
            .finish_non_exhaustive()
    }
}

/// The options of a server. [`build`](Self::build) starts it.
#[derive(Clone)]
pub struct Builder {
    options: Options,
    started_at: Option<Timestamp>,
    first_version: u64,
    seed: Option<u64>,
    token: Option<String>,
    anonymous: bool,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token is a secret.
        f.debug_struct("Builder").field("options", &self.options).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches, not a state")]
pub(crate) struct Options {
    pub(crate) bookmark_interval: Duration,
    pub(crate) watch_lag_max: usize,
    pub(crate) watches_max: usize,
    pub(crate) control: bool,
    /// Whether managedFields are stored as clients send them.
    pub(crate) keep_managed_fields: bool,
    /// Whether all objects show their managedFields.
    pub(crate) show_managed_fields: bool,
    pub(crate) garbage_collection: bool,
    pub(crate) pods_run: bool,
    pub(crate) pod_delays: PodDelays,
    pub(crate) pod_events_max: usize,
    history_window: Duration,
    history_bytes_max: usize,
}

/// State that is shared by all parts of a server.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    pub(crate) registry: RwLock<Registry>,
    /// Held while a definition is written and the served resources are updated, so that the two
    /// agree.
    pub(crate) definitions: Mutex<()>,
    pub(crate) access: Access,
    pub(crate) record: Record,
    pub(crate) faults: FaultState,
    pub(crate) chores: Chores,
    /// Ended when connections are broken.
    pub(crate) connections: Switch,
    /// Ended when watches are.
    pub(crate) watches: Switch,
    /// Whether new connections are accepted. While they are not, listeners close their sockets.
    pub(crate) accepting: watch::Sender<bool>,
    pub(crate) creators: Creators,
    watch_count: AtomicUsize,
    rng: Mutex<fastrand::Rng>,
    admin_token: String,
}

/// The authors of recent creations, which all objects that they create share.
#[derive(Debug, Default)]
pub(crate) struct Creators(Mutex<Vec<Arc<Author>>>);

impl Creators {
    /// Returns the shared form of an author.
    pub(crate) fn author(&self, author: &Author) -> Arc<Author> {
        let mut recent = self.0.lock();
        if let Some(known) = recent.iter().find(|known| ***known == *author) {
            return Arc::clone(known);
        }
        if recent.len() >= limits::CREATORS_MAX {
            recent.remove(0);
        }
        let new = Arc::new(author.clone());
        recent.push(Arc::clone(&new));
        new
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

/// A cancellation token that is replaced when it is cancelled. Cancelling affects only its current
/// users, not later ones.
#[derive(Debug, Default)]
pub(crate) struct Switch(RwLock<CancellationToken>);

impl Switch {
    pub(crate) fn current(&self) -> CancellationToken {
        self.0.read().clone()
    }

    pub(crate) fn end(&self) {
        std::mem::take(&mut *self.0.write()).cancel();
    }
}

/// A slot in the limited number of open watches.
#[derive(Debug)]
pub(crate) struct WatchSlot(Arc<Shared>);

impl Drop for WatchSlot {
    fn drop(&mut self) {
        self.0.watch_count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            options: Options {
                bookmark_interval: limits::BOOKMARK_INTERVAL,
                watch_lag_max: limits::WATCH_LAG_MAX,
                watches_max: limits::WATCHES_MAX,
                control: false,
                keep_managed_fields: false,
                show_managed_fields: false,
                garbage_collection: true,
                pods_run: false,
                pod_delays: PodDelays::default(),
                pod_events_max: limits::POD_EVENTS_MAX,
                history_window: limits::HISTORY_WINDOW,
                history_bytes_max: limits::HISTORY_BYTES_MAX,
            },
            started_at: None,
            first_version: 1,
            seed: None,
            token: None,
            anonymous: false,
        }
    }
}

impl Builder {
    /// Sets the time between bookmarks of a quiet watch. The default is one minute.
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.options.bookmark_interval = interval;
        self
    }

    /// Sets how long superseded states can be read and watched from. The default is five minutes.
    pub fn history_window(mut self, window: Duration) -> Self {
        self.options.history_window = window;
        self
    }

    /// Limits the bytes of superseded states that are retained, whatever the window.
    pub fn history_bytes_max(mut self, bytes: usize) -> Self {
        self.options.history_bytes_max = bytes;
        self
    }

    /// Limits the events by which a slow watcher may lag before it is disconnected.
    pub fn watch_lag_max(mut self, events: usize) -> Self {
        self.options.watch_lag_max = events;
        self
    }

    /// Limits the number of open watches. Requests beyond it receive a 429.
    pub fn watches_max(mut self, watches: usize) -> Self {
        self.options.watches_max = watches;
        self
    }

    /// Simulates pods: they are scheduled, start, become ready and terminate gracefully, on the
    /// node `embedded-node` or on the one that they name. Building the server then requires a tokio
    /// runtime.
    ///
    /// Of a pod's scheduling constraints, only `nodeSelector` is considered. Probes never fail, and
    /// containers are never restarted. A pod whose `restartPolicy` is not `Always` completes after
    /// the time in its annotation `embedded-apiserver/complete-after-seconds`.
    pub fn pods_run(mut self, run: bool) -> Self {
        self.options.pods_run = run;
        self
    }

    /// Sets how long simulated pods take to start and to terminate. The default is about a second
    /// each.
    pub fn pod_delays(mut self, delays: PodDelays) -> Self {
        self.options.pod_delays = delays;
        self
    }

    /// Limits the events about simulated pods that are retained. The default is 1,000.
    pub fn pod_events_max(mut self, events: usize) -> Self {
        self.options.pod_events_max = events;
        self
    }

    /// Sets the wall-clock time at the start. From there it advances with tokio's time. Together
    /// with [`seed`](Self::seed), two runs of a test under paused time create identical objects.
    pub fn starting_at(mut self, at: Timestamp) -> Self {
        self.started_at = Some(at);
        self
    }

    /// Sets the initial resource version, instead of 1. A server that replaces another one should
    /// start above all versions of its predecessor. Clients that hold such a version then receive a
    /// 410, and relist.
    pub fn first_version(mut self, version: u64) -> Self {
        self.first_version = version.max(1);
        self
    }

    /// Seeds the random generator, which makes UIDs, generated names and random faults
    /// reproducible.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the administrator's bearer token. The default is random.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Accepts requests on sockets without a token, as `system:anonymous`.
    pub fn anonymous(mut self, allowed: bool) -> Self {
        self.anonymous = allowed;
        self
    }

    /// Lets the administrator inject faults over HTTP, under `/embedded`, with the token. See
    /// [`Faults::TEXT_FORMS`](crate::Faults::TEXT_FORMS) for the syntax.
    pub fn control_path(mut self, served: bool) -> Self {
        self.options.control = served;
        self
    }

    /// Stores `metadata.managedFields` as clients send them, instead of tracking the managers of
    /// those writes, so that test data can have any managers.
    pub fn keep_managed_fields(mut self, keep: bool) -> Self {
        self.options.keep_managed_fields = keep;
        self
    }

    /// Shows `metadata.managedFields` of every object, as a real server does.
    ///
    /// By default an object shows them once a client has applied a configuration to it. The managers
    /// of all other objects are tracked, too, but not shown: they would make objects about half as
    /// large again.
    pub fn show_managed_fields(mut self, show: bool) -> Self {
        self.options.show_managed_fields = show;
        self
    }

    /// Sets whether the server deletes the dependents of deleted objects, by their owner references, and
    /// the contents of deleted namespaces, as kube-controller-manager does in a cluster. The default
    /// is `true`. Turn it off to run that program beside this server, or to test a controller that
    /// does the same itself.
    ///
    /// Without it, an object that is deleted in the foreground keeps its finalizer, and a namespace
    /// stays until clients have deleted its contents.
    ///
    /// With it, up to 64 objects are gone when the delete returns, and the rest soon after. An object
    /// whose owner never existed is kept, in contrast to a cluster: test data often names owners that
    /// it does not include.
    pub fn garbage_collection(mut self, collect: bool) -> Self {
        self.options.garbage_collection = collect;
        self
    }

    /// Starts the server. It is ready immediately, but does not listen on a socket.
    pub fn build(self) -> ApiServer {
        let admin_token = self.token.unwrap_or_else(random_token);
        let access = Access::new(!self.anonymous);
        access.add_token(admin_token.clone(), ADMIN);
        let shared = Shared {
            clock: self.started_at.map_or_else(Clock::system, Clock::starting_at),
            store: Store::new(self.options.history_window, self.options.history_bytes_max)
                .counting_from(self.first_version),
            registry: RwLock::new(Registry::new()),
            definitions: Mutex::new(()),
            creators: Creators::default(),
            access,
            record: Record::default(),
            faults: FaultState::default(),
            chores: Chores::default(),
            connections: Switch::default(),
            watches: Switch::default(),
            accepting: watch::Sender::new(true),
            watch_count: AtomicUsize::new(0),
            rng: Mutex::new(self.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed)),
            admin_token,
            options: self.options,
        };
        for resource in shared.registry.read().iter() {
            shared.store.open_table(&resource.table);
        }
        let server = ApiServer { shared: Arc::new(shared) };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            server.create(namespace).expect("a new server has no such namespace");
        }
        if server.shared.options.pods_run {
            pods::start(&server);
        }
        server
    }
}

impl ApiServer {
    /// Starts a server with the default options.
    pub fn start() -> Self {
        Builder::default().build()
    }

    /// Returns the default options, to be changed before the server is started.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the store: the objects, their versions and their history.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Returns the access rules.
    pub fn access(&self) -> &Access {
        &self.shared.access
    }

    /// Returns the administrator's bearer token.
    pub fn token(&self) -> &str {
        &self.shared.admin_token
    }

    /// Returns the wall-clock time that the server writes into objects. It advances with tokio's
    /// time.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Returns the most recent requests, oldest first.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.shared.record.requests()
    }

    /// Returns the most recent deliveries to watches, oldest first.
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.shared.record.deliveries()
    }

    /// Clears the recorded requests and deliveries.
    pub fn clear_record(&self) {
        self.shared.record.clear();
    }

    /// Returns the number of open watches.
    pub fn watches(&self) -> usize {
        self.shared.watch_count.load(Ordering::Relaxed)
    }

    /// Ends all watches gracefully, as a server does before it shuts down.
    pub fn drop_watches(&self) {
        self.shared.watches.end();
    }

    /// Breaks all connections, as if the server had crashed and restarted. The objects are
    /// retained.
    pub fn restart(&self) {
        self.shared.connections.end();
    }

    /// Simulates a server that is down: breaks all connections and refuses new ones, until
    /// [`accept_connections`](Self::accept_connections) is called.
    pub fn refuse_connections(&self) {
        self.shared.accepting.send_replace(false);
        self.restart();
    }

    /// Accepts connections again after [`refuse_connections`](Self::refuse_connections).
    pub fn accept_connections(&self) {
        self.shared.accepting.send_replace(true);
    }

    /// Restores a snapshot and its version, as restoring a backup of etcd does. All connections
    /// break, and versions since the snapshot are assigned again.
    pub fn restore(&self, snapshot: &Snapshot) {
        self.restore_silently(snapshot);
        self.restart();
    }

    /// Restores a snapshot without breaking connections. Open watches are not told, and receive
    /// nothing until the version passes the one that they had reached, as can happen behind a
    /// proxy.
    pub fn restore_silently(&self, snapshot: &Snapshot) {
        let _definitions = self.shared.definitions.lock();
        self.shared.store.restore(snapshot);
        self.shared.reload_custom();
        // The next request continues the deletions that the snapshot has not finished.
        self.shared.chores.restart(Chore::Scan { table: "".into(), after: None });
    }
}

impl Shared {
    /// Returns a random number in 0..1.
    pub(crate) fn random(&self) -> f64 {
        self.rng.lock().f64()
    }

    /// Returns the metadata of a new object, or of one that was created `age` ago.
    pub(crate) fn birth(&self, age: Duration) -> Birth {
        // No object is older than the epoch.
        let epoch = Timestamp::UNIX_EPOCH;
        let born = self.clock.now().saturating_sub(age).map_or(epoch, |born| born.max(epoch));
        let mut rng = self.rng.lock();
        Birth { uid: uid(&mut rng), now: seconds(born), suffix: name_suffix(&mut rng) }
    }

    pub(crate) fn watch_slot(self: &Arc<Self>) -> Result<WatchSlot, Status> {
        let slot = WatchSlot(Arc::clone(self));
        let open = self.watch_count.fetch_add(1, Ordering::Relaxed);
        if open >= self.options.watches_max {
            let max = self.options.watches_max;
            return Err(Status::too_many_requests(format!("{max} watches are open already"), 1));
        }
        Ok(slot)
    }

    /// Serves the versions that a `CustomResourceDefinition` marks as served, and no others. If
    /// there are none, its objects are kept and its watches end.
    pub(crate) fn serve_custom(&self, definition: &Value) {
        let Some((group, plural)) = crd::names(definition) else { return };
        let resources = crd::resources(definition);
        let is_served = !resources.is_empty();
        if is_served {
            self.store.open_table(&crd::table(group, plural));
        }
        {
            let mut registry = self.registry.write();
            registry.remove_custom(group, plural);
            registry.insert_custom(resources);
        }
        if !is_served && !self.registry.read().has_built_in(group, plural) {
            self.store.end_watches(&crd::table(group, plural));
        }
    }

    /// Stops serving a custom resource. Returns the table of its objects, or `None` if the resource
    /// is built in.
    pub(crate) fn unserve_custom(&self, group: &str, plural: &str) -> Option<Arc<str>> {
        let mut registry = self.registry.write();
        if registry.has_built_in(group, plural) {
            return None;
        }
        registry.remove_custom(group, plural);
        Some(crd::table(group, plural))
    }

    /// Serves exactly the custom resources whose definitions are stored.
    fn reload_custom(&self) {
        let mut registry = Registry::new();
        let mut defined = HashSet::new();
        let table = crd::table(crd::GROUP, crd::PLURAL);
        for definition in
            self.store.list(&table, None, &PageRequest::default()).into_iter().flat_map(|p| p.items)
        {
            let definition = Value::Object(definition.to_map());
            let Some((group, plural)) = crd::names(&definition) else { continue };
            let table = crd::table(group, plural);
            self.store.open_table(&table);
            defined.insert(table);
            registry.insert_custom(crd::resources(&definition));
        }
        let old = std::mem::replace(&mut *self.registry.write(), registry);
        // All versions of a resource share a table, which is closed when the definition is gone.
        for gone in old.iter().filter(|r| r.custom && !defined.contains(&r.table)) {
            self.store.close_table(&gone.table);
        }
    }
}

fn uid(rng: &mut fastrand::Rng) -> String {
    // UUID version 4, variant 1. The other bits are random.
    let bits = (rng.u128(..) & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    parts.join("-")
}

/// Generates five characters, without vowels and the digits that resemble them, as Kubernetes does,
/// so that a generated name never contains a word.
fn name_suffix(rng: &mut fastrand::Rng) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    (0..5).map(|_| char::from(ALPHABET[rng.usize(..ALPHABET.len())])).collect()
}

fn random_token() -> String {
    let mut bytes = [0_u8; 24];
    getrandom::fill(&mut bytes).expect("the operating system gives random numbers");
    base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, bytes)
}
