//! A line for people: when, what, which object, and the columns that kubectl would show.

use embedded_apiserver::Columns;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::Extras;
use crate::cells::{keep_start, one_line, width as columns_of};
use crate::color::{self, BLUE, BOLD, DIM, GREEN, RED, Style, YELLOW, paint};
use crate::custom_columns;
use crate::diff::{Change, Diff, diff};
use crate::discovery::Type;
use crate::record::{Happened, Record};
use crate::screen::Pieces;

/// How many of the lines that come at once decide how wide the columns are.
const MEASURED_MAX: usize = 500;

/// A wider cell makes its own line longer, not all that follow.
const WIDTH_MAX: usize = 64;

/// Between two columns.
const GAP: usize = 2;

/// What is said at the end of a line wants this much room, if it is to be cut.
const NOTE_MIN: usize = 24;

/// How many changes that no column shows are named in the line itself.
const NAMED_MAX: usize = 2;

/// A type, and what is shown of its objects.
pub(crate) struct Columned {
    pub(crate) kind: String,
    pub(crate) columns: Columns,
}

impl Columned {
    pub(crate) fn new(of: &Type, columns: Columns) -> Self {
        Self { kind: of.kind.clone(), columns }
    }
}

pub(super) struct Text {
    tables: Vec<Table>,
    kind_width: usize,
    name_width: usize,
    extras: Extras,
    zone: TimeZone,
}

/// The lines of one type.
struct Table {
    source: Source,
    /// Which of the columns are shown, what they are called, and how wide they are by now.
    shown: Vec<(usize, String, usize)>,
    titled: bool,
}

/// Where what the columns show comes from.
enum Source {
    Kubectl(Columns),
    Own(custom_columns::Columns),
}

impl Text {
    pub(super) fn new(
        types: Vec<Columned>,
        own: Option<&custom_columns::Columns>,
        wide: bool,
        extras: Extras,
    ) -> Self {
        let table = |columns| match own {
            Some(own) => Table::own(own.clone()),
            None => Table::kubectl(columns, wide),
        };
        let kind_width = types.iter().map(|each| each.kind.chars().count()).max().unwrap_or(0);
        Self {
            kind_width: kind_width.max("KIND".len()),
            tables: types.into_iter().map(|each| table(each.columns)).collect(),
            name_width: "NAME".len(),
            extras,
            zone: TimeZone::system(),
        }
    }

    pub(super) fn expect(&mut self, records: &[Record]) {
        for record in records.iter().take(MEASURED_MAX) {
            self.name_width = grown(self.name_width, &record.key());
            if let Some(table) = self.tables.get_mut(record.watched.place) {
                let _ = table.cells(record);
            }
        }
    }

    pub(super) fn line(
        &mut self,
        record: &Record,
        changes: Option<&Diff<'_>>,
    ) -> Result<String, String> {
        let Some(table) = self.tables.get_mut(record.watched.place) else {
            return Err(format!("{} is of no type that is watched", record.key()));
        };
        let cells = table.cells(record)?;
        self.name_width = grown(self.name_width, &record.key());
        let table = &mut self.tables[record.watched.place];
        let untitled = !std::mem::replace(&mut table.titled, true);
        let title = (untitled && self.extras.headers).then(|| self.title(record.watched.place));
        let note = match changes {
            None if cells.iter().all(|cell| cell.style.is_none()) => unseen(record)?,
            Some(changes) => changes.only_noise().unwrap_or_default(),
            None => String::new(),
        };
        let mut line = self.pieces(record, &cells);
        self.finish(&mut line, record, &note);
        let colour = self.extras.colour;
        let mut text = title.unwrap_or_default();
        for (piece, style) in line {
            text.push_str(
                &style.map_or_else(|| piece.clone(), |style| paint(&piece, style, colour)),
            );
        }
        text.push('\n');
        if let Some(changes) = changes {
            text.push_str(&changes.render(self.extras.width, colour));
        }
        Ok(text)
    }

    /// When, what, which object, and its columns.
    fn pieces(&self, record: &Record, cells: &[Cell]) -> Pieces {
        let time = record.time.to_zoned(self.zone.clone()).strftime("%H:%M:%S").to_string();
        let event = format!("{:<6}", record.happened.as_str());
        let kind = format!("  {:<width$}  ", record.watched.of.kind, width = self.kind_width);
        let key = one_line(&record.key());
        let gap = |width: usize, text: &str| {
            (" ".repeat(width.saturating_sub(columns_of(text)) + GAP), None)
        };
        let mut line = vec![
            (time, Some(DIM)),
            ("  ".to_owned(), None),
            (event, Some(style(record.happened))),
            (kind, None),
            (key.clone(), Some(color::of(&record.key()))),
            gap(self.name_width, &key),
        ];
        for ((_, _, width), cell) in self.tables[record.watched.place].shown.iter().zip(cells) {
            line.push((cell.text.clone(), cell.style));
            line.push(gap(*width, &cell.text));
        }
        line
    }

    /// The versions, and what else there is to say, as far as there is room: on a narrow terminal what
    /// has changed is worth more than the numbers.
    fn finish(&self, line: &mut Pieces, record: &Record, note: &str) {
        let taken: usize = line.iter().map(|(piece, _)| columns_of(piece)).sum();
        let room = self.extras.width.map_or(usize::MAX, |width| width.saturating_sub(taken));
        let note = match (record.final_state_unknown, note) {
            (true, _) => "its last state was missed",
            (false, note) => note,
        };
        let wanted = columns_of(note).min(NOTE_MIN);
        let fits = |versions: &String| columns_of(versions) + 2 + wanted <= room;
        let versions = versions(record).into_iter().find(fits).unwrap_or_default();
        let gap = if versions.is_empty() { "" } else { "  " };
        let left = room.saturating_sub(columns_of(&versions) + gap.len());
        line.push((versions, Some(DIM)));
        if !note.is_empty() && left > 1 {
            line.push((format!("{gap}{}", keep_start(note, left)), Some(DIM)));
        }
    }

    fn title(&self, place: usize) -> String {
        let (kind, name) = (self.kind_width, self.name_width);
        let mut line =
            format!("{:<8}  {:<6}  {:<kind$}  {:<name$}  ", "TIME", "EVENT", "KIND", "NAME");
        for (_, title, width) in &self.tables[place].shown {
            line.push_str(&format!("{title:<width$}  "));
        }
        line.push_str("RV");
        format!("{}\n", paint(&line, BOLD, self.extras.colour))
    }
}

struct Cell {
    text: String,
    style: Option<Style>,
}

impl Table {
    fn own(columns: custom_columns::Columns) -> Self {
        let shown = columns.names().enumerate();
        let shown = shown.map(|(place, name)| (place, name.to_owned(), columns_of(name))).collect();
        Self { source: Source::Own(columns), shown, titled: false }
    }

    fn kubectl(columns: Columns, wide: bool) -> Self {
        let shown = columns.definitions().enumerate();
        // The name is shown with the namespace, in its own place.
        let shown = shown.filter(|(_, column)| column.name != "Name" && (wide || !column.wide));
        let shown = shown.map(|(place, column)| {
            let title = column.name.to_uppercase();
            // What follows should not push the columns about: a pod's status takes this much.
            let width = if title == "STATUS" { "ContainerCreating".len() } else { title.len() };
            (place, title, width)
        });
        let shown = shown.collect();
        Self { source: Source::Kubectl(columns), shown, titled: false }
    }

    /// What the columns show of an object; what an update has changed in them stands out.
    fn cells(&mut self, record: &Record) -> Result<Vec<Cell>, String> {
        let mut now = self.source.cells(&record.value()?, record.time);
        let old = match record.old_value() {
            Some(old) => self.source.cells(&old?, record.time),
            None => Vec::new(),
        };
        let mut cells = Vec::new();
        for (place, _, width) in &mut self.shown {
            let text = one_line(&now.get_mut(*place).map(std::mem::take).unwrap_or_default());
            *width = grown(*width, &text);
            let changed = old.get(*place).is_some_and(|old| one_line(old) != text);
            cells.push(Cell { text, style: changed.then_some(BOLD) });
        }
        Ok(cells)
    }
}

impl Source {
    fn cells(&self, object: &Value, now: Timestamp) -> Vec<String> {
        match self {
            Source::Kubectl(columns) => columns.cells(object, now),
            Source::Own(columns) => columns.row(object),
        }
    }
}

/// What an update has changed that is in no column: why the line is there at all.
fn unseen(record: &Record) -> Result<String, String> {
    let Some(old) = record.old_value() else { return Ok(String::new()) };
    let (old, new) = (old?, record.value()?);
    let changes = diff(&old, &new);
    let mut paths: Vec<_> = changes.changes().iter().map(Change::path).collect();
    let more = paths.len().saturating_sub(NAMED_MAX);
    paths.truncate(NAMED_MAX);
    if more > 0 {
        paths.push(format!("and {more} more"));
    }
    let text = changes.only_noise().unwrap_or_else(|| paths.join(", "));
    Ok(one_line(&text))
}

fn grown(width: usize, text: &str) -> usize {
    let length = columns_of(text);
    if length > WIDTH_MAX { width } else { width.max(length) }
}

fn style(happened: Happened) -> Style {
    match happened {
        Happened::Add => GREEN,
        Happened::Update => YELLOW,
        Happened::Delete => RED,
        Happened::Resync => BLUE,
    }
}

/// The versions in full, and then in fewer and fewer columns.
fn versions(record: &Record) -> Vec<String> {
    let new = one_line(record.version());
    match record.old_version() {
        Some(old) if record.happened == Happened::Update => {
            vec![format!("{} → {new}", one_line(old)), format!("→ {new}")]
        }
        _ => vec![new],
    }
}
