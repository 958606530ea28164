//! From the queue into the cache, and from there to the handlers.

use crate::delta_fifo::Delta;
use crate::indexer::{Applied, Change, Difference};
use crate::processor::Notification;
use crate::{Deleted, Error, Event, FinalState, Object, ResourceVersion};

use super::core::Core;

impl Core {
    /// Writes what the queue gave, then tells everybody. The cache always is at least as new as what
    /// a handler is told.
    pub(super) fn apply(&self, part: usize, deltas: Vec<Delta>) {
        let mut changes = Vec::with_capacity(deltas.len());
        for delta in deltas {
            match delta {
                Delta::ReplacedAll { objects, unreadable, version } => {
                    self.apply_changes(part, std::mem::take(&mut changes));
                    self.replace(part, objects, unreadable, version);
                }
                Delta::Added(object)
                | Delta::Updated(object)
                | Delta::Replaced(object)
                | Delta::Sync(object) => {
                    self.failures.remove(part, object.key());
                    changes.push(Change::Put(object));
                }
                Delta::Deleted(deleted) => {
                    self.failures.remove(part, deleted.key());
                    changes.push(Change::Delete(deleted));
                }
                Delta::Bookmark(version) => changes.push(Change::Bookmark(version)),
                Delta::Unreadable { error, version, deleted } => {
                    // What it was before must be in the cache to be deleted from it.
                    self.apply_changes(part, std::mem::take(&mut changes));
                    changes.extend(self.unreadable(part, error, version, deleted));
                }
            }
        }
        self.apply_changes(part, changes);
        self.version_changed();
    }

    /// What the indexes say is found out before the lock is taken that handlers join under: they are
    /// users' code.
    fn apply_changes(&self, part: usize, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let mut waiting = Some(self.store.prepare(changes));
        while let Some(prepared) = waiting.take() {
            self.processor.distribute(|| match self.store.commit(part, prepared) {
                Ok(applied) => applied.into_iter().filter_map(notification).collect(),
                Err(again) => {
                    waiting = Some(again);
                    Vec::new()
                }
            });
            waiting = waiting.map(|again| self.store.prepare_again(again));
        }
    }

    /// An event about an object that could not be kept: what is gone is gone all the same.
    fn unreadable(
        &self,
        part: usize,
        error: Error,
        version: ResourceVersion,
        deleted: bool,
    ) -> Vec<Change> {
        let known = error.key().and_then(|key| self.store.get(key.into()));
        let gone = known
            .filter(|_| deleted)
            .map(|object| Change::Delete(Deleted { object, final_state: FinalState::Unknown }));
        match error.key() {
            Some(key) if deleted => self.failures.remove(part, key),
            _ => self.failures.add(part, error),
        }
        gone.into_iter().chain([Change::Bookmark(version)]).collect()
    }

    fn replace(
        &self,
        part: usize,
        objects: Vec<Object>,
        unreadable: Vec<Error>,
        version: ResourceVersion,
    ) {
        let keep = unreadable.iter().filter_map(|error| error.key().cloned()).collect();
        self.failures.replace(part, unreadable);
        let mut waiting = Some(self.store.prepare_list(part, objects, keep, version));
        while let Some(prepared) = waiting.take() {
            self.processor.distribute(|| match self.store.commit_list(prepared) {
                Ok(difference) => self.listed(difference),
                Err(again) => {
                    waiting = Some(*again);
                    Vec::new()
                }
            });
            waiting = waiting.map(|again| self.store.prepare_list_again(again));
        }
        self.progressed();
    }

    /// What handlers are told of a list: the first ones bring the initial objects, and the last of
    /// them completes those.
    fn listed(&self, difference: Difference) -> Vec<Notification> {
        let initial = !self.store.has_synced();
        let mut told = told(difference, initial);
        if initial && self.store.is_listed() {
            self.store.set_synced();
            told.push(Notification::Synced);
        }
        told
    }
}

fn notification(applied: Applied) -> Option<Notification> {
    Some(Notification::Event(match applied {
        Applied::Added(object) => Event::Added { object, initial: false },
        Applied::Updated { old, new } => Event::Updated { old, new },
        Applied::Deleted(deleted) => Event::Deleted(deleted),
        Applied::Nothing => return None,
    }))
}

/// Deletes first: what follows is the whole new content.
fn told(difference: Difference, initial: bool) -> Vec<Notification> {
    let Difference { deleted, added, updated, unchanged } = difference;
    let tombstone = |object| Event::Deleted(Deleted { object, final_state: FinalState::Unknown });
    let mut told: Vec<_> = deleted.into_iter().map(tombstone).map(Notification::Event).collect();
    let updates = updated.into_iter().map(|(old, new)| Event::Updated { old, new });
    told.extend(updates.map(Notification::Event));
    if initial {
        told.push(Notification::Initial(added.into()));
    } else {
        let adds = added.into_iter().map(|object| Event::Added { object, initial });
        told.extend(adds.map(Notification::Event));
    }
    if !unchanged.is_empty() {
        told.push(Notification::Unchanged(unchanged.into()));
    }
    told
}
