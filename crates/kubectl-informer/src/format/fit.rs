//! Which columns a line has room for.

use crate::cells::width as columns_of;

/// Between two columns.
pub(super) const GAP: usize = 2;

/// What else there is to say of an event wants this much room at the end of the line: the kind and the
/// age give way to it.
pub(super) const NOTE_MIN: usize = ".metadata.labels.tier".len();

/// Other columns give way until it has this much.
const NOTE_FAIR: usize = 18;

/// What is reserved for wider cells gives way until it has this much.
const NOTE_LEAST: usize = 10;

/// So many columns of an object are shown on the narrowest terminal.
const LEAST: usize = 2;

/// A wider cell makes its own line longer, not all that follow.
const WIDTH_MAX: usize = 64;

/// The last column may be a long text: it is shown as far as there is room, but not less than this
/// much more than its title.
const TEXT_MIN: usize = 12;

/// A column of a type.
pub(super) struct Column {
    /// Which of an object's cells it shows.
    pub(super) place: usize,
    pub(super) title: String,
    /// How wide what was seen is.
    seen: usize,
    /// How wide it is made at once, if there is room: what follows should not push the others about.
    reserve: usize,
    pub(super) shown: bool,
}

impl Column {
    pub(super) fn new(place: usize, title: String) -> Self {
        let reserve = match title.as_str() {
            "STATUS" => "ContainerCreating".len(),
            "RESTARTS" => "1 (9s ago)".len(),
            _ => 0,
        };
        Self { place, seen: columns_of(&title), title, reserve, shown: true }
    }

    /// Whether it says how long ago something was, which the time of the event says nearly as well.
    fn is_age(&self) -> bool {
        self.title == "AGE" || self.title == "LAST SEEN"
    }
}

/// The columns of a type, those that are shown among them.
pub(super) struct Columns {
    pub(super) all: Vec<Column>,
    pub(super) kind: bool,
    reserved: bool,
}

/// What a line has besides the columns of its type, and how wide it may be.
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// Of the time, the event and the name.
    pub(super) fixed: usize,
    pub(super) kind: usize,
    /// Whether all lines are of the same kind.
    pub(super) one_kind: bool,
    /// None is as wide as it takes.
    pub(super) width: Option<usize>,
}

/// What can be left out.
enum Part {
    Kind,
    Reserve,
    Column(usize),
}

impl Columns {
    pub(super) fn new(all: Vec<Column>) -> Self {
        Self { all, kind: true, reserved: true }
    }

    pub(super) fn shown(&self) -> impl Iterator<Item = &Column> {
        self.all.iter().filter(|column| column.shown)
    }

    /// How wide a column is made.
    pub(super) fn width(&self, column: &Column) -> usize {
        if self.reserved { column.seen.max(column.reserve) } else { column.seen }
    }

    /// Leaves out what there is no room for, what says least first. True if other columns than before
    /// are shown.
    pub(super) fn fit(&mut self, line: Line) -> bool {
        let before = self.look();
        (self.kind, self.reserved) = (true, true);
        self.all.iter_mut().for_each(|column| column.shown = true);
        for part in self.parts(line) {
            let note = match part {
                Part::Kind => NOTE_MIN,
                Part::Column(place) if self.all[place].is_age() => NOTE_MIN,
                Part::Column(_) => NOTE_FAIR,
                Part::Reserve => NOTE_LEAST,
            };
            if line.width.is_none_or(|width| self.needed(line) + note <= width) {
                break;
            }
            match part {
                Part::Kind => self.kind = false,
                Part::Reserve => self.reserved = false,
                Part::Column(place) => self.all[place].shown = false,
            }
        }
        self.look() != before
    }

    /// Makes a column as wide as this text, if that leaves room in the line. If not, the text makes its
    /// own line longer.
    pub(super) fn grow(&mut self, place: usize, text: &str, line: Line) {
        let wider = columns_of(text);
        if wider <= self.all[place].seen || wider > WIDTH_MAX {
            return;
        }
        let more = wider.saturating_sub(self.width(&self.all[place]));
        let fits = |width| self.needed(line) + more + NOTE_LEAST <= width;
        if more == 0 || line.width.is_none_or(fits) {
            self.all[place].seen = wider;
        }
    }

    /// How many columns of the terminal a line takes.
    pub(super) fn needed(&self, line: Line) -> usize {
        let kind = if self.kind { line.kind } else { 0 };
        line.fixed + kind + self.own()
    }

    /// How many the columns of the type take at least.
    pub(super) fn least(&self) -> usize {
        let others = self.all.iter().filter(|column| !column.is_age());
        let (text, others): (Vec<_>, Vec<_>) = others.partition(|column| self.is_text(column));
        let others = others.iter().take(LEAST).map(|column| column.seen + GAP);
        others.sum::<usize>()
            + text.iter().map(|column| self.text_width(column) + GAP).sum::<usize>()
    }

    fn own(&self) -> usize {
        let each = self.shown().map(|column| {
            let text = self.is_text(column);
            GAP + if text { self.text_width(column) } else { self.width(column) }
        });
        each.sum()
    }

    fn text_width(&self, column: &Column) -> usize {
        self.width(column).min(columns_of(&column.title) + TEXT_MIN)
    }

    /// Whether a column is the last one, and may be a long text: an event's message.
    fn is_text(&self, column: &Column) -> bool {
        !column.is_age() && self.all.last().is_some_and(|last| last.place == column.place)
    }

    fn parts(&self, line: Line) -> Vec<Part> {
        let mut parts = Vec::new();
        if line.one_kind {
            parts.push(Part::Kind);
        }
        let all = self.all.iter().enumerate();
        let (aged, others): (Vec<_>, Vec<_>) = all.partition(|(_, column)| column.is_age());
        if !others.is_empty() {
            parts.extend(aged.iter().map(|(place, _)| Part::Column(*place)));
        }
        let rest = others.iter().skip(LEAST).rev().filter(|(_, column)| !self.is_text(column));
        parts.extend(rest.map(|(place, _)| Part::Column(*place)));
        parts.push(Part::Reserve);
        parts
    }

    fn look(&self) -> Vec<bool> {
        self.all.iter().map(|column| column.shown).chain([self.kind]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(titles: &[&str]) -> Columns {
        let each = titles.iter().enumerate();
        Columns::new(each.map(|(place, title)| Column::new(place, (*title).to_owned())).collect())
    }

    fn shown(columns: &Columns) -> Vec<&str> {
        let kind = columns.kind.then_some("KIND");
        kind.into_iter().chain(columns.shown().map(|column| column.title.as_str())).collect()
    }

    fn line(width: usize) -> Line {
        Line { fixed: 54, kind: 6, one_kind: true, width: Some(width) }
    }

    #[test]
    fn what_says_least_goes_first() {
        let mut pods = columns(&["READY", "STATUS", "RESTARTS", "AGE"]);
        for (width, expected) in [
            (200, &["KIND", "READY", "STATUS", "RESTARTS", "AGE"][..]),
            (120, &["READY", "STATUS", "RESTARTS", "AGE"]),
            (115, &["READY", "STATUS", "RESTARTS"]),
            (100, &["READY", "STATUS"]),
            (80, &["READY", "STATUS"]),
            (10, &["READY", "STATUS"]),
        ] {
            pods.fit(line(width));
            assert_eq!(shown(&pods), expected, "{width}");
        }
        pods.fit(Line { width: None, ..line(0) });
        assert_eq!(shown(&pods).len(), 5);
    }

    #[test]
    fn the_kind_stays_where_there_are_several() {
        let mut pods = columns(&["READY", "STATUS", "RESTARTS", "AGE"]);
        pods.fit(Line { one_kind: false, ..line(80) });
        assert_eq!(shown(&pods), ["KIND", "READY", "STATUS"]);
    }

    #[test]
    fn a_text_at_the_end_is_never_left_out() {
        let mut events = columns(&["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]);
        let unbounded = Line { width: None, ..line(0) };
        events.grow(4, "Successfully assigned default/nginx to node-a", unbounded);
        events.fit(line(80));
        assert_eq!(shown(&events), ["TYPE", "REASON", "MESSAGE"]);
    }

    #[test]
    fn columns_grow_within_the_line_only() {
        let mut pods = columns(&["READY", "STATUS", "RESTARTS", "AGE"]);
        pods.fit(line(80));
        assert_eq!(pods.needed(line(80)), 69);
        pods.grow(1, "Running", line(80));
        assert_eq!(pods.needed(line(80)), 70);
        pods.grow(1, "CrashLoopBackOff", line(80));
        assert_eq!(pods.needed(line(80)), 70);
        pods.grow(1, "CrashLoopBackOff", Line { width: None, ..line(80) });
        assert_eq!(pods.needed(line(80)), 79);
    }

    #[test]
    fn a_change_of_what_is_shown_is_told() {
        let mut pods = columns(&["READY", "STATUS", "RESTARTS", "AGE"]);
        assert!(!pods.fit(line(200)));
        assert!(pods.fit(line(80)));
        assert!(!pods.fit(line(81)));
    }
}
