//! A watch, event by event, while it arrives.

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

/// What an event has around its object.
const ENVELOPE_BYTES_MAX: usize = 1 << 10;

/// How much is repeated of a type that is not known.
const TYPE_CHARS_MAX: usize = 30;

/// Reads a watch.
///
/// An event is a line of JSON, or a frame of protobuf. It holds one event and one chunk.
pub(crate) struct WatchReader {
    call: Call,
    packer: Arc<Packer>,
    encoding: Encoding,
    types: Option<Types>,
    event_bytes_max: usize,
    chunk: Bytes,
    /// The beginning of an event whose end has not come.
    pending: Vec<u8>,
    /// How much of the body is behind us, to say where a mistake is.
    read: usize,
    failed: bool,
}

/// Where the current event is in a chunk.
struct Cut {
    /// The bytes of the chunk that are part of the event.
    event: usize,
    /// The bytes behind it that separate it from the next.
    separator: usize,
    /// The event ends in this chunk.
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

    /// The kind of event, and how long it may be; `part` is its beginning if nothing of it came before.
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

    /// The item of an event; `None` if there is nothing in it.
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
            // What is written as servers write it is looked at once: an object that can be packed shows
            // that the rest is right as well. Anything else is looked at from the beginning.
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

    /// The item of an event whose object is right.
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

    /// A bookmark, or why it cannot be used. A list that is streamed has no end without its last one:
    /// that one is not left out, or its end would be waited for in vain.
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
            // Not split: that would count references to the chunk for each event.
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
            // An event that came in one piece, as nearly all do, is read where it is.
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

    /// The last event, if the body ended without a newline after it.
    fn finish(&mut self) -> Option<Result<WatchItem>> {
        let is_whole = match self.encoding {
            Encoding::Json if json::is_blank(&self.pending) => return None,
            Encoding::Json => json::is_whole(&self.pending),
            // A frame that is whole has been taken.
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

/// An event that says nothing that is understood: it has neither key nor version.
fn skipped(why: &str) -> WatchItem {
    let error = Error::new(Cause::Unreadable { key: None }, why);
    WatchItem::Unreadable { error, resource_version: ResourceVersion::default(), deleted: false }
}

/// What an event says of its object.
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
