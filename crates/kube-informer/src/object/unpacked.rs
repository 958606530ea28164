//! Recently unpacked bodies, so that all handlers and indexes of one change read the same text.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

/// As many as the store writes at once, so that indexes and handlers share a text.
const TEXTS_MAX: usize = 256;
/// The limit for all texts together. A single text may be larger; it is then the only one.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// A bounded cache per informer.
///
/// Objects get consecutive ids, so each of the latest objects has a slot of its own. A slot is locked while
/// its text is being unpacked: another reader of the same object waits and then finds the text.
#[derive(Default)]
pub(super) struct Unpacked {
    /// Allocated on first use, since many informers never unpack a body.
    slots: OnceLock<Box<[Mutex<Slot>]>>,
    bytes: AtomicUsize,
    #[cfg(test)]
    pub(super) unpacks: AtomicUsize,
}

#[derive(Default)]
struct Slot {
    object: u64,
    text: Bytes,
}

impl Unpacked {
    /// Returns the text of an object, unpacking it unless that was done recently.
    pub(super) fn text<E>(
        &self,
        object: u64,
        unpack: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Bytes, E> {
        let slots = self.slots.get_or_init(|| (0..TEXTS_MAX).map(|_| Mutex::default()).collect());
        let mut slot = slots[object as usize % TEXTS_MAX].lock();
        // No packed body is empty.
        if slot.object == object && !slot.text.is_empty() {
            return Ok(slot.text.clone());
        }
        let text = Bytes::from(unpack()?);
        #[cfg(test)]
        self.unpacks.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_sub(slot.text.len(), Ordering::Relaxed);
        *slot = Slot { object, text: text.clone() };
        let bytes = self.bytes.fetch_add(text.len(), Ordering::Relaxed) + text.len();
        if bytes > TEXT_BYTES_MAX {
            // The lock of this text's slot is held, so this text stays.
            self.forget(slots);
        }
        Ok(text)
    }

    fn forget(&self, slots: &[Mutex<Slot>]) {
        for mut slot in slots.iter().filter_map(Mutex::try_lock) {
            let Slot { text, .. } = std::mem::take(&mut *slot);
            self.bytes.fetch_sub(text.len(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
