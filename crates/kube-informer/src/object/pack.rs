//! Converts JSON to an object: parses the header and copies the body.

use std::any::Any;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use super::codec::{Body, Codec};
use super::header::{self, Found, Problem, Spare};
use super::shared::Shared;
use super::training::{Enough, Scratch, Training};
use super::uid::Uid;
use super::{Header, Object, Raw, Typed};
use crate::error::Cause;
use crate::json;
use crate::{Error, ObjectKey, ResourceVersion, Result, Transform};

/// The decode function for `Storage::Decoded`, which is all that the core knows of `K`.
pub(crate) type Decoder = fn(&[u8]) -> Result<Arc<dyn Any + Send + Sync>>;

/// The `apiVersion` and `kind` of objects that lack them, such as the items of a list of a built-in kind.
#[derive(Clone, Debug)]
pub(crate) struct Types {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

/// A converter of JSON to objects. Each informer has one.
pub(crate) struct Packer {
    transform: Transform,
    decoder: Option<Decoder>,
    keep_managed_fields: bool,
    packs: bool,
    shared: Shared,
    pub(super) training: Training,
}

impl Packer {
    /// Creates a packer that compresses bodies once there are enough to train a dictionary on.
    pub(crate) fn new(
        transform: Transform,
        decoder: Option<Decoder>,
        keep_managed_fields: bool,
    ) -> Self {
        Self {
            transform,
            decoder,
            keep_managed_fields,
            packs: true,
            shared: Shared::default(),
            training: Training::new(true, Enough::default()),
        }
    }

    /// Leaves all bodies plain.
    pub(crate) fn with_plain_bodies(self) -> Self {
        Self { packs: false, training: Training::new(false, Enough::default()), ..self }
    }

    /// Trains on this many objects, however small they are.
    pub(crate) fn train_on(self, objects: usize) -> Self {
        Self { training: Training::new(self.packs, Enough { objects, bytes: 0 }), ..self }
    }

    /// Returns the packer for objects that belong to no informer.
    pub(crate) fn plain() -> &'static Self {
        static PLAIN: LazyLock<Packer> =
            LazyLock::new(|| Packer::new(Transform::default(), None, false).with_plain_bodies());
        &PLAIN
    }

    /// Packs an object. On failure (`Error::is_unreadable`), the error has the object's key if that can be
    /// read.
    ///
    /// Key, uid and version are those that were received, even if the transform changes them. The rest of the
    /// header reflects the transformed object.
    pub(crate) fn pack(&self, json: &[u8], types: Option<&Types>) -> Result<Object> {
        let (codec, scratch) = self.training.begin();
        let (found, verdict) = header::read(json, scratch.spare);
        let key = match verdict {
            // An object without a key has already been rejected.
            Ok(()) => found.key().ok_or_else(|| unreadable(None, &"its metadata is not there"))?,
            Err(problem) => return Err(unreadable(found.key(), &problem)),
        };
        let (uid, version) = ((*found.uid).into(), found.resource_version());
        let text = self.text(json, &found, types, scratch.text);
        let text = transformed(&self.transform, &key, text.into())?.into_owned();
        let found = if self.transform.changes_header() { reread(&key, &text)? } else { found };
        let (header, spare) = self.header(key, uid, version, found);
        Ok(self.object(header, Scratch { text, spare }, codec))
    }

    /// Packs an object that comes from a custom source. An object that this packer has already packed is
    /// returned as it is, so that nothing is transformed twice.
    pub(crate) fn repack(&self, object: Object) -> Result<Object> {
        let theirs = &object.raw.codec;
        let is_ours = Arc::ptr_eq(&theirs.common, &self.training.codec().common);
        let is_as_ours = !self.changes_objects() && theirs.common.packs == self.packs;
        if is_ours || is_as_ours {
            return Ok(object);
        }
        self.transform(&self.transform, &object)
    }

    /// Applies a transform to an object.
    pub(crate) fn transform<K>(&self, transform: &Transform, object: &Object<K>) -> Result<Object> {
        let Header { key, uid, version, .. } = &object.raw.header;
        let text = object.raw.json()?;
        let text = transformed(transform, key, Cow::Borrowed(&text))?;
        let header = if transform.changes_header() {
            self.header(key.clone(), uid.clone(), version.clone(), reread(key, &text)?).0
        } else {
            object.raw.header.clone()
        };
        Ok(self.object(header, Scratch::of(text.into_owned()), self.training.codec()))
    }

    pub(crate) fn keeps_managed_fields(&self) -> bool {
        self.keep_managed_fields
    }

    /// Describes the transform, if it has no function.
    pub(crate) fn transform_text(&self) -> Option<String> {
        self.transform.text()
    }

    /// Returns whether objects from other packers have to be repacked for this informer.
    pub(crate) fn needs_repack(&self) -> bool {
        self.packs || self.changes_objects()
    }

    pub(super) fn changes_objects(&self) -> bool {
        self.decoder.is_some() || !self.transform.is_empty()
    }

    /// Returns the version of an object that cannot be packed, if it can be read. A watch resumes after that
    /// version.
    pub(crate) fn unreadable_version(json: &[u8]) -> ResourceVersion {
        header::read(json, Spare::default()).0.resource_version()
    }

    pub(super) fn header(
        &self,
        key: ObjectKey,
        uid: Uid,
        version: ResourceVersion,
        mut found: Found<'_>,
    ) -> (Header, Spare) {
        let (labels, controller) = self.shared.share(&mut found.labels, found.controller.as_ref());
        let (generation, deletion) = (found.generation, found.deletion.map(Box::new));
        let header = Header { key, version, uid, generation, deletion, labels, controller };
        (header, found.into_spare())
    }

    /// Writes the text to keep. If it is not written to reused memory, it takes exactly as much as it needs,
    /// and keeping one item does not retain the whole list.
    fn text(
        &self,
        json: &[u8],
        found: &Found<'_>,
        types: Option<&Types>,
        mut text: Vec<u8>,
    ) -> Vec<u8> {
        let cuts = if self.keep_managed_fields { &[][..] } else { &found.managed };
        let cut: usize = cuts.iter().map(Range::len).sum();
        let missing = types.map(|types| missing_types(found, types)).unwrap_or_default();
        let len: usize =
            missing.iter().flatten().map(|(name, value)| name.len() + value.len()).sum();
        text.clear();
        // Each adds two quotes and a comma; only an unusual name has more characters to escape.
        text.reserve_exact(found.extent.len() - cut + len + 6);
        let mut from = found.extent.start;
        if len > 0 {
            text.push(b'{');
            for (name, value) in missing.into_iter().flatten() {
                text.extend_from_slice(name.as_bytes());
                // Writing to memory does not fail.
                _ = serde_json::to_writer(&mut text, value);
                text.push(b',');
            }
            from += 1;
        }
        json::copy_without(json, from..found.extent.end, cuts, &mut text);
        text
    }

    pub(super) fn object(&self, header: Header, scratch: Scratch, codec: Arc<Codec>) -> Object {
        let Scratch { text, spare } = scratch;
        let length = text.len();
        // An object that does not decode is kept nevertheless; `decode` returns the error.
        let decoded = self.decoder.and_then(|decode| {
            let typed =
                catch_unwind(AssertUnwindSafe(|| decode(&text))).ok().and_then(Result::ok)?;
            Some(Box::new(Typed(typed)))
        });
        let id = Self::next_id();
        let (body, text) = match codec.pack(&text) {
            Some(packed) => (packed, text),
            None => (Body::Plain(text.into()), Vec::new()),
        };
        let raw = Raw { header, id, body, codec, decoded };
        let object = Object { raw: Arc::new(raw), kind: PhantomData };
        self.training.note(&object, length, Scratch { text, spare });
        object
    }

    /// Returns an id that is never used again.
    pub(super) fn next_id() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn packs(&self) -> bool {
        self.packs
    }

    pub(super) fn decodes(&self) -> bool {
        self.decoder.is_some()
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }
}

fn transformed<'a>(
    transform: &Transform,
    key: &ObjectKey,
    text: Cow<'a, [u8]>,
) -> Result<Cow<'a, [u8]>> {
    let failed = |error: Error| unreadable(Some(key.clone()), &error).caused_as(&error);
    transform.apply_to_json(text).map_err(failed)
}

/// Reads the header of a transformed object, if there is one: the result need not be an API object.
fn reread<'a>(key: &ObjectKey, body: &'a [u8]) -> Result<Found<'a>> {
    match header::read(body, Spare::default()) {
        (found, Ok(()) | Err(Problem::Wrong { .. })) => Ok(found),
        (_, Err(problem)) => {
            let why = format!("what the transform made of it cannot be kept: {problem}");
            Err(unreadable(Some(key.clone()), &why))
        }
    }
}

/// Returns the members that an object lacks, each with its start and its value. A packed object has other
/// members, so a comma can follow them.
fn missing_types<'a>(found: &Found<'_>, types: &'a Types) -> [Option<(&'static str, &'a str)>; 2] {
    [
        (!found.has_api_version).then_some(("\"apiVersion\":", &*types.api_version)),
        (!found.has_kind).then_some(("\"kind\":", &*types.kind)),
    ]
}

pub(super) fn unreadable(key: Option<ObjectKey>, why: &dyn std::fmt::Display) -> Error {
    let text = match &key {
        Some(key) => format!("{key} cannot be kept: {why}"),
        None => format!("an object cannot be kept: {why}"),
    };
    Error::new(Cause::Unreadable { key }, text)
}

/// Decodes a body as a type, for [`Decoder`].
pub(crate) fn decode<T: serde::de::DeserializeOwned>(json: &[u8]) -> Result<T> {
    serde_json::from_slice(json)
        .map_err(|error| Error::new(Cause::Decode { key: None }, position(&error)))
}

/// Describes an error of `serde_json` by its position and category, without the content that it quotes.
pub(crate) fn position(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Io => "cannot be read",
        serde_json::error::Category::Syntax => "not JSON",
        serde_json::error::Category::Data => "not of the expected type",
        serde_json::error::Category::Eof => "ends too early",
    };
    format!("{what} at line {}, column {}", error.line(), error.column())
}

#[cfg(test)]
mod tests;
