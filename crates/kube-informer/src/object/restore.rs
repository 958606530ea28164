//! Objects in snapshots: the header field by field, and the body as it is kept, so that nothing has to be
//! parsed or packed again.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use super::codec::{Body, Codec};
use super::dictionary::Dictionary;
use super::header::FoundOwner;
use super::pack::unreadable;
use super::training::Scratch;
use super::{Header, Object, Packer, Raw};
use crate::{ObjectKey, ResourceVersion, Result};

/// A header that is restored from a snapshot.
pub(crate) struct KeptHeader<'a> {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Cow<'a, str>,
    pub(crate) version: ResourceVersion,
    pub(crate) generation: Option<i64>,
    pub(crate) deletion: Option<jiff::Timestamp>,
    pub(crate) labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The controller's `apiVersion`, kind, name and uid.
    pub(crate) controller: Option<[Cow<'a, str>; 4]>,
}

/// A body, as text or as a frame of the accompanying codec.
#[derive(Clone, Copy)]
pub(crate) enum KeptBody<'a> {
    Text(&'a [u8]),
    Frame(&'a [u8]),
}

impl Object {
    /// Calls `put` with the body: the frame if it is one of this codec, and its text otherwise.
    pub(crate) fn keep_body<T>(
        &self,
        codec: &Arc<Codec>,
        put: impl FnOnce(KeptBody<'_>) -> T,
    ) -> Result<T> {
        if let Body::Packed(frame) = &self.raw.body
            && Arc::ptr_eq(codec, &self.raw.codec)
        {
            return Ok(put(KeptBody::Frame(frame)));
        }
        Ok(put(KeptBody::Text(&self.raw.text()?)))
    }
}

impl Packer {
    /// Returns the codec for the next objects.
    pub(crate) fn codec(&self) -> Arc<Codec> {
        self.training.codec()
    }

    /// Restores a codec with the dictionary of an earlier run. Later objects are packed with it too, if they
    /// are packed at all. Returns `None` if the bytes are not a dictionary.
    pub(crate) fn restore_codec(&self, dictionary: &[u8]) -> Option<Arc<Codec>> {
        let dictionary = Dictionary::of(dictionary.into())?;
        Some(if self.keeps_frames() {
            self.training.install(dictionary)
        } else {
            Codec::plain(false).with_dictionary(dictionary)
        })
    }

    /// Restores an object of an earlier run, from this packer or an equivalent one. Nothing is transformed
    /// again.
    pub(crate) fn restore(
        &self,
        header: KeptHeader<'_>,
        body: KeptBody<'_>,
        codec: &Arc<Codec>,
    ) -> Result<Object> {
        let header = self.kept_header(header);
        match body {
            KeptBody::Frame(frame) if self.keeps_frames() => {
                let (body, codec) = (Body::Packed(frame.into()), codec.clone());
                let raw = Raw { id: Self::next_id(), header, body, codec, decoded: None };
                Ok(Object { raw: Arc::new(raw), kind: PhantomData })
            }
            KeptBody::Frame(frame) => {
                let text = codec.unpack(frame);
                let text = text.map_err(|why| unreadable(Some(header.key.clone()), &why))?;
                Ok(self.object(header, Scratch::of(text), self.codec()))
            }
            KeptBody::Text(text) => {
                Ok(self.object(header, Scratch::of(text.to_vec()), self.codec()))
            }
        }
    }

    /// Returns whether a frame can be kept as it is.
    fn keeps_frames(&self) -> bool {
        self.packs() && !self.decodes()
    }

    fn kept_header(&self, mut kept: KeptHeader<'_>) -> Header {
        let owner = kept.controller.map(|[api_version, kind, name, uid]| FoundOwner {
            api_version,
            kind,
            name,
            uid,
        });
        let (labels, controller) = self.shared().share(&mut kept.labels, owner.as_ref());
        Header {
            key: kept.key,
            uid: (*kept.uid).into(),
            version: kept.version,
            generation: kept.generation,
            deletion: kept.deletion.map(Box::new),
            labels,
            controller,
        }
    }
}
