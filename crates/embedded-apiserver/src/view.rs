//! Objects in the representation that a client requested. Responses are slices of the stored bytes
//! where possible: only tables, and events of the other group, are encoded for a reader.

mod protobuf;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use serde_json::{Map, Value, json};

use crate::body::Body;
use crate::clock::Clock;
use crate::codec::Codec;
use crate::kinds::{Resource, events};
use crate::negotiate::{Accepted, MetaVersion, Representation};
use crate::print;
use crate::status::Status;
use crate::store::{EVENT_CLOSING, EventType, Key, Revision};

/// The bytes of a list that are sent at once, so that a page of small objects takes only a few
/// writes.
const LIST_CHUNK_BYTES: usize = 64 * 1024;

/// A client's view of the objects of a resource.
#[derive(Debug, Clone)]
pub(crate) struct View {
    resource: Arc<Resource>,
    representation: Representation,
    codec: Codec,
    include: Include,
    head: Bytes,
    clock: Clock,
    /// Whether a watch has sent the column definitions, which are only in its first table.
    headers_sent: bool,
}

/// An event of a watch. It has no `Debug`, because the line contains the object.
#[derive(Clone)]
pub(crate) struct WatchEvent {
    pub(crate) event_type: EventType,
    /// The object's key; `None` for bookmarks and errors.
    pub(crate) key: Option<Arc<Key>>,
    /// The version; 0 for errors.
    pub(crate) version: u64,
    /// Whether this is the bookmark that ends the initial events.
    pub(crate) initial_events_end: bool,
    /// The encoded event: a line of JSON, or a frame of protobuf.
    pub(crate) line: Bytes,
}

impl WatchEvent {
    /// Returns the last event of a failed stream, with which a real server reports most errors.
    pub(crate) fn error(status: &Status, codec: Codec) -> Self {
        let event_type = EventType::Error;
        let status = status.to_json();
        let line = match (codec, Codec::Protobuf.encode(&status)) {
            (Codec::Protobuf, Ok(status)) => protobuf::frame(event_type, &status),
            _ => event_line(event_type, &to_bytes(&status)),
        };
        Self { event_type, key: None, version: 0, initial_events_end: false, line }
    }
}

/// The objects in a table's rows, in addition to the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Include {
    Nothing,
    Metadata,
    Object,
}

/// The `metadata` of a list.
#[derive(Debug, Default)]
pub(crate) struct ListMeta {
    pub(crate) version: u64,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<usize>,
}

impl ListMeta {
    fn to_json(&self) -> Value {
        let mut out = json!({"resourceVersion": self.version.to_string()});
        if let Some(token) = &self.continue_token {
            out["continue"] = json!(token);
        }
        if let Some(remaining) = self.remaining {
            out["remainingItemCount"] = json!(remaining);
        }
        out
    }
}

impl View {
    pub(crate) fn new(
        resource: &Arc<Resource>,
        accepted: Accepted,
        include: &str,
        clock: &Clock,
    ) -> Result<Self, Status> {
        let include = match include {
            "" | "Metadata" => Include::Metadata,
            "None" => Include::Nothing,
            "Object" => Include::Object,
            other => {
                return Err(Status::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: \
                     {other:?}: must be 'Metadata', 'Object', 'None', or empty"
                )));
            }
        };
        let Accepted { representation, codec } = accepted;
        let head = match representation {
            Representation::Metadata(meta) => partial_head(meta).into(),
            _ => resource.head().into(),
        };
        let resource = Arc::clone(resource);
        Ok(Self {
            resource,
            representation,
            codec,
            include,
            head,
            clock: clock.clone(),
            headers_sent: false,
        })
    }

    pub(crate) fn codec(&self) -> Codec {
        self.codec
    }

    /// Encodes an object as the response to a get or a write.
    pub(crate) fn object(&self, revision: &Revision) -> Result<Bytes, Status> {
        match self.codec {
            Codec::Json => Ok(self.json_object(revision)),
            Codec::Protobuf => self.protobuf_object(revision),
        }
    }

    /// Encodes an object that is not a revision, and has an apiVersion and a kind.
    pub(crate) fn other(&self, object: &Value) -> Result<Bytes, Status> {
        self.codec.encode(object).map_err(|error| protobuf::cannot(&self.resource.kind, error))
    }

    fn json_object(&self, revision: &Revision) -> Bytes {
        match self.representation {
            Representation::Object if self.converts_events() => to_bytes(&self.converted(revision)),
            Representation::Object => {
                let object = revision.object();
                if object.starts_with(&self.head) {
                    object
                } else {
                    join(&self.head, &revision.tail())
                }
            }
            Representation::Metadata(_) => self.metadata_only(&revision.metadata()),
            Representation::Table(meta) => {
                let version = revision.version();
                let list = ListMeta { version, ..ListMeta::default() };
                to_bytes(&self.table(meta, &list, [self.converted(revision)], true))
            }
        }
    }

    /// Returns the event of an object.
    pub(crate) fn event(
        &mut self,
        event_type: EventType,
        revision: &Revision,
    ) -> Result<WatchEvent, Status> {
        let line = match self.codec {
            Codec::Json => self.line(event_type, revision),
            Codec::Protobuf => self.frame(event_type, revision)?,
        };
        let (key, version) = (Some(Arc::clone(revision.key())), revision.version());
        Ok(WatchEvent { event_type, key, version, initial_events_end: false, line })
    }

    fn line(&mut self, event_type: EventType, revision: &Revision) -> Bytes {
        let as_stored = self.representation == Representation::Object
            && event_type == revision.event_type()
            && !self.converts_events()
            && revision.line()[event_type.opening().len()..].starts_with(&self.head);
        if as_stored {
            return revision.line().clone();
        }
        let object = match self.representation {
            Representation::Table(meta) => {
                let headers = !std::mem::replace(&mut self.headers_sent, true);
                let list = ListMeta { version: revision.version(), ..ListMeta::default() };
                to_bytes(&self.table(meta, &list, [self.converted(revision)], headers))
            }
            _ => self.json_object(revision),
        };
        event_line(event_type, &object)
    }

    /// Returns a bookmark, or the one that ends the initial events.
    pub(crate) fn bookmark(
        &mut self,
        version: u64,
        initial_events_end: bool,
    ) -> Result<WatchEvent, Status> {
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if initial_events_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let event_type = EventType::Bookmark;
        if self.codec == Codec::Protobuf {
            let (api_version, kind) = self.type_meta();
            let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
            let line = protobuf::frame(event_type, &self.other(&object)?);
            return Ok(WatchEvent { event_type, key: None, version, initial_events_end, line });
        }
        let object = match self.representation {
            Representation::Table(meta) => {
                // The row exists only for its object, which has the annotation.
                let object = json!({
                    "kind": self.resource.kind,
                    "apiVersion": self.resource.api_version(),
                    "metadata": metadata,
                });
                let list = ListMeta { version, ..ListMeta::default() };
                let headers = !std::mem::replace(&mut self.headers_sent, true);
                to_bytes(&self.table(meta, &list, [object], headers))
            }
            Representation::Object | Representation::Metadata(_) => {
                self.metadata_only(&to_bytes(&metadata))
            }
        };
        let line = event_line(event_type, &object);
        Ok(WatchEvent { event_type, key: None, version, initial_events_end, line })
    }

    /// Returns the apiVersion and kind of the representation.
    fn type_meta(&self) -> (String, &str) {
        match self.representation {
            Representation::Metadata(meta) => {
                (meta.api_version().to_owned(), "PartialObjectMetadata")
            }
            _ => (self.resource.api_version(), &self.resource.kind),
        }
    }

    fn list_type_meta(&self) -> (String, &str) {
        match self.representation {
            Representation::Metadata(meta) => {
                (meta.api_version().to_owned(), "PartialObjectMetadataList")
            }
            _ => (self.resource.api_version(), &self.resource.list_kind),
        }
    }

    /// Returns a list and its approximate size in bytes.
    pub(crate) fn list(
        &self,
        meta: &ListMeta,
        items: Vec<Arc<Revision>>,
    ) -> Result<(Body, usize), Status> {
        match self.codec {
            Codec::Json => Ok(self.json_list(meta, items)),
            Codec::Protobuf => self.protobuf_list(meta, &items),
        }
    }

    fn json_list(&self, meta: &ListMeta, items: Vec<Arc<Revision>>) -> (Body, usize) {
        if let Representation::Table(version) = self.representation {
            let rows = items.iter().map(|item| self.converted(item));
            let bytes = to_bytes(&self.table(version, meta, rows, true));
            let len = bytes.len();
            return (Body::whole(bytes), len);
        }
        let (api_version, kind) = self.list_type_meta();
        let mut meta = meta.to_json();
        if self.resource.custom && self.representation == Representation::Object {
            // Lists of custom objects include it even if it is empty.
            let token = meta["continue"].take();
            meta["continue"] = token.as_str().unwrap_or_default().into();
        }
        let opening = format!(
            r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{meta},"items":["#
        );
        let len = opening.len() + items.iter().map(|item| item.line().len()).sum::<usize>();
        let view = self.clone();
        let mut items = items.into_iter();
        let mut pending = Some(opening.into_bytes());
        let mut first = true;
        let chunks = std::iter::from_fn(move || {
            let mut chunk = pending.take()?;
            chunk.reserve(LIST_CHUNK_BYTES);
            while chunk.len() < LIST_CHUNK_BYTES {
                let Some(item) = items.next() else {
                    chunk.extend_from_slice(b"]}\n");
                    return Some(Ok(chunk.into()));
                };
                if !std::mem::replace(&mut first, false) {
                    chunk.push(b',');
                }
                view.push_item(&mut chunk, &item);
            }
            pending = Some(Vec::new());
            Some(Ok(Bytes::from(chunk)))
        });
        (Body::chunks(stream::iter(chunks)), len)
    }

    /// Writes an item of a list. Items of built-in kinds have no apiVersion and kind, as on a real
    /// server; clients must not depend on them.
    fn push_item(&self, out: &mut Vec<u8>, item: &Revision) {
        if self.representation == Representation::Object
            && !self.resource.custom
            && !self.converts_events()
        {
            out.push(b'{');
            out.extend_from_slice(&item.tail());
        } else if self.representation == Representation::Object && self.converts_events() {
            let mut object = self.converted(item);
            if let Some(object) = object.as_object_mut() {
                object.retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind"));
            }
            out.extend_from_slice(&to_bytes(&object));
        } else {
            out.extend_from_slice(&self.json_object(item));
        }
    }

    fn metadata_only(&self, metadata: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(self.head.len() + metadata.len() + 16);
        out.extend_from_slice(&self.head);
        out.extend_from_slice(br#""metadata":"#);
        out.extend_from_slice(metadata);
        out.push(b'}');
        out.into()
    }

    fn converts_events(&self) -> bool {
        self.resource.group == events::GROUP
    }

    fn converted(&self, revision: &Revision) -> Value {
        let mut object = revision.to_map();
        if self.converts_events() {
            events::from_core(&mut object);
        } else if self.resource.custom {
            object.insert("apiVersion".to_owned(), self.resource.api_version().into());
        }
        Value::Object(object)
    }

    fn table(
        &self,
        meta: MetaVersion,
        list: &ListMeta,
        rows: impl IntoIterator<Item = Value>,
        headers: bool,
    ) -> Value {
        let now = self.clock.now();
        let rows = rows.into_iter().map(|object| {
            let cells = print::cells(&self.resource, &object, now);
            let object = match self.include {
                Include::Nothing => Value::Null,
                Include::Object => object,
                Include::Metadata => partial(meta, &object),
            };
            json!({"cells": cells, "object": object})
        });
        json!({
            "kind": "Table",
            "apiVersion": meta.api_version(),
            "metadata": list.to_json(),
            "columnDefinitions": headers.then(|| print::columns(&self.resource)),
            "rows": rows.collect::<Vec<_>>(),
        })
    }
}

/// Returns the line of an event whose object is not a revision, such as the `Status` of an ERROR.
pub(crate) fn event_line(event_type: EventType, object: &[u8]) -> Bytes {
    let opening = event_type.opening();
    let mut line = Vec::with_capacity(opening.len() + object.len() + EVENT_CLOSING.len());
    line.extend_from_slice(opening);
    line.extend_from_slice(object);
    line.extend_from_slice(EVENT_CLOSING);
    line.into()
}

fn to_bytes(value: &Value) -> Bytes {
    value.to_string().into()
}

fn partial(meta: MetaVersion, object: &Value) -> Value {
    let mut out = Map::new();
    out.insert("kind".to_owned(), "PartialObjectMetadata".into());
    out.insert("apiVersion".to_owned(), meta.api_version().into());
    out.insert("metadata".to_owned(), object.get("metadata").cloned().unwrap_or_default());
    Value::Object(out)
}

fn partial_head(meta: MetaVersion) -> Vec<u8> {
    let api_version = meta.api_version();
    format!(r#"{{"apiVersion":"{api_version}","kind":"PartialObjectMetadata","#).into_bytes()
}

fn join(head: &[u8], tail: &[u8]) -> Bytes {
    [head, tail].concat().into()
}
