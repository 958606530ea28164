//! The model: a list of all changes on the server, simple enough to be obviously correct.
//!
//! Restoring a snapshot begins a new history, which shares its beginning with the previous one. Histories are
//! numbered in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_informer::Object;
use serde_json::Value;

/// One state of an object.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) uid: String,
    pub(crate) version: u64,
    /// Changes with every write, except writes of the status.
    pub(crate) stamp: String,
    pub(crate) body: Value,
}

impl State {
    pub(crate) fn new(body: Value) -> Arc<Self> {
        let text = |path: &str| body.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let version = text("/metadata/resourceVersion").parse().expect("versions are numbers");
        let uid = text("/metadata/uid").to_owned();
        let stamp = text("/metadata/annotations/stamp").to_owned();
        Arc::new(Self { uid, version, stamp, body })
    }

    pub(crate) fn label(&self, label: &str) -> Option<&str> {
        self.body["metadata"]["labels"][label].as_str()
    }
}

#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) resource: &'static str,
    pub(crate) key: String,
    pub(crate) before: Option<Arc<State>>,
    /// `None` if the object was deleted.
    pub(crate) after: Option<Arc<State>>,
}

/// The scope of an informer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope {
    pub(crate) resource: &'static str,
    /// Empty for all namespaces.
    pub(crate) namespaces: &'static [&'static str],
    /// The allowed values of the label `app`.
    pub(crate) apps: Option<&'static [&'static str]>,
    pub(crate) node: Option<&'static str>,
    pub(crate) metadata_only: bool,
    /// Whether its informer changes the labels of its objects.
    pub(crate) relabelled: bool,
}

impl Scope {
    pub(crate) fn has(&self, key: &str, state: &State) -> bool {
        let namespace = key.split_once('/').map_or("", |(namespace, _)| namespace);
        let app = state.label("app").unwrap_or_default();
        (self.namespaces.is_empty() || self.namespaces.contains(&namespace))
            && self.apps.is_none_or(|apps| apps.contains(&app))
            && self.node.is_none_or(|node| state.body["spec"]["nodeName"] == node)
    }
}

/// A state of an object, as it was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) key: String,
    pub(crate) uid: String,
    pub(crate) version: u64,
    pub(crate) stamp: String,
}

impl Told {
    pub(crate) fn of(object: &Object) -> Self {
        let stamp = object.field::<String>("metadata.annotations.stamp");
        Self {
            key: object.key().as_str().to_owned(),
            uid: object.uid().to_owned(),
            version: object.resource_version().as_str().parse().unwrap_or_default(),
            stamp: stamp.ok().flatten().unwrap_or_default(),
        }
    }

    fn is(&self, state: &State) -> bool {
        self.uid == state.uid && self.stamp == state.stamp
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{} #{} {:.4}", self.key, self.version, self.stamp, self.uid)
    }
}

struct Epoch {
    /// The history from which this one branched, and at which version.
    parent: Option<(usize, u64)>,
    changes: Vec<Change>,
    top: u64,
}

/// A history and a version in it. Places never go back.
pub(crate) type Place = (usize, u64);

/// All histories.
pub(crate) struct History {
    epochs: Vec<Epoch>,
}

impl History {
    pub(crate) fn new(revision: u64) -> Self {
        Self { epochs: vec![Epoch { parent: None, changes: Vec::new(), top: revision }] }
    }

    /// Returns the current history.
    pub(crate) fn current(&self) -> usize {
        self.epochs.len() - 1
    }

    pub(crate) fn top(&self) -> u64 {
        self.epochs[self.current()].top
    }

    pub(crate) fn push(
        &mut self,
        version: u64,
        resource: &'static str,
        key: &str,
        after: Option<Arc<State>>,
    ) {
        let top = self.top();
        assert_eq!(version, top + 1, "every write takes one version");
        let before = self.path(self.current()).into_iter().find_map(|(epoch, up_to)| {
            let mut changes = epoch.changes.iter().rev().filter(|c| c.version <= up_to);
            changes.find(|change| change.resource == resource && change.key == key)
        });
        let before = before.and_then(|change| change.after.clone());
        let current = self.epochs.last_mut().expect("there is always one");
        current.top = version;
        current.changes.push(Change { version, resource, key: key.to_owned(), before, after });
    }

    /// Starts a new history from a version of this one.
    pub(crate) fn branch(&mut self, version: u64) {
        let parent = Some((self.current(), version));
        self.epochs.push(Epoch { parent, changes: Vec::new(), top: version });
    }

    /// Returns the change that has the next version, but in the previous history.
    pub(crate) fn twin(&self) -> Option<&Change> {
        let (parent, _) = self.epochs[self.current()].parent?;
        let next = self.top() + 1;
        self.epochs[parent].changes.iter().find(|change| change.version == next)
    }

    /// Returns the parts of a history, newest first, each with its last version.
    fn path(&self, epoch: usize) -> Vec<(&Epoch, u64)> {
        let (mut at, mut up_to) = (epoch, u64::MAX);
        let mut path = Vec::new();
        loop {
            let part = &self.epochs[at];
            path.push((part, up_to));
            let Some((parent, branch)) = part.parent else { return path };
            (at, up_to) = (parent, up_to.min(branch));
        }
    }

    fn find(&self, epoch: usize, version: u64) -> Option<&Change> {
        self.path(epoch).into_iter().find_map(|(part, up_to)| {
            let at = part.changes.binary_search_by_key(&version, |change| change.version).ok()?;
            part.changes.get(at).filter(|change| change.version <= up_to)
        })
    }

    /// Returns everything in scope at a version of a history, or `None` if the history did not reach that version.
    pub(crate) fn at(
        &self,
        (epoch, version): Place,
        scope: &Scope,
    ) -> Option<BTreeMap<&str, &Arc<State>>> {
        let path = self.path(epoch);
        if path.first().is_some_and(|(part, _)| part.top < version) {
            return None;
        }
        let mut state = BTreeMap::new();
        for (part, up_to) in path.into_iter().rev() {
            let changes = part.changes.iter().take_while(|c| c.version <= up_to.min(version));
            for change in changes.filter(|change| change.resource == scope.resource) {
                match change.after.as_ref().filter(|after| scope.has(&change.key, after)) {
                    Some(after) => drop(state.insert(&*change.key, after)),
                    None => drop(state.remove(&*change.key)),
                }
            }
        }
        Some(state)
    }

    /// Returns whether an object in the scope had this state.
    fn is_state(&self, epoch: usize, scope: &Scope, told: &Told) -> bool {
        self.find(epoch, told.version).is_some_and(|change| {
            let after = change.after.as_ref();
            change.resource == scope.resource
                && change.key == told.key
                && after.is_some_and(|after| told.is(after) && scope.has(&told.key, after))
        })
    }

    /// Returns whether an object left the scope at this version, from this state.
    fn is_end(&self, epoch: usize, scope: &Scope, told: &Told) -> bool {
        self.find(epoch, told.version).is_some_and(|change| {
            let (before, after) = (change.before.as_ref(), change.after.as_ref());
            change.resource == scope.resource
                && change.key == told.key
                && before.is_some_and(|before| before.uid == told.uid)
                && after.is_none_or(|after| !scope.has(&told.key, after))
        })
    }

    /// Returns the place of a state, at or after the place `from`.
    pub(crate) fn place_state(&self, from: Place, scope: &Scope, told: &Told) -> Option<Place> {
        self.place(from, told.version, |epoch| self.is_state(epoch, scope, told))
    }

    /// Returns the place of an object's end, in the same way.
    pub(crate) fn place_end(&self, from: Place, scope: &Scope, told: &Told) -> Option<Place> {
        self.place(from, told.version, |epoch| self.is_end(epoch, scope, told))
    }

    pub(crate) fn place(
        &self,
        (from, least): Place,
        version: u64,
        mut is: impl FnMut(usize) -> bool,
    ) -> Option<Place> {
        let ahead = |epoch: &usize| *epoch > from || version >= least;
        let mut epochs = (from..self.epochs.len()).filter(ahead);
        epochs.find(|epoch| is(*epoch)).map(|epoch| (epoch, version))
    }
}
