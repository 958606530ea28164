//! The conditions of `--until`, and how many objects have met each.

use std::collections::HashMap;

use crate::record::{Happened, Record};
use crate::until::{self, Until};

/// The maximum number of objects that a message names. The rest are counted.
const NAMED_MAX: usize = 3;

/// Conditions to wait for. As in `kubectl wait`, by default every object has to meet each of them.
///
/// An object that has met a condition need not keep meeting it. One that is added later counts too;
/// one that is deleted no longer does.
pub(super) struct Conditions {
    all: Vec<Condition>,
    /// Whether one object is enough.
    any: bool,
}

struct Condition {
    until: Until,
    /// The objects that exist, and whether each has met the condition. Bounded by the cache.
    objects: HashMap<(usize, String), bool>,
    /// Whether any object has ever met it. Without objects, a condition is not met.
    met: bool,
}

impl Conditions {
    pub(super) fn new(until: &[Until], any: bool) -> Self {
        let condition =
            |until: &Until| Condition { until: until.clone(), objects: HashMap::new(), met: false };
        Self { all: until.iter().map(condition).collect(), any }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Records an event.
    pub(super) fn observe(&mut self, record: &Record) -> Result<(), String> {
        if self.is_empty() {
            return Ok(());
        }
        let what = match record.happened {
            Happened::Add => until::Happened::Added,
            Happened::Update | Happened::Resync => until::Happened::Updated,
            Happened::Delete => until::Happened::Deleted,
        };
        let key = (record.watched.place, record.key());
        let object = record.value();
        for condition in &mut self.all {
            let holds = object.as_ref().is_ok_and(|object| condition.until.holds(what, object));
            condition.observe(&key, what, holds);
        }
        object.map(drop)
    }

    /// Describes the conditions that are not met, with the objects that have not met them.
    pub(super) fn unmet(&self) -> Option<String> {
        self.describe(|condition| {
            let mut names: Vec<_> = condition.unmet().map(|(_, name)| name.as_str()).collect();
            names.sort_unstable();
            let (unmet, objects) = (names.len(), condition.objects.len());
            if self.any || objects < 2 {
                return condition.until.to_string();
            }
            let more = if unmet > NAMED_MAX { ", …" } else { "" };
            names.truncate(NAMED_MAX);
            let names = names.join(", ");
            format!("{} by {unmet} of {objects} objects ({names}{more})", condition.until)
        })
    }

    /// Describes the awaited conditions, and how many objects have met them.
    pub(super) fn progress(&self) -> Option<String> {
        self.describe(|condition| {
            let (unmet, objects) = (condition.unmet().count(), condition.objects.len());
            match objects {
                _ if self.any => format!("{} by any", condition.until),
                0 | 1 => condition.until.to_string(),
                _ => format!("{} by all, {} of {objects}", condition.until, objects - unmet),
            }
        })
    }

    fn describe(&self, text: impl Fn(&Condition) -> String) -> Option<String> {
        let open = self.all.iter().filter(|condition| !condition.is_met(self.any));
        let open: Vec<_> = open.map(text).collect();
        (!open.is_empty()).then(|| open.join(" and "))
    }
}

impl Condition {
    fn observe(&mut self, key: &(usize, String), what: until::Happened, holds: bool) {
        self.met |= holds;
        if what == until::Happened::Deleted {
            self.objects.remove(key);
        } else {
            *self.objects.entry(key.clone()).or_default() |= holds;
        }
    }

    fn is_met(&self, any: bool) -> bool {
        self.met && (any || self.unmet().next().is_none())
    }

    fn unmet(&self) -> impl Iterator<Item = &(usize, String)> {
        self.objects.iter().filter(|(_, met)| !**met).map(|(key, _)| key)
    }
}
