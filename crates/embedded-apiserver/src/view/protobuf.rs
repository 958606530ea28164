//! Views in protobuf. A revision is encoded once, when the first client requests it in protobuf.
//! Lists, gets and watches use slices of that.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use kube_schema::{ENVELOPE_CLOSING, Envelope, Message, Type, WatchFrame, field_len, push_field};
use serde_json::{Value, json};

use super::{LIST_CHUNK_BYTES, ListMeta, View};
use crate::body::Body;
use crate::codec::Encoded;
use crate::negotiate::Representation;
use crate::status::Status;
use crate::store::{EventType, Revision};

impl View {
    /// Returns an object in its envelope.
    pub(super) fn protobuf_object(&self, revision: &Revision) -> Result<Bytes, Status> {
        if self.is_as_stored() {
            return Ok(self.encoded(revision)?.envelope());
        }
        let raw = self.protobuf_raw(revision)?;
        let (api_version, kind) = self.type_meta();
        Ok(Envelope { api_version: &api_version, kind, raw: &raw }.to_vec().into())
    }

    /// Returns an event as it is sent.
    pub(super) fn frame(
        &self,
        event_type: EventType,
        revision: &Revision,
    ) -> Result<Bytes, Status> {
        if self.is_as_stored() && event_type == revision.event_type() {
            return Ok(self.encoded(revision)?.frame());
        }
        Ok(frame(event_type, &self.protobuf_object(revision)?))
    }

    /// Returns a list. It is encoded completely before the first byte is sent, because the envelope
    /// contains its length.
    pub(super) fn protobuf_list(
        &self,
        meta: &ListMeta,
        items: &[Arc<Revision>],
    ) -> Result<(Body, usize), Status> {
        let (api_version, kind) = self.list_type_meta();
        let list = message(&api_version, kind)?;
        let (Some(meta_field), Some(items_field)) =
            (list.field_named("metadata"), list.field_named("items"))
        else {
            return Err(cannot(kind, "it is no list"));
        };
        let Type::Message(list_meta) = meta_field.kind() else {
            return Err(cannot(kind, "it has no metadata"));
        };
        let meta = list_meta.encode(&meta.to_json()).map_err(|error| cannot(kind, error))?;
        let items = items.iter().map(|item| self.protobuf_raw(item));
        let items = items.collect::<Result<Vec<Bytes>, Status>>()?;
        let number = items_field.number();
        let len = field_len(meta_field.number(), meta.len())
            + items.iter().map(|item| field_len(number, item.len())).sum::<usize>();
        let mut opening = Envelope::opening(&api_version, kind, len);
        let mut closing = Vec::new();
        // Ordered by field number, which differs between v1beta1 and v1.
        let meta_first = meta_field.number() < number;
        push_field(
            if meta_first { &mut opening } else { &mut closing },
            meta_field.number(),
            &meta,
        );
        closing.extend_from_slice(ENVELOPE_CLOSING);
        Ok((in_chunks(opening, number, items, closing), len))
    }

    /// Returns the bare message of an object, which is also an item of a list.
    fn protobuf_raw(&self, revision: &Revision) -> Result<Bytes, Status> {
        if self.is_as_stored() {
            return Ok(self.encoded(revision)?.raw());
        }
        let object = match self.representation {
            Representation::Metadata(_) => {
                let metadata: Value = serde_json::from_slice(&revision.metadata())
                    .map_err(|error| self.cannot(revision, error))?;
                json!({"metadata": metadata})
            }
            _ => self.converted(revision),
        };
        let (api_version, kind) = self.type_meta();
        let raw = message(&api_version, kind)?.encode(&object);
        raw.map(Bytes::from).map_err(|error| self.cannot(revision, error))
    }

    fn encoded<'a>(&self, revision: &'a Revision) -> Result<&'a Encoded, Status> {
        let (api_version, kind) = self.type_meta();
        let message = message(&api_version, kind)?;
        revision.encoded(message, &api_version, kind).map_err(|error| self.cannot(revision, error))
    }

    /// Returns whether the representation is the revision's own protobuf.
    fn is_as_stored(&self) -> bool {
        self.representation == Representation::Object
            && !self.resource.custom
            && !self.converts_events()
    }

    fn cannot(&self, revision: &Revision, why: impl std::fmt::Display) -> Status {
        cannot(&format!("{} {}", self.resource.kind, revision.key()), why)
    }
}

/// Returns the frame of an event whose object is not a revision, such as the `Status` of an ERROR.
pub(super) fn frame(event_type: EventType, object: &[u8]) -> Bytes {
    WatchFrame { event_type: event_type.as_str(), object }.to_vec().into()
}

fn message(api_version: &str, kind: &str) -> Result<Message, Status> {
    kube_schema::message(api_version, kind)
        .ok_or_else(|| cannot(kind, format!("there is none of it in {api_version:?}")))
}

/// Returns the error for an object that cannot be encoded. A real server rejects fields of the
/// wrong types when an object is written. This server checks only a few of them, and detects the
/// others here.
pub(super) fn cannot(what: &str, why: impl std::fmt::Display) -> Status {
    Status::internal(format!("{what} cannot be written as protobuf: {why}"))
}

fn in_chunks(opening: Vec<u8>, number: u32, items: Vec<Bytes>, closing: Vec<u8>) -> Body {
    let mut items = items.into_iter();
    let mut pending = Some(opening);
    let chunks = std::iter::from_fn(move || {
        let mut chunk = pending.take()?;
        while chunk.len() < LIST_CHUNK_BYTES {
            let Some(item) = items.next() else {
                chunk.extend_from_slice(&closing);
                return Some(Ok(chunk.into()));
            };
            push_field(&mut chunk, number, &item);
        }
        pending = Some(Vec::with_capacity(LIST_CHUNK_BYTES));
        Some(Ok(Bytes::from(chunk)))
    });
    Body::chunks(stream::iter(chunks))
}
