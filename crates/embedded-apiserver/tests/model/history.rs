//! The model: a list of all changes. It is slow, but simple enough to be obviously correct.

use std::collections::BTreeMap;

use serde_json::Value;

/// The namespace and name, in list order.
pub(crate) type Key = (String, String);

/// A resource in the model.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts, not a state")]
pub(crate) struct Kind {
    pub(crate) api: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) api_version: &'static str,
    pub(crate) name: &'static str,
    pub(crate) namespaced: bool,
    pub(crate) status: bool,
    /// Whether a new object has an empty status.
    pub(crate) first_status: bool,
    /// Whether labels can be written together with the status.
    pub(crate) labels_with_status: bool,
    pub(crate) generation: bool,
    pub(crate) needs_version: bool,
    /// The section with the number that clients increment.
    pub(crate) section: &'static str,
}

pub(crate) static KINDS: [Kind; 4] = [
    Kind {
        api: "/api/v1",
        plural: "configmaps",
        api_version: "v1",
        name: "ConfigMap",
        namespaced: true,
        status: false,
        first_status: false,
        labels_with_status: false,
        generation: false,
        needs_version: false,
        section: "data",
    },
    Kind {
        api: "/apis/apps/v1",
        plural: "deployments",
        api_version: "apps/v1",
        name: "Deployment",
        namespaced: true,
        status: true,
        first_status: true,
        labels_with_status: false,
        generation: true,
        needs_version: false,
        section: "spec",
    },
    Kind {
        api: "/api/v1",
        plural: "nodes",
        api_version: "v1",
        name: "Node",
        namespaced: false,
        status: true,
        first_status: false,
        labels_with_status: true,
        generation: false,
        needs_version: false,
        section: "spec",
    },
    Kind {
        api: "/apis/coordination.k8s.io/v1",
        plural: "leases",
        api_version: "coordination.k8s.io/v1",
        name: "Lease",
        namespaced: true,
        status: false,
        first_status: false,
        labels_with_status: false,
        generation: false,
        needs_version: true,
        section: "spec",
    },
];

/// Returns the counter. It is a string in config maps, whose data are strings.
pub(crate) fn count_of(kind: &Kind, object: &Value) -> i64 {
    let count = &object[kind.section]["count"];
    count.as_i64().or_else(|| count.as_str()?.parse().ok()).expect("every object has a counter")
}

pub(crate) fn set_count(kind: &Kind, object: &mut Value, count: i64) {
    let text = kind.section == "data";
    object[kind.section]["count"] = if text { count.to_string().into() } else { count.into() };
}

/// The selection of a list or a watch.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) kind: usize,
    pub(crate) namespace: Option<&'static str>,
    /// An index into [`SELECTORS`].
    pub(crate) selector: usize,
}

/// Query options, with an independent implementation of their meaning.
pub(crate) struct Selector {
    pub(crate) query: &'static str,
    matches: fn(&Value) -> bool,
}

fn color(object: &Value) -> Option<&str> {
    object["metadata"]["labels"]["color"].as_str()
}

pub(crate) static SELECTORS: [Selector; 9] = [
    Selector { query: "", matches: |_| true },
    Selector { query: "&labelSelector=color%3Dred", matches: |o| color(o) == Some("red") },
    Selector { query: "&labelSelector=color%21%3Dred", matches: |o| color(o) != Some("red") },
    Selector {
        query: "&labelSelector=color+in+(red,blue)",
        matches: |o| matches!(color(o), Some("red" | "blue")),
    },
    Selector { query: "&labelSelector=%21color", matches: |o| color(o).is_none() },
    Selector {
        query: "&labelSelector=color,color+notin+(blue)",
        matches: |o| color(o).is_some_and(|color| color != "blue"),
    },
    Selector {
        query: "&fieldSelector=metadata.name%3Da",
        matches: |o| o["metadata"]["name"] == "a",
    },
    Selector {
        query: "&fieldSelector=metadata.name!%3Da&labelSelector=color",
        matches: |o| o["metadata"]["name"] != "a" && color(o).is_some(),
    },
    Selector {
        query: "&fieldSelector=metadata.namespace%3Ddefault",
        matches: |o| o["metadata"]["namespace"] == "default",
    },
];

impl Selection {
    pub(crate) fn matches(&self, key: &Key, object: &Value) -> bool {
        self.namespace.is_none_or(|namespace| namespace == key.0)
            && (SELECTORS[self.selector].matches)(object)
    }

    pub(crate) fn selects(&self) -> bool {
        self.selector != 0
    }

    /// Returns the path and the start of the query.
    pub(crate) fn uri(&self) -> String {
        let base = collection(&KINDS[self.kind], self.namespace);
        format!("{base}?_=0{}", SELECTORS[self.selector].query)
    }
}

pub(crate) fn collection(kind: &Kind, namespace: Option<&str>) -> String {
    match namespace.filter(|_| kind.namespaced) {
        Some(namespace) => format!("{}/namespaces/{namespace}/{}", kind.api, kind.plural),
        None => format!("{}/{}", kind.api, kind.plural),
    }
}

pub(crate) fn path(kind: &Kind, key: &Key) -> String {
    format!("{}/{}", collection(kind, Some(&key.0)), key.1)
}

pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) kind: usize,
    pub(crate) key: Key,
    pub(crate) before: Option<Value>,
    /// `None` for a deletion.
    pub(crate) after: Option<Value>,
}

/// All changes.
#[derive(Default)]
pub(crate) struct History {
    pub(crate) changes: Vec<Change>,
    /// The latest version.
    pub(crate) revision: u64,
    /// The oldest version that can be read.
    pub(crate) compacted: u64,
}

impl History {
    /// Adds the next change.
    pub(crate) fn push(&mut self, kind: usize, key: &Key, after: Option<Value>) {
        let before = self.current(kind, key).cloned();
        assert!(before.is_some() || after.is_some(), "{key:?} was not there to be deleted");
        self.revision += 1;
        let version = self.revision;
        if let Some(after) = &after {
            assert_eq!(
                after["metadata"]["resourceVersion"],
                version.to_string(),
                "the next version"
            );
        }
        self.changes.push(Change { version, kind, key: key.clone(), before, after });
    }

    pub(crate) fn current(&self, kind: usize, key: &Key) -> Option<&Value> {
        let last = self.changes.iter().rev().find(|c| c.kind == kind && c.key == *key)?;
        last.after.as_ref()
    }

    /// Returns the expected list at a version.
    pub(crate) fn at(&self, selection: &Selection, version: u64) -> BTreeMap<&Key, &Value> {
        let mut state = BTreeMap::new();
        for change in self.changes.iter().filter(|change| change.kind == selection.kind) {
            if change.version > version {
                break;
            }
            match &change.after {
                Some(object) => drop(state.insert(&change.key, object)),
                None => drop(state.remove(&change.key)),
            }
        }
        state.retain(|key, object| selection.matches(key, object));
        state
    }

    /// Returns the first event after a version that a watcher of the selection should receive.
    pub(crate) fn event_after(&self, selection: &Selection, after: u64) -> Option<(u64, Value)> {
        let first = self.changes.partition_point(|change| change.version <= after);
        self.changes[first..].iter().find_map(|change| change.seen_by(selection))
    }

    /// Returns the number of changes of a kind in a range of versions.
    pub(crate) fn count(&self, kind: usize, after: u64, up_to: u64) -> usize {
        let within = |change: &&Change| change.version > after && change.version <= up_to;
        self.changes.iter().filter(within).filter(|change| change.kind == kind).count()
    }

    /// Reverts to a version. Earlier versions can no longer be read.
    pub(crate) fn restore(&mut self, version: u64) {
        self.changes.retain(|change| change.version <= version);
        self.revision = version;
        self.compacted = version;
    }
}

impl Change {
    fn seen_by(&self, selection: &Selection) -> Option<(u64, Value)> {
        if self.kind != selection.kind {
            return None;
        }
        let matching = |state: &'_ Option<Value>| {
            state.clone().filter(|object| selection.matches(&self.key, object))
        };
        let (event_type, object) = match (matching(&self.before), matching(&self.after)) {
            (None, None) => return None,
            (None, Some(after)) => ("ADDED", after),
            (Some(_), Some(after)) => ("MODIFIED", after),
            (Some(mut before), None) => {
                before["metadata"]["resourceVersion"] = self.version.to_string().into();
                ("DELETED", before)
            }
        };
        Some((self.version, serde_json::json!({"type": event_type, "object": object})))
    }
}
