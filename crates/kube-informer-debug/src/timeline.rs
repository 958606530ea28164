//! The last ten minutes: the rate of events, and what went wrong.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;

use crate::readings::{InformerReading, Readings, Reasons};
use crate::words;

/// One point per second.
const POINT_MILLIS: u64 = 1000;

/// The number of points that are kept.
const POINTS_MAX: usize = 600;

/// The number of marks that are kept. A server in trouble makes one every few seconds.
const MARKS_MAX: usize = 300;

/// One second of all informers.
#[derive(Serialize, Clone, Copy, Default, Debug, PartialEq)]
pub(crate) struct Point {
    at: u64,
    /// The number of events.
    events: u64,
    /// The number of informers that were not live.
    down: usize,
    /// The number of changes that waited for the cache.
    queued: usize,
}

/// Something that happened to an informer.
#[derive(Serialize, Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    number: u64,
    at: u64,
    informer: Arc<str>,
    kind: MarkKind,
    text: String,
}

#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MarkKind {
    Relist,
    Resume,
    Down,
    Up,
    Skipped,
    Button,
}

#[derive(Default)]
pub(crate) struct Timeline {
    points: VecDeque<Point>,
    /// The second that is not over yet.
    open: Option<Point>,
    marks: VecDeque<Mark>,
    marked: u64,
    before: HashMap<Arc<str>, Before>,
}

/// The counts of an informer at the last reading.
struct Before {
    events: u64,
    skipped: u64,
    relists: Reasons,
    restarts: Reasons,
    /// Since when the informer has not been live.
    down_since: Option<u64>,
}

impl Timeline {
    /// Records a reading. Returns the points that it completes.
    pub(crate) fn record(&mut self, now: u64, readings: &Readings) -> Vec<Point> {
        let mut point = Point { at: now, ..Point::default() };
        let mut before = std::mem::take(&mut self.before);
        for informer in &readings.informers {
            let (earlier, name) = (before.remove(&informer.name), informer.name.clone());
            point.events += earlier
                .as_ref()
                .map_or(0, |then| informer.events - then.events.min(informer.events));
            point.down += usize::from(!informer.live);
            point.queued += informer.queued;
            let down_since = self.compare(now, informer, earlier);
            self.before.insert(
                name,
                Before {
                    events: informer.events,
                    skipped: informer.skipped,
                    relists: informer.relists.clone(),
                    restarts: informer.restarts.clone(),
                    down_since,
                },
            );
        }
        self.close(point)
    }

    /// Marks what has happened to an informer since the last reading. Returns since when it has not been live.
    fn compare(
        &mut self,
        now: u64,
        informer: &InformerReading,
        before: Option<Before>,
    ) -> Option<u64> {
        // The first reading of an informer only begins its counts.
        let before = before?;
        let name = &informer.name;
        for reason in increased(&before.relists, &informer.relists) {
            self.mark(
                now,
                name,
                MarkKind::Relist,
                format!("Listed again: {}", words::reason(reason)),
            );
        }
        for reason in increased(&before.restarts, &informer.restarts) {
            self.mark(
                now,
                name,
                MarkKind::Resume,
                format!("Resumed the watch: {}", words::reason(reason)),
            );
        }
        if informer.skipped > before.skipped {
            let count = informer.skipped - before.skipped;
            self.mark(now, name, MarkKind::Skipped, format!("{count} objects could not be kept"));
        }
        match (informer.live, before.down_since) {
            // Before its first list, an informer is only starting.
            (false, None) if informer.synced => {
                let text = informer.trouble.clone().unwrap_or_else(|| "Not live".to_owned());
                self.mark(now, name, MarkKind::Down, text);
                Some(now)
            }
            (true, Some(since)) => {
                let seconds = now.saturating_sub(since) as f64 / 1000.0;
                self.mark(now, name, MarkKind::Up, format!("Live again after {seconds:.1} s"));
                None
            }
            (_, since) => since,
        }
    }

    pub(crate) fn mark(&mut self, at: u64, informer: &Arc<str>, kind: MarkKind, text: String) {
        let (number, informer) = (self.marked, informer.clone());
        self.marked += 1;
        self.marks.push_back(Mark { number, at, informer, kind, text });
        while self.marks.len() > MARKS_MAX {
            self.marks.pop_front();
        }
    }

    /// Adds a reading to the current second. Returns the second before, if this starts another one.
    fn close(&mut self, point: Point) -> Vec<Point> {
        let second = |point: &Point| point.at / POINT_MILLIS;
        match &mut self.open {
            Some(open) if second(open) == second(&point) => {
                open.events += point.events;
                open.down = open.down.max(point.down);
                open.queued = open.queued.max(point.queued);
                Vec::new()
            }
            open => {
                let whole = open.replace(point);
                self.points.extend(whole);
                while self.points.len() > POINTS_MAX {
                    self.points.pop_front();
                }
                whole.into_iter().collect()
            }
        }
    }

    pub(crate) fn points(&self) -> impl Iterator<Item = &Point> {
        self.points.iter()
    }

    /// Returns the marks from a number on, and the number of the next.
    pub(crate) fn marks(&self, from: u64) -> (Vec<Mark>, u64) {
        let newer = self.marks.iter().filter(|mark| mark.number >= from);
        (newer.cloned().collect(), self.marked)
    }
}

fn increased<'a>(before: &'a Reasons, now: &'a Reasons) -> impl Iterator<Item = &'static str> + 'a {
    let more = |(reason, count): &(&&'static str, &u64)| {
        before.get(**reason).is_none_or(|before| before < *count)
    };
    now.iter().filter(more).map(|(reason, _)| *reason)
}
