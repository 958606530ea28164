//! A program that only reconciles pods.

use std::sync::Arc;
use std::time::Duration;

use crate::seen::Seen;
use crate::talk::Client;

/// A controller, as seen by the measurements.
pub struct Reconciling {
    /// The calls of its reconciler.
    pub seen: Arc<Seen>,
    objects: Box<dyn Fn() -> usize + Send + Sync>,
}

impl Reconciling {
    /// Returns a controller without calls yet. `objects` returns the number of objects in its cache.
    pub fn new(objects: impl Fn() -> usize + Send + Sync + 'static) -> Self {
        Self { seen: Arc::default(), objects: Box::new(objects) }
    }

    /// Waits until every cached object has been reconciled once.
    pub fn wait_for_first(&self) {
        while self.seen.calls() < self.objects() as u64 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl std::fmt::Debug for Reconciling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciling").field("seen", &self.seen).finish_non_exhaustive()
    }
}

/// Reads and relists of a controller are not measured.
impl Client for Reconciling {
    fn seen(&self) -> &Seen {
        &self.seen
    }

    fn handlers(&self) -> usize {
        1
    }

    fn objects(&self) -> usize {
        (self.objects)()
    }

    fn expect_relist(&self) {}

    fn merged(&self) -> u64 {
        0
    }

    fn get(&self, _: &str, _: &str) -> bool {
        false
    }

    fn list(&self) -> usize {
        0
    }

    fn on_node(&self, _: &str) -> usize {
        0
    }
}
