//! Encodings of objects: JSON, and protobuf for the kinds that support it.

use std::fmt;

use bytes::Bytes;
use http::HeaderValue;
use kube_schema::{ENVELOPE_CLOSING, Envelope, WatchFrame};
use serde_json::Value;

/// The encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Json,
    Protobuf,
}

impl Codec {
    /// Returns the codec of a media type without parameters, if it is supported.
    pub(crate) fn of(media_type: &str) -> Option<Self> {
        match media_type {
            "application/json" => Some(Self::Json),
            kube_schema::MEDIA_TYPE => Some(Self::Protobuf),
            _ => None,
        }
    }

    pub(crate) fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Json => "application/json",
            Self::Protobuf => kube_schema::MEDIA_TYPE,
        })
    }

    /// Returns the content type of a watch.
    pub(crate) fn watch_content_type(self) -> HeaderValue {
        match self {
            Self::Json => self.content_type(),
            Self::Protobuf => {
                HeaderValue::from_static("application/vnd.kubernetes.protobuf;stream=watch")
            }
        }
    }

    /// Encodes an object that has an `apiVersion` and a `kind`.
    pub(crate) fn encode(self, object: &Value) -> Result<Bytes, kube_schema::Error> {
        match self {
            Self::Json => Ok(object.to_string().into()),
            Self::Protobuf => kube_schema::to_vec(object).map(Bytes::from),
        }
    }
}

/// An object in protobuf, as the frame that most watchers receive. The object in its envelope and
/// the bare message are slices of it.
pub(crate) struct Encoded {
    frame: Bytes,
    envelope: usize,
    raw: usize,
}

impl Encoded {
    pub(crate) fn new(event_type: &str, api_version: &str, kind: &str, raw: &[u8]) -> Self {
        let envelope = Envelope { api_version, kind, raw }.to_vec();
        let frame = WatchFrame { event_type, object: &envelope }.to_vec();
        let raw = frame.len() - ENVELOPE_CLOSING.len() - raw.len();
        Self { envelope: frame.len() - envelope.len(), raw, frame: frame.into() }
    }

    pub(crate) fn frame(&self) -> Bytes {
        self.frame.clone()
    }

    pub(crate) fn envelope(&self) -> Bytes {
        self.frame.slice(self.envelope..)
    }

    pub(crate) fn raw(&self) -> Bytes {
        self.frame.slice(self.raw..self.frame.len() - ENVELOPE_CLOSING.len())
    }
}

impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The content may be secret.
        write!(f, "Encoded({} bytes)", self.frame.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_holds_the_envelope_and_the_message() {
        let encoded = Encoded::new("ADDED", "v1", "Pod", b"message");
        assert_eq!(encoded.raw(), "message");
        let wanted = Envelope { api_version: "v1", kind: "Pod", raw: b"message" };
        assert_eq!(Envelope::parse(&encoded.envelope()), Ok(wanted));
        let frame = encoded.frame();
        let frame = WatchFrame::parse(&frame[4..]).unwrap();
        assert_eq!((frame.event_type, frame.object), ("ADDED", &*encoded.envelope()));
        assert_eq!(format!("{encoded:?}"), "Encoded(43 bytes)");
    }
}
