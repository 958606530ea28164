//! The encoding of bodies, and the state that the objects of an informer share for it.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;

use super::dictionary::Dictionary;
use super::memo::Memo;
use super::unpacked::Unpacked;

/// Shorter bodies are not worth a frame.
const PACKED_BYTES_MIN: usize = 128;

/// The body of an object.
pub(super) enum Body {
    Plain(Box<[u8]>),
    /// A zstd frame, which is read with the dictionary of its codec.
    Packed(Box<[u8]>),
}

/// The encoding of some objects of an informer. Each object holds the codec that it was packed with, so a
/// dictionary lives for as long as it is the latest one or a body needs it.
pub(crate) struct Codec {
    /// Without a dictionary, bodies are plain.
    dictionary: Option<Dictionary>,
    pub(super) common: Arc<Common>,
}

/// State that all objects of one informer share.
pub(super) struct Common {
    /// Whether there will be a dictionary once there are enough objects.
    pub(super) packs: bool,
    pub(super) memo: Memo,
    pub(super) unpacked: Unpacked,
    /// The codec with the latest dictionary, once there is one. Plain bodies can be packed with it later.
    latest: Mutex<Weak<Codec>>,
}

impl Codec {
    /// Creates the codec of an informer's first objects.
    pub(super) fn plain(packs: bool) -> Arc<Self> {
        let (memo, unpacked, latest) = Default::default();
        let common = Common { packs, memo, unpacked, latest };
        Arc::new(Self { dictionary: None, common: Arc::new(common) })
    }

    /// Creates a codec for newer objects of the same informer.
    pub(super) fn with_dictionary(&self, dictionary: Dictionary) -> Arc<Self> {
        let codec = Self { dictionary: Some(dictionary), common: self.common.clone() };
        let codec = Arc::new(codec);
        *self.common.latest.lock() = Arc::downgrade(&codec);
        codec
    }

    /// Returns whether bodies are plain only because there is no dictionary yet.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.common.packs && !self.has_dictionary()
    }

    /// Returns the codec for such bodies, once there is a dictionary.
    pub(crate) fn settled(&self) -> Option<Arc<Self>> {
        if self.is_unsettled() { self.common.latest.lock().upgrade() } else { None }
    }

    /// Returns the dictionary, for a snapshot of objects that need it; empty if there is none.
    pub(crate) fn trained(&self) -> &[u8] {
        self.dictionary.as_ref().map_or(&[], Dictionary::trained)
    }

    /// Returns the text of a frame, or zstd's error.
    pub(super) fn unpack(&self, frame: &[u8]) -> Result<Vec<u8>, &'static str> {
        self.dictionary.as_ref().ok_or("no dictionary")?.unpack(frame)
    }

    pub(super) fn has_dictionary(&self) -> bool {
        self.dictionary.is_some()
    }

    /// Packs a text into a frame, if that is worth it.
    pub(super) fn pack(&self, text: &[u8]) -> Option<Body> {
        let dictionary = self.dictionary.as_ref().filter(|_| text.len() >= PACKED_BYTES_MIN)?;
        dictionary.pack(text).map(Body::Packed)
    }

    /// Returns the text of an object's body, or zstd's error.
    pub(super) fn text<'a>(&self, id: u64, body: &'a Body) -> Result<Text<'a>, &'static str> {
        match (body, &self.dictionary) {
            (Body::Plain(text), _) => Ok(Text::Kept(text)),
            (Body::Packed(frame), Some(dictionary)) => {
                self.common.unpacked.text(id, || dictionary.unpack(frame)).map(Text::Unpacked)
            }
            (Body::Packed(_), None) => Err("no dictionary"),
        }
    }
}

impl Body {
    /// Returns the stored bytes.
    pub(super) fn kept(&self) -> &[u8] {
        match self {
            Self::Plain(bytes) | Self::Packed(bytes) => bytes,
        }
    }
}

/// The text of an object's body.
pub(super) enum Text<'a> {
    Kept(&'a [u8]),
    Unpacked(Bytes),
}

impl Deref for Text<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Kept(text) => text,
            Self::Unpacked(text) => text,
        }
    }
}
impl AsRef<[u8]> for Text<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}
