//! The informers of a run, for every way to list and watch, and checks of their caches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use kube_informer::list_watch::{
    KubeListWatch, ListOptions, ListStream, WatchOptions, WatchStream,
};
use kube_informer::{
    ErrorReport, InformerBuilder, ListWatch, Lister, Next, Result, SharedInformer,
    SharedInformerFactory, Transform,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::combination::Combination;
use super::history::{History, Place, Scope, State, Told};
use super::relabel::relabel;

/// A source that does not stream lists.
pub(crate) struct ListsOnly(pub(crate) KubeListWatch);

impl ListWatch for ListsOnly {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream>> {
        self.0.list(options)
    }
    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream>> {
        self.0.watch(options)
    }
    fn streams_lists(&self) -> bool {
        false
    }
}

/// Errors, in the order in which they were reported.
pub(crate) type Errors = Arc<Mutex<Vec<String>>>;

/// Emptied at the end of a run: a lister in a handler would keep the informer running forever.
pub(crate) type Probe = Arc<Mutex<Option<Lister>>>;

pub(crate) struct Informer {
    pub(crate) handle: SharedInformer,
    pub(crate) scope: Scope,
    pub(crate) probe: Probe,
    /// Whether it had to relist since the last quiet point.
    pub(crate) relisted: Arc<AtomicBool>,
    /// The place of its cache in the history.
    place: Place,
    state: String,
}

pub(crate) struct Setup<'a> {
    pub(crate) rng: &'a mut fastrand::Rng,
    pub(crate) combination: Combination,
    pub(crate) client: kube::Client,
    pub(crate) factory: &'a SharedInformerFactory,
    pub(crate) errors: Errors,
}

/// The namespaces that are requested for the informer of several namespaces, and those that it then has: duplicates
/// count once, and an empty name stands for all namespaces.
const NAMESPACES: [(&[&str], &[&str]); 6] = [
    (TWO_NAMESPACES, TWO_NAMESPACES),
    (&["default", "kube-public", "default"], TWO_NAMESPACES),
    (&["kube-public", "kube-public", "default", "default"], TWO_NAMESPACES),
    (&["kube-public", "kube-public"], &["kube-public"]),
    (&["default", ""], &[]),
    (&["", "kube-public", "", "default", "default"], &[]),
];
const TWO_NAMESPACES: &[&str] = &["default", "kube-public"];

type Built = (SharedInformer, Arc<AtomicBool>);

pub(crate) const PODS: Scope = Scope {
    resource: "pods",
    namespaces: &[],
    apps: None,
    node: None,
    metadata_only: false,
    relabelled: false,
};

impl Setup<'_> {
    /// Builds one informer of each kind; that of several namespaces only if `several` is true.
    pub(crate) fn informers(&mut self, several: bool) -> Vec<Informer> {
        let mut informers = vec![self.pods(), self.web_pods(), self.metadata(), self.maps()];
        if several {
            informers.push(self.several_namespaces());
        }
        informers
    }

    /// Watches all pods, with a streaming list.
    fn pods(&mut self) -> Informer {
        let builder = self.factory.builder_for::<Pod>().protobuf(self.asks_for_protobuf());
        let (builder, scope) = self.may_relabel(builder, PODS);
        Informer::new(self.build(builder), scope)
    }

    /// Watches some pods of a namespace, with a paged list.
    fn web_pods(&mut self) -> Informer {
        let source = KubeListWatch::of::<Pod>(self.client.clone())
            .namespace("default")
            .labels("app in (web,db)")
            .protobuf(self.asks_for_protobuf());
        let builder = SharedInformer::<Pod>::from_source(ListsOnly(source)).seed(self.rng.u64(..));
        let scope = Scope { namespaces: &["default"], apps: Some(&["web", "db"]), ..PODS };
        let (builder, scope) = self.may_relabel(builder, scope);
        Informer::new(self.build(builder), scope)
    }

    /// Watches the metadata of pods, sometimes only of one node.
    fn metadata(&mut self) -> Informer {
        let builder = self.factory.builder_for::<PartialObjectMeta<Pod>>();
        let mut builder = builder.protobuf(self.asks_for_protobuf());
        let mut scope = Scope { metadata_only: true, ..PODS };
        if self.rng.bool() {
            builder = builder.fields("spec.nodeName=n1");
            scope.node = Some("n1");
        }
        Informer::new(self.build(builder), scope)
    }

    /// Watches a kind that is known only at run time, with either kind of list.
    fn maps(&mut self) -> Informer {
        let resource = ApiResource::erase::<ConfigMap>(&());
        let built = if self.rng.bool() {
            let builder = self.factory.builder_with::<DynamicObject>(&resource);
            self.build(builder.protobuf(self.asks_for_protobuf()))
        } else {
            let source = ListsOnly(
                KubeListWatch::new(self.client.clone(), &resource)
                    .protobuf(self.asks_for_protobuf()),
            );
            let seed = self.rng.u64(..);
            self.build(SharedInformer::<DynamicObject>::from_source(source).seed(seed))
        };
        Informer::new(built, Scope { resource: "configmaps", ..PODS })
    }

    /// Watches the pods of several namespaces, with a list and a watch for each.
    fn several_namespaces(&mut self) -> Informer {
        let (asked, namespaces) = NAMESPACES[self.rng.usize(..NAMESPACES.len())];
        // Makes it a different informer from that of all pods.
        let builder = self.factory.builder_for::<Pod>().drop_fields(["spec.none"]);
        let builder = builder.namespaces(asked.iter().copied()).protobuf(self.asks_for_protobuf());
        Informer::new(self.build(builder), Scope { namespaces, ..PODS })
    }

    fn asks_for_protobuf(&self) -> bool {
        self.combination.protobuf(self.rng)
    }

    /// Sometimes adds a transform that changes labels.
    fn may_relabel<O>(
        &mut self,
        builder: InformerBuilder<Pod, O>,
        scope: Scope,
    ) -> (InformerBuilder<Pod, O>, Scope) {
        match self.rng.u8(..3) {
            0 => (builder.transform(Transform::json(relabel)), Scope { relabelled: true, ..scope }),
            _ => (builder, scope),
        }
    }

    /// Builds an informer with the common settings, and records whether it had to relist.
    fn build<K, O>(&mut self, builder: InformerBuilder<K, O>) -> Built
    where
        K: DeserializeOwned + Send + Sync + 'static,
    {
        let storage = self.combination.storage(self.rng);
        // There are about a dozen objects.
        let mut builder = builder.storage(storage).train_on(self.rng.usize(7..10));
        if self.rng.u8(..4) > 0 {
            builder = builder.page_size(self.rng.u32(1..5));
        }
        let (errors, relists) = (self.errors.clone(), Arc::new(AtomicBool::new(false)));
        let relisted = relists.clone();
        let note = move |report: &ErrorReport| {
            if matches!(report.next, Next::Relist { .. } | Next::Poll { .. } | Next::FallBackToList)
            {
                relists.store(true, SeqCst);
            }
            errors.lock().expect("nobody panics with it").push(report.to_string());
        };
        (builder.on_error(note).build().cast(), relisted)
    }
}

impl Informer {
    fn new((handle, relisted): Built, scope: Scope) -> Self {
        let probe = Arc::new(Mutex::new(Some(handle.lister())));
        Self { handle, scope, probe, relisted, place: (0, 0), state: String::new() }
    }

    pub(crate) fn version(&self) -> Option<u64> {
        self.handle.resource_version().as_str().parse().ok()
    }

    /// Returns whether each namespace has its own version, of which the lowest is reported.
    pub(crate) fn is_in_parts(&self) -> bool {
        self.scope.namespaces.len() > 1
    }

    pub(crate) fn is_watching(&self) -> bool {
        self.handle.state().as_str() == "watching"
    }

    /// Returns its state if that has changed since the last call.
    pub(crate) fn new_state(&mut self) -> Option<&str> {
        let state = self.handle.state().as_str();
        if self.state == state {
            return None;
        }
        state.clone_into(&mut self.state);
        Some(&self.state)
    }

    /// Returns the content of the cache by key, and its version.
    pub(crate) fn content(&self) -> (BTreeMap<String, Told>, Option<u64>) {
        let list = self.handle.lister().list();
        let content = list.iter().map(Told::of).map(|told| (told.key.clone(), told)).collect();
        (content, list.resource_version().as_str().parse().ok())
    }

    /// Returns the keys that could not be stored, or `None` if one of the objects has no key.
    fn failed(&self) -> Option<BTreeSet<String>> {
        let key = |error: &kube_informer::Error| Some(error.key()?.as_str().to_owned());
        self.handle.failed().iter().map(key).collect()
    }

    pub(crate) fn has_nameless_failures(&self) -> bool {
        self.failed().is_none()
    }

    /// I1, I4 to I7: checks that the cache is the server's state at the version that it reports, in one history, and
    /// that this version has not gone back.
    pub(crate) fn check_honesty(&mut self, history: &History) -> std::result::Result<(), String> {
        let (content, version) = self.content();
        let Some(failed) = self.failed() else { return Ok(()) };
        let Some(version) = version else {
            // With several namespaces, some are listed before others.
            let empty = content.is_empty() || self.is_in_parts();
            return if empty && !self.handle.has_synced() {
                Ok(())
            } else {
                Err("I7: content without a version".into())
            };
        };
        let mut why = format!("I7: {version} is before {:?}", self.place);
        let place = history.place(self.place, version, |epoch| {
            let Some(state) = history.at((epoch, version), &self.scope) else { return false };
            if self.is_in_parts() {
                return true;
            }
            match differ(&content, &state, &failed) {
                Some(difference) => {
                    why = format!("I7: at {version} of history {epoch}: {difference}");
                    false
                }
                None => true,
            }
        });
        self.place = place.ok_or(why)?;
        Ok(())
    }

    /// Drops all histories before this one.
    pub(crate) fn forget_before(&mut self, epoch: usize) {
        if self.place.0 < epoch {
            self.place = (epoch, 0);
        }
    }

    /// L1: checks that the cache equals the server's content, and that a watch keeps it so.
    pub(crate) fn check_convergence(&self, history: &History) -> std::result::Result<(), String> {
        let name = self.handle.name();
        if !self.handle.is_live() || !self.is_watching() {
            return Err(format!("{name} is {} and not live", self.handle.state()));
        }
        self.check_content(history)
    }

    /// Checks that the cache has the server's current content.
    pub(crate) fn check_content(&self, history: &History) -> std::result::Result<(), String> {
        let name = self.handle.name();
        if !self.handle.has_synced() {
            return Err(format!("{name} is not synced"));
        }
        let failed = self.failed().ok_or("an object without a name failed")?;
        let state = history.at((history.current(), history.top()), &self.scope);
        let state = state.expect("there is a current state");
        let difference = differ(&self.content().0, &state, &failed);
        difference.map_or(Ok(()), |difference| Err(format!("{name}: {difference}")))
    }

    /// I1: checks that bodies, too, equal the server's. If objects were corrupted in transit, only their identity is
    /// checked.
    pub(crate) fn check_bodies(&self, history: &History, damaged: bool) {
        let state = history.at((history.current(), history.top()), &self.scope);
        let state = state.expect("there is a current state");
        let failed = self.failed().unwrap_or_default();
        for object in self.handle.lister().list() {
            let key = object.key().as_str();
            if damaged || failed.contains(key) {
                continue;
            }
            let ours = object.to_json().expect("it is there");
            let mut ours: Value = serde_json::from_slice(&ours).expect("it is JSON");
            let mut theirs = state[key].body.clone();
            if self.scope.metadata_only {
                theirs = serde_json::json!({"metadata": theirs["metadata"]});
            }
            if self.scope.relabelled {
                relabel(&mut theirs);
            }
            for side in [&mut ours, &mut theirs] {
                let side = side.as_object_mut().expect("an object");
                // A list of the server names the kind only once, not in each item.
                side.retain(|name, _| name != "apiVersion" && name != "kind");
            }
            assert_eq!(ours, theirs, "I1: the body of {key} in {}", self.handle.name());
            if !self.scope.metadata_only && self.scope.resource == "pods" {
                let pod = object.clone().cast::<Pod>().decode().expect("a pod");
                assert_eq!(pod.metadata.name.as_deref(), Some(object.name()));
            }
        }
    }
}

pub(crate) fn differ(
    content: &BTreeMap<String, Told>,
    state: &BTreeMap<&str, &Arc<State>>,
    failed: &BTreeSet<String>,
) -> Option<String> {
    let keys: BTreeSet<&str> =
        content.keys().map(|key| &**key).chain(state.keys().copied()).collect();
    keys.into_iter().filter(|key| !failed.contains(*key)).find_map(|key| {
        let same = match (content.get(key), state.get(key)) {
            (Some(ours), Some(theirs)) => {
                (&ours.uid, ours.version, &ours.stamp)
                    == (&theirs.uid, theirs.version, &theirs.stamp)
            }
            _ => false,
        };
        let theirs = state.get(key).map(|state| (state.version, &state.stamp));
        (!same)
            .then(|| format!("{key}: the cache has {:?}, the server {theirs:?}", content.get(key)))
    })
}
