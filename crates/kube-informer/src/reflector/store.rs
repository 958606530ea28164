//! Where a reflector writes.

use std::task::{Context, Poll};

use crate::{Error, Object, ObjectKey, ResourceVersion, Result};

/// Where a [`Reflector`](crate::Reflector) writes. [`DeltaFifo`](crate::DeltaFifo) and
/// [`Indexer`](crate::Indexer) are such stores.
///
/// If [`replace`](Self::replace) fails, the reflector lists again after a pause, until the store has taken a
/// list. Any other error is reported as that of an object that is skipped. Neither ends the reflector.
pub trait ReflectorStore: Send + 'static {
    /// The whole content, at a version. `unreadable` are in the list too, but could not be kept.
    fn replace(
        &mut self,
        objects: Vec<Object>,
        unreadable: Vec<Error>,
        version: ResourceVersion,
    ) -> Result<()>;

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

    /// An event about an object that could not be kept; its key, if known, is in the error.
    fn unreadable(&mut self, error: Error, version: ResourceVersion, deleted: bool) -> Result<()> {
        let _ = (error, version, deleted);
        Ok(())
    }

    /// The object of this key as it is known, so that an unchanged one need not be kept twice.
    fn known(&self, key: &ObjectKey) -> Option<Object> {
        let _ = key;
        None
    }

    /// Ready when the store can take more; until then nothing is read from the server.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let _ = context;
        Poll::Ready(())
    }
}
