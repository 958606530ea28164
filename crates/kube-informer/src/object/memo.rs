//! Recently decoded objects, so that decoding an object again is free while the result is still held.

use std::any::{Any, TypeId};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Enough for the objects that handlers and workers hold at the same time.
pub(super) const MEMO_ENTRIES_MAX: usize = 256;

/// A bounded cache per informer. A `Weak` in each object instead would retain the memory of the typed object
/// (2.4 KB for a Pod) for as long as the object is cached, once it was decoded.
#[derive(Default)]
pub(crate) struct Memo(Mutex<VecDeque<Entry>>);

struct Entry {
    object: u64,
    /// One object may be decoded as several types at the same time.
    kind: TypeId,
    typed: Weak<dyn Any + Send + Sync>,
}

impl Memo {
    pub(super) fn recall<K: Send + Sync + 'static>(&self, object: u64) -> Option<Arc<K>> {
        let kind = TypeId::of::<K>();
        let entries = self.0.lock();
        let entry = entries.iter().find(|entry| entry.object == object && entry.kind == kind)?;
        entry.typed.upgrade()?.downcast().ok()
    }

    pub(super) fn remember<K: Send + Sync + 'static>(&self, object: u64, typed: &Arc<K>) {
        let kind = TypeId::of::<K>();
        let typed: Weak<K> = Arc::downgrade(typed);
        let mut entries = self.0.lock();
        if entries.len() >= MEMO_ENTRIES_MAX {
            entries.retain(|entry| entry.typed.strong_count() > 0);
            // The newest entries are at the front.
            entries.truncate(MEMO_ENTRIES_MAX - 1);
        }
        entries.push_front(Entry { object, kind, typed });
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }
}
