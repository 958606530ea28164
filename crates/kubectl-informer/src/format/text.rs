//! A line for people: the time, the event, the object, and the columns that kubectl would show.

use embedded_apiserver::Columns;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::Extras;
use super::fit::{EVENT, GAP, Layout, NOTE_FAIR, NOTE_MIN, Subject};
use super::note::{Note, unseen, versions};
use crate::cells::{keep_ends, keep_start, one_line, width as columns_of};
use crate::color::{self, BLUE, BOLD, DIM, GREEN, RED, Style, YELLOW, paint};
use crate::custom_columns;
use crate::diff::Diff;
use crate::discovery::Type;
use crate::labels;
use crate::record::{Happened, Record};
use crate::screen::Pieces;

/// The number of lines that are measured when many arrive at once.
const MEASURED_MAX: usize = 500;

/// The minimum number of columns for a namespace if there is no room beside the name.
const NAMESPACE_MIN: usize = 2;

/// A type and its columns.
pub(crate) struct Columned {
    pub(crate) kind: String,
    pub(crate) columns: Columns,
    /// Whether the objects are Kubernetes events.
    events: bool,
}

impl Columned {
    pub(crate) fn new(of: &Type, columns: Columns) -> Self {
        let events = of.kind == "Event" && matches!(of.group.as_str(), "" | "events.k8s.io");
        Self { kind: of.kind.clone(), columns, events }
    }
}

pub(super) struct Text {
    types: Vec<Shown>,
    layout: Layout,
    /// Whether the titles that were printed last apply to the next line.
    titled: bool,
    /// Whether lines fit the terminal. With `-o wide` and custom columns they wrap, as in kubectl.
    fits: bool,
    extras: Extras,
    zone: TimeZone,
}

/// The columns of one type.
struct Shown {
    source: Source,
    /// For each column of the layout, the index of this type's cell in the source, if it has one.
    cells: Vec<Option<usize>>,
}

/// The source of the cells.
enum Source {
    Kubectl(Columns, labels::Options),
    Own(custom_columns::Columns),
}

impl Text {
    pub(super) fn new(
        types: Vec<Columned>,
        own: Option<&custom_columns::Columns>,
        wide: bool,
        extras: Extras,
    ) -> Self {
        let subject = Subject {
            one_kind: types.windows(2).all(|pair| pair[0].kind == pair[1].kind),
            one_namespace: extras.one_namespace,
            events: own.is_none() && types.iter().all(|each| each.events),
        };
        let kind = types.iter().map(|each| each.kind.chars().count()).max().unwrap_or(0);
        let mut layout = Layout::new(subject, kind);
        let mut shown = Vec::new();
        for each in types {
            let (source, cells) = columns_of_type(each, own, wide, &extras.labels);
            layout.add(cells.iter().map(|(_, title)| title.clone()));
            shown.push((source, cells));
        }
        extras.labels.titles().for_each(|title| layout.keep(&title));
        let mut text = Self {
            types: Vec::new(),
            titled: false,
            fits: own.is_none() && !wide,
            extras,
            zone: TimeZone::system(),
            layout,
        };
        for (source, cells) in shown {
            text.types.push(Shown::new(source, &cells, &text.layout));
        }
        let width = text.fitting();
        text.layout.fit(width);
        text
    }

    /// Adapts to the width of the terminal.
    pub(super) fn resize(&mut self, width: Option<usize>) {
        if self.extras.width == width {
            return;
        }
        self.extras.width = width;
        let width = self.fitting();
        self.moved(|layout, _| layout.fit(width));
    }

    /// Makes room for the lines that follow.
    pub(super) fn expect(&mut self, records: &[Record]) {
        for record in records.iter().take(MEASURED_MAX) {
            self.widen_names(record);
            let _ = self.cells(record);
        }
    }

    pub(super) fn line(
        &mut self,
        record: &Record,
        changes: Option<&Diff<'_>>,
    ) -> Result<String, String> {
        self.widen_names(record);
        let cells = self.cells(record)?;
        let mut text = String::new();
        if !std::mem::replace(&mut self.titled, true) && self.extras.headers {
            text = self.title();
        }
        let shown: Vec<_> = self.layout.shown().map(|at| (at, &cells[at])).collect();
        let note = match changes {
            _ if record.final_state_unknown => Note::text("last state missed"),
            None if shown.iter().all(|(_, cell)| cell.style.is_none()) => unseen(record)?,
            Some(changes) => Note::text(&changes.only_noise().unwrap_or_default()),
            None => Note::text(""),
        };
        let line = self.pieces(record, &shown, &note);
        text.push_str(&self.painted(line));
        text.push('\n');
        if let Some(changes) = changes {
            text.push_str(&changes.render(self.extras.width, self.extras.colour));
        }
        Ok(text)
    }

    /// Changes the layout. On a terminal, if columns have moved, titles are printed again.
    fn moved(&mut self, change: impl FnOnce(&mut Layout, bool) -> bool) {
        if change(&mut self.layout, self.titled) && self.fitting().is_some() {
            self.titled = false;
        }
    }

    /// Paints a line, and cuts it to the maximum width.
    fn painted(&self, mut line: Pieces) -> String {
        while line.last().is_some_and(|(piece, _)| piece.bytes().all(|byte| byte == b' ')) {
            line.pop();
        }
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

    /// Returns the maximum width of lines, if it is limited.
    fn fitting(&self) -> Option<usize> {
        self.extras.width.filter(|_| self.fits)
    }

    fn widen_names(&mut self, record: &Record) {
        let (namespace, name) = (record.object.namespace(), record.object.name());
        let (namespace, name) = match namespace {
            Some(namespace) if self.layout.subject.events => (None, namespace.to_owned()),
            _ => (namespace.map(one_line), one_line(name)),
        };
        self.moved(|layout, _| layout.widen_names(namespace.as_deref(), &name));
    }

    /// Returns the object's name as its column shows it.
    fn name(&self, record: &Record) -> String {
        let (namespace, name) = (record.object.namespace(), one_line(record.object.name()));
        let room = if self.fitting().is_some() { self.layout.name_width() } else { usize::MAX };
        match namespace.map(one_line) {
            Some(namespace) if self.layout.subject.events => keep_start(&namespace, room),
            Some(namespace) if self.layout.has_namespace() => key(&namespace, &name, room),
            _ => keep_ends(&name, room),
        }
    }

    /// Returns the pieces of a line: the time, the event, the object, its cells, its versions and
    /// the note.
    fn pieces(&self, record: &Record, cells: &[(usize, &Cell)], note: &Note) -> Pieces {
        let layout = &self.layout;
        let mut line = Vec::new();
        if let Some((form, width)) = layout.time() {
            let time = record.time.to_zoned(self.zone.clone()).strftime(form).to_string();
            push(&mut line, time, Some(DIM), width);
        }
        let event = record.happened.as_str().to_owned();
        push(&mut line, event, Some(style(record.happened)), EVENT);
        if layout.has_kind() {
            push(&mut line, record.watched.of.kind.clone(), None, layout.kind_width());
        }
        if layout.subject.is_named() {
            let colour = Some(color::of(&record.key()));
            push(&mut line, self.name(record), colour, layout.name_width());
        }
        let kept = self.kept(taken(&line), cells, note);
        for (at, cell) in &cells[..kept] {
            let width = layout.column_width(*at);
            let whole = self.fitting().is_none() || layout.is_text(*at);
            let text = if whole { cell.text.clone() } else { cut(&cell.text, width) };
            push(&mut line, text, cell.style, width);
        }
        let room = match self.extras.width {
            // The line wraps anyway.
            Some(width) if !self.fits && taken(&line) >= width => usize::MAX,
            Some(width) => width.saturating_sub(taken(&line)),
            None => usize::MAX,
        };
        let mut left = room;
        if layout.has_versions() && kept == cells.len() {
            let fits = |versions: &String| {
                columns_of(versions) + GAP + note.wanted().min(NOTE_MIN) <= room
            };
            let versions = versions(record).into_iter().find(fits).unwrap_or_default();
            left = room.saturating_sub(columns_of(&versions) + GAP);
            push(&mut line, versions, Some(DIM), 0);
        }
        line.push((note.within(left), Some(DIM)));
        line
    }

    /// Returns the number of cells to show. If there is no room for a note that explains why the
    /// line is there, it replaces unchanged cells, starting with the last.
    fn kept(&self, before: usize, cells: &[(usize, &Cell)], note: &Note) -> usize {
        let (Some(width), wanted) = (self.fitting(), note.wanted().min(NOTE_FAIR)) else {
            return cells.len();
        };
        let taken = |kept: usize| -> usize {
            cells[..kept].iter().map(|(at, _)| self.layout.column_width(*at) + GAP).sum()
        };
        let fits = |kept: &usize| before + taken(*kept) + wanted <= width;
        let unchanged = cells.iter().all(|(_, cell)| cell.style.is_none());
        if wanted == 0 || !unchanged {
            return cells.len();
        }
        (1..=cells.len()).rev().find(fits).unwrap_or(1.min(cells.len()))
    }

    fn title(&self) -> String {
        let layout = &self.layout;
        let mut line = Vec::new();
        let mut title = |text: &str, width| push(&mut line, text.to_owned(), Some(BOLD), width);
        if let Some((_, width)) = layout.time() {
            title("TIME", width);
        }
        title("EVENT", EVENT);
        if layout.has_kind() {
            title("KIND", layout.kind_width());
        }
        if layout.subject.is_named() {
            title(layout.subject.title(), layout.name_width());
        }
        for at in layout.shown() {
            title(&layout.columns[at].title, layout.column_width(at));
        }
        if layout.has_versions() {
            title("RV", 0);
        }
        let text: String = line.into_iter().map(|(piece, _)| piece).collect();
        format!("{}\n", self.painted(vec![(text.trim_end().to_owned(), Some(BOLD))]))
    }

    /// Returns the object's cells, one for each column, and highlights those that an update has
    /// changed.
    fn cells(&mut self, record: &Record) -> Result<Vec<Cell>, String> {
        let Some(shown) = self.types.get(record.watched.place) else {
            return Err(format!("{} is of no type that is watched", record.object.key()));
        };
        let now = shown.source.cells(record.value()?, record.time);
        let old = match record.old_value() {
            Some(old) => shown.source.cells(old?, record.time),
            None => Vec::new(),
        };
        let each = shown.cells.iter().map(|place| {
            let text = place.and_then(|place| now.get(place)).map(|text| one_line(text));
            let text = text.unwrap_or_default();
            let old = place.and_then(|place| old.get(place));
            let changed = old.is_some_and(|old| one_line(old) != text);
            Cell { text, style: changed.then_some(BOLD) }
        });
        let cells: Vec<_> = each.collect();
        for (at, cell) in cells.iter().enumerate() {
            self.moved(|layout, titled| layout.widen(at, &cell.text, titled));
        }
        Ok(cells)
    }
}

struct Cell {
    text: String,
    style: Option<Style>,
}

/// Returns the source of a type's cells, with the positions and titles of those that are shown.
fn columns_of_type(
    of: Columned,
    own: Option<&custom_columns::Columns>,
    wide: bool,
    labels: &labels::Options,
) -> (Source, Vec<(usize, String)>) {
    if let Some(own) = own {
        let titles = own.names().map(str::to_owned).enumerate().collect();
        return (Source::Own(own.clone()), titles);
    }
    let each = of.columns.definitions().enumerate();
    // The name has its own place, together with the namespace.
    let each = each.filter(|(_, column)| column.name != "Name" && (wide || !column.wide));
    let titles = each.map(|(place, column)| (place, column.name.to_uppercase()));
    let of_labels = labels.titles().enumerate();
    let of_labels = of_labels.map(|(at, title)| (of.columns.definitions().count() + at, title));
    let titles = titles.chain(of_labels).collect();
    (Source::Kubectl(of.columns, labels.clone()), titles)
}

impl Shown {
    fn new(source: Source, cells: &[(usize, String)], layout: &Layout) -> Self {
        let mut left = cells.to_vec();
        let each = layout.columns.iter().map(|column| {
            let at = left.iter().position(|(_, title)| *title == column.title)?;
            Some(left.remove(at).0)
        });
        Self { cells: each.collect(), source }
    }
}

impl Source {
    fn cells(&self, object: &Value, now: Timestamp) -> Vec<String> {
        match self {
            Source::Kubectl(columns, labels) => {
                let mut cells = columns.cells(object, now);
                // Labels follow the last column, even if an object has no cell in it.
                cells.resize(columns.definitions().count(), String::new());
                cells.extend(labels.cells(object));
                cells
            }
            Source::Own(columns) => columns.row(object),
        }
    }
}

/// Appends a text to a line, padded to the width of its column.
fn push(line: &mut Pieces, text: String, style: Option<Style>, width: usize) {
    let gap = width.saturating_sub(columns_of(&text)) + GAP;
    line.push((text, style));
    line.push((" ".repeat(gap), None));
}

fn taken(line: &Pieces) -> usize {
    line.iter().map(|(piece, _)| columns_of(piece)).sum()
}

/// Formats `namespace/name` in this room. The namespace is shortened first.
fn key(namespace: &str, name: &str, room: usize) -> String {
    let left = room.saturating_sub(columns_of(name) + 1).max(NAMESPACE_MIN);
    let namespace = keep_start(namespace, left);
    let left = room.saturating_sub(columns_of(&namespace) + 1);
    format!("{namespace}/{}", keep_ends(name, left))
}

/// Shortens a cell. Of `3 (5m ago)`, the number is enough; `pod/web-1` keeps both ends, because
/// names differ at the end.
fn cut(text: &str, room: usize) -> String {
    match text.split_once(" (") {
        Some((start, _)) if columns_of(text) > room && columns_of(start) <= room => {
            start.to_owned()
        }
        _ if text.contains('/') => keep_ends(text, room),
        _ => keep_start(text, room),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_cells_are_cut_where_it_hurts_least() {
        for (room, expected) in [
            (28, "default/web-5bd5764fb6-9b8mc"),
            (24, "de…/web-5bd5764fb6-9b8mc"),
            (23, "d…/web-5bd5764fb6-9b8mc"),
            (20, "d…/web-5bd5…b6-9b8mc"),
        ] {
            assert_eq!(key("default", "web-5bd5764fb6-9b8mc", room), expected, "{room}");
        }
        assert_eq!(cut("12 (6m48s ago)", 8), "12");
        assert_eq!(cut("12 (6m48s ago)", 14), "12 (6m48s ago)");
        assert_eq!(cut("pod/web-5bd5764fb6-9b8mc", 12), "pod/w…-9b8mc");
        assert_eq!(cut("SuccessfulCreate", 12), "SuccessfulC…");
    }
}
