//! The envelope of a body in protobuf, and the frames of a watch.

use crate::error::{Error, Problem};
use crate::wire::{Payload, Reader, Wire, first, key, text, varint};

/// How bodies begin.
pub(crate) const MAGIC: &[u8] = b"k8s\0";

/// How envelopes end: without a content encoding, and without a content type.
pub const ENVELOPE_CLOSING: &[u8] = &[0x1a, 0, 0x22, 0];

/// The media type of bodies in protobuf.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// An object in protobuf with its apiVersion and kind, which the message itself does not have:
/// `k8s\0` and a `runtime.Unknown`.
///
/// ```
/// use kube_schema::Envelope;
///
/// let body = Envelope { api_version: "v1", kind: "Pod", raw: &[0x0a, 0] }.to_vec();
/// assert!(body.starts_with(b"k8s\0"));
/// let envelope = Envelope::parse(&body)?;
/// assert_eq!((envelope.api_version, envelope.kind, envelope.raw), ("v1", "Pod", &[0x0a, 0][..]));
/// # Ok::<(), kube_schema::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Group and version.
    pub api_version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The message.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Opens an envelope. The message in it is not looked at.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes.strip_prefix(MAGIC).ok_or(Problem::NoEnvelope)?);
        let mut envelope = Self { api_version: "", kind: "", raw: &[] };
        while let Some(tag) = reader.tag()? {
            match (tag.number, reader.payload(tag.wire)?) {
                (1, Payload::Bytes(bytes)) => envelope.read_type(bytes)?,
                (2, Payload::Bytes(bytes)) => envelope.raw = bytes,
                (3, Payload::Bytes(b"")) => {}
                (4, Payload::Bytes(bytes))
                    if bytes.is_empty() || bytes == MEDIA_TYPE.as_bytes() => {}
                (1..=4, _) => return Err(Problem::Content.into()),
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &'a [u8]) -> Result<(), Error> {
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            match (tag.number, reader.payload(tag.wire)?) {
                (1, Payload::Bytes(bytes)) => self.api_version = text(bytes)?,
                (2, Payload::Bytes(bytes)) => self.kind = text(bytes)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes it.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Self::opening(self.api_version, self.kind, self.raw.len());
        out.reserve_exact(self.raw.len() + ENVELOPE_CLOSING.len());
        out.extend_from_slice(self.raw);
        out.extend_from_slice(ENVELOPE_CLOSING);
        out
    }

    /// Writes an envelope up to its message, which is `len` bytes. After that comes [`ENVELOPE_CLOSING`]. For messages that
    /// are not in memory as a whole.
    pub fn opening(api_version: &str, kind: &str, len: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::opening_len(api_version, kind, len));
        Self::push_opening(&mut out, api_version, kind, len);
        out
    }

    /// Returns the number of bytes that [`push_opening`](Self::push_opening) appends.
    pub fn opening_len(api_version: &str, kind: &str, len: usize) -> usize {
        MAGIC.len() + field_len(1, type_meta_len(api_version, kind)) + field_len(2, len) - len
    }

    /// Appends what [`opening`](Self::opening) returns.
    pub fn push_opening(out: &mut Vec<u8>, api_version: &str, kind: &str, len: usize) {
        out.extend_from_slice(MAGIC);
        push_field_opening(out, 1, type_meta_len(api_version, kind));
        push_field(out, 1, api_version.as_bytes());
        push_field(out, 2, kind.as_bytes());
        push_field_opening(out, 2, len);
    }
}

fn type_meta_len(api_version: &str, kind: &str) -> usize {
    field_len(1, api_version.len()) + field_len(2, kind.len())
}

impl std::fmt::Debug for Envelope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Does not print the content, which is a user's object.
        write!(f, "Envelope({} {}, {} bytes)", self.api_version, self.kind, self.raw.len())
    }
}

/// Appends a field of bytes, a text or a message to a message.
pub fn push_field(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    push_field_opening(out, number, bytes.len());
    out.extend_from_slice(bytes);
}

/// How many bytes [`push_field`] appends for a value of `len` bytes.
pub fn field_len(number: u32, len: usize) -> usize {
    varint(key(number, Wire::Bytes)).1 + varint(len as u64).1 + len
}

/// Appends what comes before the value of a field that is `len` bytes: [`push_field`] without the value.
pub fn push_field_opening(out: &mut Vec<u8>, number: u32, len: usize) {
    for value in [key(number, Wire::Bytes), len as u64] {
        let (bytes, len) = varint(value);
        out.extend_from_slice(&bytes[..len]);
    }
}

/// An event of a watch in protobuf.
///
/// ```
/// use kube_schema::{Envelope, WatchFrame};
///
/// let object = Envelope { api_version: "v1", kind: "Pod", raw: &[] }.to_vec();
/// let bytes = WatchFrame { event_type: "ADDED", object: &object }.to_vec();
/// let length = u32::from_be_bytes(bytes[..4].try_into()?);
/// let frame = WatchFrame::parse(&bytes[4..][..length as usize])?;
/// assert_eq!((frame.event_type, frame.object), ("ADDED", &*object));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WatchFrame<'a> {
    /// `ADDED`, `MODIFIED`, …
    pub event_type: &'a str,
    /// The object in its envelope.
    pub object: &'a [u8],
}

impl<'a> WatchFrame<'a> {
    /// Reads an event from a frame: from what follows its length, which is four bytes, the highest first.
    pub fn parse(frame: &'a [u8]) -> Result<Self, Error> {
        let mut event = Self { event_type: "", object: &[] };
        let mut reader = Reader::new(frame);
        while let Some(tag) = reader.tag()? {
            match (tag.number, reader.payload(tag.wire)?) {
                (1, Payload::Bytes(bytes)) => event.event_type = text(bytes)?,
                (2, Payload::Bytes(bytes)) => {
                    event.object = first(bytes)?.unwrap_or_default();
                }
                _ => {}
            }
        }
        Ok(event)
    }

    /// Writes the event as it is sent, with the length before it.
    pub fn to_vec(&self) -> Vec<u8> {
        let object = field_len(1, self.object.len());
        let len = field_len(1, self.event_type.len()) + field_len(2, object);
        let mut out = Vec::with_capacity(len + 4);
        out.extend_from_slice(&(len as u32).to_be_bytes());
        push_field(&mut out, 1, self.event_type.as_bytes());
        push_field_opening(&mut out, 2, object);
        push_field(&mut out, 1, self.object);
        out
    }
}

impl std::fmt::Debug for WatchFrame<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WatchFrame({}, {} bytes)", self.event_type, self.object.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_envelope_is_refused() {
        for bytes in [&b""[..], b"{}", b"k8s", b"k8s\0\x0a", b"k8s\0\x08\x01", b"k8s\0\x1a\x04gzip"]
        {
            assert!(Envelope::parse(bytes).is_err(), "{bytes:?}");
        }
        let json = [MAGIC, &[0x22, 16], b"application/json"].concat();
        assert_eq!(Envelope::parse(&json), Err(Problem::Content.into()));
    }

    #[test]
    fn unknown_fields_of_an_envelope_are_skipped() {
        let mut body = Envelope { api_version: "v1", kind: "Pod", raw: b"x" }.to_vec();
        body.extend_from_slice(&[0x28, 1]);
        assert_eq!(Envelope::parse(&body).unwrap().raw, b"x");
    }

    #[test]
    fn lengths_are_known_beforehand() {
        for (number, len) in [(1, 0), (15, 127), (16, 128), (2000, 20000)] {
            let mut out = Vec::new();
            push_field(&mut out, number, &vec![0; len]);
            assert_eq!(out.len(), field_len(number, len));
            let opening = Envelope::opening("v1", "Pod", len);
            assert_eq!(opening.len(), Envelope::opening_len("v1", "Pod", len));
        }
    }

    #[test]
    fn objects_are_not_printed() {
        let object = Envelope { api_version: "v1", kind: "Secret", raw: b"hidden" };
        assert_eq!(format!("{object:?}"), "Envelope(v1 Secret, 6 bytes)");
        let frame = WatchFrame { event_type: "ADDED", object: b"hidden" };
        assert_eq!(format!("{frame:?}"), "WatchFrame(ADDED, 6 bytes)");
    }
}
