//! A state of an object, encoded once and shared by all readers.
//!
//! A revision is stored as the line that most watchers receive,
//! `{"type":"ADDED","object":{"apiVersion":…,"kind":…,"metadata":{…},…}}\n`, with the offsets of
//! its parts: the object, its metadata and its resourceVersion. Lists, gets, watches and
//! metadata-only readers all use slices of these bytes.

mod ownership;
mod prepared;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use kube_schema::Message;
use parking_lot::Mutex;
use serde_json::{Map, Value};

pub(crate) use self::ownership::{Ownership, Write};
use self::prepared::Prepared;
use super::key::Key;
use super::owners::{Owners, owners_of};
use crate::codec::Encoded;
use crate::kinds::{Resource, Text, field_text};

/// Labels, sorted by key.
pub(crate) type Labels = Arc<[(Box<str>, Box<str>)]>;

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventType {
    /// The object was created, or now matches the watcher's selector.
    Added,
    /// The object changed.
    Modified,
    /// The object was deleted, or no longer matches the watcher's selector.
    Deleted,
    /// All changes up to this version have been sent.
    Bookmark,
    /// The watch failed. The object is a `Status`.
    Error,
}

impl EventType {
    /// Returns the type as it is written in a watch event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }

    /// Returns the start of the event's line, up to the object.
    pub(crate) fn opening(self) -> &'static [u8] {
        match self {
            Self::Added => br#"{"type":"ADDED","object":"#,
            Self::Modified => br#"{"type":"MODIFIED","object":"#,
            Self::Deleted => br#"{"type":"DELETED","object":"#,
            Self::Bookmark => br#"{"type":"BOOKMARK","object":"#,
            Self::Error => br#"{"type":"ERROR","object":"#,
        }
    }
}

/// The end of an event's line, after the object.
pub(crate) const EVENT_CLOSING: &[u8] = b"}\n";

/// An immutable state of an object.
pub(crate) struct Revision {
    version: u64,
    event_type: EventType,
    key: Arc<Key>,
    line: Bytes,
    /// The number of digits of the version in `line`. `layout` does not include them.
    digits: u8,
    layout: Layout,
    labels: Labels,
    owners: Owners,
    /// The values of selectable fields, and the paths of those fields when the object was stored.
    fields: Arc<[Box<str>]>,
    paths: Arc<[Text]>,
    /// The object in protobuf, after a client has requested it.
    protobuf: OnceLock<Box<Encoded>>,
    /// The message until then, if it was encoded by the write.
    prepared: Mutex<Option<Box<Prepared>>>,
    ownership: Ownership,
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Stores and snapshots print their states with this: the identity only, never the content.
        write!(f, "{} {} at {}", self.event_type.as_str(), self.key, self.version)
    }
}

/// Offsets within the object's JSON in a draft, whose resourceVersion is empty.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// The end of `apiVersion` and `kind`, which items of a list omit.
    head: u32,
    metadata_end: u32,
    /// The start of the digits of the resourceVersion.
    version_at: u32,
}

const METADATA_NAME: &[u8] = br#""metadata":"#;
const VERSION_NAME: &[u8] = br#""resourceVersion":""#;

/// An object that is ready to be stored, except for the resourceVersion, which the store assigns.
pub(crate) struct Draft {
    pub(crate) key: Arc<Key>,
    json: Vec<u8>,
    layout: Layout,
    labels: Labels,
    owners: Owners,
    fields: Arc<[Box<str>]>,
    prepared: Mutex<Option<Box<Prepared>>>,
    paths: Arc<[Text]>,
    ownership: Ownership,
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The content may be secret.
        write!(f, "Draft({})", self.key)
    }
}

thread_local! {
    /// The buffer of the last draft on this thread, reused by the next one. Long-lived memory is
    /// allocated by [`Draft::seal`] with its exact size.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Larger buffers are freed: nearly all objects are smaller.
const SCRATCH_BYTES_MAX: usize = 64 * 1024;

impl Drop for Draft {
    fn drop(&mut self) {
        if self.json.capacity() <= SCRATCH_BYTES_MAX {
            SCRATCH.set(std::mem::take(&mut self.json));
        }
    }
}

impl Draft {
    /// Encodes an object of `resource`. `validate::shape` has checked that its metadata is an
    /// object. The resource determines its apiVersion and kind.
    pub(crate) fn encode(resource: &Resource, object: &Map<String, Value>) -> Self {
        let mut json = SCRATCH.take();
        json.clear();
        json.extend_from_slice(&resource.head());
        let head = json.len() as u32;
        json.extend_from_slice(METADATA_NAME);
        let empty = Map::new();
        let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
        json.push(b'{');
        for (name, value) in metadata.iter().filter(|(name, _)| *name != "resourceVersion") {
            write_member(&mut json, name, value);
            json.push(b',');
        }
        json.extend_from_slice(VERSION_NAME);
        let version_at = json.len() as u32;
        json.extend_from_slice(br#""}"#);
        let metadata_end = json.len() as u32;
        for (name, value) in object {
            if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                json.push(b',');
                write_member(&mut json, name, value);
            }
        }
        json.push(b'}');
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
        Self {
            key: Arc::new(Key::new(text("namespace"), text("name"))),
            layout: Layout { head, metadata_end, version_at },
            labels: labels_of(metadata),
            owners: owners_of(metadata),
            fields: resource
                .selectable
                .iter()
                .map(|field| resource.selected_text(object, field).into())
                .collect(),
            prepared: Mutex::new(Prepared::if_wanted(resource, object)),
            paths: Arc::clone(&resource.selectable),
            ownership: Ownership::Shown,
            json,
        }
    }

    /// Sets the managers of the object's fields. Without this, the object shows its managers itself.
    pub(crate) fn owned(mut self, ownership: Ownership) -> Self {
        self.ownership = ownership;
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.json.len()
    }

    /// Returns the object without a resourceVersion, for the dry run of a creation.
    pub(crate) fn preview(&self) -> Bytes {
        let end = self.layout.version_at as usize + 1;
        let member = self.layout.version_at as usize - VERSION_NAME.len();
        // It is the last member, and also the first if the object has no other metadata.
        let start = if self.json[member - 1] == b',' { member - 1 } else { member };
        let mut out = Vec::with_capacity(self.json.len());
        splice(&mut out, &self.json, start..end, "");
        out.into()
    }

    /// Returns whether storing the object would change only the version.
    pub(crate) fn is_same_as(&self, current: &Revision) -> bool {
        if self.ownership != current.ownership {
            return false;
        }
        let object = &current.line[current.object_range()];
        let at = self.layout.version_at as usize;
        let after = at + usize::from(current.digits);
        object.len() == self.json.len() + usize::from(current.digits)
            && object[..at] == self.json[..at]
            && object[after..] == self.json[at..]
    }

    fn hole(&self) -> Range<usize> {
        let at = self.layout.version_at as usize;
        at..at
    }

    /// Assigns the draft its version.
    pub(crate) fn seal(&self, key: Arc<Key>, event_type: EventType, version: u64) -> Revision {
        let (line, digits) = event_line(&self.json, self.hole(), event_type, version);
        let layout = self.layout;
        let (labels, fields) = (Arc::clone(&self.labels), Arc::clone(&self.fields));
        Revision {
            version,
            event_type,
            key,
            line,
            digits,
            layout,
            labels,
            owners: self.owners.clone(),
            fields,
            paths: Arc::clone(&self.paths),
            protobuf: OnceLock::new(),
            // Outside of tests, a draft is sealed once.
            prepared: Mutex::new(self.prepared.lock().take()),
            ownership: self.ownership.clone(),
        }
    }
}

impl Revision {
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn event_type(&self) -> EventType {
        self.event_type
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.event_type == EventType::Deleted
    }

    pub(crate) fn key(&self) -> &Arc<Key> {
        &self.key
    }

    pub(crate) fn labels(&self) -> &[(Box<str>, Box<str>)] {
        &self.labels
    }

    /// Returns the owners that the store indexes.
    pub(crate) fn owners(&self) -> &Owners {
        &self.owners
    }

    /// Returns the values of `Resource::selectable`, in its order.
    pub(crate) fn fields(&self) -> &[Box<str>] {
        &self.fields
    }

    /// Returns the value of a selectable field of a custom object.
    ///
    /// Versions of a definition have different fields, and definitions change. If the field was not
    /// selectable when the object was stored, its value is read from the object.
    pub(crate) fn custom_field(&self, path: &str) -> Cow<'_, str> {
        match self.paths.iter().position(|known| known == path) {
            Some(at) => Cow::Borrowed(self.fields.get(at).map_or("", |value| &**value)),
            None => Cow::Owned(field_text(&self.to_map(), path).unwrap_or_default().into_owned()),
        }
    }

    pub(crate) fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// Returns the event of this change for a watcher without a selector.
    pub(crate) fn line(&self) -> &Bytes {
        &self.line
    }

    /// Returns the object's JSON.
    pub(crate) fn object(&self) -> Bytes {
        self.line.slice(self.object_range())
    }

    /// Returns the JSON after apiVersion and kind: `"metadata":{…},…}`.
    pub(crate) fn tail(&self) -> Bytes {
        let object = self.object_range();
        self.line.slice(object.start + self.layout.head as usize..object.end)
    }

    /// Returns the JSON of `metadata`.
    pub(crate) fn metadata(&self) -> Bytes {
        let start = self.object_range().start;
        let from = start + self.layout.head as usize + METADATA_NAME.len();
        let to = start + self.layout.metadata_end as usize + usize::from(self.digits);
        self.line.slice(from..to)
    }

    /// Parses the object, to be changed.
    pub(crate) fn to_map(&self) -> Map<String, Value> {
        serde_json::from_slice(&self.line[self.object_range()])
            .expect("what the store holds was encoded by it")
    }

    /// Returns the same state with another version. A deletion, or an object that no longer matches
    /// a selector, shows its last state like this.
    pub(crate) fn at_version(&self, event_type: EventType, version: u64) -> Self {
        let object = &self.line[self.object_range()];
        let start = self.layout.version_at as usize;
        let hole = start..start + usize::from(self.digits);
        let (line, digits) = event_line(object, hole, event_type, version);
        Self {
            version,
            event_type,
            key: Arc::clone(&self.key),
            line,
            digits,
            layout: self.layout,
            labels: Arc::clone(&self.labels),
            owners: self.owners.clone(),
            fields: Arc::clone(&self.fields),
            paths: Arc::clone(&self.paths),
            protobuf: OnceLock::new(),
            prepared: Mutex::new(None),
            ownership: self.ownership.clone(),
        }
    }

    /// Returns the object in protobuf. It is encoded on the first request, unless the write has
    /// prepared it. The message determines its kind, whatever the stored object says. A kind is
    /// encoded in one form only.
    pub(crate) fn encoded(
        &self,
        message: Message,
        api_version: &str,
        kind: &str,
    ) -> Result<&Encoded, kube_schema::Error> {
        if let Some(encoded) = self.protobuf.get() {
            return Ok(encoded);
        }
        Prepared::want(message);
        let prepared = self.prepared.lock().take();
        let raw = match prepared.and_then(|prepared| prepared.seal(message, self.version)) {
            Some(raw) => raw,
            None => message.encode(&Value::Object(self.to_map()))?,
        };
        let event_type = self.event_type.as_str();
        Ok(self
            .protobuf
            .get_or_init(|| Box::new(Encoded::new(event_type, api_version, kind, &raw))))
    }

    fn object_range(&self) -> Range<usize> {
        self.event_type.opening().len()..self.line.len() - EVENT_CLOSING.len()
    }
}

/// Returns the line of an event with `version` inserted into the hole, and its number of digits.
fn event_line(json: &[u8], hole: Range<usize>, event_type: EventType, version: u64) -> (Bytes, u8) {
    let digits = version.to_string();
    let opening = event_type.opening();
    let len = opening.len() + json.len() - hole.len() + digits.len() + EVENT_CLOSING.len();
    let mut line = Vec::with_capacity(len);
    line.extend_from_slice(opening);
    splice(&mut line, json, hole, &digits);
    line.extend_from_slice(EVENT_CLOSING);
    debug_assert_eq!(line.len(), len, "allocated exactly: the bytes are kept for long");
    (line.into(), digits.len() as u8)
}

fn splice(out: &mut Vec<u8>, json: &[u8], hole: Range<usize>, filling: &str) {
    out.extend_from_slice(&json[..hole.start]);
    out.extend_from_slice(filling.as_bytes());
    out.extend_from_slice(&json[hole.end..]);
}

fn write_member(json: &mut Vec<u8>, name: &str, value: &Value) {
    serde_json::to_writer(&mut *json, name).expect("a string is written to memory");
    json.push(b':');
    serde_json::to_writer(json, value).expect("a tree is written to memory");
}

fn labels_of(metadata: &Map<String, Value>) -> Labels {
    let Some(labels) = metadata.get("labels").and_then(Value::as_object) else {
        return Arc::from([]);
    };
    let mut labels: Vec<(Box<str>, Box<str>)> = labels
        .iter()
        .map(|(k, v)| (k.as_str().into(), v.as_str().unwrap_or_default().into()))
        .collect();
    labels.sort_unstable();
    labels.into()
}
