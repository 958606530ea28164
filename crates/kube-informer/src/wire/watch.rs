//! A watch, read event by event while it arrives.

mod json;
mod protobuf;

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;

use bytes::{Buf, Bytes};

use super::expected::check_object;
use super::payload::Payload;
use super::status::{STATUS_BYTES_MAX, excerpt, in_stream};
use super::{Call, Encoding, OBJECT_BYTES_MAX, Reader, WatchItem, shrink};
use crate::error::Cause;
use crate::object::{Packer, Types};
use crate::{Error, Object, ResourceVersion, Result};

/// The limit for the part of an event around its object.
const ENVELOPE_BYTES_MAX: usize = 1 << 10;

/// How much of an unknown type is shown in errors.
const TYPE_CHARS_MAX: usize = 30;

/// A reader of a watch.
///
/// An event is a line of JSON, or a frame of protobuf. The reader holds one event and one chunk.
pub(crate) struct WatchReader {
    call: Call,
    packer: Arc<Packer>,
    encoding: Encoding,
    types: Option<Types>,
    event_bytes_max: usize,
    chunk: Bytes,
    /// The start of an event whose end has not arrived.
    pending: Vec<u8>,
    /// The number of bytes of the body that have been read, for positions in errors.
    read: usize,
    failed: bool,
}

/// The extent of the current event in a chunk.
struct Cut {
    /// The bytes of the chunk that are part of the event.
    event: usize,
    /// The bytes that separate it from the next event.
    separator: usize,
    /// Whether the event ends in this chunk.
    is_whole: bool,
    /// The length of the event, as far as it is known.
    len: usize,
}

/// The type and the object of an event.
struct WatchEvent<'a> {
    event_type: Cow<'a, str>,
    object: Payload<'a>,
}

impl WatchReader {
    pub(crate) fn new(call: Call, packer: Arc<Packer>, encoding: Encoding) -> Self {
        Self {
            types: call.target.types(),
            call,
            packer,
            encoding,
            event_bytes_max: OBJECT_BYTES_MAX + ENVELOPE_BYTES_MAX,
            chunk: Bytes::new(),
            pending: Vec::new(),
            read: 0,
            failed: false,
        }
    }

    fn cut(&self) -> Cut {
        match self.encoding {
            Encoding::Json => json::cut(&self.pending, &self.chunk),
            Encoding::Protobuf => protobuf::cut(&self.pending, &self.chunk),
        }
    }

    /// Returns the name of the event and its size limit. `part` is the start of the event if nothing of it is
    /// pending.
    fn limit(&self, part: &[u8]) -> (&'static str, usize) {
        let begin = if self.pending.is_empty() { part } else { &self.pending };
        let is_error = match self.encoding {
            Encoding::Json => json::is_error(begin),
            Encoding::Protobuf => protobuf::is_error(begin),
        };
        if is_error {
            ("ERROR event", self.event_bytes_max.min(STATUS_BYTES_MAX + ENVELOPE_BYTES_MAX))
        } else {
            ("event", self.event_bytes_max)
        }
    }

    fn take_pending(&mut self, separator: usize) -> Option<Result<WatchItem>> {
        let mut pending = mem::take(&mut self.pending);
        let event = self.event(&pending, separator);
        pending.clear();
        shrink(&mut pending);
        self.pending = pending;
        event
    }

    /// Returns the item of an event, or `None` if the event is blank.
    fn event(&mut self, event: &[u8], separator: usize) -> Option<Result<WatchItem>> {
        let is_blank = self.encoding == Encoding::Json && json::is_blank(event);
        let item = (!is_blank).then(|| self.read_event(event));
        if let Some(Err(_)) = item {
            self.failed = true;
            self.chunk = Bytes::new();
        }
        self.read += event.len() + separator;
        item
    }

    fn read_event(&self, event: &[u8]) -> Result<WatchItem> {
        let parsed = match self.encoding {
            // An event in the usual form is read once: if its object can be packed, the rest is valid too.
            // Any other event is parsed from the start.
            Encoding::Json => {
                match json::usual_event(event).and_then(|event| self.packed(&event)) {
                    Some(item) => return Ok(item),
                    None => json::parse(event),
                }
            }
            Encoding::Protobuf => protobuf::parse(event, self.types.as_ref()),
        };
        let WatchEvent { event_type, object } = parsed
            .map_err(|what| self.protocol(&format!("the event at byte {}: {what}", self.read)))?;
        match (&*event_type, change(&event_type)) {
            (_, Some(change)) => Ok(self.change(change, &object, event_type == "DELETED")),
            ("BOOKMARK", _) => self.bookmark(&object),
            ("ERROR", _) if object.len() > STATUS_BYTES_MAX => Err(self
                .protocol(&format!("an ERROR event over the limit of {STATUS_BYTES_MAX} bytes"))),
            ("ERROR", _) => Err(match object.status() {
                Some(status) => in_stream(status, &self.call),
                None => self.protocol("an ERROR event without a Status"),
            }),
            (other, _) => {
                let other = excerpt(other, TYPE_CHARS_MAX).unwrap_or_default();
                Ok(skipped(&format!("an event is of the unknown type {other:?}")))
            }
        }
    }

    /// Returns the item of an event with a valid object.
    fn packed(&self, WatchEvent { event_type, object }: &WatchEvent<'_>) -> Option<WatchItem> {
        let change = change(event_type)?;
        check_object(&object.types(), &self.call).ok()?;
        object.pack(&self.packer, self.types.as_ref()).ok().map(change)
    }

    fn change(&self, change: Change, object: &Payload<'_>, deleted: bool) -> WatchItem {
        if let Err(error) = check_object(&object.types(), &self.call) {
            return WatchItem::Unreadable {
                error,
                resource_version: ResourceVersion::default(),
                deleted,
            };
        }
        match object.pack(&self.packer, self.types.as_ref()) {
            Ok(object) => change(object),
            Err(error) => {
                let (error, resource_version) = object.identified(error);
                WatchItem::Unreadable { error, resource_version, deleted }
            }
        }
    }

    /// Returns a bookmark, or the reason why it cannot be used. The bookmark that ends a streamed list is
    /// never skipped, because the reflector would wait for it in vain: a bad one is an error.
    fn bookmark(&self, object: &Payload<'_>) -> Result<WatchItem> {
        let bookmark = object.bookmark();
        let wrong = match check_object(&object.types(), &self.call) {
            Err(error) => error.to_string(),
            Ok(()) if bookmark.resource_version.is_empty() => {
                "a bookmark is without a resourceVersion".to_owned()
            }
            Ok(()) => {
                return Ok(WatchItem::Bookmark {
                    resource_version: bookmark.resource_version.into(),
                    initial_events_end: bookmark.initial_events_end,
                });
            }
        };
        if bookmark.initial_events_end {
            return Err(self.protocol(&format!("at the end of the initial events {wrong}")));
        }
        Ok(skipped(&wrong))
    }

    fn fail(&mut self, what: &str) -> Result<WatchItem> {
        self.failed = true;
        self.pending = Vec::new();
        self.chunk = Bytes::new();
        Err(self.protocol(what))
    }

    fn protocol(&self, what: &str) -> Error {
        Error::protocol(format!("cannot {} any longer: {what}", self.call))
    }
}

impl Reader for WatchReader {
    type Item = WatchItem;

    fn call(&self) -> &Call {
        &self.call
    }

    fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.failed || self.chunk.is_empty(), "events are left");
        self.chunk = chunk;
    }

    fn next(&mut self) -> Option<Result<WatchItem>> {
        while !self.failed && !self.chunk.is_empty() {
            let Cut { event, separator, is_whole, len } = self.cut();
            // Not split, which would count references to the chunk for each event.
            let mut chunk = mem::take(&mut self.chunk);
            let part = &chunk[..event];
            let (what, bytes_max) = self.limit(part);
            if len > bytes_max {
                return Some(self.fail(&format!(
                    "the {what} that begins at byte {} is over the limit of {bytes_max} bytes",
                    self.read
                )));
            }
            if !is_whole {
                self.pending.extend_from_slice(part);
                continue;
            }
            // An event that arrived in one piece, as nearly all do, is read in place.
            let item = if self.pending.is_empty() {
                self.event(part, separator)
            } else {
                self.pending.extend_from_slice(part);
                self.take_pending(separator)
            };
            if !self.failed {
                chunk.advance(event + separator);
                self.chunk = chunk;
            }
            if item.is_some() {
                return item;
            }
        }
        None
    }

    /// Returns the last event, if the body ended without a newline after it.
    fn finish(&mut self) -> Option<Result<WatchItem>> {
        let is_whole = match self.encoding {
            Encoding::Json if json::is_blank(&self.pending) => return None,
            Encoding::Json => json::is_whole(&self.pending),
            // A complete frame has already been taken.
            Encoding::Protobuf => false,
        };
        if self.failed || self.pending.is_empty() {
            return None;
        }
        if !is_whole {
            let at = self.read + self.pending.len();
            let text = format!("cannot {}: the watch breaks off at byte {at}", self.call);
            self.failed = true;
            return Some(Err(Error::new(Cause::Broken, text)));
        }
        self.take_pending(0)
    }
}

/// Returns the item for an event that cannot be understood, and therefore has neither key nor version.
fn skipped(why: &str) -> WatchItem {
    let error = Error::new(Cause::Unreadable { key: None }, why);
    WatchItem::Unreadable { error, resource_version: ResourceVersion::default(), deleted: false }
}

/// The effect of an event on its object.
type Change = fn(Object) -> WatchItem;

fn change(event_type: &str) -> Option<Change> {
    match event_type {
        "ADDED" => Some(WatchItem::Added),
        "MODIFIED" => Some(WatchItem::Modified),
        "DELETED" => Some(WatchItem::Deleted),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
