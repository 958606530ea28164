//! A line for people: when, what, which object, and the columns that kubectl would show.

use embedded_apiserver::Columns;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::Extras;
use super::fit::{Column, Columns as Fitted, GAP, Line, NOTE_MIN};
use super::note::{Note, unseen, versions};
use crate::cells::{keep_ends, keep_start, one_line, width as columns_of};
use crate::color::{self, BLUE, BOLD, DIM, GREEN, RED, Style, YELLOW, paint};
use crate::custom_columns;
use crate::diff::Diff;
use crate::discovery::Type;
use crate::record::{Happened, Record};
use crate::screen::Pieces;

/// How many of the lines that come at once decide how wide the columns are.
const MEASURED_MAX: usize = 500;

/// A longer name makes its own line longer, not all that follow.
const NAME_MAX: usize = 64;

/// As much of a name is shown on any terminal.
const NAME_MIN: usize = 20;

/// The time and the event, with what is between them and the next.
const BEFORE: usize = 8 + GAP + 6 + GAP;

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
    /// Whether lines are made to fit the terminal. Who asks for all columns, or for columns of their
    /// own, gets them: lines wrap then, as kubectl's do.
    fits: bool,
    extras: Extras,
    zone: TimeZone,
}

/// The lines of one type.
struct Table {
    source: Source,
    columns: Fitted,
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
            fits: own.is_none() && !wide,
            extras,
            zone: TimeZone::system(),
        }
    }

    /// The terminal is as wide as this from now on.
    pub(super) fn resize(&mut self, width: Option<usize>) {
        if self.extras.width == width {
            return;
        }
        self.extras.width = width;
        let line = self.line_room();
        for table in &mut self.tables {
            // Titles that are not those of the lines below them are worse than titles twice.
            table.titled &= !table.columns.fit(line);
        }
    }

    pub(super) fn expect(&mut self, records: &[Record]) {
        for record in records.iter().take(MEASURED_MAX) {
            self.widen_names(&record.key());
            let line = self.line_room();
            if let Some(table) = self.tables.get_mut(record.watched.place) {
                let _ = table.cells(record, line);
            }
        }
    }

    pub(super) fn line(
        &mut self,
        record: &Record,
        changes: Option<&Diff<'_>>,
    ) -> Result<String, String> {
        self.widen_names(&record.key());
        let line = self.line_room();
        let Some(table) = self.tables.get_mut(record.watched.place) else {
            return Err(format!("{} is of no type that is watched", record.object.key()));
        };
        let cells = table.cells(record, line)?;
        let first = !std::mem::replace(&mut table.titled, true);
        if first {
            table.columns.fit(line);
        }
        let cells = table.shown(cells);
        let title = (first && self.extras.headers).then(|| self.title(record.watched.place));
        let note = match changes {
            _ if record.final_state_unknown => Note::text("last state missed"),
            None if cells.iter().all(|cell| cell.style.is_none()) => unseen(record)?,
            Some(changes) => Note::text(&changes.only_noise().unwrap_or_default()),
            None => Note::text(""),
        };
        let mut line = self.pieces(record, &cells);
        self.finish(&mut line, record, &note);
        let mut text = title.unwrap_or_default();
        text.push_str(&self.painted(line));
        text.push('\n');
        if let Some(changes) = changes {
            text.push_str(&changes.render(self.extras.width, self.extras.colour));
        }
        Ok(text)
    }

    /// A line that is no wider than it may be.
    fn painted(&self, line: Pieces) -> String {
        let mut left = self.fitting().unwrap_or(usize::MAX);
        let mut text = String::new();
        for (piece, style) in line {
            let blank = piece.bytes().all(|byte| byte == b' ');
            let piece =
                if blank { " ".repeat(piece.len().min(left)) } else { keep_start(&piece, left) };
            left -= columns_of(&piece);
            text.push_str(
                &style.map_or_else(
                    || piece.clone(),
                    |style| paint(&piece, style, self.extras.colour),
                ),
            );
        }
        text
    }

    /// How wide lines may be, if they must not be wider.
    fn fitting(&self) -> Option<usize> {
        self.extras.width.filter(|_| self.fits)
    }

    fn line_room(&self) -> Line {
        Line {
            fixed: BEFORE + self.name_width.min(self.name_max()) + GAP,
            kind: self.kind_width + GAP,
            one_kind: self.tables.len() == 1,
            width: self.fitting(),
        }
    }

    /// How much of a name may be shown, so that there is room for what is said of it.
    fn name_max(&self) -> usize {
        let Some(width) = self.fitting() else { return usize::MAX };
        let own = self.tables.iter().map(|table| table.columns.least()).max().unwrap_or(0);
        let kind = if self.tables.len() > 1 { self.kind_width + GAP } else { 0 };
        width.saturating_sub(BEFORE + kind + GAP + own).max(NAME_MIN)
    }

    /// Makes the column of names as wide as this one, unless lines would not fit any more.
    fn widen_names(&mut self, key: &str) {
        let wider = columns_of(key);
        if wider <= self.name_width || wider > NAME_MAX {
            return;
        }
        let line = self.line_room();
        let fixed = BEFORE + wider.min(self.name_max()) + GAP;
        let fits = |table: &Table| {
            let needed = table.columns.needed(Line { fixed, ..line });
            !table.titled || line.width.is_none_or(|width| needed <= width)
        };
        if self.tables.iter().all(fits) {
            self.name_width = wider;
        }
    }

    /// When, what, which object, and its columns.
    fn pieces(&self, record: &Record, cells: &[Cell]) -> Pieces {
        let columns = &self.tables[record.watched.place].columns;
        let time = record.time.to_zoned(self.zone.clone()).strftime("%H:%M:%S").to_string();
        let event = format!("{:<6}", record.happened.as_str());
        let key = keep_ends(&one_line(&record.key()), self.name_max());
        let gap = |width: usize, text: &str| {
            (" ".repeat(width.saturating_sub(columns_of(text)) + GAP), None)
        };
        let mut line =
            vec![(time, Some(DIM)), gap(0, ""), (event, Some(style(record.happened))), gap(0, "")];
        if columns.kind {
            line.push((record.watched.of.kind.clone(), None));
            line.push(gap(self.kind_width, &record.watched.of.kind));
        }
        line.push((key.clone(), Some(color::of(&record.key()))));
        line.push(gap(self.name_width.min(self.name_max()), &key));
        for (column, cell) in columns.shown().zip(cells) {
            line.push((cell.text.clone(), cell.style));
            line.push(gap(columns.width(column), &cell.text));
        }
        line
    }

    /// The versions, and what else there is to say, as far as there is room: on a narrow terminal what
    /// has changed is worth more than the numbers.
    fn finish(&self, line: &mut Pieces, record: &Record, note: &Note) {
        let taken: usize = line.iter().map(|(piece, _)| columns_of(piece)).sum();
        let room = match self.extras.width {
            // It wraps anyway.
            Some(width) if !self.fits && taken >= width => usize::MAX,
            Some(width) => width.saturating_sub(taken),
            None => usize::MAX,
        };
        let wanted = note.wanted().min(NOTE_MIN);
        let fits = |versions: &String| columns_of(versions) + 2 + wanted <= room;
        let versions = versions(record).into_iter().find(fits).unwrap_or_default();
        let gap = if versions.is_empty() { "" } else { "  " };
        let left = room.saturating_sub(columns_of(&versions) + gap.len());
        line.push((versions, Some(DIM)));
        let note = note.within(left);
        if !note.is_empty() {
            line.push((format!("{gap}{note}"), Some(DIM)));
        }
    }

    fn title(&self, place: usize) -> String {
        let columns = &self.tables[place].columns;
        let (kind, name) = (self.kind_width, self.name_width.min(self.name_max()));
        let mut line = format!("{:<8}  {:<6}  ", "TIME", "EVENT");
        if columns.kind {
            line.push_str(&format!("{:<kind$}  ", "KIND"));
        }
        line.push_str(&format!("{:<name$}  ", "NAME"));
        for column in columns.shown() {
            line.push_str(&format!("{:<width$}  ", column.title, width = columns.width(column)));
        }
        line.push_str("RV");
        format!("{}\n", self.painted(vec![(line, Some(BOLD))]))
    }
}

struct Cell {
    text: String,
    style: Option<Style>,
}

impl Table {
    fn own(columns: custom_columns::Columns) -> Self {
        let each = columns.names().enumerate();
        let each = each.map(|(place, name)| Column::new(place, name.to_owned())).collect();
        Self { source: Source::Own(columns), columns: Fitted::new(each), titled: false }
    }

    fn kubectl(columns: Columns, wide: bool) -> Self {
        let each = columns.definitions().enumerate();
        // The name is shown with the namespace, in its own place.
        let each = each.filter(|(_, column)| column.name != "Name" && (wide || !column.wide));
        let each = each.map(|(place, column)| Column::new(place, column.name.to_uppercase()));
        let each = each.collect();
        Self { source: Source::Kubectl(columns), columns: Fitted::new(each), titled: false }
    }

    /// What the columns show of an object; what an update has changed in them stands out.
    fn cells(&mut self, record: &Record, line: Line) -> Result<Vec<Cell>, String> {
        let mut now = self.source.cells(&record.value()?, record.time);
        let old = match record.old_value() {
            Some(old) => self.source.cells(&old?, record.time),
            None => Vec::new(),
        };
        // Before there are titles there is nothing that could be pushed about.
        let line = if self.titled { line } else { Line { width: None, ..line } };
        let mut cells = Vec::new();
        for at in 0..self.columns.all.len() {
            let place = self.columns.all[at].place;
            let text = one_line(&now.get_mut(place).map(std::mem::take).unwrap_or_default());
            self.columns.grow(at, &text, line);
            let changed = old.get(place).is_some_and(|old| one_line(old) != text);
            cells.push(Cell { text, style: changed.then_some(BOLD) });
        }
        Ok(cells)
    }

    /// Those of the cells for which there is room.
    fn shown(&self, cells: Vec<Cell>) -> Vec<Cell> {
        let pairs = self.columns.all.iter().zip(cells);
        pairs.filter(|(column, _)| column.shown).map(|(_, cell)| cell).collect()
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

fn style(happened: Happened) -> Style {
    match happened {
        Happened::Add => GREEN,
        Happened::Update => YELLOW,
        Happened::Delete => RED,
        Happened::Resync => BLUE,
    }
}
