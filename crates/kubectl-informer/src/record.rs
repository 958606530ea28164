//! An event, as the tool shows it.

use std::cell::OnceCell;
use std::sync::Arc;

use jiff::Timestamp;
use kube_informer::{Event, FinalState, Object, Untyped};
use serde_json::Value;

use crate::discovery::Type;

/// The type of an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Happened {
    Add,
    Update,
    Delete,
    Resync,
}

impl Happened {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Happened::Add => "ADD",
            Happened::Update => "UPDATE",
            Happened::Delete => "DELETE",
            Happened::Resync => "RESYNC",
        }
    }
}

/// A type that is being watched, and its position among them.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    pub(crate) place: usize,
    pub(crate) of: Arc<Type>,
}

/// An event.
pub(crate) struct Record {
    pub(crate) happened: Happened,
    pub(crate) watched: Watched,
    pub(crate) object: Object<Untyped>,
    pub(crate) old: Option<Object<Untyped>>,
    /// Whether the object existed when the watch started.
    pub(crate) initial: bool,
    /// Whether the deletion itself was missed, and detected later.
    pub(crate) final_state_unknown: bool,
    pub(crate) time: Timestamp,
    /// The parsed object. Conditions, columns, notes and differences all read it, and parsing is the
    /// most expensive part of showing an event.
    value: OnceCell<Result<Value, String>>,
    /// The parsed state before an update.
    old_value: OnceCell<Result<Value, String>>,
}

impl Record {
    /// Converts an informer's event. Returns `None` for the end of the initial list, which has no
    /// object.
    pub(crate) fn new(event: Event<Untyped>, watched: &Watched, time: Timestamp) -> Option<Self> {
        let mut record = Self {
            happened: Happened::Add,
            watched: watched.clone(),
            object: event.object()?.clone(),
            old: None,
            initial: false,
            final_state_unknown: false,
            time,
            value: OnceCell::new(),
            old_value: OnceCell::new(),
        };
        match event {
            Event::Added { initial, .. } => record.initial = initial,
            Event::Updated { old, .. } => {
                record.happened = Happened::Update;
                record.old = Some(old);
            }
            Event::Deleted(deleted) => {
                record.happened = Happened::Delete;
                record.final_state_unknown = deleted.final_state == FinalState::Unknown;
            }
            Event::Resynced(_) => record.happened = Happened::Resync,
            Event::Synced => return None,
        }
        Some(record)
    }

    /// Returns `namespace/name`, or only the name, exactly as on the server.
    pub(crate) fn key(&self) -> String {
        self.object.key().as_str().to_owned()
    }

    pub(crate) fn version(&self) -> &str {
        self.object.resource_version().as_str()
    }

    /// Returns the version before an update. For a resync, that is the current version.
    pub(crate) fn old_version(&self) -> Option<&str> {
        match self.happened {
            Happened::Resync => Some(self.version()),
            _ => self.old.as_ref().map(|old| old.resource_version().as_str()),
        }
    }

    /// Returns the complete object as JSON.
    pub(crate) fn json(&self) -> Result<String, String> {
        complete(&self.object, &self.watched.of)
    }

    /// Returns the complete state before an update as JSON.
    pub(crate) fn old_json(&self) -> Option<Result<String, String>> {
        self.old.as_ref().map(|old| complete(old, &self.watched.of))
    }

    /// Returns the parsed object. It is parsed at the first call.
    pub(crate) fn value(&self) -> Result<&Value, String> {
        self.value.get_or_init(|| parsed(&self.json()?)).as_ref().map_err(Clone::clone)
    }

    /// Returns the parsed state before an update. It is parsed at the first call.
    pub(crate) fn old_value(&self) -> Option<Result<&Value, String>> {
        let old = self.old.as_ref()?;
        let parse = || parsed(&complete(old, &self.watched.of)?);
        Some(self.old_value.get_or_init(parse).as_ref().map_err(Clone::clone))
    }
}

#[cfg(test)]
thread_local! {
    /// The number of objects that this thread has parsed.
    pub(crate) static PARSES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Parses an object.
pub(crate) fn parsed(json: &str) -> Result<Value, String> {
    #[cfg(test)]
    PARSES.set(PARSES.get() + 1);
    serde_json::from_str(json).map_err(|error| format!("an object cannot be read: {error}"))
}

/// Returns an object's JSON with its kind and version, which list items lack but users expect.
pub(crate) fn complete(object: &Object<Untyped>, of: &Type) -> Result<String, String> {
    let unreadable =
        |error: &dyn std::fmt::Display| format!("{} {}: {error}", of.kind, object.key());
    let bytes = object.to_json().map_err(|error| unreadable(&error))?;
    let json = std::str::from_utf8(&bytes).map_err(|error| unreadable(&error))?;
    if matches!(object.field::<String>("kind"), Ok(Some(_))) {
        return Ok(json.to_owned());
    }
    let rest = json.trim_start().strip_prefix('{').unwrap_or("}").trim_start();
    let comma = if rest.starts_with('}') { "" } else { "," };
    let (kind, version) = (Value::from(&*of.kind), Value::from(of.api_version()));
    Ok(format!(r#"{{"apiVersion":{version},"kind":{kind}{comma}{rest}"#))
}
