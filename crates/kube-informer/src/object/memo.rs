//! Objects that were decoded lately, so that decoding again is free while anyone holds the result.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Enough for the objects that handlers and workers hold at the same time.
const MEMO_ENTRIES_MAX: usize = 256;

/// Per informer, and bounded. A `Weak` in each object instead would keep the typed object's memory
/// (2.4 KB for a Pod) for as long as the object is cached, once it was decoded.
#[derive(Default)]
pub(crate) struct Memo(Mutex<VecDeque<(u64, Weak<dyn Any + Send + Sync>)>>);

impl Memo {
    pub(super) fn recall(&self, id: u64) -> Option<Arc<dyn Any + Send + Sync>> {
        let entries = self.0.lock();
        entries.iter().find(|(known, _)| *known == id).and_then(|(_, typed)| typed.upgrade())
    }

    pub(super) fn remember(&self, id: u64, typed: Arc<dyn Any + Send + Sync>) {
        let mut entries = self.0.lock();
        if entries.len() == MEMO_ENTRIES_MAX {
            entries.retain(|(_, typed)| typed.strong_count() > 0);
            entries.truncate(MEMO_ENTRIES_MAX - 1);
        }
        entries.push_front((id, Arc::downgrade(&typed)));
    }
}
