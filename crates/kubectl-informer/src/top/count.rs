//! Counts changes.

use std::collections::HashMap;
use std::time::Duration;

use super::minute::Minute;
use crate::record::Happened;

/// The maximum number of objects to count. If there are more, those that changed least are
/// forgotten.
const OBJECTS_MAX: usize = 50_000;

/// The maximum number of fields to count for one object.
const FIELDS_MAX: usize = 100;

/// The numbers of additions, updates and deletions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Changes {
    pub(super) added: u64,
    pub(super) updated: u64,
    pub(super) deleted: u64,
    /// The total size of these objects as JSON.
    pub(super) bytes: u64,
    /// Those of the last minute.
    pub(super) minute: Minute,
}

impl Changes {
    fn count(&mut self, happened: Happened, bytes: u64, at: Duration) {
        match happened {
            Happened::Add => self.added += 1,
            Happened::Update => self.updated += 1,
            Happened::Delete => self.deleted += 1,
            Happened::Resync => return,
        }
        self.bytes += bytes;
        self.minute.count(at);
    }

    pub(super) fn all(&self) -> u64 {
        self.added + self.updated + self.deleted
    }
}

/// The changes of one object.
#[derive(Clone, Default, Debug)]
pub(super) struct Busy {
    pub(super) changes: Changes,
    fields: HashMap<String, u64>,
}

impl Busy {
    fn has_changed(&self) -> bool {
        self.changes.updated > 0 || self.changes.all() > 1
    }

    /// Returns the fields that changed, the most frequent first.
    pub(super) fn fields(&self) -> Vec<(&str, u64)> {
        let mut fields: Vec<_> = self.fields.iter().map(|(path, n)| (path.as_str(), *n)).collect();
        fields.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
        fields
    }
}

/// The counts of all changes.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) types: Vec<Changes>,
    /// By the position of the type, and the object's key.
    objects: HashMap<(usize, String), Busy>,
}

impl Counts {
    pub(super) fn new(types: usize) -> Self {
        Self { types: vec![Changes::default(); types], objects: HashMap::new() }
    }

    /// Counts an event, with the paths that an update changed, and the time since the start.
    pub(super) fn count(
        &mut self,
        (place, key): (usize, String),
        happened: Happened,
        bytes: u64,
        changed: impl IntoIterator<Item = String>,
        at: Duration,
    ) {
        if let Some(changes) = self.types.get_mut(place) {
            changes.count(happened, bytes, at);
        }
        if self.objects.len() >= OBJECTS_MAX && !self.objects.contains_key(&(place, key.clone())) {
            self.forget();
        }
        let busy = self.objects.entry((place, key)).or_default();
        busy.changes.count(happened, bytes, at);
        for path in changed {
            if busy.fields.len() < FIELDS_MAX || busy.fields.contains_key(&path) {
                *busy.fields.entry(path).or_default() += 1;
            }
        }
    }

    /// Makes room by dropping at least half of the objects.
    fn forget(&mut self) {
        let mut changes: Vec<_> = self.objects.values().map(|busy| busy.changes.all()).collect();
        let middle = changes.len() / 2;
        let (_, least, _) = changes.select_nth_unstable(middle);
        let least = *least;
        self.objects.retain(|_, busy| busy.changes.all() > least);
    }

    /// Returns the objects that changed most, with the positions of their types, among those whose
    /// names pass. An object that was only added or only deleted has not changed.
    pub(super) fn busiest(
        &self,
        limit: usize,
        passes: impl Fn(&str) -> bool,
    ) -> Vec<(usize, &str, &Busy)> {
        let name = |key: &str| passes(key.rsplit('/').next().unwrap_or(key));
        let all = self.objects.iter().filter(|((_, key), _)| name(key));
        let all = all.map(|((place, key), busy)| (*place, key.as_str(), busy));
        let mut all: Vec<_> = all.filter(|(_, _, busy)| busy.has_changed()).collect();
        let order = |(place, key, busy): &(usize, &str, &Busy)| {
            (std::cmp::Reverse(busy.changes.all()), *place, key.to_string())
        };
        all.sort_by_cached_key(order);
        all.truncate(limit);
        all
    }

    pub(super) fn all(&self) -> u64 {
        self.types.iter().map(Changes::all).sum()
    }
}

/// Returns the rate per second.
pub(super) fn rate(number: u64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 { number as f64 / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn update(counts: &mut Counts, key: &str, paths: &[&str]) {
        let paths = paths.iter().map(ToString::to_string);
        counts.count((0, key.to_owned()), Happened::Update, 10, paths, Duration::ZERO);
    }

    fn any(_: &str) -> bool {
        true
    }

    #[test]
    fn the_busiest_come_first_with_their_fields() {
        let mut counts = Counts::new(1);
        update(&mut counts, "a", &["status"]);
        update(&mut counts, "b", &["status", "spec"]);
        update(&mut counts, "b", &["status"]);
        counts.count((0, "c".into()), Happened::Resync, 10, [], Duration::ZERO);
        let busiest = counts.busiest(5, any);
        let keys: Vec<_> = busiest.iter().map(|(_, key, _)| *key).collect();
        assert_eq!(keys, ["b", "a"]);
        assert_eq!(busiest[0].2.fields(), [("status", 2), ("spec", 1)]);
        assert_eq!(counts.busiest(1, any).len(), 1);
        assert_eq!((counts.types[0].updated, counts.types[0].bytes), (3, 30));
        assert_eq!(counts.types[0].all(), 3);
        update(&mut counts, "b/web", &[]);
        let filtered = counts.busiest(5, |name| name == "web");
        assert_eq!(filtered.iter().map(|(_, key, _)| *key).collect::<Vec<_>>(), ["b/web"]);
    }

    #[test]
    fn what_is_counted_is_bounded_and_keeps_the_busiest() {
        let mut counts = Counts::new(1);
        update(&mut counts, "busy", &[]);
        update(&mut counts, "busy", &[]);
        for n in 0..OBJECTS_MAX + 10 {
            update(&mut counts, &n.to_string(), &[]);
        }
        assert!(counts.objects.len() <= OBJECTS_MAX);
        assert_eq!(counts.busiest(1, any)[0].1, "busy");
        for n in 0..FIELDS_MAX + 10 {
            update(&mut counts, "busy", &[&n.to_string()]);
        }
        assert_eq!(counts.busiest(1, any)[0].2.fields().len(), FIELDS_MAX);
        assert_eq!(counts.all(), (OBJECTS_MAX + FIELDS_MAX + 22) as u64);
    }

    proptest! {
        #[test]
        fn every_event_is_counted_for_its_type_and_its_object(events in prop::collection::vec((0_usize..3, 0_u8..5, 0_u8..3), 0..50)) {
            let mut counts = Counts::new(3);
            for (place, key, what) in &events {
                let happened = [Happened::Add, Happened::Update, Happened::Delete][usize::from(*what)];
                counts.count((*place, key.to_string()), happened, 1, [], Duration::ZERO);
            }
            prop_assert_eq!(counts.all(), events.len() as u64);
            for (place, key, busy) in counts.busiest(100, any) {
                let of_it = |(at, name, _): &&(usize, u8, u8)| *at == place && name.to_string() == key;
                prop_assert_eq!(busy.changes.all(), events.iter().filter(of_it).count() as u64);
            }
        }
    }
}
