//! From JSON to an object: the header is read, the body is copied.

use std::any::Any;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use super::header::{self, Found, Problem};
use super::shared::Shared;
use super::{Body, Header, Memo, Object, Raw};
use crate::error::Cause;
use crate::json;
use crate::{Error, ObjectKey, ResourceVersion, Result, Transform};

/// `Storage::Decoded`: how to decode. All that the core is given of `K`.
pub(crate) type Decoder = fn(&[u8]) -> Result<Arc<dyn Any + Send + Sync>>;

/// The `apiVersion` and `kind` of objects that come without: items of a list of a built-in kind.
#[derive(Clone, Debug)]
pub(crate) struct Types {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

/// Makes objects of JSON. Each informer has one.
pub(crate) struct Packer {
    transform: Transform,
    decoder: Option<Decoder>,
    keep_managed_fields: bool,
    shared: Shared,
    memo: Arc<Memo>,
}

impl Packer {
    pub(crate) fn new(
        transform: Transform,
        decoder: Option<Decoder>,
        keep_managed_fields: bool,
    ) -> Self {
        let (shared, memo) = (Shared::default(), Arc::default());
        Self { transform, decoder, keep_managed_fields, shared, memo }
    }

    /// For objects that belong to no informer.
    pub(crate) fn plain() -> &'static Self {
        static PLAIN: LazyLock<Packer> =
            LazyLock::new(|| Packer::new(Transform::default(), None, false));
        &PLAIN
    }

    /// The object, or (`Error::is_unreadable`) why there is none, with its key if that can be read.
    ///
    /// Key, uid and version are those that came, whatever the transform does to them. The rest of the header
    /// is that of what the transform leaves.
    pub(crate) fn pack(&self, json: &[u8], types: Option<&Types>) -> Result<Object> {
        let (found, verdict) = header::read(json);
        let key = match verdict {
            // An object without a key has been found wrong.
            Ok(()) => found.key().ok_or_else(|| unreadable(None, &"its metadata is not there"))?,
            Err(problem) => return Err(unreadable(found.key(), &problem)),
        };
        let (uid, version) = ((*found.uid).into(), found.resource_version());
        let body = self.body(json, &found, types);
        let body = transformed(&self.transform, &key, body)?;
        let found = if self.transform.changes_header() { reread(&key, &body)? } else { found };
        Ok(self.object(self.header(key, uid, version, found), body))
    }

    /// The same for an object that a source of somebody's own has made. One that this packer has made
    /// already is left as it is, so that nothing is transformed twice.
    pub(crate) fn repack(&self, object: Object) -> Result<Object> {
        if !self.needs_repack() || Arc::ptr_eq(&object.raw.memo, &self.memo) {
            return Ok(object);
        }
        self.transform(&self.transform, &object)
    }

    /// Applies a transform to an object.
    pub(crate) fn transform<K>(&self, transform: &Transform, object: &Object<K>) -> Result<Object> {
        let Header { key, uid, version, .. } = &object.raw.header;
        let body = transformed(transform, key, object.raw.json().into())?;
        let header = if transform.changes_header() {
            self.header(key.clone(), uid.clone(), version.clone(), reread(key, &body)?)
        } else {
            object.raw.header.clone()
        };
        Ok(self.object(header, body))
    }

    /// Whether objects that others have packed are not yet as this informer keeps them.
    pub(crate) fn needs_repack(&self) -> bool {
        self.decoder.is_some() || !self.transform.is_empty()
    }

    /// The version of an object that cannot be packed, as far as it can be read: a watch goes on
    /// behind it.
    pub(crate) fn unreadable_version(json: &[u8]) -> ResourceVersion {
        header::read(json).0.resource_version()
    }

    fn header(
        &self,
        key: ObjectKey,
        uid: Box<str>,
        version: ResourceVersion,
        found: Found<'_>,
    ) -> Header {
        Header {
            key,
            uid,
            version,
            generation: found.generation,
            deletion: found.deletion,
            controller: found.controller.as_ref().map(|owner| self.shared.owner(owner)),
            labels: self.shared.labels(found.labels),
        }
    }

    /// A copy in memory of its own, which is exactly as large as it has to be: keeping one item
    /// keeps no list.
    fn body(&self, json: &[u8], found: &Found<'_>, types: Option<&Types>) -> Box<[u8]> {
        let cuts = if self.keep_managed_fields { &[][..] } else { &found.managed };
        let cut: usize = cuts.iter().map(Range::len).sum();
        let types = types.map(|types| missing_types(found, types)).unwrap_or_default();
        let mut body = Vec::with_capacity(found.extent.len() - cut + types.len());
        let mut from = found.extent.start;
        if !types.is_empty() {
            body.push(b'{');
            body.extend_from_slice(&types);
            from += 1;
        }
        json::copy_without(json, from..found.extent.end, cuts, &mut body);
        body.into()
    }

    fn object(&self, header: Header, body: Box<[u8]>) -> Object {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let raw = Raw {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            header,
            // What does not decode is kept all the same; `decode` says why.
            decoded: self.decoder.and_then(|decode| {
                catch_unwind(AssertUnwindSafe(|| decode(&body))).ok().and_then(Result::ok)
            }),
            body: Body::Json(body),
            memo: self.memo.clone(),
        };
        Object { raw: Arc::new(raw), kind: PhantomData }
    }

    #[cfg(test)]
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }
}

fn transformed(transform: &Transform, key: &ObjectKey, body: Box<[u8]>) -> Result<Box<[u8]>> {
    if transform.is_empty() {
        return Ok(body);
    }
    let body = transform.apply_to_json(Cow::Owned(body.into_vec()));
    let failed = |error: Error| unreadable(Some(key.clone()), &error).caused_as(&error);
    Ok(body.map_err(failed)?.into_owned().into())
}

/// The header of what a transform has left, as far as there is one: it need not be an API object any more.
fn reread<'a>(key: &ObjectKey, body: &'a [u8]) -> Result<Found<'a>> {
    match header::read(body) {
        (found, Ok(()) | Err(Problem::Wrong { .. })) => Ok(found),
        (_, Err(problem)) => {
            let why = format!("what the transform made of it cannot be kept: {problem}");
            Err(unreadable(Some(key.clone()), &why))
        }
    }
}

/// The members that an object lacks, each with its comma. An object that is packed has others.
fn missing_types(found: &Found<'_>, types: &Types) -> Vec<u8> {
    let mut members = Vec::new();
    let missing = [
        (found.has_api_version, &b"\"apiVersion\":"[..], &types.api_version),
        (found.has_kind, &b"\"kind\":"[..], &types.kind),
    ];
    for (_, name, value) in missing.into_iter().filter(|(has, ..)| !has) {
        members.extend_from_slice(name);
        members.extend_from_slice(serde_json::Value::from(value.as_str()).to_string().as_bytes());
        members.push(b',');
    }
    members
}

fn unreadable(key: Option<ObjectKey>, why: &dyn std::fmt::Display) -> Error {
    let text = match &key {
        Some(key) => format!("{key} cannot be kept: {why}"),
        None => format!("an object cannot be kept: {why}"),
    };
    Error::new(Cause::Unreadable { key }, text)
}

/// A body as a type, for [`Decoder`].
pub(crate) fn decode<T: serde::de::DeserializeOwned>(json: &[u8]) -> Result<T> {
    serde_json::from_slice(json)
        .map_err(|error| Error::new(Cause::Decode { key: None }, position(&error)))
}

/// What `serde_json` says without what it quotes of the body: where, and which kind of mistake.
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
