//! The note at the end of a line, in the room that is left.

use crate::cells::{keep_end, keep_start, one_line, width};
use crate::diff::{Change, diff};
use crate::record::{Happened, Record};

/// The maximum number of changed paths to name.
const NAMED_MAX: usize = 2;

/// The minimum room for a note. A few letters would be meaningless.
const LEAST: usize = 4;

/// The note at the end of a line, in several forms from long to short.
pub(super) struct Note {
    forms: Vec<String>,
    /// The width of the form that is informative enough.
    wanted: usize,
    /// Whether to cut the note at its start, because its end is more informative, as for a path.
    cut_start: bool,
}

impl Note {
    pub(super) fn text(text: &str) -> Self {
        Self { forms: vec![text.to_owned()], wanted: width(text), cut_start: false }
    }

    /// Returns the room that the note should get.
    pub(super) fn wanted(&self) -> usize {
        self.wanted
    }

    pub(super) fn within(&self, room: usize) -> String {
        let fitting = self.forms.iter().find(|form| width(form) <= room);
        match (fitting, self.forms.last()) {
            (Some(form), _) => form.clone(),
            (None, Some(form)) if room >= LEAST => {
                if self.cut_start {
                    keep_end(form, room)
                } else {
                    keep_start(form, room)
                }
            }
            _ => String::new(),
        }
    }
}

/// Names the changes of an update that no column shows. Without them, the reader would not know why
/// the line is there.
pub(super) fn unseen(record: &Record) -> Result<Note, String> {
    let Some(old) = record.old_value() else { return Ok(Note::text("")) };
    let (old, new) = (old?, record.value()?);
    let changes = diff(old, new);
    if let Some(noise) = changes.only_noise() {
        return Ok(Note::text(&one_line(&noise)));
    }
    let paths: Vec<_> =
        changes.changes().iter().map(|change| one_line(&Change::path(change))).collect();
    let form = |named: usize| {
        let mut text = paths[..named.min(paths.len())].join(", ");
        if paths.len() > named {
            text.push_str(&format!(", and {} more", paths.len() - named));
        }
        text
    };
    let first = paths.first().map(String::as_str).unwrap_or_default();
    let mut forms = vec![form(NAMED_MAX), form(1)];
    forms.extend(shortened(first));
    Ok(Note { forms, wanted: width(first), cut_start: true })
}

/// Returns a path, and then ever shorter ends of it: `…labels.tier`, `…tier`.
fn shortened(path: &str) -> Vec<String> {
    let mut forms = vec![path.to_owned()];
    let (mut quoted, mut brackets) = (false, 0_usize);
    for (at, letter) in path.char_indices() {
        match letter {
            '\'' => quoted = !quoted,
            '.' if !quoted && brackets == 0 && at > 0 => {
                forms.push(format!("…{}", &path[at + 1..]));
            }
            '[' if !quoted => {
                forms.extend((brackets == 0).then(|| format!("…{}", &path[at..])));
                brackets += 1;
            }
            ']' if !quoted => brackets = brackets.saturating_sub(1),
            _ => {}
        }
    }
    forms
}

/// Returns the versions in full, and then in a shorter form.
pub(super) fn versions(record: &Record) -> Vec<String> {
    let new = one_line(record.version());
    match record.old_version() {
        Some(old) if record.happened == Happened::Update => {
            vec![format!("{} → {new}", one_line(old)), format!("→ {new}")]
        }
        _ => vec![new],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_their_beginning_name_by_name() {
        assert_eq!(
            shortened(".status.conditions[Ready].status"),
            [
                ".status.conditions[Ready].status",
                "…conditions[Ready].status",
                "…[Ready].status",
                "…status"
            ]
        );
        assert_eq!(
            shortened(".metadata.annotations['a.b/c'].x"),
            [".metadata.annotations['a.b/c'].x", "…annotations['a.b/c'].x", "…['a.b/c'].x", "…x"]
        );
        assert_eq!(shortened(""), [""]);
    }

    #[test]
    fn a_note_takes_the_room_that_there_is() {
        let forms = [".metadata.labels.tier, and 2 more", ".metadata.labels.tier"];
        let note = Note { forms: forms.map(str::to_owned).to_vec(), wanted: 21, cut_start: true };
        for (room, expected) in [
            (40, ".metadata.labels.tier, and 2 more"),
            (32, ".metadata.labels.tier"),
            (12, "…labels.tier"),
            (4, "…ier"),
            (3, ""),
            (0, ""),
        ] {
            assert_eq!(note.within(room), expected, "{room}");
        }
        assert_eq!(Note::text("last state missed").within(10), "last stat…");
        assert_eq!(Note::text("").within(10), "");
    }
}
