//! Decides which events are written: repeated ones become a series, similar ones are combined, and excess ones
//! are dropped. Pure: events and times are passed in.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::bucket::Bucket;
use super::occurrence::{EventType, Occurrence, Similar, Source, Subject, micro_time};

/// Time after which an event that does not repeat is over: client-go's `finishTime`.
pub(super) const SERIES_QUIET_MAX: Duration = Duration::from_secs(6 * 60);

/// Interval at which the count of an ongoing series is written: client-go's `refreshTime`. Servers keep an
/// event for an hour after its last write.
pub(super) const SERIES_REFRESH: Duration = Duration::from_secs(30 * 60);

/// Number of different notes, within [`SIMILAR_WITHIN`] of each other, from which events are combined:
/// client-go's `defaultAggregateMaxEvents` and `defaultAggregateIntervalInSeconds`.
pub(super) const SIMILAR_MAX: usize = 10;
pub(super) const SIMILAR_WITHIN: Duration = Duration::from_secs(600);

/// Number of events, kinds of events and objects that are remembered, each: client-go's `maxLruCacheEntries`.
/// The least recently used one is evicted.
pub(super) const REMEMBERED_MAX: usize = 4096;

/// The prefix of the note of a combined event.
const COMBINED: &str = "(combined from similar events): ";

/// A request to write.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Write {
    Create(Value),
    /// The series of an event that was created; the event is created again if it is gone.
    Series(Value),
}

impl Write {
    pub(super) fn event(&self) -> &Value {
        match self {
            Write::Create(event) | Write::Series(event) => event,
        }
    }
}

/// A record of recent events.
#[derive(Default)]
pub(super) struct Correlator {
    events: HashMap<Identity, Known>,
    similar: HashMap<Similar, Notes>,
    buckets: HashMap<(Subject, EventType), Bucket>,
    /// The last number in the name of an event.
    number: i128,
}

/// The identity of an event. The note of combined events is `None`.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Identity {
    similar: Similar,
    note: Option<String>,
}

/// An event that was written.
struct Known {
    event: Value,
    count: u64,
    written_count: u64,
    written: Instant,
    last: Instant,
    last_time: Timestamp,
}

/// The notes of similar events.
struct Notes {
    seen: Vec<String>,
    last: Instant,
}

/// The decision about an event.
#[derive(PartialEq, Debug)]
pub(super) enum Verdict {
    Write(Write),
    /// The event is part of a series, whose count is written later.
    Counted,
    /// There are too many events about its object.
    Limited,
}

impl Correlator {
    /// Adds an event. Also returns the write of an entry that had to be evicted for it.
    pub(super) fn observe(
        &mut self,
        new: &Occurrence,
        source: &Source,
    ) -> (Verdict, Option<Write>) {
        let combined = self.is_combined(new);
        let exact = Identity { similar: new.similar.clone(), note: Some(new.note.clone()) };
        if let Some(verdict) = self.count(&exact, new) {
            return (verdict, None);
        }
        let identity = if combined { Identity { note: None, ..exact } } else { exact };
        if combined && let Some(verdict) = self.count(&identity, new) {
            return (verdict, None);
        }
        if !self.bucket(new).take(new.at) {
            return (Verdict::Limited, None);
        }
        let note = if combined { format!("{COMBINED}{}", new.note) } else { new.note.clone() };
        // Events of the same moment need different names.
        self.number = (self.number + 1).max(new.time.as_nanosecond());
        let event = new.event(&new.event_name(self.number), &note, source);
        let forgotten = self.make_room();
        let known = Known {
            event: event.clone(),
            count: 1,
            written_count: 1,
            written: new.at,
            last: new.at,
            last_time: new.time,
        };
        self.events.insert(identity, known);
        (Verdict::Write(Write::Create(event)), forgotten)
    }

    /// Returns the writes that are due: series that are over, and those whose count has not been written for
    /// long.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Write> {
        let mut writes = Vec::new();
        self.events.retain(|_, known| {
            if now >= known.due() {
                writes.extend(known.write(now));
            }
            now < known.end()
        });
        self.similar.retain(|_, notes| now <= notes.last + SIMILAR_WITHIN);
        self.buckets.retain(|_, bucket| !bucket.is_full(now));
        writes
    }

    /// Returns every count that has not been written yet.
    pub(super) fn unwritten(&mut self, now: Instant) -> Vec<Write> {
        self.events.values_mut().filter_map(|known| known.write(now)).collect()
    }

    /// Returns when the next write is due; `None` if nothing is remembered.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.events.values().map(Known::due).min()
    }

    /// Counts an event that is remembered and not over yet.
    fn count(&mut self, identity: &Identity, new: &Occurrence) -> Option<Verdict> {
        let known = self.events.get_mut(identity)?;
        if new.at >= known.end() {
            return None;
        }
        known.count += 1;
        (known.last, known.last_time) = (new.at, new.time);
        // The first repetition is written at once, to show that the event repeats.
        let written = if known.count == 2 { known.write(new.at) } else { None };
        Some(written.map_or(Verdict::Counted, Verdict::Write))
    }

    /// Remembers the note of an event, and returns whether there were too many different ones.
    fn is_combined(&mut self, new: &Occurrence) -> bool {
        let fresh = || Notes { seen: Vec::new(), last: new.at };
        if !self.similar.contains_key(&new.similar) {
            forget_oldest(&mut self.similar, |notes| notes.last);
        }
        let notes = self.similar.entry(new.similar.clone()).or_insert_with(fresh);
        if new.at > notes.last + SIMILAR_WITHIN {
            *notes = fresh();
        }
        notes.last = new.at;
        if !notes.seen.contains(&new.note) && notes.seen.len() < SIMILAR_MAX {
            notes.seen.push(new.note.clone());
        }
        notes.seen.len() >= SIMILAR_MAX
    }

    fn bucket(&mut self, new: &Occurrence) -> &mut Bucket {
        let key = (new.similar.subject.clone(), new.similar.type_);
        if !self.buckets.contains_key(&key) {
            forget_oldest(&mut self.buckets, Bucket::last);
        }
        self.buckets.entry(key).or_insert_with(|| Bucket::full(new.at))
    }

    fn make_room(&mut self) -> Option<Write> {
        let mut oldest = forget_oldest(&mut self.events, |known| known.last)?;
        let now = oldest.last;
        oldest.write(now)
    }
}

impl Known {
    /// Returns when the event is over unless it repeats.
    fn end(&self) -> Instant {
        self.last + SERIES_QUIET_MAX
    }

    /// Returns when the event is over or, if it goes on, its count has to be written.
    fn due(&self) -> Instant {
        let unwritten = self.count > self.written_count;
        if unwritten { self.end().min(self.written + SERIES_REFRESH) } else { self.end() }
    }

    /// Returns the series with its count, if that has not been written yet.
    fn write(&mut self, now: Instant) -> Option<Write> {
        if self.count == self.written_count {
            return None;
        }
        (self.written_count, self.written) = (self.count, now);
        let series = json!({"count": self.count, "lastObservedTime": micro_time(self.last_time)});
        self.event["series"] = series;
        Some(Write::Series(self.event.clone()))
    }
}

/// Evicts the least recently used entry, if there is no room for another.
fn forget_oldest<K: Clone + Eq + std::hash::Hash, V>(
    map: &mut HashMap<K, V>,
    last: impl Fn(&V) -> Instant,
) -> Option<V> {
    if map.len() < REMEMBERED_MAX {
        return None;
    }
    let oldest = map.iter().min_by_key(|(_, value)| last(value)).map(|(key, _)| key.clone());
    map.remove(&oldest?)
}

#[cfg(test)]
mod tests;
