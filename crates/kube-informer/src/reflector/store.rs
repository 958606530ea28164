//! Where a reflector writes.

use crate::{Error, Object, ObjectKey, ResourceVersion, Result};

/// Where a reflector writes. [`Indexer`](crate::Indexer) is such a store.
pub trait ReflectorStore: Send + 'static {
    /// The whole content, at a version.
    fn replace(&mut self, objects: Vec<Object>, version: ResourceVersion) -> Result<()>;

    /// An object that the watch calls added.
    fn add(&mut self, object: Object) -> Result<()>;

    /// An object that the watch calls modified.
    fn update(&mut self, object: Object) -> Result<()>;

    /// An object that the watch calls deleted, in its last state.
    fn delete(&mut self, object: Object) -> Result<()>;

    /// The version advanced, no object did.
    fn bookmark(&mut self, version: ResourceVersion) -> Result<()> {
        let _ = version;
        Ok(())
    }

    /// The object that the store has under a key, so that a list which brings the same version of
    /// it again can go on with this instance.
    fn known(&self, key: &ObjectKey) -> Option<Object> {
        let _ = key;
        None
    }

    /// An object that cannot be read; its key, if that could be read, is in the error. Those of a
    /// list come right before its [`replace`](Self::replace): they are there, only not readable.
    fn unreadable(&mut self, error: Error, deleted: bool) -> Result<()> {
        let _ = (error, deleted);
        Ok(())
    }
}
