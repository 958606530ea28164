//! The holders that keep an informer running.

use std::sync::Arc;

/// Held by everything that could notice that an informer runs: handles, listers, indexes, handlers
/// and streams. When the last holder is gone, something ends: the informer, or what came with a handle.
pub(crate) struct Alive {
    end: Option<Box<dyn FnOnce() + Send + Sync>>,
    /// Ends after this one.
    _of: Option<Arc<Alive>>,
}

impl Alive {
    /// Calls `end` when the last holder is gone.
    pub(crate) fn new(end: impl FnOnce() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { end: Some(Box::new(end)), _of: None })
    }

    /// Keeps this, and calls another `end` before, when its own last holder is gone.
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
