//! Events as frames of protobuf: a length of four bytes, big-endian, and the event.

use std::borrow::Cow;

use kube_schema::{Envelope, WatchFrame};

use super::{Cut, Payload, WatchEvent};
use crate::object::Types;

const LENGTH_BYTES: usize = 4;

pub(super) fn cut(pending: &[u8], chunk: &[u8]) -> Cut {
    let came = pending.len();
    let mut length = [0; LENGTH_BYTES];
    let begin = pending.iter().chain(chunk).take(LENGTH_BYTES);
    let known = length.iter_mut().zip(begin).map(|(to, from)| *to = *from).count();
    if known < LENGTH_BYTES {
        let len = came + chunk.len();
        return Cut { event: chunk.len(), separator: 0, is_whole: false, len };
    }
    // A length that does not fit exceeds every limit.
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    let len = length.saturating_add(LENGTH_BYTES);
    let event = chunk.len().min(len.saturating_sub(came));
    Cut { event, separator: 0, is_whole: came + event == len, len }
}

/// Returns whether a frame that starts like this is an ERROR event in the usual form.
pub(super) fn is_error(begin: &[u8]) -> bool {
    begin.get(LENGTH_BYTES..).is_some_and(|begin| begin.starts_with(b"\x0a\x05ERROR"))
}

/// Returns the type and the object of an event. `types` are those of objects that declare none.
pub(super) fn parse<'a>(
    frame: &'a [u8],
    types: Option<&'a Types>,
) -> Result<WatchEvent<'a>, String> {
    let event = frame.get(LENGTH_BYTES..).unwrap_or_default();
    let WatchFrame { event_type, object } =
        WatchFrame::parse(event).map_err(|error| error.to_string())?;
    if object.is_empty() {
        return Err("it has no type or no object".to_owned());
    }
    let envelope = Envelope::parse(object).map_err(|error| error.to_string())?;
    let object = Payload::of_envelope(envelope, types);
    Ok(WatchEvent { event_type: Cow::from(event_type), object })
}
