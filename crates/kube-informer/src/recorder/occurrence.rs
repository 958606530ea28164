//! One event, as the program reports it and as it is sent to the server.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::selector::is_subdomain;
use crate::shown::beginning;
use crate::{Error, Result};

/// Limits of the server, in bytes.
const NOTE_BYTES_MAX: usize = 1024;
const REASON_BYTES_MAX: usize = 128;
const ACTION_BYTES_MAX: usize = 128;

/// The namespace for events about cluster-scoped objects, as in client-go: it always exists.
const DEFAULT_NAMESPACE: &str = "default";

/// The type of an event.
///
/// ```
/// use kube_informer::EventType;
///
/// assert_eq!(EventType::Warning.as_str(), "Warning");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EventType {
    /// An informational event.
    Normal,
    /// A problem, or something that may become one.
    Warning,
}

impl EventType {
    /// Returns the type as the API writes it: `Normal` or `Warning`.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

/// The object of an event, without its version: otherwise no two events about a changing object
/// would ever be the same.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Subject {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
    uid: String,
    field_path: String,
}

impl Subject {
    fn of(reference: &ObjectReference) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            api_version: text(&reference.api_version),
            kind: text(&reference.kind),
            namespace: text(&reference.namespace),
            name: text(&reference.name),
            uid: text(&reference.uid),
            field_path: text(&reference.field_path),
        }
    }
}

/// The identity of events that differ only in their notes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Similar {
    pub(super) subject: Subject,
    pub(super) type_: EventType,
    related: Option<Subject>,
    reason: String,
    action: String,
}

/// An event that a program has reported.
#[derive(Clone, Debug)]
pub(super) struct Occurrence {
    pub(super) similar: Similar,
    pub(super) note: String,
    pub(super) at: Instant,
    pub(super) time: Timestamp,
    regarding: ObjectReference,
    related: Option<ObjectReference>,
}

impl Occurrence {
    /// # Errors
    ///
    /// Fails if the server would reject the event.
    pub(super) fn new(
        regarding: ObjectReference,
        related: Option<ObjectReference>,
        type_: EventType,
        (reason, action): (&str, &str),
        note: &str,
    ) -> Result<Self> {
        for (what, text, bytes_max) in
            [("reason", reason, REASON_BYTES_MAX), ("action", action, ACTION_BYTES_MAX)]
        {
            if text.is_empty() || text.len() > bytes_max {
                let len = text.len();
                return Err(Error::invalid(format!(
                    "the {what} of an event must have 1 to {bytes_max} bytes, but has {len}"
                )));
            }
        }
        let missing = |field: &Option<String>| field.as_ref().is_none_or(String::is_empty);
        if missing(&regarding.kind) || missing(&regarding.name) {
            let why = "an event is about an object with a kind and a name";
            return Err(Error::invalid(why));
        }
        let similar = Similar {
            subject: Subject::of(&regarding),
            type_,
            related: related.as_ref().map(Subject::of),
            reason: reason.to_owned(),
            action: action.to_owned(),
        };
        let note = beginning(note, NOTE_BYTES_MAX).to_owned();
        let (at, time) = (Instant::now(), Timestamp::now());
        Ok(Self { similar, note, at, time, regarding, related })
    }

    pub(super) fn namespace(&self) -> &str {
        let namespace = self.regarding.namespace.as_deref();
        namespace.filter(|namespace| !namespace.is_empty()).unwrap_or(DEFAULT_NAMESPACE)
    }

    /// Returns the event as sent to the server, without a series.
    pub(super) fn event(&self, name: &str, note: &str, source: &Source) -> Value {
        let mut event = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": self.namespace()},
            "eventTime": micro_time(self.time),
            "reportingController": source.controller,
            "reportingInstance": source.instance,
            "type": self.similar.type_.as_str(),
            "reason": self.similar.reason,
            "action": self.similar.action,
            "note": beginning(note, NOTE_BYTES_MAX),
            "regarding": self.regarding,
        });
        if let Some(related) = &self.related {
            event["related"] = json!(related);
        }
        event
    }

    /// Returns a name for an event about the object: the object's name and a number, if that is a
    /// valid name.
    pub(super) fn event_name(&self, number: i128) -> String {
        let name = format!("{}.{number:x}", self.similar.subject.name);
        if is_subdomain(&name) {
            return name;
        }
        format!("event-{:016x}.{number:x}", fastrand::u64(..))
    }
}

/// The component that reports events.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) controller: String,
    pub(super) instance: String,
}

/// Formats a time as `metav1.MicroTime`.
pub(super) fn micro_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests;
