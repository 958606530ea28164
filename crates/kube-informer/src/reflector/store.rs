//! The destination of a reflector.

use std::task::{Context, Poll};

use crate::{Error, Object, ObjectKey, ResourceVersion, Result};

/// The destination of a [`Reflector`](crate::Reflector), such as a [`DeltaFifo`](crate::DeltaFifo)
/// or an [`Indexer`](crate::Indexer).
///
/// If [`replace`](Self::replace) fails, the reflector lists again after a pause, until the store accepts a
/// list. Any other error is reported as that of a skipped object. Neither ends the reflector.
pub trait ReflectorStore: Send + 'static {
    /// Replaces the whole content, at a version. `unreadable` has the items of the list that could
    /// not be stored.
    fn replace(
        &mut self,
        objects: Vec<Object>,
        unreadable: Vec<Error>,
        version: ResourceVersion,
    ) -> Result<()>;

    /// Adds an object, as a watch reported it.
    fn add(&mut self, object: Object) -> Result<()>;

    /// Updates an object, as a watch reported it.
    fn update(&mut self, object: Object) -> Result<()>;

    /// Deletes an object, as a watch reported it, with its last state.
    fn delete(&mut self, object: Object) -> Result<()>;

    /// Records that the version advanced without a change of any object.
    fn bookmark(&mut self, version: ResourceVersion) -> Result<()> {
        let _ = version;
        Ok(())
    }

    /// Records an event about an object that could not be stored; the error has its key, if it is
    /// known.
    fn unreadable(&mut self, error: Error, version: ResourceVersion, deleted: bool) -> Result<()> {
        let _ = (error, version, deleted);
        Ok(())
    }

    /// Returns the stored object of a key, so that an unchanged one need not be stored twice.
    fn known(&self, key: &ObjectKey) -> Option<Object> {
        let _ = key;
        None
    }

    /// Completes when the store can accept more; until then nothing is read from the server.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let _ = context;
        Poll::Ready(())
    }
}
