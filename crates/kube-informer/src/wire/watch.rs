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
use super::status::{excerpt, in_stream};
use super::{Call, OBJECT_BYTES_MAX, peek, shrink};
use crate::error::Cause;
use crate::json::{ValueEnd, space};
use crate::object::{Packer, Types, position};
use crate::{Error, Object, ResourceVersion, Result};

/// What an event has around its object.
const ENVELOPE_BYTES_MAX: usize = 1 << 10;

/// A part of a watch.
#[derive(Debug)]
pub(crate) enum WatchPart {
    /// Something happened to an object; or why the object cannot be kept, and its version.
    Change(Change, Result<Object, (Error, ResourceVersion)>),
    /// Nothing older than this will come.
    Bookmark { resource_version: ResourceVersion, initial_events_end: bool },
}

/// What happened to an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

/// Reads a watch: [`push`](Self::push) what came, take the [`next`](Self::next) events until there
/// are none, and [`finish`](Self::finish) where the body ends.
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

    /// What came. The events of what came before must have been taken.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.failed || self.chunk.is_empty(), "events are left");
        self.chunk = chunk;
    }

    /// The next event, `None` until more has come. After an error there is nothing any more.
    pub(crate) fn next(&mut self) -> Option<Result<WatchPart>> {
        while !self.failed && !self.chunk.is_empty() {
            let newline = memchr::memchr(b'\n', &self.chunk);
            let part = self.chunk.split_to(newline.unwrap_or(self.chunk.len()));
            if self.line.len() + part.len() > self.line_bytes_max {
                return Some(self.fail(&format!(
                    "the event that begins at byte {} is over the limit of {} bytes",
                    self.read, self.line_bytes_max
                )));
            }
            if newline.is_none() {
                self.line.extend_from_slice(&part);
                return None;
            }
            self.chunk.advance(1);
            // A line that came in one piece, as nearly all do, is read where it is.
            let event = if self.line.is_empty() {
                self.event(&part, part.len() + 1)
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
    pub(crate) fn finish(&mut self) -> Option<Result<WatchPart>> {
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

    fn take_line(&mut self) -> Option<Result<WatchPart>> {
        let mut line = mem::take(&mut self.line);
        let event = self.event(&line, line.len() + 1);
        line.clear();
        shrink(&mut line);
        self.line = line;
        event
    }

    /// The event of a line that takes so many bytes; `None` if there is nothing in it.
    fn event(&mut self, line: &[u8], bytes: usize) -> Option<Result<WatchPart>> {
        if space(line, 0) == line.len() {
            self.read += bytes;
            return None;
        }
        let event = self.read_event(line);
        if event.is_err() {
            self.failed = true;
            self.chunk = Bytes::new();
        }
        self.read += bytes;
        Some(event)
    }

    /// What is written as servers write it is looked at once: an object that can be packed shows
    /// that the rest is right as well. Anything else is looked at from the beginning.
    fn read_event(&self, line: &[u8]) -> Result<WatchPart> {
        if let Some(envelope) = usual_envelope(line)
            && let Ok(part @ WatchPart::Change(_, Ok(_))) = self.read_part(envelope)
        {
            return Ok(part);
        }
        let envelope = envelope(line)
            .map_err(|what| self.protocol(&format!("the event at byte {}: {what}", self.read)))?;
        self.read_part(envelope)
    }

    fn read_part(&self, Envelope { event_type, object }: Envelope<'_>) -> Result<WatchPart> {
        let change = match &*event_type {
            "ADDED" => Change::Added,
            "MODIFIED" => Change::Modified,
            "DELETED" => Change::Deleted,
            "BOOKMARK" => return self.bookmark(object),
            "ERROR" => {
                return Err(in_stream(object, &self.call)
                    .unwrap_or_else(|| self.protocol("an ERROR event without a Status")));
            }
            other => {
                let other = excerpt(other, 30).unwrap_or_default();
                return Err(self.protocol(&format!("an event of the unknown type {other:?}")));
            }
        };
        check_object(&peek::types(object), &self.call)?;
        let packed = self.packer.pack(object, self.types.as_ref());
        let packed = packed.map_err(|error| peek::identified(error, object));
        Ok(WatchPart::Change(change, packed))
    }

    fn bookmark(&self, object: &[u8]) -> Result<WatchPart> {
        #[derive(Deserialize)]
        struct Bookmark {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            resource_version: String,
            annotations: Option<Annotations>,
        }
        #[derive(Deserialize)]
        struct Annotations {
            #[serde(rename = "k8s.io/initial-events-end")]
            initial_events_end: Option<Value>,
        }
        let read = serde_json::from_slice::<Bookmark>(object).ok().map(|read| read.metadata);
        let Some(metadata) = read.filter(|metadata| !metadata.resource_version.is_empty()) else {
            return Err(self.protocol("a bookmark without a resourceVersion"));
        };
        let end = metadata.annotations.and_then(|annotations| annotations.initial_events_end);
        Ok(WatchPart::Bookmark {
            resource_version: metadata.resource_version.into(),
            initial_events_end: end.is_some_and(|end| end == "true"),
        })
    }

    fn fail(&mut self, what: &str) -> Result<WatchPart> {
        self.failed = true;
        self.line = Vec::new();
        self.chunk = Bytes::new();
        Err(self.protocol(what))
    }

    fn protocol(&self, what: &str) -> Error {
        Error::protocol(format!("cannot {} any longer: {what}", self.call))
    }
}

struct Envelope<'a> {
    event_type: Cow<'a, str>,
    object: &'a [u8],
}

/// `{"type":"ADDED","object":…}`: the object is what is in between, without a look at it.
fn usual_envelope(line: &[u8]) -> Option<Envelope<'_>> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let (event_type, rest) = rest.split_at_checked(memchr::memchr(b'"', rest)?)?;
    let rest = rest.strip_prefix(br#"","object":"#)?;
    let object = rest.strip_suffix(b"\r").unwrap_or(rest).strip_suffix(b"}")?;
    Some(Envelope { event_type: std::str::from_utf8(event_type).ok()?.into(), object })
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
