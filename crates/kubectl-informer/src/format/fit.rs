//! Decides which parts of a line there is room for.
//!
//! All lines of a watch have the same columns, even if it has several types, so that they stay
//! aligned. If the terminal is too narrow for all parts, the least informative ones are dropped.

use crate::cells::width as columns_of;

/// The space between two columns.
pub(super) const GAP: usize = 2;

/// The room to reserve for a note at the end of a line.
pub(super) const NOTE_MIN: usize = ".metadata.labels.tier".len();

/// The room that a note gets at the expense of unchanged cells if none is left for it.
pub(super) const NOTE_FAIR: usize = 12;

/// The room for a new version, or for an old and a new one with few digits.
const VERSIONS: usize = "→ 12345678901".len() - 2;

/// The number of columns of a name that are shown on any terminal.
const NAME_MIN: usize = 20;

/// The maximum width of a cell or name. On a terminal, wider ones are cut; in a pipe, they make
/// their own line longer.
const WIDTH_MAX: usize = 64;

/// The minimum room for a long text in the last column, in addition to its title.
const TEXT_MIN: usize = 9;

/// The number of a type's columns that are shown on any terminal.
const COLUMNS_MIN: usize = 2;

/// A column that kubectl shows for an object.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) title: String,
    /// The largest width so far.
    seen: usize,
    /// The width that the column has from the start if there is room, so that it need not grow.
    reserve: usize,
    /// The width that is enough if there is less room.
    least: usize,
    /// The number of types that have this column.
    types: usize,
    /// Whether the user asked for this column. It is dropped after all others.
    asked: bool,
}

impl Column {
    pub(super) fn new(title: String) -> Self {
        let (reserve, least) = match title.as_str() {
            "STATUS" => ("ContainerCreating".len(), WIDTH_MAX),
            "RESTARTS" => ("1 (9s ago)".len(), "RESTARTS".len()),
            "AGE" => ("5d12h".len(), WIDTH_MAX),
            "REASON" => (0, 12),
            "OBJECT" => (0, 20),
            _ => (0, WIDTH_MAX),
        };
        Self { seen: columns_of(&title), title, reserve, least, types: 1, asked: false }
    }
}

/// A part that can be dropped from a line, or a width that can be reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Kind,
    Versions,
    Hours,
    Namespace,
    Note,
    Time,
    /// The full length of a long text in the last column.
    Text,
    /// The spare room of columns that rarely need it.
    Reserve,
    Names,
    /// The full text of cells whose beginning is informative enough.
    Cells,
    /// The room for the longest status.
    Status,
    Column(usize),
}

/// The properties of a watch that affect its lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    pub(super) one_kind: bool,
    /// Whether all objects are in one namespace, or in none.
    pub(super) one_namespace: bool,
    /// Whether the objects are Kubernetes events, whose names are meaningless and whose columns
    /// contain everything of interest.
    pub(super) events: bool,
}

impl Subject {
    /// Returns the title of the column that identifies the object.
    pub(super) fn title(self) -> &'static str {
        if self.events { "NAMESPACE" } else { "NAME" }
    }

    /// Returns whether there is such a column.
    pub(super) fn is_named(self) -> bool {
        !self.events || !self.one_namespace
    }
}

/// The columns of all lines.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) columns: Vec<Column>,
    pub(super) subject: Subject,
    /// The width of kinds. Those of names, and of names with their namespace, follow.
    kind: usize,
    name: usize,
    key: usize,
    /// The width of a line; `None` if it is not limited.
    width: Option<usize>,
    without: Vec<Part>,
}

impl Layout {
    pub(super) fn new(subject: Subject, kind: usize) -> Self {
        Self {
            columns: Vec::new(),
            subject,
            kind: kind.max("KIND".len()),
            name: subject.title().len(),
            key: subject.title().len(),
            width: None,
            without: Vec::new(),
        }
    }

    /// Adds the columns of a type. Returns the position of each.
    pub(super) fn add(&mut self, titles: impl Iterator<Item = String>) -> Vec<usize> {
        let mut next = 0;
        let mut added = Vec::new();
        for title in titles {
            // If a type has the same title twice, these are two columns.
            let known = self.columns[next..].iter().position(|column| column.title == title);
            let known = known.map(|place| place + next).or_else(|| {
                let found = self.columns.iter().position(|column| column.title == title);
                found.filter(|place| !added.contains(place))
            });
            let place = if let Some(place) = known {
                self.columns[place].types += 1;
                place
            } else {
                self.columns.insert(next, Column::new(title));
                added.iter_mut().filter(|place| **place >= next).for_each(|place| *place += 1);
                next
            };
            added.push(place);
            next = next.max(place + 1);
        }
        added
    }

    /// Keeps a column longer than those that the user did not ask for.
    pub(super) fn keep(&mut self, title: &str) {
        if let Some(column) = self.columns.iter_mut().rfind(|column| column.title == title) {
            column.asked = true;
        }
    }

    /// Fits lines into this width. Returns whether columns have moved.
    pub(super) fn fit(&mut self, width: Option<usize>) -> bool {
        let before = self.places();
        self.width = width;
        self.without.clear();
        let order = self.order();
        for part in &order {
            if self.fits() {
                break;
            }
            self.without.push(*part);
        }
        // Dropping a large part may have made room again for smaller, less informative ones. If
        // names are cut, there is no room to spare.
        for at in (0..self.without.len()).rev() {
            if self.without[at + 1..].contains(&Part::Names) {
                break;
            }
            let part = self.without.remove(at);
            if !self.fits() {
                self.without.insert(at, part);
            }
        }
        self.places() != before
    }

    /// Makes room for a name. Returns whether columns have moved.
    pub(super) fn widen_names(&mut self, namespace: Option<&str>, name: &str) -> bool {
        let name = columns_of(name).min(WIDTH_MAX);
        let key = name + namespace.map_or(0, |namespace| columns_of(namespace) + 1);
        if name <= self.name && key <= self.key {
            return false;
        }
        self.name = self.name.max(name);
        self.key = self.key.max(key.min(WIDTH_MAX));
        self.fit(self.width)
    }

    /// Makes room for a cell, unless another column would have to be dropped. Returns whether
    /// columns have moved.
    pub(super) fn widen(&mut self, at: usize, text: &str, titled: bool) -> bool {
        let wider = columns_of(text);
        let seen = self.columns[at].seen;
        if wider <= seen || (wider > WIDTH_MAX && !self.is_text(at)) {
            return false;
        }
        let (before, without) = (self.places(), self.without.clone());
        self.columns[at].seen = wider;
        self.fit(self.width);
        let costs = |part: &Part| matches!(part, Part::Column(_)) && !without.contains(part);
        if titled && self.without.iter().any(costs) {
            self.columns[at].seen = seen;
            self.fit(self.width);
        }
        self.places() != before
    }

    /// Returns everything that determines the positions of columns.
    fn places(&self) -> (Vec<Option<usize>>, usize, [bool; 4]) {
        let shown = (0..self.columns.len()).map(|at| self.shows(at).then(|| self.column_width(at)));
        let parts = [Part::Kind, Part::Versions, Part::Hours, Part::Time];
        let mut shown: Vec<_> = shown.collect();
        // The width of the last column matters only if versions follow it.
        if self.without.contains(&Part::Versions)
            && let Some(last) = shown.iter_mut().rev().flatten().next()
        {
            *last = 0;
        }
        (shown, self.name_width(), parts.map(|part| self.has(part)))
    }

    fn has(&self, part: Part) -> bool {
        !self.without.contains(&part)
    }

    pub(super) fn has_kind(&self) -> bool {
        self.has(Part::Kind)
    }

    pub(super) fn has_versions(&self) -> bool {
        self.has(Part::Versions)
    }

    pub(super) fn has_namespace(&self) -> bool {
        self.has(Part::Namespace)
    }

    /// Returns the `strftime` format of the time, and its width.
    pub(super) fn time(&self) -> Option<(&'static str, usize)> {
        let form = if self.has(Part::Hours) { ("%H:%M:%S", 8) } else { ("%M:%S", 5) };
        self.has(Part::Time).then_some(form)
    }

    pub(super) fn kind_width(&self) -> usize {
        self.kind
    }

    /// Returns the positions of the columns that are shown.
    pub(super) fn shown(&self) -> impl Iterator<Item = usize> {
        (0..self.columns.len()).filter(|at| self.shows(*at))
    }

    fn shows(&self, at: usize) -> bool {
        self.has(Part::Column(at))
    }

    pub(super) fn column_width(&self, at: usize) -> usize {
        let column = &self.columns[at];
        if self.is_text(at) && !self.has(Part::Text) {
            return column.seen.min(columns_of(&column.title) + TEXT_MIN);
        }
        let kept = if column.title == "STATUS" { Part::Status } else { Part::Reserve };
        let width = if self.has(kept) { column.seen.max(column.reserve) } else { column.seen };
        let narrowed = !self.has(Part::Cells) || !self.has(Part::Reserve);
        if narrowed && (column.title == "RESTARTS" || !self.has(Part::Cells)) {
            width.min(column.least)
        } else {
            width
        }
    }

    /// Returns whether a column is the last one and contains long text, such as an event's message.
    pub(super) fn is_text(&self, at: usize) -> bool {
        at + 1 == self.columns.len() && self.columns[at].title != "AGE"
    }

    /// Returns the width of names; zero if names are not shown.
    pub(super) fn name_width(&self) -> usize {
        if !self.subject.is_named() {
            return 0;
        }
        let seen = if self.has_namespace() { self.key } else { self.name };
        match self.width.filter(|_| !self.has(Part::Names)) {
            Some(width) => seen.min(width.saturating_sub(self.rest()).max(NAME_MIN)),
            None => seen,
        }
    }

    fn fits(&self) -> bool {
        let name =
            if self.has(Part::Names) { self.name_width() } else { self.name_width().min(NAME_MIN) };
        self.width.is_none_or(|width| self.rest() + name <= width)
    }

    /// Returns the width of everything but the name.
    fn rest(&self) -> usize {
        let time = self.time().map_or(0, |(_, width)| width + GAP);
        let kind = if self.has_kind() { self.kind + GAP } else { 0 };
        let gap = if self.subject.is_named() { GAP } else { 0 };
        let own: usize = self.shown().map(|at| self.column_width(at) + GAP).sum();
        let versions = if self.has_versions() { VERSIONS + GAP } else { 0 };
        let note = if self.has(Part::Note) { NOTE_MIN + GAP } else { 0 };
        let all = time + EVENT + GAP + kind + gap + own + versions + note;
        all.saturating_sub(GAP)
    }

    /// Returns the parts in the order in which they are dropped.
    fn order(&self) -> Vec<Part> {
        let Subject { one_kind, one_namespace, events } = self.subject;
        let mut order = Vec::new();
        order.extend(one_kind.then_some(Part::Kind));
        order.extend([Part::Versions, Part::Hours]);
        order.extend(one_namespace.then_some(Part::Namespace));
        order.extend([Part::Note, Part::Text]);
        // Events have a time of their own.
        order.extend(events.then_some(Part::Time));
        order.extend([Part::Reserve, Part::Cells, Part::Names]);
        // Columns that only some types have are less informative than those that all have.
        let mut columns: Vec<_> = (0..self.columns.len()).collect();
        columns.sort_by_key(|at| (self.columns[*at].types, usize::MAX - at));
        columns.retain(|at| !self.is_text(*at) || self.columns.len() <= COLUMNS_MIN);
        columns.truncate(columns.len().saturating_sub(COLUMNS_MIN));
        columns.sort_by_key(|at| self.columns[*at].asked);
        let (mut single, common): (Vec<_>, Vec<_>) =
            columns.into_iter().partition(|at| one_kind || self.columns[*at].types == 1);
        // If there are several types, the status is dropped last among the columns that only one of
        // them has.
        single.sort_by_key(|at| !one_kind && self.columns[*at].title == "STATUS");
        order.extend(single.into_iter().chain(common).map(Part::Column));
        order.push(Part::Status);
        order
    }
}

/// The width of the event: `UPDATE`.
pub(super) const EVENT: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: [&str; 4] = ["READY", "STATUS", "RESTARTS", "AGE"];

    fn layout(subject: Subject, types: &[&[&str]], names: &[(&str, &str)]) -> Layout {
        let mut layout = Layout::new(subject, "Pod".len());
        for titles in types {
            layout.add(titles.iter().map(ToString::to_string));
        }
        for (namespace, name) in names {
            layout.widen_names(Some(namespace), name);
        }
        layout
    }

    /// Returns the titles that are shown.
    fn titles(layout: &Layout) -> String {
        let mut titles: Vec<&str> = Vec::new();
        titles
            .extend(layout.time().map(|(form, _)| if form == "%M:%S" { "mm:ss" } else { "TIME" }));
        titles.extend(layout.has_kind().then_some("KIND"));
        titles.push(if layout.has_namespace() { "NAMESPACE/NAME" } else { "NAME" });
        titles.extend(layout.shown().map(|at| layout.columns[at].title.as_str()));
        titles.extend(layout.has_versions().then_some("RV"));
        titles.join(" ")
    }

    #[test]
    fn parts_are_given_up_in_order() {
        let subject = Subject { one_kind: true, one_namespace: true, events: false };
        let mut pods = layout(subject, &[&PODS], &[("default", "web-5bd5764fb6-9b8mc")]);
        for (width, expected) in [
            (141, "TIME KIND NAMESPACE/NAME READY STATUS RESTARTS AGE RV"),
            (140, "TIME KIND NAMESPACE/NAME READY STATUS RESTARTS AGE RV"),
            (132, "TIME NAMESPACE/NAME READY STATUS RESTARTS AGE RV"),
            (120, "TIME KIND NAMESPACE/NAME READY STATUS RESTARTS AGE"),
            (100, "TIME KIND NAMESPACE/NAME READY STATUS RESTARTS AGE"),
            (80, "mm:ss NAME READY STATUS RESTARTS AGE"),
            (60, "mm:ss NAME READY STATUS RESTARTS"),
            (10, "mm:ss NAME READY STATUS"),
        ] {
            pods.fit(Some(width));
            assert_eq!(titles(&pods), expected, "{width}");
        }
        pods.fit(None);
        assert_eq!(titles(&pods), "TIME KIND NAMESPACE/NAME READY STATUS RESTARTS AGE RV");
    }

    #[test]
    fn several_types_share_their_columns() {
        let subject = Subject { one_kind: false, one_namespace: true, events: false };
        let deployments = ["READY", "UP-TO-DATE", "AVAILABLE", "AGE"];
        let mut both = layout(subject, &[&PODS, &deployments], &[("a", "web-5bd5764fb6-9b8mc")]);
        both.fit(None);
        let all = "TIME KIND NAMESPACE/NAME READY UP-TO-DATE AVAILABLE STATUS RESTARTS AGE RV";
        assert_eq!(titles(&both), all);
        both.fit(Some(80));
        assert_eq!(titles(&both), "TIME KIND NAMESPACE/NAME READY STATUS AGE");
    }

    #[test]
    fn a_layout_that_moves_says_so() {
        let subject = Subject { one_kind: true, one_namespace: false, events: false };
        let mut pods = layout(subject, &[&PODS], &[("default", "a")]);
        assert!(pods.fit(Some(80)));
        assert!(!pods.fit(Some(80)));
        assert!(!pods.widen(1, "CrashLoopBackOff", true));
        assert!(pods.widen_names(Some("default"), "b-longer"));
        assert!(!pods.widen_names(Some("default"), "b-other"));
    }
}
