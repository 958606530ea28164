//! Indexes, and checks of their content.

use std::collections::{BTreeMap, BTreeSet};

use kube_informer::{Index, Object};
use serde_json::Value;

use super::history::State;
use super::informers::Informer;
use super::run::Run;

const INDEXES_MAX: usize = 8;
/// All functions share this name, so that it is often taken, and free again later.
const LETTERS: &str = "letters";
/// The names of all possible indexes.
const NAMES: [&str; 4] = ["label:app", "field:spec.nodeName", "controller", LETTERS];

#[derive(Debug, Clone, Copy)]
enum By {
    Label,
    Field,
    Controller,
    /// By a function that returns any number of values.
    Function,
}

/// An index, and the source of its values.
pub(crate) struct Checked {
    informer: usize,
    by: By,
    index: Index,
}

fn letters(name: &str, app: Option<&str>) -> Vec<String> {
    let letters: Vec<String> = name.chars().map(String::from).collect();
    if app == Some("db") {
        Vec::new()
    } else {
        letters.into_iter().chain(app.map(Into::into)).collect()
    }
}

impl Checked {
    /// Adds an index. Returns `None` if it is by a function and the name is taken.
    fn add(rng: &mut fastrand::Rng, informer: usize, of: &Informer) -> Option<Self> {
        let (by, index) = match rng.u8(..5) {
            0 => (By::Label, of.handle.index_by_label("app")),
            1 => (By::Field, of.handle.index_by_field("spec.nodeName").unwrap()),
            2 => (By::Controller, of.handle.index_by_controller()),
            _ => {
                let values = |object: &Object| letters(object.name(), object.labels().get("app"));
                (By::Function, of.handle.index_by(LETTERS, values).ok()?)
            }
        };
        Some(Self { informer, by, index })
    }

    pub(crate) fn describe(&self) -> String {
        format!("index of informer {} by {:?}, {}", self.informer, self.by, self.index.name())
    }

    fn values(&self, key: &str, state: &State) -> BTreeSet<String> {
        let name = key.split_once('/').map_or(key, |(_, name)| name);
        let body = &state.body;
        let one = |value: &Value| value.as_str().map(str::to_owned).into_iter().collect();
        match self.by {
            By::Label => one(&body["metadata"]["labels"]["app"]),
            By::Field => one(&body["spec"]["nodeName"]),
            By::Controller => one(&body["metadata"]["ownerReferences"][0]["uid"]),
            By::Function => letters(name, state.label("app")).into_iter().collect(),
        }
    }

    /// I15: checks that every key is under each of its values, and nothing else is.
    pub(crate) fn check(&self, informers: &[Informer]) {
        let informer = &informers[self.informer];
        let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for object in informer.handle.lister().list() {
            let body = object.to_json().expect("it is there");
            let state = State::new(serde_json::from_slice(&body).expect("it is JSON"));
            let key = object.key().as_str();
            for value in self.values(key, &state) {
                expected.entry(value).or_default().push(key.to_owned());
            }
        }
        for keys in expected.values_mut() {
            keys.sort_unstable();
        }
        let found = self.index.values().into_iter().map(|value| {
            let keys = self.index.keys(&value).iter().map(|key| key.as_str().to_owned()).collect();
            (value.to_string(), keys)
        });
        let found: BTreeMap<String, Vec<String>> = found.collect();
        assert_eq!(found, expected, "I15: {}", self.describe());
        for (value, keys) in &expected {
            let by_name = informer.handle.lister().by_index(self.index.name(), value);
            let by_name = by_name.expect("it has a handle");
            assert_eq!(by_name.len(), keys.len(), "I15: {} by name", self.describe());
            for object in &self.index.get(value) {
                let cached =
                    informer.handle.lister().get(object.key()).expect("indexed, so cached");
                assert!(object.is_same_instance(&cached), "I15: {} has another", self.describe());
            }
        }
    }
}

impl Run {
    pub(crate) fn add_index(&mut self) {
        if self.indexes.len() >= INDEXES_MAX {
            return;
        }
        let clones = !self.indexes.is_empty() && self.rng.u8(..5) == 0;
        let index = if clones {
            let Checked { informer, by, index } =
                &self.indexes[self.rng.usize(..self.indexes.len())];
            Some(Checked { informer: *informer, by: *by, index: index.clone() })
        } else {
            let at = self.rng.usize(..self.informers.len());
            Checked::add(&mut self.rng, at, &self.informers[at])
        };
        let Some(index) = index else { return self.note("the name of an index is taken") };
        self.note(index.describe());
        self.indexes.push(index);
        self.check_names();
    }

    pub(crate) fn drop_index(&mut self) {
        if self.indexes.is_empty() {
            return;
        }
        let dropped = self.indexes.swap_remove(self.rng.usize(..self.indexes.len()));
        let is_last = !self.has_index(dropped.informer, dropped.index.name());
        self.note(format!("drop {}, the last={is_last}", dropped.describe()));
        drop(dropped);
        self.check_names();
    }

    fn has_index(&self, informer: usize, name: &str) -> bool {
        self.indexes.iter().any(|index| index.informer == informer && index.index.name() == name)
    }

    /// Checks that an index exists exactly as long as a handle to it.
    pub(crate) fn check_names(&self) {
        for (at, informer) in self.informers.iter().enumerate() {
            let lister = informer.handle.lister();
            for name in NAMES {
                let found = lister.by_index(name, "web").is_ok();
                assert_eq!(found, self.has_index(at, name), "I15: index {name} of informer {at}");
            }
        }
    }
}

/// Checks the index by namespace, which every cache has.
pub(crate) fn check_namespaces(informer: &Informer) {
    let lister = informer.handle.lister();
    let mut namespaces: BTreeMap<String, usize> = BTreeMap::new();
    for key in lister.keys() {
        *namespaces.entry(key.namespace().unwrap_or_default().to_owned()).or_default() += 1;
    }
    for namespace in super::writes::NAMESPACES {
        let expected = namespaces.remove(namespace).unwrap_or_default();
        let found = lister.by_index("namespace", namespace).expect("every cache has it");
        assert_eq!(found.len(), expected, "I15: {namespace}");
        assert_eq!(lister.namespace(namespace).len(), expected, "I15: {namespace}");
    }
    assert!(namespaces.is_empty(), "I15: {namespaces:?} have no index");
}
