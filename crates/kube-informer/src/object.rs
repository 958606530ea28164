//! `Object<K>`: a parsed header and a packed body, in one `Arc` whatever `K` is.

mod codec;
mod dictionary;
mod event;
mod field;
mod header;
mod kind;
mod labels;
mod memo;
mod metadata;
mod pack;
mod problem;
mod protobuf;
mod reference;
mod restore;
mod shared;
mod training;
mod transcode;
mod uid;
mod unpacked;

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Cause;
use crate::{Error, ObjectKey, ResourceVersion, Result};

pub use event::{Deleted, Event, FinalState};
pub use field::FieldPath;
pub(crate) use field::Step;
pub use kind::{Kind, StaticKind, Untyped};
pub use labels::Labels;
pub use metadata::OwnerRef;
pub(crate) use pack::{Decoder, Packer, Types, decode, position};
pub(crate) use problem::problem;

pub(crate) use codec::Codec;
use codec::{Body, Text};
use protobuf::is_protobuf;
pub(crate) use restore::{KeptBody, KeptHeader};
use uid::Uid;

/// A cached object. Cloning clones one `Arc`. The type parameter only decides the result of [`decode`].
///
/// The header (key, uid, versions, labels, owner) is always available. The rest is kept as bytes, and decoded
/// on demand: the whole object with [`decode`], a part of it with [`decode_as`] or [`field`].
///
/// [`decode`]: Object::decode
/// [`decode_as`]: Object::decode_as
/// [`field`]: Object::field
pub struct Object<K = Untyped> {
    raw: Arc<Raw>,
    kind: PhantomData<fn() -> K>,
}

/// An object without its type, which is all that the informer core knows.
///
/// The key comes first, next to the counters of the `Arc`: a lookup compares the one and increments the other.
#[repr(C)]
pub(crate) struct Raw {
    header: Header,
    /// Unique per state, unlike an address, which can be reused.
    id: u64,
    body: Body,
    /// Reads the body, and caches recent results. Shared by the objects of one informer.
    codec: Arc<Codec>,
    /// The typed object, for `Storage::Decoded`. Boxed, since few informers use it.
    decoded: Option<Box<Typed>>,
}

/// An object decoded as the type of its informer.
#[derive(Clone)]
struct Typed(Arc<dyn Any + Send + Sync>);

#[derive(Clone)]
#[repr(C)]
struct Header {
    key: ObjectKey,
    version: ResourceVersion,
    uid: Uid,
    generation: Option<i64>,
    /// Boxed, since few objects have one.
    deletion: Option<Box<jiff::Timestamp>>,
    labels: Arc<Labels>,
    controller: Option<Arc<Owner>>,
}

/// The owner with `controller: true`, shared between objects that have the same one.
struct Owner {
    api_version: Box<str>,
    kind: Box<str>,
    name: Box<str>,
    uid: Box<str>,
}

impl<K> Object<K> {
    /// Returns the namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.raw.header.key
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.key().name()
    }

    /// Returns the namespace, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.key().namespace()
    }

    /// Returns the uid.
    pub fn uid(&self) -> &str {
        &self.raw.header.uid
    }

    /// Returns the `resourceVersion`.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.raw.header.version
    }

    /// Returns `metadata.generation`, which grows when the spec changes.
    pub fn generation(&self) -> Option<i64> {
        self.raw.header.generation
    }

    /// Returns the labels. Objects with the same labels share them.
    pub fn labels(&self) -> &Labels {
        &self.raw.header.labels
    }

    /// Returns when the object's deletion was requested, or `None` if it was not.
    pub fn deletion_timestamp(&self) -> Option<jiff::Timestamp> {
        self.raw.header.deletion.as_deref().copied()
    }

    /// Returns the owner with `controller: true`.
    pub fn controller(&self) -> Option<OwnerRef<'_>> {
        self.raw.header.controller.as_deref().map(OwnerRef::controller)
    }

    /// Returns whether `owner` is the controller of this object.
    pub fn is_controlled_by<T>(&self, owner: &Object<T>) -> bool {
        self.controller().is_some_and(|controller| controller.uid == owner.uid())
    }

    /// Returns whether both are the same state of the same object: uid and `resourceVersion` are equal.
    pub fn same_version<T>(&self, other: &Object<T>) -> bool {
        self.uid() == other.uid() && self.resource_version() == other.resource_version()
    }

    /// Returns whether both are the same state in every byte. The version is conclusive only within one
    /// history of the server: after a restore from a backup, the server assigns the same versions to other
    /// states.
    pub(crate) fn same_content<T>(&self, other: &Object<T>) -> bool {
        self.is_same_instance(other)
            || self.same_version(other) && self.raw.has_same_text(&other.raw)
    }

    /// Returns whether both are the same instance, rather than merely equal.
    pub fn is_same_instance<T>(&self, other: &Object<T>) -> bool {
        Arc::ptr_eq(&self.raw, &other.raw)
    }

    /// Decodes the object as its type. This is free while the `Arc` of an earlier call is still held, unless
    /// several hundred other objects of the informer have been decoded since.
    pub fn decode(&self) -> Result<Arc<K>>
    where
        K: DeserializeOwned + Send + Sync + 'static,
    {
        let raw = &self.raw;
        let kept = raw.decoded.as_ref().and_then(|typed| typed.0.clone().downcast::<K>().ok());
        if let Some(known) = kept.or_else(|| raw.codec.common.memo.recall(raw.id)) {
            return Ok(known);
        }
        let typed = Arc::new(self.decode_as::<K>()?);
        raw.codec.common.memo.remember(raw.id, &typed);
        Ok(typed)
    }

    /// Decodes the object as another type, reading only the fields that this type has.
    ///
    /// An error names the wrong field and what was expected there, and never quotes a value.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube_informer::Object;
    ///
    /// let object: Object<Pod> = Object::from_json(
    ///     r#"{"metadata": {"name": "web-0"},
    ///         "spec": {"containers": [{"name": "web", "ports": [{"containerPort": "http"}]}]}}"#,
    /// )?;
    /// assert_eq!(
    ///     object.decode().unwrap_err().to_string(),
    ///     "web-0 cannot be decoded: spec.containers[0].ports[0].containerPort: \
    ///      invalid type: string, expected i32"
    /// );
    /// # Ok::<(), kube_informer::Error>(())
    /// ```
    pub fn decode_as<T: DeserializeOwned>(&self) -> Result<T> {
        let body = self.raw.text()?;
        if !is_protobuf(&body) {
            return self.decode_part(&body, "");
        }
        // If this fails, decoding the JSON instead gives a precise error. Some types can only be decoded from
        // JSON.
        kube_schema::from_slice(&body).or_else(|_| self.decode_part(&self.raw.json()?, ""))
    }

    /// Decodes one field by its path (`"spec.nodeName"`, `"spec.containers[*].image"`), without decoding the
    /// rest. Returns `None` if the field is absent or null.
    pub fn field<T: DeserializeOwned>(&self, path: impl Into<FieldPath>) -> Result<Option<T>> {
        let path = path.into();
        let text = self.raw.json_along(&path)?;
        let Some(json) = path.find(&text)? else { return Ok(None) };
        self.decode_part(json.as_bytes(), &path.to_string())
    }

    /// Decodes the value at a path of the object. The empty path is the object itself.
    fn decode_part<T: DeserializeOwned>(&self, json: &[u8], path: &str) -> Result<T> {
        serde_json::from_slice(json).map_err(|error| {
            let why = problem::<T>(json, path, &error);
            let text = format!("{} cannot be decoded: {why}", self.key());
            Error::new(Cause::Decode { key: Some(self.key().clone()) }, text)
        })
    }

    /// Returns the values of a field to index this object by; see [`FieldPath::values`].
    pub(crate) fn index_values(&self, path: &FieldPath) -> Vec<Arc<str>> {
        self.raw.json_along(path).map(|text| path.values(&text)).unwrap_or_default()
    }

    /// Returns the object as JSON text, without `metadata.managedFields` unless they are kept.
    pub fn to_json(&self) -> Result<Bytes> {
        match self.raw.json()? {
            // The text is part of the object: sharing it copies nothing.
            Text::Kept(_) => Ok(Bytes::from_owner(PlainText(self.raw.clone()))),
            Text::Unpacked(text) => Ok(text),
        }
    }

    /// Returns the same object with another type. Free.
    pub fn cast<T>(self) -> Object<T> {
        Object { raw: self.raw, kind: PhantomData }
    }

    /// Packs a typed object, for tests and standalone stores.
    pub fn pack(object: &K) -> Result<Self>
    where
        K: Serialize,
    {
        let json = serde_json::to_vec(object)
            .map_err(|error| Error::invalid(format!("the object cannot be written: {error}")))?;
        Self::from_json(json)
    }

    /// Packs an object that is given as JSON.
    pub fn from_json(json: impl AsRef<[u8]>) -> Result<Self> {
        Packer::plain().pack(json.as_ref(), None).map(Object::cast)
    }

    /// Returns the approximate size of this object in bytes. Data that it shares with other objects is not
    /// counted, and neither is the heap memory of a typed object that is kept with it.
    pub fn memory(&self) -> usize {
        self.raw.memory()
    }
}

impl Object {
    /// Packs a body that is plain because there was no dictionary when it arrived, if there is one now.
    /// Returns whether the body was packed. Other holders of the object keep the plain one.
    pub(crate) fn settle(&mut self) -> bool {
        let Some(codec) = self.raw.codec.settled() else { return false };
        let Some(body) = codec.pack(self.raw.body.kept()) else { return false };
        if let Some(raw) = Arc::get_mut(&mut self.raw) {
            (raw.body, raw.codec) = (body, codec);
        } else {
            let Raw { id, header, decoded, .. } = &*self.raw;
            let (header, decoded) = (header.clone(), decoded.clone());
            self.raw = Arc::new(Raw { id: *id, header, body, codec, decoded });
        }
        true
    }

    /// Returns the codec of the body, which tells the store whether there is something to settle.
    pub(crate) fn codec(&self) -> &Arc<Codec> {
        &self.raw.codec
    }

    #[cfg(test)]
    pub(crate) fn is_packed(&self) -> bool {
        matches!(self.raw.body, Body::Packed(_))
    }

    /// Returns how many bodies of the object's informer have been unpacked.
    #[cfg(test)]
    pub(crate) fn unpacks(&self) -> usize {
        self.raw.codec.common.unpacked.unpacks.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl Raw {
    /// Returns the body, as JSON or protobuf. Never fails for a plain body.
    fn text(&self) -> Result<Text<'_>> {
        self.codec.text(self.id, &self.body).map_err(|why| {
            let key = self.header.key.clone();
            let text = format!("{key} cannot be unpacked: {why}");
            Error::new(Cause::Decode { key: Some(key) }, text)
        })
    }

    /// Returns the JSON of the object, even if it is kept as protobuf.
    fn json(&self) -> Result<Text<'_>> {
        self.as_json(transcode::json)
    }

    /// Returns the part of the JSON that a path leads through.
    fn json_along(&self, path: &FieldPath) -> Result<Text<'_>> {
        self.as_json(|body| transcode::json_along(body, path))
    }

    fn as_json(
        &self,
        transcode: impl FnOnce(&[u8]) -> Result<Vec<u8>, kube_schema::Error>,
    ) -> Result<Text<'_>> {
        let body = self.text()?;
        if !is_protobuf(&body) {
            return Ok(body);
        }
        let json = transcode(&body).map_err(|why| {
            let key = self.header.key.clone();
            let text = format!("{key} cannot be decoded: {why}");
            Error::new(Cause::Decode { key: Some(key) }, text)
        })?;
        Ok(Text::Unpacked(json.into()))
    }

    fn has_same_text(&self, other: &Raw) -> bool {
        // Equal frames of the same dictionary have the same text.
        let same_frame =
            || Arc::ptr_eq(&self.codec, &other.codec) && self.body.kept() == other.body.kept();
        let same_text = || matches!((self.text(), other.text()), (Ok(a), Ok(b)) if *a == *b);
        same_frame() || same_text()
    }

    fn memory(&self) -> usize {
        let texts = self.header.key.allocated() + self.header.uid.allocated();
        let typed = self.decoded.as_ref().map_or(0, |typed| size_of_val(&*typed.0));
        size_of::<Self>() + texts + self.body.kept().len() + typed
    }
}

/// An object with a plain body, as the owner of that text.
struct PlainText(Arc<Raw>);
impl AsRef<[u8]> for PlainText {
    fn as_ref(&self) -> &[u8] {
        self.0.body.kept()
    }
}

impl<K> Clone for Object<K> {
    fn clone(&self) -> Self {
        Self { raw: self.raw.clone(), kind: PhantomData }
    }
}

/// Shows the key and the version, never the body.
impl<K> fmt::Debug for Object<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({}@{})", self.key(), self.resource_version())
    }
}

#[cfg(test)]
mod tests;
