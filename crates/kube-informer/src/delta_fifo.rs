//! The queue between a reflector and a store.

mod by_key;
mod in_order;
mod run;

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use parking_lot::Mutex;

use crate::reflector::ReflectorStore;
use crate::wakers::Wakers;
use crate::{Deleted, Delta, Deltas, Error, Lister, Object, ObjectKey, ResourceVersion, Result};

use by_key::ByKey;
use in_order::InOrder;

/// The number of queued deltas at which the reflector stops reading from the server. Enough to let the reader
/// and the writer of the cache work in parallel.
const QUEUE_DELTAS_MAX: usize = 1024;
/// The number of deltas taken at once. The store is locked once for all of them.
const BATCH_DELTAS_MAX: usize = 256;

/// A queue of changes, either in strict order or grouped by key. Cheap to clone: one clone writes, another
/// pops.
#[derive(Clone)]
pub struct DeltaFifo(Arc<Shared>);

struct Shared {
    /// The consumer's cache, which lists are compared with to find deletes.
    known: Lister,
    inner: Mutex<Inner>,
    /// The length of the queue, set with `inner` locked. Stored here so that the writer, which checks it before
    /// each change, needs no lock while there is room.
    len: AtomicUsize,
}

struct Inner {
    queue: Queue,
    closed: bool,
    /// The number of entries of the first list that have not been popped; `None` before that list.
    initial: Option<usize>,
    /// Whether something other than a list came first, so that there is no list to wait for.
    populated: bool,
    readers: Wakers,
    writers: Wakers,
}

enum Queue {
    InOrder(InOrder),
    ByKey(ByKey),
}

impl DeltaFifo {
    /// Creates a queue in strict order, in which a whole list is one delta. Informers use it. The counterpart
    /// of client-go's `RealFIFO`.
    pub fn in_order(known: Lister) -> Self {
        Self::new(known, Queue::InOrder(InOrder::default()))
    }

    /// Creates a queue that groups all changes of a key, with keys in order of their first change. The
    /// counterpart of client-go's `DeltaFIFO`.
    ///
    /// When a list is queued, deletes are found by comparing it with `known` and with the queue. Popped
    /// changes must therefore be in `known` before more is queued: pop in the task that runs the reflector,
    /// as [`process_until`](crate::Reflector::process_until) does. Bookmarks and the versions of lists are
    /// not queued.
    pub fn by_key(known: Lister) -> Self {
        Self::new(known, Queue::ByKey(ByKey::default()))
    }

    fn new(known: Lister, queue: Queue) -> Self {
        let (readers, writers) = (Wakers::default(), Wakers::default());
        let inner =
            Inner { queue, closed: false, initial: None, populated: false, readers, writers };
        Self(Arc::new(Shared { known, inner: Mutex::new(inner), len: AtomicUsize::new(0) }))
    }

    /// Waits for the next change, or for all changes of the next key. Returns `None` once the queue is closed
    /// and empty.
    pub async fn pop(&self) -> Option<Deltas> {
        poll_fn(|context| self.poll_pop(context, 1)).await
    }

    /// Waits for changes and returns as many as are queued, in order, up to a limit. A whole list is returned
    /// alone. For a queue by key this is the same as [`pop`](Self::pop).
    pub async fn pop_batch(&self) -> Option<Deltas> {
        poll_fn(|context| self.poll_pop_batch(context)).await
    }

    pub(crate) fn poll_pop_batch(&self, context: &mut Context<'_>) -> Poll<Option<Deltas>> {
        self.poll_pop(context, BATCH_DELTAS_MAX)
    }

    fn poll_pop(&self, context: &mut Context<'_>, max: usize) -> Poll<Option<Deltas>> {
        let mut inner = self.0.inner.lock();
        let deltas = match &mut inner.queue {
            Queue::InOrder(queue) => queue.pop(max),
            Queue::ByKey(queue) => queue.pop(),
        };
        if deltas.is_empty() {
            if inner.closed {
                return Poll::Ready(None);
            }
            inner.readers.add(context.waker());
            return Poll::Pending;
        }
        let initial = !inner.has_synced();
        // By key, each key counts once towards the first list, however many deltas it has collected.
        let places = match &inner.queue {
            Queue::InOrder(_) => deltas.len(),
            Queue::ByKey(_) => 1,
        };
        inner.initial = inner.initial.map(|left| left.saturating_sub(places));
        let writers = inner.writers.take();
        self.0.note_len(&inner);
        drop(inner);
        writers.wake();
        Poll::Ready(Some(Deltas { deltas, initial }))
    }

    /// Returns whether the first list has been popped in full. If something else was queued first, this is
    /// true at once.
    pub fn has_synced(&self) -> bool {
        self.0.inner.lock().has_synced()
    }

    /// Queues a `Sync` for every known object that has no queued change, since a queued change is newer.
    /// In a queue in strict order, a queued list counts as a change of every object.
    pub fn resync(&self) {
        let known = self.0.known.list();
        self.write(|inner, _| match &mut inner.queue {
            Queue::InOrder(queue) => queue.resync(known),
            Queue::ByKey(queue) => queue.resync(known),
        });
    }

    /// Closes the queue: `pop` returns `None` once the queue is empty. Wakes all waiters.
    pub fn close(&self) {
        let mut inner = self.0.inner.lock();
        inner.closed = true;
        let readers = inner.readers.take();
        drop(inner);
        readers.wake();
    }

    /// Returns the queued changes of a key, oldest first. An object of a queued list is a
    /// [`Delta::Replaced`], or a [`Delta::Unreadable`] if it could not be kept.
    pub fn get(&self, key: &ObjectKey) -> Vec<Delta> {
        match &self.0.inner.lock().queue {
            Queue::InOrder(queue) => queue.iter().flat_map(|delta| delta.about(key)).collect(),
            Queue::ByKey(queue) => queue.get(key).cloned().unwrap_or_default(),
        }
    }

    /// Returns all queued changes, in the order in which they will be popped.
    pub fn list(&self) -> Vec<Delta> {
        match &self.0.inner.lock().queue {
            Queue::InOrder(queue) => queue.iter().cloned().collect(),
            Queue::ByKey(queue) => queue.iter().cloned().collect(),
        }
    }

    /// Returns the keys that have queued changes, in order of their first change. This includes the keys
    /// within a queued list and those of objects that could not be kept.
    pub fn keys(&self) -> Vec<ObjectKey> {
        match &self.0.inner.lock().queue {
            Queue::InOrder(queue) => queue.keys(),
            Queue::ByKey(queue) => queue.keys().cloned().collect(),
        }
    }

    /// Returns the number of queued entries: changes, or keys if the queue is by key.
    pub fn len(&self) -> usize {
        self.0.inner.lock().queue.len()
    }

    /// Returns whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn write(&self, write: impl FnOnce(&mut Inner, &Lister)) {
        let mut inner = self.0.inner.lock();
        write(&mut inner, &self.0.known);
        let readers = inner.readers.take();
        self.0.note_len(&inner);
        drop(inner);
        readers.wake();
    }

    fn push(&self, delta: Delta) {
        self.write(|inner, known| {
            inner.populated |= inner.initial.is_none();
            match &mut inner.queue {
                Queue::InOrder(queue) => queue.push(delta),
                Queue::ByKey(queue) => queue.push(delta, known),
            }
        });
    }
}

impl Shared {
    fn note_len(&self, inner: &Inner) {
        self.len.store(inner.queue.len(), Ordering::Release);
    }
}

impl Inner {
    fn has_synced(&self) -> bool {
        self.populated || self.initial == Some(0)
    }
}

impl Queue {
    fn len(&self) -> usize {
        match self {
            Queue::InOrder(queue) => queue.len(),
            Queue::ByKey(queue) => queue.len(),
        }
    }
}

impl ReflectorStore for DeltaFifo {
    fn replace(
        &mut self,
        objects: Vec<Object>,
        unreadable: Vec<Error>,
        version: ResourceVersion,
    ) -> Result<()> {
        self.write(|inner, known| {
            match &mut inner.queue {
                Queue::InOrder(queue) => {
                    queue.push(Delta::ReplacedAll { objects, unreadable, version });
                }
                Queue::ByKey(queue) => queue.replace(objects, &unreadable, known),
            }
            let waiting = inner.queue.len();
            inner.initial.get_or_insert(waiting);
        });
        Ok(())
    }

    fn add(&mut self, object: Object) -> Result<()> {
        self.push(Delta::Added(object));
        Ok(())
    }

    fn update(&mut self, object: Object) -> Result<()> {
        self.push(Delta::Updated(object));
        Ok(())
    }

    fn delete(&mut self, object: Object) -> Result<()> {
        self.push(Delta::Deleted(Deleted { object, final_state: crate::FinalState::Known }));
        Ok(())
    }

    /// Queues a bookmark. Only a queue in strict order knows where among the changes it belongs.
    fn bookmark(&mut self, version: ResourceVersion) -> Result<()> {
        self.write(|inner, _| {
            if let Queue::InOrder(queue) = &mut inner.queue {
                queue.push(Delta::Bookmark(version));
            }
        });
        Ok(())
    }

    fn unreadable(&mut self, error: Error, version: ResourceVersion, deleted: bool) -> Result<()> {
        self.write(|inner, known| match &mut inner.queue {
            Queue::InOrder(queue) => queue.push(Delta::Unreadable { error, version, deleted }),
            Queue::ByKey(queue) => queue.unreadable(&error, deleted, known),
        });
        Ok(())
    }

    fn known(&self, key: &ObjectKey) -> Option<Object> {
        self.0.known.get(key)
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.0.len.load(Ordering::Acquire) < QUEUE_DELTAS_MAX {
            return Poll::Ready(());
        }
        let mut inner = self.0.inner.lock();
        if inner.queue.len() < QUEUE_DELTAS_MAX {
            return Poll::Ready(());
        }
        inner.writers.add(context.waker());
        Poll::Pending
    }
}

impl fmt::Debug for DeltaFifo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaFifo").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
