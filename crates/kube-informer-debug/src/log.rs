//! The last events, for as long as a page is open or the program keeps a history.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use kube_informer::{Event, FinalState, Object, ObjectKey, ResourceVersion};
use parking_lot::Mutex;
use serde::Serialize;

/// The number of events that are kept.
const EVENTS_MAX: usize = 1000;

/// The memory that the objects of kept events may take. Most share it with the cache.
const BYTES_MAX: usize = 16 << 20;

/// The type of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum What {
    Add,
    Update,
    Delete,
    /// A delete that a relist revealed.
    Missed,
}

/// An event that is kept.
#[derive(Clone)]
pub(crate) struct Record {
    pub(crate) seq: u64,
    pub(crate) at: u64,
    pub(crate) informer: Arc<str>,
    pub(crate) what: What,
    pub(crate) key: ObjectKey,
    version: ResourceVersion,
    /// The states before and after, if objects are shown.
    pub(crate) states: Option<(Option<Object>, Option<Object>)>,
}

/// An event as the page receives it.
#[derive(Serialize)]
pub(crate) struct Row {
    seq: u64,
    at: u64,
    informer: Arc<str>,
    what: What,
    namespace: String,
    name: String,
    version: String,
}

/// A bounded list of events.
pub(crate) struct Log {
    kept: Mutex<Kept>,
    /// Whether objects are kept, to show what changed.
    objects: bool,
}

#[derive(Default)]
struct Kept {
    next: u64,
    events: VecDeque<Record>,
    bytes: usize,
}

impl Record {
    fn memory(&self) -> usize {
        let states = self.states.as_ref().map(|(old, new)| [old, new]);
        states.into_iter().flatten().flatten().map(Object::memory).sum()
    }

    pub(crate) fn row(&self) -> Row {
        Row {
            seq: self.seq,
            at: self.at,
            informer: self.informer.clone(),
            what: self.what,
            namespace: self.key.namespace().unwrap_or_default().to_owned(),
            name: self.key.name().to_owned(),
            version: self.version.to_string(),
        }
    }
}

impl Log {
    pub(crate) fn new(objects: bool) -> Self {
        Self { kept: Mutex::default(), objects }
    }

    /// Records an event, unless it is part of an initial list or a repetition.
    pub(crate) fn note(&self, informer: &Arc<str>, event: Event) {
        let (what, old, new) = match event {
            Event::Added { object, initial: false } => (What::Add, None, Some(object)),
            Event::Updated { old, new } => (What::Update, Some(old), Some(new)),
            Event::Deleted(deleted) if deleted.final_state == FinalState::Unknown => {
                (What::Missed, Some(deleted.object), None)
            }
            Event::Deleted(deleted) => (What::Delete, Some(deleted.object), None),
            Event::Added { .. } | Event::Resynced(_) | Event::Synced => return,
        };
        let Some(object) = new.as_ref().or(old.as_ref()) else { return };
        let (key, version) = (object.key().clone(), object.resource_version().clone());
        let states = self.objects.then_some((old, new));
        let (at, informer) = (unix_millis(), informer.clone());
        let record = Record { seq: 0, at, informer, what, key, version, states };
        let dropped = self.kept.lock().push(record);
        // Objects are freed without the lock.
        drop(dropped);
    }

    /// Returns the number of the next event.
    pub(crate) fn next(&self) -> u64 {
        self.kept.lock().next
    }

    /// Returns the newest events since a number, oldest first, and how many were left out.
    pub(crate) fn since(&self, seq: u64, limit: usize) -> (Vec<Row>, u64) {
        let kept = self.kept.lock();
        let newer = kept.next.saturating_sub(seq);
        let newest = kept.events.iter().rev().take_while(|record| record.seq >= seq);
        let mut rows: Vec<Row> = newest.take(limit).map(Record::row).collect();
        rows.reverse();
        let left_out = newer - rows.len() as u64;
        (rows, left_out)
    }

    pub(crate) fn get(&self, seq: u64) -> Option<Record> {
        let kept = self.kept.lock();
        let first = kept.events.front()?.seq;
        kept.events.get(usize::try_from(seq.checked_sub(first)?).ok()?).cloned()
    }

    /// Returns the events of an object, newest first.
    pub(crate) fn of(&self, informer: &str, key: &ObjectKey) -> Vec<Record> {
        let kept = self.kept.lock();
        let of = |record: &&Record| &*record.informer == informer && record.key == *key;
        kept.events.iter().rev().filter(of).cloned().collect()
    }

    /// Drops all events.
    pub(crate) fn clear(&self) {
        let dropped = {
            let mut kept = self.kept.lock();
            kept.bytes = 0;
            std::mem::take(&mut kept.events)
        };
        drop(dropped);
    }
}

impl Kept {
    /// Adds an event, and returns those that it replaces.
    fn push(&mut self, mut record: Record) -> Vec<Record> {
        record.seq = self.next;
        self.next += 1;
        self.bytes += record.memory();
        self.events.push_back(record);
        let mut dropped = Vec::new();
        while self.events.len() > EVENTS_MAX || self.bytes > BYTES_MAX && self.events.len() > 1 {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.memory());
            dropped.push(oldest);
        }
        dropped
    }
}

/// Returns the time of day, for people.
pub(crate) fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, text: &str) -> Object {
        let json = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"ns","uid":"u","resourceVersion":"7"}},"x":"{text}"}}"#
        );
        Object::from_json(json).unwrap()
    }

    fn add(name: &str) -> Event {
        Event::Added { object: object(name, ""), initial: false }
    }

    fn names(rows: &[Row]) -> Vec<&str> {
        rows.iter().map(|row| row.name.as_str()).collect()
    }

    #[test]
    fn only_changes_are_recorded() {
        let log = Log::new(true);
        let informer: Arc<str> = "pods".into();
        log.note(&informer, Event::Added { object: object("a", ""), initial: true });
        log.note(&informer, Event::Synced);
        log.note(&informer, Event::Resynced(object("a", "")));
        assert_eq!(log.next(), 0);
        log.note(&informer, add("b"));
        log.note(&informer, Event::Updated { old: object("b", ""), new: object("b", "1") });
        assert_eq!(log.get(1).map(|record| (record.seq, record.what)), Some((1, What::Update)));
        assert!(log.get(2).is_none());
        let of_b = log.of("pods", object("b", "").key());
        assert_eq!(of_b.iter().map(|record| record.seq).collect::<Vec<_>>(), [1, 0]);
        assert!(log.of("nodes", object("b", "").key()).is_empty());
    }

    #[test]
    fn the_number_of_events_is_bounded() {
        let log = Log::new(false);
        let informer: Arc<str> = "pods".into();
        for number in 0..EVENTS_MAX + 10 {
            log.note(&informer, add(&format!("p{number}")));
        }
        let (rows, left_out) = log.since(5, 3);
        assert_eq!(names(&rows), ["p1007", "p1008", "p1009"]);
        assert_eq!(left_out, 1002);
        assert!(log.get(9).is_none() && log.get(10).is_some());
        assert!(log.get(10).unwrap().states.is_none(), "no objects are kept if none are shown");
        log.clear();
        assert_eq!((log.since(0, 10).0.len(), log.next()), (0, 1010));
    }

    #[test]
    fn the_memory_of_objects_is_bounded() {
        let log = Log::new(true);
        let informer: Arc<str> = "pods".into();
        // Text that does not compress.
        let mut state = 1_u64;
        let mut letter = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + (state >> 59) as u8 % 26)
        };
        for number in 0..12 {
            let text: String = (0..4 << 20).map(|_| letter()).collect();
            let object = object(&format!("p{number}"), &text);
            log.note(&informer, Event::Added { object, initial: false });
        }
        assert!(log.kept.lock().bytes <= BYTES_MAX);
        assert!(log.get(0).is_none() && log.get(11).is_some());
    }
}
