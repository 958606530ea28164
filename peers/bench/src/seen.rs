//! Counters for the calls of a client's handlers. All programs count in the same way.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use crate::data::SENTINEL;
use crate::usage;

/// Counters shared by all handlers of a program.
#[derive(Debug)]
pub struct Seen {
    calls: AtomicU64,
    /// Whether versions are recorded, with the time.
    noting: AtomicBool,
    notes: Mutex<Vec<(u64, u64)>>,
    /// Whether the sentinel ends the phase. A relist ends differently.
    sentinel_ends: AtomicBool,
    end: Mutex<Sender<()>>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            calls: AtomicU64::new(0),
            noting: AtomicBool::new(false),
            notes: Mutex::default(),
            sentinel_ends: AtomicBool::new(false),
            end: Mutex::new(channel().0),
        }
    }
}

impl Seen {
    /// Counts one call of one handler.
    pub fn see(&self, name: &str, version: &str) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.noting.load(Ordering::Relaxed) {
            let note = (version.parse().unwrap_or(0), usage::now());
            self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
        }
        if name == SENTINEL && self.sentinel_ends.load(Ordering::Relaxed) {
            self.end();
        }
    }

    /// Reports that a handler has received the last event of the phase.
    pub fn end(&self) {
        // Outside of a phase there is no receiver.
        let _ = self.end.lock().unwrap_or_else(PoisonError::into_inner).send(());
    }

    /// Starts a phase, counting from zero. The receiver gets one message from each handler at the end.
    pub fn begin(&self, noting: bool, sentinel_ends: bool) -> Receiver<()> {
        let (sender, receiver) = channel();
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = sender;
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.noting.store(noting, Ordering::Relaxed);
        self.sentinel_ends.store(sentinel_ends, Ordering::Relaxed);
        self.calls.store(0, Ordering::SeqCst);
        receiver
    }

    /// Returns the number of calls in this phase.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Returns the recorded versions and times.
    pub fn notes(&self) -> Vec<(u64, u64)> {
        self.noting.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_ends_with_the_sentinel_and_has_its_own_numbers() {
        let seen = Seen::default();
        seen.see("early", "1");
        let ended = seen.begin(true, true);
        seen.see("a", "2");
        assert!(ended.try_recv().is_err());
        seen.see(SENTINEL, "3");
        assert!(ended.try_recv().is_ok());
        assert_eq!(seen.calls(), 2);
        let versions: Vec<u64> = seen.notes().into_iter().map(|(version, _)| version).collect();
        assert_eq!(versions, [2, 3]);
        seen.see("late", "4");
        assert_eq!(seen.notes(), []);
    }
}
