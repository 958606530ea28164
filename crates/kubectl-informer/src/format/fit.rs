//! Which parts of a line there is room for.
//!
//! All lines of a watch have the same columns, those of several types included, so that they are aligned
//! whatever happens. A terminal that is too narrow for everything loses the parts that say least.

use crate::cells::width as columns_of;

/// Between two columns.
pub(super) const GAP: usize = 2;

/// The room that a note at the end of a line wants.
pub(super) const NOTE_MIN: usize = ".metadata.labels.tier".len();

/// A note that has no room of its own takes that of unchanged cells, as many as give it this much.
pub(super) const NOTE_FAIR: usize = 12;

/// Room for a new version, or for an old one and a new one with few digits.
const VERSIONS: usize = "→ 12345678901".len() - 2;

/// As much of a name is shown on any terminal.
const NAME_MIN: usize = 20;

/// A wider cell or name is cut on a terminal, and makes its own line longer in a pipe.
const WIDTH_MAX: usize = 64;

/// The least room for a text in the last column, more than its title.
const TEXT_MIN: usize = 9;

/// This many columns of a type are shown on any terminal.
const COLUMNS_MIN: usize = 2;

/// A column with what kubectl shows of an object.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) title: String,
    /// The width of what was shown so far.
    seen: usize,
    /// The width that it is given at once, if there is room, so that it need not grow.
    reserve: usize,
    /// The width that says enough, if there is less room.
    least: usize,
    /// The number of types that have it.
    types: usize,
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
        Self { seen: columns_of(&title), title, reserve, least, types: 1 }
    }
}

/// Parts that a line can do without, and widths that can be less.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Kind,
    Versions,
    Hours,
    Namespace,
    Note,
    Time,
    /// All of a long text in the last column.
    Text,
    /// Room for what comes in columns that rarely need it.
    Reserve,
    Names,
    /// All of a cell whose beginning says enough.
    Cells,
    /// Room for the longest status.
    Status,
    Column(usize),
}

/// What a watch is about, as far as its lines show it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    pub(super) one_kind: bool,
    /// Whether all objects are in one namespace, or in none.
    pub(super) one_namespace: bool,
    /// Whether objects are Kubernetes' events, whose names say nothing and whose columns say all there is
    /// to know.
    pub(super) events: bool,
}

impl Subject {
    /// The title of the column that says which object it is.
    pub(super) fn title(self) -> &'static str {
        if self.events { "NAMESPACE" } else { "NAME" }
    }

    /// Whether there is such a column.
    pub(super) fn is_named(self) -> bool {
        !self.events || !self.one_namespace
    }
}

/// The columns of all lines.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) columns: Vec<Column>,
    pub(super) subject: Subject,
    /// The widths of kinds, of names, and of names with their namespace.
    kind: usize,
    name: usize,
    key: usize,
    /// None is as wide as it takes.
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

    /// Adds the columns of a type. Returns where each of them is.
    pub(super) fn add(&mut self, titles: impl Iterator<Item = String>) -> Vec<usize> {
        let mut next = 0;
        let mut added = Vec::new();
        for title in titles {
            // A title that a type has twice is two columns.
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

    /// Makes lines fit this width. Returns whether columns are now elsewhere than before.
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
        // One large part may have made room for smaller ones that say less. Names that are cut have none to
        // spare.
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

    /// Makes room for a name. Returns whether columns are now elsewhere than before.
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

    /// Makes room for a cell, unless that would cost another part its place. Returns whether columns are
    /// now elsewhere than before.
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

    /// Columns are where they are because of this.
    fn places(&self) -> (Vec<Option<usize>>, usize, [bool; 4]) {
        let shown = (0..self.columns.len()).map(|at| self.shows(at).then(|| self.column_width(at)));
        let parts = [Part::Kind, Part::Versions, Part::Hours, Part::Time];
        let mut shown: Vec<_> = shown.collect();
        // No column comes after the last one, unless versions do.
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

    /// The format of the time, for `strftime`, and its width.
    pub(super) fn time(&self) -> Option<(&'static str, usize)> {
        let form = if self.has(Part::Hours) { ("%H:%M:%S", 8) } else { ("%M:%S", 5) };
        self.has(Part::Time).then_some(form)
    }

    pub(super) fn kind_width(&self) -> usize {
        self.kind
    }

    /// The columns that are shown, by their places.
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

    /// Whether a column is the last one and not a short one: an event's message.
    pub(super) fn is_text(&self, at: usize) -> bool {
        at + 1 == self.columns.len() && self.columns[at].title != "AGE"
    }

    /// Zero if names are not shown.
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

    /// The width of everything but the name.
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

    /// The parts in the order in which they are given up.
    fn order(&self) -> Vec<Part> {
        let Subject { one_kind, one_namespace, events } = self.subject;
        let mut order = Vec::new();
        order.extend(one_kind.then_some(Part::Kind));
        order.extend([Part::Versions, Part::Hours]);
        order.extend(one_namespace.then_some(Part::Namespace));
        order.extend([Part::Note, Part::Text]);
        // An event says itself when it was.
        order.extend(events.then_some(Part::Time));
        order.extend([Part::Reserve, Part::Cells, Part::Names]);
        // What only some types have says less than what all have.
        let mut columns: Vec<_> = (0..self.columns.len()).collect();
        columns.sort_by_key(|at| (self.columns[*at].types, usize::MAX - at));
        columns.retain(|at| !self.is_text(*at) || self.columns.len() <= COLUMNS_MIN);
        columns.truncate(columns.len().saturating_sub(COLUMNS_MIN));
        let (mut single, common): (Vec<_>, Vec<_>) =
            columns.into_iter().partition(|at| one_kind || self.columns[*at].types == 1);
        // Where several types share the line, the status is the last to go of what one of them has.
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

    /// The titles as they are shown.
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
