//! When a dictionary is trained, and on what: the objects themselves.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::codec::Codec;
use super::dictionary::Dictionary;
use super::header::Spare;
use super::{Object, Raw};

/// Fewer samples say too little of what is common to all.
const SAMPLES_MIN: usize = 128;
/// With less text a dictionary would take as much memory as it saves.
const SAMPLE_BYTES_MIN: usize = 512 << 10;

/// A larger scratch buffer is not kept.
const SCRATCH_BYTES_MAX: usize = 256 << 10;

/// The text of an object that is being packed, and memory that the next one can use again.
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

/// The samples that a dictionary takes.
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

/// How many times as many objects the second dictionary is trained on. A list is sorted: its first objects are
/// of one or two namespaces, and say little of the others.
const REFINED_TIMES: usize = 32;
/// Objects over which it is measured how well the dictionary does.
const WINDOW_OBJECTS: usize = 1024;

/// The codec of new objects, and its training. One for each packer.
///
/// It depends on nothing but the objects that come, in their order: the same objects are always packed the
/// same way.
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
    /// At how many to look whether those that are still alive are enough.
    check_at: usize,
}

/// How well the dictionary does.
struct Window {
    /// After how many objects to look.
    length: usize,
    objects: usize,
    text: usize,
    kept: usize,
    /// Bytes kept for each byte of text when the dictionary was new.
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

    /// Packs with a dictionary of an earlier run from now on.
    pub(super) fn install(&self, dictionary: Dictionary) -> Arc<Codec> {
        let mut state = self.0.lock();
        state.install(dictionary);
        state.codec.clone()
    }

    /// The codec for the next object.
    pub(super) fn codec(&self) -> Arc<Codec> {
        self.0.lock().codec.clone()
    }

    /// The codec for the next object, and memory for it. There is none for a text that will be kept as it is,
    /// which is to take exactly as much as it needs.
    pub(super) fn begin(&self) -> (Arc<Codec>, Scratch) {
        let mut state = self.0.lock();
        (state.codec.clone(), std::mem::take(&mut state.scratch))
    }

    /// Takes note of a new object and of the length of its text, and takes back the memory of that. Trains if
    /// it is time to, which takes up to 30 ms: twice for an informer with thousands of objects, and again
    /// only when they have become others.
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
    /// Gives the samples, once there are enough.
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
            // Each takes twice as long to be replaced as the one before: objects of two kinds in turns
            // would be trained on for ever.
            self.window = Window::new(self.window.length * 2);
        } else {
            let check_at = self.enough.objects * REFINED_TIMES;
            self.sampling = Some(Samples { objects: Vec::new(), check_at });
        }
        self.codec = self.codec.with_dictionary(dictionary);
    }
}

impl Samples {
    /// Gives the objects, once there are enough. Dropping them may run code of the program.
    fn add(&mut self, raw: &Arc<Raw>, text: usize, enough: Enough) -> Option<Vec<Arc<Raw>>> {
        self.objects.push((Arc::downgrade(raw), text));
        if self.objects.len() < self.check_at.max(enough.objects) {
            return None;
        }
        self.objects.retain(|(object, _)| object.strong_count() > 0);
        let bytes: usize = self.objects.iter().map(|(_, text)| text).sum();
        if self.objects.len() < enough.objects || bytes < enough.bytes {
            // Seldom enough to cost little for each object.
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

    /// Whether objects are no longer what the dictionary was made for: half as much again is kept of them.
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
