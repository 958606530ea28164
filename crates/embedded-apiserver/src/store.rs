//! Storage: one global resourceVersion, the history of every key, and ordered events.
//!
//! # Architecture invariants
//! - There is no I/O and no await: a lock is held only to update a few collections. Objects are
//!   parsed and encoded outside of it ([`Draft`]).
//! - Every write gets the next version. Within a table, versions of events strictly increase.
//! - A reader at version `v` with `compacted <= v <= revision` sees exactly the writes up to `v`.
//! - Only the store queues events: a watcher is a position ([`Store::events_after`]).

mod key;
mod owners;
mod revision;
mod signal;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::watch;
use tokio::time::Instant;

pub use key::Key;
pub(crate) use owners::Dependent;
use owners::Owned;
pub use revision::EventType;
pub(crate) use revision::{Draft, EVENT_CLOSING, Ownership, Revision, Write};
use signal::Signalled;
use table::Table;
pub(crate) use table::{Event, Page, PageRequest, Select};

/// The number of objects that are matched at once for a page of a list with a selector.
const SELECT_PART: usize = 1_000;

/// The objects of a server, with their history.
#[derive(Debug)]
pub struct Store {
    state: RwLock<State>,
    /// The latest version, for readers that wait for one.
    revision: watch::Sender<u64>,
    window: Duration,
    history_bytes_max: usize,
}

#[derive(Debug)]
struct State {
    revision: u64,
    /// The oldest version that can be read.
    compacted: u64,
    tables: BTreeMap<Arc<str>, Table>,
    /// The objects with owners.
    owned: Owned,
    /// The bytes of superseded states.
    history_bytes: usize,
    /// The number of restores.
    restores: u64,
    /// Some versions with the times at which they were the latest, for compaction by age.
    marks: VecDeque<(Instant, u64)>,
}

/// The precondition of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Absent,
    Version(u64),
}

impl Expected {
    fn check(self, found: Option<&Revision>) -> Result<(), Stale> {
        match (self, found) {
            (Self::Absent, None) => Ok(()),
            (Self::Version(expected), Some(found)) if expected == found.version() => Ok(()),
            _ => Err(Stale),
        }
    }
}

/// The precondition of a write was not met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stale;

/// The reason why a version cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The version has been compacted.
    Expired { oldest: u64 },
    /// The version does not exist yet.
    Future { newest: u64 },
    /// The resource has been removed.
    Gone,
}

/// Events that a watcher has not seen yet, up to a limit.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) events: Vec<Event>,
    /// The version up to which all changes have been seen after `events`.
    pub(crate) seen: u64,
    /// The number of further events.
    pub(crate) remaining: usize,
}

/// A watcher's subscription to a table.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) changed: Signalled,
    incarnation: u64,
}

/// All objects at one version, to be restored later. It is cheap, because it shares the store's
/// data.
#[derive(Debug, Clone)]
pub struct Snapshot {
    revision: u64,
    tables: BTreeMap<Arc<str>, Vec<Arc<Revision>>>,
}

impl Snapshot {
    /// Returns the version at which it was taken.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.tables.values().map(Vec::len).sum()
    }

    /// Returns whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Store {
    pub(crate) fn new(window: Duration, history_bytes_max: usize) -> Self {
        let state = State {
            revision: 1,
            compacted: 0,
            tables: BTreeMap::new(),
            owned: Owned::default(),
            history_bytes: 0,
            restores: 0,
            marks: VecDeque::new(),
        };
        Self {
            state: RwLock::new(state),
            revision: watch::Sender::new(1),
            window,
            history_bytes_max,
        }
    }

    /// Starts an empty store at a version, as if all earlier ones had been compacted.
    pub(crate) fn counting_from(self, first: u64) -> Self {
        {
            let mut state = self.state.write();
            state.revision = first;
            state.compacted = first - 1;
        }
        self.revision.send_replace(first);
        self
    }

    /// Returns the latest version.
    pub fn revision(&self) -> u64 {
        self.state.read().revision
    }

    /// Returns the oldest version that can still be read.
    pub fn compacted_revision(&self) -> u64 {
        self.state.read().compacted
    }

    /// Compacts the history: versions before `version` can no longer be read or watched from. A
    /// version beyond the latest means the latest. One that is already compacted has no effect.
    pub fn compact(&self, version: u64) {
        let mut state = self.state.write();
        let version = version.min(state.revision);
        state.compact(version);
    }

    /// Returns a snapshot of all objects.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.state.read();
        let tables = state
            .tables
            .iter()
            .map(|(name, table)| (Arc::clone(name), table.live().cloned().collect()));
        Snapshot { revision: state.revision, tables: tables.collect() }
    }

    /// Restores a snapshot and its version, as restoring a backup of etcd does. Open watches are
    /// not notified: the server decides whether to end them.
    pub(crate) fn restore(&self, snapshot: &Snapshot) {
        let mut state = self.state.write();
        for name in snapshot.tables.keys() {
            // Closed until it is served: the snapshot may be of another server.
            state.tables.entry(Arc::clone(name)).or_insert_with(Table::closed);
        }
        for (name, table) in &mut state.tables {
            let states = snapshot.tables.get(name).map_or(&[][..], Vec::as_slice);
            table.restore(snapshot.revision, states);
        }
        state.owned.restore(&snapshot.tables);
        state.revision = snapshot.revision;
        state.compacted = snapshot.revision;
        state.history_bytes = 0;
        state.restores += 1;
        state.marks.clear();
        self.revision.send_replace(snapshot.revision);
    }

    /// Returns the number of restores, for readers that have to start over after one.
    pub(crate) fn restores(&self) -> u64 {
        self.state.read().restores
    }

    /// Creates a table called `name`, if it does not exist.
    pub(crate) fn open_table(&self, name: &Arc<str>) {
        let mut state = self.state.write();
        let table = state.tables.entry(Arc::clone(name)).or_insert_with(Table::new);
        if std::mem::replace(&mut table.closed, false) {
            table.incarnation += 1;
        }
    }

    /// Closes a table and deletes its objects under a single lock, so that no concurrent write
    /// leaves one behind. Its watchers receive the deletions, and then [`Unreadable::Gone`]. Returns
    /// the deleted objects.
    pub(crate) fn close_table(&self, name: &str) -> Vec<Arc<Revision>> {
        let mut state = self.state.write();
        let Some(table) = state.tables.get_mut(name) else { return Vec::new() };
        table.closed = true;
        let live: Vec<_> = table.live().cloned().collect();
        for last in &live {
            // A deletion at the version that was just read cannot be stale.
            drop(self.delete_locked(&mut state, name, last.key(), last.version()));
        }
        if let Some(table) = state.tables.get(name) {
            // Wakes watchers that had already seen everything, so that they see the end.
            table.notify();
        }
        live
    }

    /// Ends the watches of a table. Its objects are kept.
    pub(crate) fn end_watches(&self, name: &str) {
        let mut state = self.state.write();
        let Some(table) = state.tables.get_mut(name) else { return };
        table.incarnation += 1;
        table.notify();
    }

    /// Subscribes to changes of a table. Returns `None` if there is no such table.
    pub(crate) fn subscribe(&self, table: &str) -> Option<Subscription> {
        let state = self.state.read();
        let table = state.tables.get(table).filter(|table| !table.closed)?;
        Some(Subscription { changed: table.subscribe(), incarnation: table.incarnation })
    }

    /// Wakes all watchers, although nothing has changed.
    pub(crate) fn wake_watchers(&self) {
        let state = self.state.read();
        for table in state.tables.values() {
            table.notify();
        }
    }

    /// Subscribes to all changes.
    pub(crate) fn subscribe_revision(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    pub(crate) fn get(&self, table: &str, key: &Key) -> Option<Arc<Revision>> {
        self.state.read().tables.get(table)?.get(key).cloned()
    }

    /// Returns every retained state of a key, oldest first.
    pub(crate) fn history(&self, table: &str, key: &Key) -> Vec<Arc<Revision>> {
        let state = self.state.read();
        state.tables.get(table).map(|table| table.history(key).to_vec()).unwrap_or_default()
    }

    /// Returns the number of objects in a table, in a namespace or in all.
    pub(crate) fn count(&self, table: &str, namespace: Option<&str>) -> usize {
        self.state.read().tables.get(table).map_or(0, |table| table.count(namespace))
    }

    /// Returns whether a namespace is empty, apart from the objects of one table.
    pub(crate) fn namespace_is_empty_but(&self, namespace: &str, aside: &str) -> bool {
        self.state.read().is_empty_but(namespace, aside)
    }

    /// Returns a page of a table at version `at`, or at the latest. Objects are matched without
    /// holding the lock: a selector may have thousands of terms, and must not block writes.
    pub(crate) fn list(
        &self,
        table: &str,
        at: Option<u64>,
        request: &PageRequest<'_>,
    ) -> Result<Page, Unreadable> {
        let Some(select) = request.select else { return self.page(table, at, request) };
        let mut at = at;
        let mut start = request.start.cloned();
        let mut items = Vec::new();
        // A limited page is collected in parts, so that a long table is not copied for it.
        let part = if request.limit == 0 { 0 } else { request.limit.max(SELECT_PART) };
        loop {
            let start_key = start.as_ref();
            let all = PageRequest { start: start_key, limit: part, select: None, ..*request };
            let Page { version, items: found, more, .. } = self.page(table, at, &all)?;
            at = Some(version);
            let next = found.last().map(|last| last.key().successor());
            for revision in found.into_iter().filter(|revision| select.selects(revision)) {
                if request.limit > 0 && items.len() == request.limit {
                    return Ok(Page { version, items, more: true, total: None });
                }
                items.push(revision);
            }
            match next.filter(|_| more) {
                Some(next) => start = Some(next),
                None => return Ok(Page { version, items, more: false, total: None }),
            }
        }
    }

    fn page(
        &self,
        table: &str,
        at: Option<u64>,
        request: &PageRequest<'_>,
    ) -> Result<Page, Unreadable> {
        let state = self.state.read();
        let version = at.unwrap_or(state.revision);
        if version < state.compacted {
            return Err(Unreadable::Expired { oldest: state.compacted });
        }
        if version > state.revision {
            return Err(Unreadable::Future { newest: state.revision });
        }
        let table = state.tables.get(table).filter(|t| !t.closed).ok_or(Unreadable::Gone)?;
        Ok(table.page(version, version == state.revision, request))
    }

    /// Returns whether a watch can start after a version.
    pub(crate) fn check_start(&self, after: u64) -> Result<(), Unreadable> {
        match self.compacted_revision() {
            oldest if after < oldest => Err(Unreadable::Expired { oldest }),
            _ => Ok(()),
        }
    }

    /// Returns at most `max` events after a version. An open watch survives the compaction of
    /// versions that it has seen, even if later writes were to other tables, which do not wake it
    /// to advance its position.
    pub(crate) fn events_after(
        &self,
        table: &str,
        subscription: &Subscription,
        after: u64,
        max: usize,
    ) -> Result<Batch, Unreadable> {
        let state = self.state.read();
        let table = state.tables.get(table).ok_or(Unreadable::Gone)?;
        if table.incarnation != subscription.incarnation {
            return Err(Unreadable::Gone);
        }
        if table.has_forgotten_after(after) {
            return Err(Unreadable::Expired { oldest: state.compacted });
        }
        let (events, remaining) = table.events_after(after, max);
        if events.is_empty() && table.closed {
            return Err(Unreadable::Gone);
        }
        let last = events.last().map(|event| event.revision.version());
        // A position in the future, or from before a restore, is kept.
        let seen = if remaining > 0 { last.unwrap_or(after) } else { state.revision.max(after) };
        Ok(Batch { events, seen, remaining })
    }

    /// Stores an object under the next version.
    pub(crate) fn put(
        &self,
        table: &Arc<str>,
        expected: Expected,
        draft: &Draft,
    ) -> Result<Arc<Revision>, Stale> {
        self.put_locked(&mut self.state.write(), table, expected, draft)
    }

    /// Stores a new object if its parent, such as its namespace, has not changed since the caller
    /// read it.
    pub(crate) fn create(
        &self,
        table: &Arc<str>,
        draft: &Draft,
        holder: Option<(&str, &Revision)>,
    ) -> Result<Arc<Revision>, Stale> {
        let mut state = self.state.write();
        if let Some((holders, holder)) = holder {
            let now = state.tables.get(holders).and_then(|table| table.get(holder.key()));
            Expected::Version(holder.version()).check(now.map(|now| &**now))?;
        }
        self.put_locked(&mut state, table, Expected::Absent, draft)
    }

    fn put_locked(
        &self,
        state: &mut State,
        table: &Arc<str>,
        expected: Expected,
        draft: &Draft,
    ) -> Result<Arc<Revision>, Stale> {
        let version = state.revision + 1;
        let entry = state.tables.get_mut(table).filter(|table| !table.closed).ok_or(Stale)?;
        let (revision, superseded) = entry.put(draft, expected, version)?;
        let previous = entry.previous().map_or(&None, |previous| previous.owners());
        state.owned.replace(table, revision.key(), previous, revision.owners());
        self.committed(state, table, version, superseded);
        Ok(revision)
    }

    /// Removes an object. Returns its last state with the version of the deletion.
    pub(crate) fn delete(
        &self,
        table: &str,
        key: &Key,
        expected: u64,
    ) -> Result<Arc<Revision>, Stale> {
        self.delete_locked(&mut self.state.write(), table, key, expected)
    }

    /// Removes a namespace that contains only objects of one table.
    pub(crate) fn delete_vacant(
        &self,
        table: &str,
        key: &Key,
        expected: u64,
        aside: &str,
    ) -> Result<Arc<Revision>, Stale> {
        let mut state = self.state.write();
        if !state.is_empty_but(key.name(), aside) {
            return Err(Stale);
        }
        self.delete_locked(&mut state, table, key, expected)
    }

    fn delete_locked(
        &self,
        state: &mut State,
        table: &str,
        key: &Key,
        expected: u64,
    ) -> Result<Arc<Revision>, Stale> {
        let version = state.revision + 1;
        let entry = state.tables.get_mut(table).ok_or(Stale)?;
        let (revision, superseded) = entry.delete(key, expected, version)?;
        if revision.owners().is_some()
            && let Some((table, _)) = state.tables.get_key_value(table)
        {
            state.owned.replace(table, revision.key(), revision.owners(), &None);
        }
        self.committed(state, table, version, superseded);
        Ok(revision)
    }

    fn committed(&self, state: &mut State, table: &str, version: u64, superseded: usize) {
        state.revision = version;
        state.history_bytes += superseded;
        state.expire(self.window, self.history_bytes_max);
        if let Some(table) = state.tables.get(table) {
            table.notify();
        }
        self.revision.send_replace(version);
    }
}

impl State {
    fn is_empty_but(&self, namespace: &str, aside: &str) -> bool {
        let mut others = self.tables.iter().filter(|(name, _)| &***name != aside);
        others.all(|(_, table)| table.count(Some(namespace)) == 0)
    }

    /// Compacts what is older than the window, and the older half of the history if it is too
    /// large.
    fn expire(&mut self, window: Duration, history_bytes_max: usize) {
        let now = Instant::now();
        let spacing = window / 16;
        if self.marks.back().is_none_or(|(at, _)| now.duration_since(*at) >= spacing) {
            self.marks.push_back((now, self.revision));
        }
        while let Some((at, version)) = self.marks.front().copied()
            && now.duration_since(at) > window
        {
            self.marks.pop_front();
            self.compact(version);
        }
        if self.history_bytes > history_bytes_max {
            self.compact(self.compacted.midpoint(self.revision));
        }
    }

    fn compact(&mut self, version: u64) {
        if version <= self.compacted {
            return;
        }
        self.compacted = version;
        for table in self.tables.values_mut() {
            self.history_bytes = self.history_bytes.saturating_sub(table.compact(version));
        }
    }
}
