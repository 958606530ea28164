//! Shared ownership that keeps an informer running.

use std::sync::Arc;

/// Held by everything that can observe whether an informer runs: handles, listers, indexes, handlers and
/// streams. When the last holder is dropped, the informer ends, or whatever else was tied to a handle.
pub(crate) struct Alive {
    end: Option<Box<dyn FnOnce() + Send + Sync>>,
    /// Dropped after this one has ended.
    _of: Option<Arc<Alive>>,
}

impl Alive {
    /// Calls `end` when the last holder is dropped.
    pub(crate) fn new(end: impl FnOnce() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { end: Some(Box::new(end)), _of: None })
    }

    /// Wraps this one in another, which first calls its own `end` when its last holder is dropped.
    pub(crate) fn and(self: Arc<Self>, end: impl FnOnce() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { end: Some(Box::new(end)), _of: Some(self) })
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }
}
