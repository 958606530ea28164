//! Events as lines of JSON.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{Cut, Payload, WatchEvent};
use crate::json::{ValueEnd, space};
use crate::object::position;

pub(super) fn cut(pending: &[u8], chunk: &[u8]) -> Cut {
    let newline = memchr::memchr(b'\n', chunk);
    let event = newline.unwrap_or(chunk.len());
    let is_whole = newline.is_some();
    Cut { event, separator: is_whole.into(), is_whole, len: pending.len() + event }
}

/// Returns whether a line that starts like this is an ERROR event in the usual form.
pub(super) fn is_error(begin: &[u8]) -> bool {
    begin.starts_with(br#"{"type":"ERROR""#)
}

pub(super) fn is_blank(line: &[u8]) -> bool {
    space(line, 0) == line.len()
}

/// Returns whether a line without a newline is complete.
pub(super) fn is_whole(line: &[u8]) -> bool {
    !matches!(ValueEnd::default().finish(line), Ok(None))
}

/// Reads an event in the usual form, `{"type":"ADDED","object":…}`, without looking into the object.
pub(super) fn usual_event(line: &[u8]) -> Option<WatchEvent<'_>> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let (event_type, rest) = rest.split_at_checked(memchr::memchr(b'"', rest)?)?;
    let rest = rest.strip_prefix(br#"","object":"#)?;
    let object = rest.strip_suffix(b"\r").unwrap_or(rest).strip_suffix(b"}")?;
    let event_type = Cow::from(std::str::from_utf8(event_type).ok()?);
    Some(WatchEvent { event_type, object: Payload::Json(object) })
}

/// Returns the type and the object of an event, in any order, without looking into the object.
pub(super) fn parse(line: &[u8]) -> Result<WatchEvent<'_>, String> {
    #[derive(Deserialize)]
    struct Members<'a> {
        #[serde(borrow, rename = "type")]
        event_type: Option<Cow<'a, str>>,
        #[serde(borrow)]
        object: Option<&'a RawValue>,
        kind: Option<IgnoredAny>,
    }
    // Servers only write UTF-8: these are not the bytes that were sent.
    let text = std::str::from_utf8(line).map_err(|_| "not UTF-8")?;
    // serde would accept an array.
    if line.get(space(line, 0)) != Some(&b'{') {
        return Err("not a JSON object".to_owned());
    }
    let members: Members<'_> = serde_json::from_str(text).map_err(|error| position(&error))?;
    match (members.event_type, members.object) {
        (Some(event_type), Some(object)) => {
            Ok(WatchEvent { event_type, object: Payload::Json(object.get().as_bytes()) })
        }
        (None, None) if members.kind.is_some() => Err("an object and not an event".to_owned()),
        _ => Err("it has no type or no object".to_owned()),
    }
}
