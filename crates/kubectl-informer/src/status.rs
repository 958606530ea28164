//! The status line, which summarizes the state of the informers.

use std::time::Duration;

use kube_informer::{Error, InformerStatus, State};
use tokio::time::Instant;

use crate::cells::width;
use crate::color::{BOLD, DIM, GREEN, RED, YELLOW};
use crate::connect::Place;
use crate::discovery::Type;
use crate::plain::{self, Asked};
use crate::screen::Pieces;

/// A type and the status of its informer.
pub(crate) struct Informed<'a> {
    pub(crate) of: &'a Type,
    /// The name of the object, if only one was chosen.
    pub(crate) name: Option<&'a str>,
    /// The number of objects that pass the filters by name, if there are any filters.
    pub(crate) matching: Option<usize>,
    pub(crate) status: InformerStatus,
}

/// The context of the line, besides the informers themselves.
pub(crate) struct Context<'a> {
    pub(crate) place: &'a Place,
    pub(crate) namespaces: &'a [String],
    pub(crate) reconnects: u64,
    /// The last error that was recovered from, and its time.
    pub(crate) last: Option<(&'a str, Instant)>,
    pub(crate) started: Instant,
    /// The conditions that are being waited for.
    pub(crate) waiting: Option<String>,
}

/// How long an error is shown after recovery.
const LAST_SHOWN: Duration = Duration::from_secs(60);

pub(crate) fn line(informers: &[Informed<'_>], context: &Context<'_>) -> Pieces {
    let troubled = informers.iter().find_map(|each| match &each.status.state {
        State::BackingOff { until, why } => Some((each, *until, why)),
        _ => None,
    });
    let mut line = match troubled {
        Some((informed, until, why)) => trouble(informed, until, why, context),
        None if informers.iter().all(|each| each.status.synced) => well(informers),
        None => syncing(informers, context),
    };
    if troubled.is_none() {
        if let Some(waiting) = &context.waiting {
            // After the state and the objects, because the end of the line may be cut off.
            line.insert(2, (format!(" · waiting for {waiting}"), None));
        }
        if context.reconnects > 0 {
            line.push((format!(" · {}", counted(context.reconnects, "reconnect")), None));
        }
        if let Some((text, at)) = context.last.filter(|(_, at)| at.elapsed() < LAST_SHOWN) {
            let ago = seconds(at.elapsed());
            line.push((format!(" · {ago} ago: {text}"), Some(DIM)));
        }
    }
    line
}

/// Returns the line to show before there are any informers.
pub(crate) fn connecting(place: &Place) -> Pieces {
    vec![("◌ connecting".to_owned(), Some(YELLOW)), (format!("  {place}"), None)]
}

fn syncing(informers: &[Informed<'_>], context: &Context<'_>) -> Pieces {
    let mut line = vec![("◌ syncing".to_owned(), Some(YELLOW))];
    let open = informers.iter().filter(|each| !each.status.synced);
    let names: Vec<_> = open.clone().map(|each| each.of.name()).collect();
    let received: u64 = open.map(|each| each.status.received).sum();
    line.push((format!("  {}", names.join(", ")), Some(BOLD)));
    if received > 0 {
        line.push((format!(" · {} so far", counted(received, "object")), None));
    }
    line.push((
        format!(" · {} · {}", seconds(context.started.elapsed()), context.place.address),
        None,
    ));
    line
}

fn well(informers: &[Informed<'_>]) -> Pieces {
    let all_live = informers.iter().all(|each| each.status.live);
    let mut line = if all_live {
        vec![("● live".to_owned(), Some(GREEN))]
    } else {
        vec![("○ connecting".to_owned(), Some(YELLOW))]
    };
    let counts: Vec<_> = informers.iter().map(Informed::count).collect();
    let matched = informers.iter().any(|each| each.matching.is_some());
    let verb = if matched { " match" } else { "" };
    line.push((format!("  {}{verb}", counts.join(", ")), Some(BOLD)));
    let failed: usize = informers.iter().map(|each| each.status.failed).sum();
    if failed > 0 {
        line.push((format!(" · {failed} unreadable"), Some(RED)));
    }
    // Several informers have no common version. The stalest one determines the staleness of all.
    if let [only] = informers {
        line.push((format!(" · version {}", only.status.resource_version), None));
    }
    if let Some(stale) = staleness(informers) {
        line.push((format!(" · as of {} ago", seconds(stale)), None));
    }
    line
}

impl Informed<'_> {
    /// Formats the number of objects: `12 pods`, `3 of 12 pods`. A single object that was chosen is
    /// named.
    fn count(&self) -> String {
        let objects = self.status.objects;
        match (self.name, self.matching, objects) {
            (Some(name), _, 0) => format!("waiting for {}/{name}", self.of.singular_name()),
            (Some(name), _, 1) => format!("{}/{name}", self.of.singular_name()),
            (_, Some(matching), _) => {
                let (matching, all) = (grouped(matching as u64), grouped(objects as u64));
                format!("{matching} of {all} {}", self.of.plural)
            }
            (_, None, 1) => format!("1 {}", self.of.kind.to_lowercase()),
            _ => format!("{} {}", grouped(objects as u64), self.of.plural),
        }
    }
}

/// Returns the line to show while events are held back.
pub(crate) fn paused(held: usize, merged: u64, filtered: bool) -> Pieces {
    let mut line = vec![("‖ paused".to_owned(), Some(YELLOW))];
    let most = if filtered { "up to " } else { "" };
    line.push(match held as u64 {
        0 => ("  nothing has happened since".to_owned(), None),
        held => (format!("  {most}{} held", counted(held, "event")), Some(BOLD)),
    });
    if merged > 0 {
        line.push((format!(", {} merged by object", grouped(merged)), None));
    }
    line.push((" · space resumes".to_owned(), Some(DIM)));
    line
}

/// Adds a hint at the key for help, if there is room for it.
pub(crate) fn hint(line: &mut Pieces, columns: usize) {
    const HINT: &str = " · ? for keys";
    let taken: usize = line.iter().map(|(piece, _)| width(piece)).sum();
    if taken + width(HINT) < columns {
        line.push((HINT.to_owned(), Some(DIM)));
    }
}

fn trouble(informed: &Informed<'_>, until: Instant, why: &Error, context: &Context<'_>) -> Pieces {
    let asked = Asked {
        of: informed.of,
        namespaces: context.namespaces,
        place: context.place,
        during: None,
    };
    let mut line = vec![("▲ ".to_owned(), Some(RED)), (plain::problem(why, &asked), Some(RED))];
    let wait = until.saturating_duration_since(Instant::now());
    let next = match wait.as_secs() {
        0 => "trying again".to_owned(),
        _ => format!("next try in {}", seconds(wait)),
    };
    line.push((format!(" · {next}"), None));
    if let Some(stale) = informed.status.staleness.filter(|_| informed.status.synced) {
        let objects = counted(informed.status.objects as u64, "object");
        line.push((format!(" · {objects} as of {} ago", seconds(stale)), Some(DIM)));
    }
    // The origin, which the user knows already, comes last, because it may be cut off.
    line.push((format!(" · {}", context.place.origin), Some(DIM)));
    line
}

fn staleness(informers: &[Informed<'_>]) -> Option<Duration> {
    let all: Option<Vec<_>> = informers.iter().map(|each| each.status.staleness).collect();
    all?.into_iter().max()
}

/// Formats a duration in whole seconds, minutes or hours, so that it changes at most once a second.
pub(crate) fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// Formats a count: `1 object`, `12,000 objects`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(number))
}

/// Formats a number with separators: `12,000`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &Pieces) -> String {
        line.iter().map(|(piece, _)| piece.as_str()).collect()
    }

    #[test]
    fn a_pause_says_what_is_held() {
        let paused = |held, merged, filtered| text(&paused(held, merged, filtered));
        assert_eq!(paused(0, 0, false), "‖ paused  nothing has happened since · space resumes");
        assert_eq!(paused(1, 0, false), "‖ paused  1 event held · space resumes");
        assert_eq!(paused(7, 0, true), "‖ paused  up to 7 events held · space resumes");
        let many = paused(1030, 2040, false);
        assert_eq!(many, "‖ paused  1,030 events held, 2,040 merged by object · space resumes");
    }

    #[test]
    fn a_hint_is_added_if_there_is_room() {
        for (columns, expected) in
            [(80, "● live · ? for keys"), (20, "● live · ? for keys"), (19, "● live")]
        {
            let mut line = vec![("● live".to_owned(), None)];
            hint(&mut line, columns);
            assert_eq!(text(&line), expected, "{columns}");
        }
    }

    #[test]
    fn numbers_are_for_people() {
        assert_eq!(counted(0, "object"), "0 objects");
        assert_eq!(counted(1, "object"), "1 object");
        assert_eq!(counted(999, "object"), "999 objects");
        assert_eq!(counted(1_234_567, "object"), "1,234,567 objects");
        assert_eq!(seconds(Duration::from_millis(900)), "0 s");
        assert_eq!(seconds(Duration::from_secs(119)), "119 s");
        assert_eq!(seconds(Duration::from_secs(600)), "10 min");
        assert_eq!(seconds(Duration::from_secs(8000)), "2 h");
    }
}
