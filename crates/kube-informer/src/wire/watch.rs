//! A watch, event by event, while it arrives.

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::expected::check_object;
use super::status::{STATUS_BYTES_MAX, excerpt, in_stream};
use super::{Call, OBJECT_BYTES_MAX, Reader, WatchItem, peek, shrink};
use crate::error::Cause;
use crate::json::{ValueEnd, space};
use crate::object::{Packer, Types, position};
use crate::{Error, Object, ResourceVersion, Result};

/// What an event has around its object.
const ENVELOPE_BYTES_MAX: usize = 1 << 10;

/// How much is repeated of a type that is not known.
const TYPE_CHARS_MAX: usize = 30;

/// Reads a watch.
///
/// An event is a line. It holds one line and one chunk.
pub(crate) struct WatchReader {
    call: Call,
    packer: Arc<Packer>,
    types: Option<Types>,
    line_bytes_max: usize,
    chunk: Bytes,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// How much of the body is behind us, to say where a mistake is.
    read: usize,
    failed: bool,
}

impl WatchReader {
    pub(crate) fn new(call: Call, packer: Arc<Packer>) -> Self {
        Self {
            types: call.target.types(),
            call,
            packer,
            line_bytes_max: OBJECT_BYTES_MAX + ENVELOPE_BYTES_MAX,
            chunk: Bytes::new(),
            line: Vec::new(),
            read: 0,
            failed: false,
        }
    }

    /// What the line is, and how long it may be; `part` is its beginning if nothing of it came before.
    fn limit(&self, part: &[u8]) -> (&'static str, usize) {
        let begin = if self.line.is_empty() { part } else { &self.line };
        if begin.starts_with(br#"{"type":"ERROR""#) {
            ("ERROR event", self.line_bytes_max.min(STATUS_BYTES_MAX + ENVELOPE_BYTES_MAX))
        } else {
            ("event", self.line_bytes_max)
        }
    }

    fn take_line(&mut self) -> Option<Result<WatchItem>> {
        let mut line = mem::take(&mut self.line);
        let event = self.event(&line);
        line.clear();
        shrink(&mut line);
        self.line = line;
        event
    }

    /// The event of a line; `None` if there is nothing in it.
    fn event(&mut self, line: &[u8]) -> Option<Result<WatchItem>> {
        let event = (space(line, 0) < line.len()).then(|| self.read_event(line));
        if let Some(Err(_)) = event {
            self.failed = true;
            self.chunk = Bytes::new();
        }
        // And the newline.
        self.read += line.len() + 1;
        event
    }

    /// What is written as servers write it is looked at once: an object that can be packed shows
    /// that the rest is right as well. Anything else is looked at from the beginning.
    fn read_event(&self, line: &[u8]) -> Result<WatchItem> {
        if let Some((change, object)) = usual_change(line)
            && check_object(&peek::types(object), &self.call).is_ok()
            && let Ok(object) = self.packer.pack(object, self.types.as_ref())
        {
            return Ok(change(object));
        }
        let Envelope { event_type, object } = envelope(line)
            .map_err(|what| self.protocol(&format!("the event at byte {}: {what}", self.read)))?;
        match (&*event_type, change(&event_type)) {
            (_, Some(change)) => Ok(self.change(change, object, event_type == "DELETED")),
            ("BOOKMARK", _) => self.bookmark(object),
            ("ERROR", _) if object.len() > STATUS_BYTES_MAX => Err(self
                .protocol(&format!("an ERROR event over the limit of {STATUS_BYTES_MAX} bytes"))),
            ("ERROR", _) => Err(in_stream(object, &self.call)
                .unwrap_or_else(|| self.protocol("an ERROR event without a Status"))),
            (other, _) => {
                let other = excerpt(other, TYPE_CHARS_MAX).unwrap_or_default();
                Ok(skipped(&format!("an event is of the unknown type {other:?}")))
            }
        }
    }

    fn change(&self, change: Change, object: &[u8], deleted: bool) -> WatchItem {
        if let Err(error) = check_object(&peek::types(object), &self.call) {
            return WatchItem::Unreadable {
                error,
                resource_version: ResourceVersion::default(),
                deleted,
            };
        }
        match self.packer.pack(object, self.types.as_ref()) {
            Ok(object) => change(object),
            Err(error) => {
                let (error, resource_version) = peek::identified(error, object);
                WatchItem::Unreadable { error, resource_version, deleted }
            }
        }
    }

    /// A bookmark, or why it cannot be used. A list that is streamed has no end without its last one:
    /// that one is not left out, or its end would be waited for in vain.
    fn bookmark(&self, object: &[u8]) -> Result<WatchItem> {
        #[derive(Deserialize)]
        struct Bookmark {
            metadata: Metadata,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Metadata {
            resource_version: Option<Value>,
            annotations: Option<Annotations>,
        }
        #[derive(Deserialize)]
        struct Annotations {
            #[serde(rename = "k8s.io/initial-events-end")]
            initial_events_end: Option<Value>,
        }
        let read = serde_json::from_slice::<Bookmark>(object).ok().map(|read| read.metadata);
        let Metadata { resource_version, annotations } = read.unwrap_or_default();
        let resource_version =
            resource_version.as_ref().and_then(Value::as_str).unwrap_or_default();
        let end = annotations.and_then(|annotations| annotations.initial_events_end);
        let initial_events_end = end.is_some_and(|end| end == "true");
        let wrong = match check_object(&peek::types(object), &self.call) {
            Err(error) => error.to_string(),
            Ok(()) if resource_version.is_empty() => {
                "a bookmark is without a resourceVersion".to_owned()
            }
            Ok(()) => {
                let resource_version = resource_version.into();
                return Ok(WatchItem::Bookmark { resource_version, initial_events_end });
            }
        };
        if initial_events_end {
            return Err(self.protocol(&format!("at the end of the initial events {wrong}")));
        }
        Ok(skipped(&wrong))
    }

    fn fail(&mut self, what: &str) -> Result<WatchItem> {
        self.failed = true;
        self.line = Vec::new();
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
            let newline = memchr::memchr(b'\n', &self.chunk);
            let part = self.chunk.split_to(newline.unwrap_or(self.chunk.len()));
            let (what, bytes_max) = self.limit(&part);
            if self.line.len() + part.len() > bytes_max {
                return Some(self.fail(&format!(
                    "the {what} that begins at byte {} is over the limit of {bytes_max} bytes",
                    self.read
                )));
            }
            if newline.is_none() {
                self.line.extend_from_slice(&part);
                return None;
            }
            self.chunk.advance(1);
            // A line that came in one piece, as nearly all do, is read where it is.
            let event = if self.line.is_empty() {
                self.event(&part)
            } else {
                self.line.extend_from_slice(&part);
                self.take_line()
            };
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// The last event, if the body ended without a newline after it.
    fn finish(&mut self) -> Option<Result<WatchItem>> {
        if self.failed || self.line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        if let Ok(None) = ValueEnd::default().finish(&self.line) {
            let at = self.read + self.line.len();
            let text = format!("cannot {}: the watch breaks off at byte {at}", self.call);
            self.failed = true;
            return Some(Err(Error::new(Cause::Broken, text)));
        }
        self.take_line()
    }
}

struct Envelope<'a> {
    event_type: Cow<'a, str>,
    object: &'a [u8],
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

/// `{"type":"ADDED","object":…}`: the object is what is in between, without a look at it.
fn usual_change(line: &[u8]) -> Option<(Change, &[u8])> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let (event_type, rest) = rest.split_at_checked(memchr::memchr(b'"', rest)?)?;
    let rest = rest.strip_prefix(br#"","object":"#)?;
    let object = rest.strip_suffix(b"\r").unwrap_or(rest).strip_suffix(b"}")?;
    Some((change(std::str::from_utf8(event_type).ok()?)?, object))
}

/// The type and the object of an event, in any order; the object is found, not looked into.
fn envelope(line: &[u8]) -> Result<Envelope<'_>, String> {
    #[derive(Deserialize)]
    struct Members<'a> {
        #[serde(borrow, rename = "type")]
        event_type: Option<Cow<'a, str>>,
        #[serde(borrow)]
        object: Option<&'a RawValue>,
        kind: Option<IgnoredAny>,
    }
    // Servers write nothing else. These bytes are not those that were sent.
    let text = std::str::from_utf8(line).map_err(|_| "not UTF-8")?;
    // An array would do for serde.
    if line.get(space(line, 0)) != Some(&b'{') {
        return Err("not a JSON object".to_owned());
    }
    let members: Members<'_> = serde_json::from_str(text).map_err(|error| position(&error))?;
    match (members.event_type, members.object) {
        (Some(event_type), Some(object)) => {
            Ok(Envelope { event_type, object: object.get().as_bytes() })
        }
        (None, None) if members.kind.is_some() => Err("an object and not an event".to_owned()),
        _ => Err("it has no type or no object".to_owned()),
    }
}

#[cfg(test)]
mod tests;
