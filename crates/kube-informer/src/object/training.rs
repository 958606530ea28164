//! The training of dictionaries: when it happens, and on which objects.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::codec::Codec;
use super::dictionary::Dictionary;
use super::header::Spare;
use super::{Object, Raw};

/// Fewer samples are not representative.
const SAMPLES_MIN: usize = 128;
/// With less text, a dictionary would take as much memory as it saves.
const SAMPLE_BYTES_MIN: usize = 512 << 10;

/// A larger scratch buffer is not kept.
const SCRATCH_BYTES_MAX: usize = 256 << 10;

/// The text of an object that is being packed, and memory that the next object can reuse.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) text: Vec<u8>,
    pub(super) spare: Spare,
}

impl Scratch {
    pub(super) fn of(text: Vec<u8>) -> Self {
        Self { text, spare: Spare::default() }
    }
}

/// The samples that training requires.
#[derive(Clone, Copy)]
pub(super) struct Enough {
    pub(super) objects: usize,
    pub(super) bytes: usize,
}

impl Default for Enough {
    fn default() -> Self {
        Self { objects: SAMPLES_MIN, bytes: SAMPLE_BYTES_MIN }
    }
}

/// The factor by which the second dictionary is trained on more objects. A list is sorted, so its first
/// objects are from one or two namespaces, and not representative of the others.
const REFINED_TIMES: usize = 32;
/// The number of objects over which the dictionary's effect is measured.
const WINDOW_OBJECTS: usize = 1024;

/// The codec of new objects, and its training. Each packer has one.
///
/// It depends only on the objects and their order, so the same objects are always packed in the same way.
pub(super) struct Training(Mutex<State>);

struct State {
    codec: Arc<Codec>,
    /// Memory for the next object.
    scratch: Scratch,
    enough: Enough,
    sampling: Option<Samples>,
    window: Window,
}

/// Objects to train on, with the length of their texts. It keeps none of them alive.
#[derive(Default)]
struct Samples {
    objects: Vec<(Weak<Raw>, usize)>,
    /// The number at which to check whether enough of them are still alive.
    check_at: usize,
}

/// A measurement of the dictionary's effect.
struct Window {
    /// The number of objects after which to evaluate it.
    length: usize,
    objects: usize,
    text: usize,
    kept: usize,
    /// Bytes kept per byte of text when the dictionary was new.
    first: Option<f64>,
}

impl Training {
    pub(super) fn new(packs: bool, enough: Enough) -> Self {
        Self(Mutex::new(State {
            codec: Codec::plain(packs),
            scratch: Scratch::default(),
            enough,
            sampling: packs.then(Samples::default),
            window: Window::new(WINDOW_OBJECTS),
        }))
    }

    /// Starts to use a dictionary of an earlier run.
    pub(super) fn install(&self, dictionary: Dictionary) -> Arc<Codec> {
        let mut state = self.0.lock();
        state.install(dictionary);
        state.codec.clone()
    }

    /// Returns the codec for the next object.
    pub(super) fn codec(&self) -> Arc<Codec> {
        self.0.lock().codec.clone()
    }

    /// Returns the codec for the next object, and memory for it. A text that will be kept as it is gets no
    /// reused memory, because it should take exactly as much as it needs.
    pub(super) fn begin(&self) -> (Arc<Codec>, Scratch) {
        let mut state = self.0.lock();
        (state.codec.clone(), std::mem::take(&mut state.scratch))
    }

    /// Records a new object and the length of its text, and takes back the memory. Trains if it is time to,
    /// which takes up to 30 ms: twice for an informer with thousands of objects, and again only when the
    /// objects have changed substantially.
    pub(super) fn note(&self, object: &Object, text: usize, scratch: Scratch) {
        let mut state = self.0.lock();
        if scratch.text.capacity() <= SCRATCH_BYTES_MAX {
            state.scratch = scratch;
        }
        let samples = state.note(&object.raw, text);
        drop(state);
        let Some(samples) = samples else { return };
        let texts: Vec<_> = samples.iter().filter_map(|raw| raw.text().ok()).collect();
        if let Some(dictionary) = Dictionary::train(&texts) {
            self.0.lock().install(dictionary);
        }
    }
}

impl State {
    /// Returns the samples, once there are enough.
    fn note(&mut self, raw: &Arc<Raw>, text: usize) -> Option<Vec<Arc<Raw>>> {
        if self.codec.has_dictionary() && self.window.note(raw, text) {
            self.sampling.get_or_insert_default();
        }
        let enough = self.sampling.as_mut()?.add(raw, text, self.enough)?;
        self.sampling = None;
        Some(enough)
    }

    fn install(&mut self, dictionary: Dictionary) {
        if self.codec.has_dictionary() {
            // Each dictionary takes twice as long to be replaced as the one before. Otherwise, alternating
            // objects of two kinds would cause training forever.
            self.window = Window::new(self.window.length * 2);
        } else {
            let check_at = self.enough.objects * REFINED_TIMES;
            self.sampling = Some(Samples { objects: Vec::new(), check_at });
        }
        self.codec = self.codec.with_dictionary(dictionary);
    }
}

impl Samples {
    /// Returns the objects, once there are enough. Dropping them may run user code.
    fn add(&mut self, raw: &Arc<Raw>, text: usize, enough: Enough) -> Option<Vec<Arc<Raw>>> {
        self.objects.push((Arc::downgrade(raw), text));
        if self.objects.len() < self.check_at.max(enough.objects) {
            return None;
        }
        self.objects.retain(|(object, _)| object.strong_count() > 0);
        let bytes: usize = self.objects.iter().map(|(_, text)| text).sum();
        if self.objects.len() < enough.objects || bytes < enough.bytes {
            // Rarely enough to cost little per object.
            self.check_at = self.objects.len() / 4 * 5 + 1;
            return None;
        }
        Some(self.objects.iter().filter_map(|(object, _)| object.upgrade()).collect())
    }
}

impl Window {
    fn new(length: usize) -> Self {
        Self { length, objects: 0, text: 0, kept: 0, first: None }
    }

    /// Returns whether the objects no longer fit the dictionary: they take half as much space again as at
    /// first.
    fn note(&mut self, raw: &Raw, text: usize) -> bool {
        self.objects += 1;
        self.text += text;
        self.kept += raw.body.kept().len();
        if self.objects < self.length {
            return false;
        }
        let ratio = self.kept as f64 / self.text as f64;
        let first = *self.first.get_or_insert(ratio);
        *self = Self { first: self.first, ..Self::new(self.length) };
        ratio > first * 1.5
    }
}

#[cfg(test)]
mod tests;
