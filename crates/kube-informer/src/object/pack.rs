//! From JSON to an object: the header is read, the body is copied.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use serde::Deserialize;

use super::{Body, Header, Labels, Memo, Object, Owner, Raw};
use crate::error::Cause;
use crate::{Error, ObjectKey, Result, Transform};

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
    memo: Arc<Memo>,
}

impl Packer {
    pub(crate) fn new(
        transform: Transform,
        decoder: Option<Decoder>,
        keep_managed_fields: bool,
    ) -> Self {
        Self { transform, decoder, keep_managed_fields, memo: Arc::default() }
    }

    /// For objects that belong to no informer.
    pub(crate) fn plain() -> &'static Self {
        static PLAIN: LazyLock<Packer> =
            LazyLock::new(|| Packer::new(Transform::default(), None, false));
        &PLAIN
    }

    /// The object, or (`Error::is_unreadable`) why there is none, with its key if that can be read.
    pub(crate) fn pack(&self, json: &[u8], types: Option<&Types>) -> Result<Object> {
        let _ = (types, &self.transform, self.keep_managed_fields);
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Parsed {
            metadata: Meta,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Meta {
            name: String,
            #[serde(default)]
            namespace: String,
            #[serde(default)]
            uid: Box<str>,
            #[serde(default)]
            resource_version: String,
            generation: Option<i64>,
            deletion_timestamp: Option<jiff::Timestamp>,
            #[serde(default)]
            labels: BTreeMap<Box<str>, Box<str>>,
        }
        let parsed: Parsed = serde_json::from_slice(json).map_err(|error| {
            Error::new(
                Cause::Unreadable { key: None },
                format!("no metadata: {}", position(&error)),
            )
        })?;
        let meta = parsed.metadata;
        let header = Header {
            key: ObjectKey::namespaced(&meta.namespace, &meta.name),
            uid: meta.uid,
            version: meta.resource_version.into(),
            generation: meta.generation,
            deletion: meta.deletion_timestamp,
            labels: Arc::new(Labels::new(meta.labels)),
            controller: None::<Arc<Owner>>,
        };
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let raw = Raw {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            header,
            decoded: self.decoder.and_then(|decode| decode(json).ok()),
            body: Body::Json(json.into()),
            memo: self.memo.clone(),
        };
        Ok(Object { raw: Arc::new(raw), kind: std::marker::PhantomData })
    }

    /// The same for an object that a source of somebody's own has made.
    pub(crate) fn repack(&self, object: Object) -> Result<Object> {
        self.pack(object.raw.json(), None)
    }
}

/// What serde_json says without what it quotes of the body: where, and which kind of mistake.
pub(crate) fn position(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Io => "cannot be read",
        serde_json::error::Category::Syntax => "not JSON",
        serde_json::error::Category::Data => "not of the expected type",
        serde_json::error::Category::Eof => "ends too early",
    };
    format!("{what} at line {}, column {}", error.line(), error.column())
}
