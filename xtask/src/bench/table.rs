//! Measurements: the values of all rounds for each program.

use serde_json::{Value, json};

use super::programs::{OURS, OURS_QUEUE};

/// The suffix of programs that read only metadata: they are compared with each other.
pub(super) const METADATA: &str = "metadata alone";

/// One measure of all programs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    /// For example `embedded-sync-10000`; floors and plots refer to it.
    pub(super) id: String,
    pub(super) title: String,
    pub(super) metrics: Vec<Metric>,
    pub(super) rows: Vec<Row>,
    /// The day on which it was measured.
    pub(super) day: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Metric {
    pub(super) name: String,
    pub(super) unit: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Bytes,
    PerSecond,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// For example `ours, packed`: the part before the comma names the program.
    pub(super) program: String,
    /// For each metric, the values of all rounds.
    pub(super) values: Vec<Vec<f64>>,
}

impl Unit {
    const ALL: [(Self, &str); 3] =
        [(Self::Seconds, "seconds"), (Self::Bytes, "bytes"), (Self::PerSecond, "per second")];

    pub(super) fn more_is_better(self) -> bool {
        self == Self::PerSecond
    }

    pub(super) fn show(self, value: f64) -> String {
        let digits = |value: f64| match value {
            100.0.. => format!("{value:.0}"),
            10.0.. => format!("{value:.1}"),
            _ => format!("{value:.2}"),
        };
        match self {
            Self::Seconds if value >= 1.0 => format!("{} s", digits(value)),
            Self::Seconds if value >= 1e-3 => format!("{} ms", digits(value * 1e3)),
            Self::Seconds => format!("{} µs", digits(value * 1e6)),
            Self::Bytes if value >= 1e9 => format!("{} GB", digits(value / 1e9)),
            Self::Bytes if value < 1e4 => format!("{value:.0} B"),
            Self::Bytes => format!("{} MB", digits(value / 1e6)),
            Self::PerSecond => format!("{value:.0}/s"),
        }
    }
}

impl Row {
    pub(super) fn peer(&self) -> &str {
        self.program.split(',').next().unwrap_or_default()
    }

    /// Returns whether it caches only the metadata of pods.
    pub(super) fn is_metadata(&self) -> bool {
        self.program.ends_with(METADATA)
    }
}

impl Table {
    pub(super) fn new(id: &str, title: &str, day: &str, metrics: &[(&str, Unit)]) -> Self {
        let metric = |(name, unit): &(&str, Unit)| Metric { name: (*name).to_owned(), unit: *unit };
        Self {
            id: id.to_owned(),
            title: title.to_owned(),
            metrics: metrics.iter().map(metric).collect(),
            rows: Vec::new(),
            day: day.to_owned(),
        }
    }

    /// Adds one round of a program.
    pub(super) fn add(&mut self, program: &str, values: &[f64]) {
        let at = self.rows.iter().position(|row| row.program == program).unwrap_or_else(|| {
            let values = vec![Vec::new(); self.metrics.len()];
            self.rows.push(Row { program: program.to_owned(), values });
            self.rows.len() - 1
        });
        for (all, value) in self.rows[at].values.iter_mut().zip(values) {
            all.push(*value);
        }
    }

    /// Returns the variant of ours that others are compared with: the default one, or the only one.
    pub(super) fn ours(&self) -> &'static str {
        if self.row(OURS_QUEUE).is_some() { OURS_QUEUE } else { OURS }
    }

    pub(super) fn row(&self, program: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.program == program)
    }

    /// Returns the median of a program's values.
    pub(super) fn value(&self, program: &str, metric: &str) -> Option<f64> {
        let at = self.metrics.iter().position(|known| known.name == metric)?;
        median(self.row(program)?.values.get(at)?)
    }

    /// Returns how many times better the first is than the second.
    pub(super) fn ratio(&self, first: &str, second: &str, metric: &str) -> Option<f64> {
        let unit = self.metrics.iter().find(|known| known.name == metric)?.unit;
        let (first, second) = (self.value(first, metric)?, self.value(second, metric)?);
        let (better, worse) = if unit.more_is_better() { (second, first) } else { (first, second) };
        (better > 0.0).then(|| worse / better)
    }

    /// Returns the best variant of a peer that caches complete pods.
    pub(super) fn best(&self, peer: &str, metric: &str) -> Option<&Row> {
        let of_peer = self.rows.iter().filter(|row| row.peer() == peer && !row.is_metadata());
        let rated = of_peer.filter_map(|row| {
            Some((row, self.ratio(&row.program, &self.rows.first()?.program, metric)?))
        });
        rated.max_by(|first, second| first.1.total_cmp(&second.1)).map(|(row, _)| row)
    }

    pub(super) fn to_json(&self) -> Value {
        let metric = |metric: &Metric| {
            let unit = Unit::ALL.iter().find(|(unit, _)| *unit == metric.unit);
            json!([metric.name, unit.map(|(_, name)| name)])
        };
        json!({
            "id": self.id, "title": self.title, "day": self.day,
            "metrics": self.metrics.iter().map(metric).collect::<Vec<_>>(),
            "rows": self.rows.iter().map(|row| json!([row.program, row.values])).collect::<Vec<_>>(),
        })
    }

    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let metric = |pair: &Value| {
            let name = text(&pair[0])?;
            let unit = Unit::ALL.iter().find(|(_, unit)| Some(*unit) == pair[1].as_str())?.0;
            Some(Metric { name, unit })
        };
        let numbers = |values: &Value| -> Option<Vec<f64>> {
            values.as_array()?.iter().map(Value::as_f64).collect()
        };
        let row = |pair: &Value| {
            let values = pair[1].as_array()?.iter().map(numbers).collect::<Option<_>>()?;
            Some(Row { program: text(&pair[0])?, values })
        };
        Some(Self {
            id: text(&value["id"])?,
            title: text(&value["title"])?,
            day: text(&value["day"])?,
            metrics: value["metrics"].as_array()?.iter().map(metric).collect::<Option<_>>()?,
            rows: value["rows"].as_array()?.iter().map(row).collect::<Option<_>>()?,
        })
    }
}

/// Returns a number of an answer.
pub(super) fn number(answer: &Value, name: &str) -> Result<f64, String> {
    answer[name].as_f64().ok_or_else(|| format!("there is no number {name:?} in {answer}"))
}

pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// Formats the median, with minimum and maximum if there are several values.
pub(super) fn spread(values: &[f64], unit: Unit) -> String {
    let Some(mid) = median(values) else { return "–".to_owned() };
    if values.len() < 2 {
        return unit.show(mid);
    }
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(0.0, f64::max);
    let (least, greatest) = (unit.show(least), unit.show(greatest));
    let of =
        |text: &str| text.split(' ').next().unwrap_or_default().trim_end_matches("/s").to_owned();
    // The unit is printed once if it is the same.
    let unit_of = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
    if unit_of(&least) == unit_of(&unit.show(mid)) {
        format!("{} ({}–{})", unit.show(mid), of(&least), of(&greatest))
    } else {
        format!("{} ({least}–{greatest})", unit.show(mid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let metrics = [("CPU", Unit::Seconds), ("rate", Unit::PerSecond)];
        let mut table = Table::new("x", "X", "2026-01-01", &metrics);
        for (cpu, rate) in [(1.0, 100.0), (3.0, 90.0), (2.0, 120.0)] {
            table.add("ours, packed", &[cpu, rate]);
        }
        table.add("client-go, json", &[6.0, 50.0]);
        table.add("client-go, json, stripped", &[4.0, 25.0]);
        table.add("client-go, metadata alone", &[0.1, 999.0]);
        table
    }

    #[test]
    fn ratios_say_how_many_times_better_whatever_the_unit() {
        let table = table();
        assert_eq!(table.ratio("ours, packed", "client-go, json", "CPU"), Some(3.0));
        assert_eq!(table.ratio("ours, packed", "client-go, json", "rate"), Some(2.0));
        assert_eq!(table.ratio("ours, packed", "nobody", "rate"), None);
    }

    #[test]
    fn the_best_form_of_a_peer_is_found_for_each_metric() {
        let table = table();
        let best = |metric| table.best("client-go", metric).map(|row| &*row.program);
        assert_eq!(best("CPU"), Some("client-go, json, stripped"));
        assert_eq!(best("rate"), Some("client-go, json"));
        assert!(table.best("kube-rs", "CPU").is_none());
    }

    #[test]
    fn what_is_kept_is_what_was_measured() {
        assert_eq!(Table::from_json(&table().to_json()), Some(table()));
        assert_eq!(Table::from_json(&json!({"id": "x"})), None);
    }

    #[test]
    fn values_are_shown_with_their_spread() {
        assert_eq!(spread(&[1.0, 3.0, 2.0], Unit::Seconds), "2.00 s (1.00–3.00)");
        assert_eq!(spread(&[0.0005, 0.002, 0.001], Unit::Seconds), "1.00 ms (500 µs–2.00 ms)");
        assert_eq!(spread(&[2.5e9], Unit::Bytes), "2.50 GB");
        assert_eq!(spread(&[96.2], Unit::Bytes), "96 B");
        assert_eq!(spread(&[10.0, 30.0, 20.0], Unit::PerSecond), "20/s (10–30)");
        assert_eq!(spread(&[], Unit::Bytes), "–");
    }
}
