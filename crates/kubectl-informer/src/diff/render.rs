//! Renders changes as lines.

use serde_json::Value;

use super::{Change, value};
use crate::cells;

/// The indentation of each line, which belongs to the event above it.
const INDENT: &str = "    ";
/// The indentation of a value that does not fit on the line of its path.
const DEEPER: &str = "        ";
/// The divisor for the width of the path column: paths are aligned up to half of the line.
const PATHS: usize = 2;
/// The maximum width of the path column if the width of lines is not limited.
const PATHS_WITHOUT_WIDTH: usize = 48;
/// The minimum number of columns for a value.
const ROOM: usize = 24;
/// The maximum number of changes that are shown for one update. More would push everything else off
/// the screen; programs get all of them.
const CHANGES_MAX: usize = 30;
/// The narrowest supported terminal.
const NARROWEST: usize = 40;

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const DIM: &str = "2";

pub(super) fn render(
    changes: &[Change<'_>],
    secret: bool,
    width: Option<usize>,
    colour: bool,
) -> String {
    let (changes, rest) = changes.split_at(changes.len().min(CHANGES_MAX));
    let width = width.map(|width| width.max(NARROWEST));
    let limit = width.map_or(PATHS_WITHOUT_WIDTH, |width| width / PATHS);
    let paths: Vec<String> = changes.iter().map(|change| change.place.to_string()).collect();
    let column = paths.iter().map(|path| cells::width(path)).filter(|path| *path <= limit).max();
    let sheet = Sheet { width, column: column.unwrap_or(0), colour };
    let lines = changes.iter().zip(paths).map(|(change, path)| sheet.line(change, &path, secret));
    lines.chain(sheet.rest(rest.len())).collect()
}

struct Sheet {
    width: Option<usize>,
    /// The width of the path column.
    column: usize,
    colour: bool,
}

impl Sheet {
    fn line(&self, change: &Change<'_>, path: &str, secret: bool) -> String {
        let (sign, colour) = match (change.old, change.new) {
            (Some(_), Some(_)) => ("~", YELLOW),
            (Some(_), None) => ("-", RED),
            (None, _) => ("+", GREEN),
        };
        let indent = INDENT.len() + 2;
        let path = match self.width {
            Some(width) => cells::keep_ends(path, width - indent),
            None => path.to_owned(),
        };
        let padding = self.column.saturating_sub(cells::width(&path)) + 2;
        let left = indent + cells::width(&path) + padding;
        let (start, separator) = match self.width {
            Some(width) if left + ROOM > width => (DEEPER.len(), format!("\n{DEEPER}")),
            _ => (left, " ".repeat(padding)),
        };
        let room = self.width.map(|width| width - start);
        let words = self.words(change, secret, room);
        format!("{INDENT}{} {path}{separator}{words}\n", self.paint(colour, sign))
    }

    /// Counts the changes that are not shown.
    fn rest(&self, changes: usize) -> Option<String> {
        let plural = if changes == 1 { "" } else { "s" };
        let text = format!("… and {changes} more change{plural}: -o json has all of them");
        let text = match self.width {
            Some(width) => cells::keep_start(&text, width - INDENT.len()),
            None => text,
        };
        (changes > 0).then(|| format!("{INDENT}{}\n", self.paint(DIM, &text)))
    }

    /// Formats the old value, the new one, or both.
    fn words(&self, change: &Change<'_>, secret: bool, room: Option<usize>) -> String {
        let brief = |value: Option<&Value>| value.map(|value| brief(change, value, secret));
        let fit = |text: String| room.map_or(text.clone(), |room| cells::keep_start(&text, room));
        match (brief(change.old), brief(change.new)) {
            (Some(old), Some(new)) => {
                let (old, new) = tell_apart(change, old, new);
                let room = room.map(|room| room.saturating_sub(3));
                let (old, new) =
                    room.map_or((old.clone(), new.clone()), |r| fit_both(&old, &new, r));
                let (old, new) = (self.paint(RED, &old), self.paint(GREEN, &new));
                format!("{old} {} {new}", self.paint(DIM, "→"))
            }
            (Some(old), None) => self.paint(RED, &fit(old)),
            (None, new) => self.paint(GREEN, &fit(new.unwrap_or_default())),
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn brief(change: &Change<'_>, value: &Value, secret: bool) -> String {
    match change.place.element() {
        _ if secret && value::is_hidden(&change.place) => value::secret(&change.place, value),
        Some(name) => value::element(value, name),
        None => value::brief(value),
    }
}

/// Adds the quotes if a number changed to a string of the same digits. Without them, it would look
/// unchanged.
fn tell_apart(change: &Change<'_>, old: String, new: String) -> (String, String) {
    match (change.old, change.new) {
        (Some(was), Some(is)) if old == new && was.is_string() != is.is_string() => {
            (cells::one_line(&was.to_string()), cells::one_line(&is.to_string()))
        }
        _ => (old, new),
    }
}

/// Shortens two texts so that both fit and the start of their difference is visible.
fn fit_both(old: &str, new: &str, room: usize) -> (String, String) {
    if cells::width(old) + cells::width(new) <= room {
        return (old.to_owned(), new.to_owned());
    }
    let (old, new) = without_common_start(old, new);
    let (old_width, new_width) = (cells::width(&old), cells::width(&new));
    let half = room / 2;
    // Each text may use the room that the other does not need.
    let (old_room, new_room) = if old_width <= half {
        (old_width, room - old_width)
    } else if new_width <= half {
        (room - new_width, new_width)
    } else {
        (half, room - half)
    };
    (cells::keep_start(&old, old_room), cells::keep_start(&new, new_room))
}

/// Removes the common start of two texts, except for a few characters of context.
fn without_common_start(old: &str, new: &str) -> (String, String) {
    const KEPT: usize = 8;
    let common = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
    if common <= KEPT + 1 {
        return (old.to_owned(), new.to_owned());
    }
    let end = |text: &str| format!("…{}", text.chars().skip(common - KEPT).collect::<String>());
    (end(old), end(new))
}
