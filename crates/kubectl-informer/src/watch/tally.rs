//! Counts of the events so far.

use tokio::time::Instant;

use crate::record::Happened;
use crate::status::{counted, seconds};

/// The counts of the events so far.
pub(super) struct Tally {
    pub(super) started: Instant,
    added: u64,
    updated: u64,
    deleted: u64,
    resynced: u64,
    /// The number of initial objects.
    pub(super) initial: usize,
    pub(super) reconnects: u64,
    /// The last error, in plain words, and its time.
    pub(super) last: Option<(String, Instant)>,
    /// The types whose problems have been reported and persist.
    pub(super) troubled: Vec<usize>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            added: 0,
            updated: 0,
            deleted: 0,
            resynced: 0,
            initial: 0,
            reconnects: 0,
            last: None,
            troubled: Vec::new(),
        }
    }

    /// Counts an event. Returns the number of events so far.
    pub(super) fn count(&mut self, happened: Happened) -> u64 {
        match happened {
            Happened::Add => self.added += 1,
            Happened::Update => self.updated += 1,
            Happened::Delete => self.deleted += 1,
            Happened::Resync => self.resynced += 1,
        }
        self.shown()
    }

    /// Returns the number of events so far.
    pub(super) fn shown(&self) -> u64 {
        self.added + self.updated + self.deleted + self.resynced
    }

    pub(super) fn summary(&self) -> String {
        let time = seconds(self.started.elapsed());
        let mut text = format!(
            "{time}: {} added, {} updated, {} deleted",
            self.added, self.updated, self.deleted
        );
        if self.resynced > 0 {
            text.push_str(&format!(", {} resynced", self.resynced));
        }
        if self.reconnects > 0 {
            text.push_str(&format!(", {}", counted(self.reconnects, "reconnect")));
        }
        text
    }
}
