//! One event, as the tool shows it.

use std::sync::Arc;

use jiff::Timestamp;
use kube_informer::{Event, FinalState, Object, Untyped};
use serde_json::Value;

use crate::discovery::Type;

/// What happened.
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

/// A type that is being watched; `place` is which of them it is.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    pub(crate) place: usize,
    pub(crate) of: Arc<Type>,
}

/// One event.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) happened: Happened,
    pub(crate) watched: Watched,
    pub(crate) object: Object<Untyped>,
    pub(crate) old: Option<Object<Untyped>>,
    /// Was there when the tool came.
    pub(crate) initial: bool,
    /// A delete that was missed and found out later.
    pub(crate) final_state_unknown: bool,
    pub(crate) time: Timestamp,
}

impl Record {
    /// None for the end of the initial list, which is about no object.
    pub(crate) fn new(event: Event<Untyped>, watched: &Watched, time: Timestamp) -> Option<Self> {
        let mut record = Self {
            happened: Happened::Add,
            watched: watched.clone(),
            object: event.object()?.clone(),
            old: None,
            initial: false,
            final_state_unknown: false,
            time,
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

    /// `namespace/name`, or the name alone, exactly as the server has it.
    pub(crate) fn key(&self) -> String {
        self.object.key().as_str().to_owned()
    }

    pub(crate) fn version(&self) -> &str {
        self.object.resource_version().as_str()
    }

    /// The version before an update; that of a resync is the one it has.
    pub(crate) fn old_version(&self) -> Option<&str> {
        match self.happened {
            Happened::Resync => Some(self.version()),
            _ => self.old.as_ref().map(|old| old.resource_version().as_str()),
        }
    }

    /// The object as JSON, complete.
    pub(crate) fn json(&self) -> Result<String, String> {
        complete(&self.object, &self.watched.of)
    }

    /// The state before an update as JSON, complete.
    pub(crate) fn old_json(&self) -> Option<Result<String, String>> {
        self.old.as_ref().map(|old| complete(old, &self.watched.of))
    }

    /// The object, parsed.
    pub(crate) fn value(&self) -> Result<Value, String> {
        parsed(&self.json()?)
    }

    /// The state before an update, parsed.
    pub(crate) fn old_value(&self) -> Option<Result<Value, String>> {
        self.old_json().map(|json| parsed(&json?))
    }
}

/// An object, parsed.
pub(crate) fn parsed(json: &str) -> Result<Value, String> {
    serde_json::from_str(json).map_err(|error| format!("an object cannot be read: {error}"))
}

/// The items of lists do not say what they are; what users see should.
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
