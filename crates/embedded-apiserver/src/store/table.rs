//! The objects of a resource: the states of every key, and ordered events.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use super::key::Key;
use super::revision::{Draft, EventType, Revision};
use super::signal::{Signal, Signalled};
use super::{Expected, Stale};

/// A change: the new state and the one that it replaced.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) revision: Arc<Revision>,
    pub(crate) previous: Option<Arc<Revision>>,
}

/// A selection of objects.
pub(crate) trait Select {
    fn selects(&self, revision: &Revision) -> bool;
}

/// The parameters of a page.
#[derive(Clone, Copy, Default)]
pub(crate) struct PageRequest<'a> {
    /// `None` for all namespaces.
    pub(crate) namespace: Option<&'a str>,
    /// The first key that may be on the page.
    pub(crate) start: Option<&'a Key>,
    /// 0 for no limit.
    pub(crate) limit: usize,
    /// `None` for all objects.
    pub(crate) select: Option<&'a dyn Select>,
    /// Whether to count the objects from `start` on, as a continued list may need.
    pub(crate) recount: bool,
}

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) version: u64,
    pub(crate) items: Vec<Arc<Revision>>,
    /// Whether there are more keys after the last item.
    pub(crate) more: bool,
    /// The total number of objects at this version. It is known only on the first page; the
    /// continue token passes it on.
    pub(crate) total: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Table {
    /// The states of each key, oldest first. The last may be a deletion.
    keys: BTreeMap<Arc<Key>, Vec<Arc<Revision>>>,
    events: VecDeque<Event>,
    /// The version of the latest compacted event.
    forgotten: u64,
    /// The number of live objects by namespace.
    counts: HashMap<Box<str>, usize>,
    live: usize,
    changed: Signal,
    /// Whether the resource has been removed. Its last events can still be read.
    pub(super) closed: bool,
    /// The number of times that it has been opened: earlier watchers do not see later events.
    pub(super) incarnation: u64,
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            keys: BTreeMap::new(),
            events: VecDeque::new(),
            forgotten: 0,
            counts: HashMap::new(),
            live: 0,
            changed: Signal::default(),
            closed: false,
            incarnation: 0,
        }
    }

    /// Returns a table that is not served yet.
    pub(super) fn closed() -> Self {
        Self { closed: true, ..Self::new() }
    }

    pub(super) fn subscribe(&self) -> Signalled {
        self.changed.subscribe()
    }

    pub(super) fn notify(&self) {
        self.changed.send();
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Revision>> {
        live(self.history(key))
    }

    pub(super) fn history(&self, key: &Key) -> &[Arc<Revision>] {
        self.keys.get(key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &Arc<Revision>> {
        self.keys.values().filter_map(|states| live(states))
    }

    pub(super) fn count(&self, namespace: Option<&str>) -> usize {
        match namespace {
            None => self.live,
            Some(namespace) => self.counts.get(namespace).copied().unwrap_or(0),
        }
    }

    /// Stores a state. Returns it with the bytes of the superseded one.
    pub(super) fn put(
        &mut self,
        draft: &Draft,
        expected: Expected,
        version: u64,
    ) -> Result<(Arc<Revision>, usize), Stale> {
        let (revision, previous) = match self.keys.entry(Arc::clone(&draft.key)) {
            Entry::Occupied(mut entry) => {
                let previous = live(entry.get()).cloned();
                expected.check(previous.as_deref())?;
                let event_type = match previous {
                    Some(_) => EventType::Modified,
                    None => EventType::Added,
                };
                let revision = draft.seal(Arc::clone(entry.key()), event_type, version);
                let revision = Arc::new(revision);
                entry.get_mut().push(Arc::clone(&revision));
                (revision, previous)
            }
            Entry::Vacant(entry) => {
                expected.check(None)?;
                let revision = draft.seal(Arc::clone(entry.key()), EventType::Added, version);
                let revision = Arc::new(revision);
                entry.insert(vec![Arc::clone(&revision)]);
                (revision, None)
            }
        };
        if previous.is_none() {
            self.grow(&draft.key);
        }
        let superseded = previous.as_ref().map_or(0, |previous| previous.line().len());
        self.log(Arc::clone(&revision), previous);
        Ok((revision, superseded))
    }

    /// Deletes an object. Returns its last state with the version of the deletion, and the bytes
    /// that became history.
    pub(super) fn delete(
        &mut self,
        key: &Key,
        expected: u64,
        version: u64,
    ) -> Result<(Arc<Revision>, usize), Stale> {
        let states = self.keys.get_mut(key).ok_or(Stale)?;
        let previous = live(states).cloned().ok_or(Stale)?;
        Expected::Version(expected).check(Some(&previous))?;
        let revision = Arc::new(previous.at_version(EventType::Deleted, version));
        states.push(Arc::clone(&revision));
        self.shrink(key);
        let superseded = previous.line().len() + revision.line().len();
        self.log(Arc::clone(&revision), Some(previous));
        Ok((revision, superseded))
    }

    fn log(&mut self, revision: Arc<Revision>, previous: Option<Arc<Revision>>) {
        debug_assert!(
            self.events.back().is_none_or(|last| last.revision.version() < revision.version()),
            "versions of events increase"
        );
        self.events.push_back(Event { revision, previous });
    }

    /// Returns the state that the latest write replaced.
    pub(super) fn previous(&self) -> Option<&Arc<Revision>> {
        self.events.back()?.previous.as_ref()
    }

    fn grow(&mut self, key: &Key) {
        self.live += 1;
        match self.counts.get_mut(key.namespace()) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(key.namespace().into(), 1)),
        }
    }

    fn shrink(&mut self, key: &Key) {
        self.live -= 1;
        if let Some(count) = self.counts.get_mut(key.namespace()) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(key.namespace());
            }
        }
    }

    pub(super) fn page(&self, version: u64, newest: bool, request: &PageRequest<'_>) -> Page {
        let mut items = Vec::new();
        let mut more = false;
        for states in self.range(request).map(|(_, states)| states) {
            let Some(revision) = state_at(states, version) else { continue };
            if request.limit > 0 && items.len() == request.limit {
                more = true;
                break;
            }
            items.push(Arc::clone(revision));
        }
        let total = match (request.start, request.select) {
            (None, None) if newest => Some(self.count(request.namespace)),
            // Counts exist only for the present. For an older version, the first page of a list
            // counts for all pages.
            (start, None) if more && (request.recount || start.is_none()) => {
                let states = self.range(request).map(|(_, states)| states);
                Some(states.filter(|states| state_at(states, version).is_some()).count())
            }
            _ => None,
        };
        Page { version, items, more, total }
    }

    fn range(
        &self,
        request: &PageRequest<'_>,
    ) -> impl Iterator<Item = (&Arc<Key>, &Vec<Arc<Revision>>)> {
        let namespace_start = request.namespace.map(|namespace| Key::new(namespace, ""));
        let end = request.namespace.map(Key::after_namespace);
        let start = match (request.start, &namespace_start) {
            (Some(start), Some(first)) => Some(start.max(first)),
            (start, first) => start.or(first.as_ref()),
        };
        // A start beyond the namespace's end, from the continue token of another list, is an empty
        // range, on which `BTreeMap::range` panics.
        let start = match (&end, start) {
            (Some(end), Some(start)) if start > end => Some(end),
            _ => start,
        };
        let bounds = (
            start.map_or(Bound::Unbounded, Bound::Included),
            end.as_ref().map_or(Bound::Unbounded, Bound::Excluded),
        );
        self.keys.range::<Key, _>(bounds)
    }

    /// Returns whether a watcher that has seen everything up to a version would miss an event.
    pub(super) fn has_forgotten_after(&self, version: u64) -> bool {
        version < self.forgotten
    }

    /// Returns at most `max` events after a version, and the number of further events.
    pub(super) fn events_after(&self, after: u64, max: usize) -> (Vec<Event>, usize) {
        let first = self.events.partition_point(|event| event.revision.version() <= after);
        let last = self.events.len().min(first + max);
        (self.events.range(first..last).cloned().collect(), self.events.len() - last)
    }

    /// Compacts events up to `version`, and the states that later readers cannot see. Returns their
    /// bytes.
    pub(super) fn compact(&mut self, version: u64) -> usize {
        let mut freed = 0;
        while let Some(event) = self.events.front()
            && event.revision.version() <= version
        {
            let key = Arc::clone(event.revision.key());
            self.forgotten = event.revision.version();
            self.events.pop_front();
            let Some(states) = self.keys.get_mut(&key) else { continue };
            let seen = states.partition_point(|state| state.version() <= version);
            // The last of these is still current, unless it is a deletion.
            let keep_from = match seen.checked_sub(1).map(|last| &states[last]) {
                Some(last) if !last.is_deleted() => seen - 1,
                _ => seen,
            };
            freed += states.drain(..keep_from).map(|state| state.line().len()).sum::<usize>();
            if states.is_empty() {
                self.keys.remove(&key);
            }
        }
        freed
    }

    /// Replaces everything with the states of a snapshot, without events.
    pub(super) fn restore(&mut self, version: u64, states: &[Arc<Revision>]) {
        let (changed, closed, incarnation) = (self.changed.clone(), self.closed, self.incarnation);
        *self = Self { changed, closed, incarnation, forgotten: version, ..Self::new() };
        for state in states {
            self.grow(state.key());
            self.keys.insert(Arc::clone(state.key()), vec![Arc::clone(state)]);
        }
    }
}

/// Returns the latest state of a key, unless that is its deletion.
fn live(states: &[Arc<Revision>]) -> Option<&Arc<Revision>> {
    states.last().filter(|last| !last.is_deleted())
}

/// Returns the state at a version.
fn state_at(states: &[Arc<Revision>], version: u64) -> Option<&Arc<Revision>> {
    // Nearly always the last one, because most lists are at the latest version.
    let newest = states.last().filter(|state| state.version() <= version);
    let state = newest.or_else(|| {
        let after = states.partition_point(|state| state.version() <= version);
        after.checked_sub(1).map(|at| &states[at])
    })?;
    (!state.is_deleted()).then_some(state)
}
