//! Objects, events and failures in detail, as far as the program shows them.

use std::borrow::Cow;

use kube_informer::{KeyRef, Object, ObjectKey};
use serde::Serialize;
use serde_json::{Value, json};

use crate::changes::{Changes, Shown};
use crate::log::{Record, Row};
use crate::pulse::Pulse;
use crate::readings::Named;

/// The number of objects that could not be kept that are listed.
const FAILED_MAX: usize = 100;

/// The parameters of a request.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn of(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Which parts of objects are shown.
#[derive(Clone, Copy)]
pub(crate) struct Objects {
    pub(crate) shown: bool,
    pub(crate) secrets: bool,
}

#[derive(Serialize)]
pub(crate) struct EventDetail {
    #[serde(flatten)]
    row: Row,
    #[serde(flatten)]
    changes: Changes,
    /// Whether the program hides objects.
    hidden: bool,
}

#[derive(Serialize)]
pub(crate) struct ObjectDetail {
    informer: String,
    namespace: String,
    name: String,
    uid: String,
    version: String,
    generation: Option<i64>,
    deleting: bool,
    labels: Vec<(String, String)>,
    owners: Vec<Owner>,
    /// Whether the object is in the cache, or only in the history.
    cached: bool,
    /// `None` if the program hides objects.
    text: Option<String>,
    history: Vec<Row>,
}

#[derive(Serialize)]
struct Owner {
    kind: String,
    name: String,
    namespace: String,
    controller: bool,
    /// The informer whose cache has the owner.
    informer: Option<String>,
}

impl Objects {
    /// Returns an event and what it changed.
    pub(crate) fn event(self, pulse: &Pulse, query: &Query) -> Option<EventDetail> {
        let record = pulse.log.get(query.get("seq")?.parse().ok()?)?;
        let changes = match (&record.states, self.shown) {
            (Some((old, new)), true) => {
                let named = find(pulse, &record.informer);
                self.changes(named.as_ref(), old.as_ref(), new.as_ref())
            }
            _ => Changes::default(),
        };
        Some(EventDetail { row: record.row(), changes, hidden: !self.shown })
    }

    fn changes(self, of: Option<&Named>, old: Option<&Object>, new: Option<&Object>) -> Changes {
        let (old, new) = (old.and_then(value), new.and_then(value));
        let any = new.as_ref().or(old.as_ref()).unwrap_or(&Value::Null);
        let shown = self.of(of, any);
        match (&old, &new) {
            (Some(old), Some(new)) => shown.changes(old, new),
            // An add or a delete is the whole object, which the page shows elsewhere.
            _ => Changes::default(),
        }
    }

    /// Decides what is shown of an object. Items of lists have no kind, so the informer's counts too.
    fn of(self, named: Option<&Named>, object: &Value) -> Shown {
        let resource = named.and_then(|named| named.informer.resource());
        let secret = match (resource, object["kind"].as_str()) {
            (Some(resource), _) if resource.kind == "Secret" => true,
            (_, Some(kind)) => kind == "Secret",
            (resource, None) => resource.is_none(),
        };
        Shown { hides_data: secret && !self.secrets }
    }

    /// Returns an object, its owners and its history.
    pub(crate) fn object(self, pulse: &Pulse, query: &Query) -> Option<ObjectDetail> {
        let named = find(pulse, query.get("informer")?)?;
        let namespace = query.get("namespace").unwrap_or_default();
        let key = ObjectKey::namespaced(namespace, query.get("name")?);
        let history = pulse.log.of(&named.name, &key);
        let cached = named.informer.lister().get(&key);
        let is_cached = cached.is_some();
        let object = cached.or_else(|| history.iter().find_map(last_state))?;
        let labels = object.labels().iter();
        Some(ObjectDetail {
            informer: named.name.to_string(),
            namespace: key.namespace().unwrap_or_default().to_owned(),
            name: key.name().to_owned(),
            uid: object.uid().to_owned(),
            version: object.resource_version().to_string(),
            generation: object.generation(),
            deleting: object.deletion_timestamp().is_some(),
            labels: labels.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            owners: owners(pulse, &object),
            cached: is_cached,
            text: self.text(&named, &object),
            history: history.iter().map(Record::row).collect(),
        })
    }

    fn text(self, named: &Named, object: &Object) -> Option<String> {
        let value = value(object).filter(|_| self.shown)?;
        Some(self.of(Some(named), &value).text(&value))
    }

    /// Returns the objects that an informer could not keep, with the reasons.
    pub(crate) fn failed(pulse: &Pulse, query: &Query) -> Option<Value> {
        let named = find(pulse, query.get("informer")?)?;
        let failed = named.informer.failed();
        let rows = failed.iter().take(FAILED_MAX).map(|error| {
            json!({"key": error.key().map(ToString::to_string), "error": error.to_string()})
        });
        Some(json!({"count": failed.len(), "failed": rows.collect::<Vec<_>>()}))
    }
}

fn find(pulse: &Pulse, name: &str) -> Option<Named> {
    pulse.sources.named().into_iter().find(|named| *named.name == *name)
}

fn last_state(record: &Record) -> Option<Object> {
    let (old, new) = record.states.as_ref()?;
    new.as_ref().or(old.as_ref()).cloned()
}

fn value(object: &Object) -> Option<Value> {
    serde_json::from_slice(&object.to_json().ok()?).ok()
}

/// Returns the owners of an object, and the informers that have them in their caches.
fn owners(pulse: &Pulse, object: &Object) -> Vec<Owner> {
    let informers = pulse.sources.named();
    let references = object.owner_references();
    let owner =
        |(kind, name, uid, controller): (Cow<'_, str>, Cow<'_, str>, Cow<'_, str>, bool)| {
            let of_kind = informers.iter().filter(|named| {
                named.informer.resource().is_some_and(|resource| resource.kind == kind)
            });
            // An owner is in the same namespace, or has none.
            let places =
                of_kind.flat_map(|named| [object.namespace(), None].map(|place| (named, place)));
            let found = places.into_iter().find(|(named, place)| {
                let key = KeyRef { namespace: *place, name: &name };
                named.informer.lister().get(key).is_some_and(|found| found.uid() == uid)
            });
            Owner {
                kind: kind.into_owned(),
                name: name.into_owned(),
                namespace: found.and_then(|(_, place)| place).unwrap_or_default().to_owned(),
                controller,
                informer: found.map(|(named, _)| named.name.to_string()),
            }
        };
    references
        .into_iter()
        .map(|each| owner((each.kind, each.name, each.uid, each.controller)))
        .collect()
}
