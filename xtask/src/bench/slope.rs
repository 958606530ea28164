//! The cost of each additional pod, from one sync to a larger one.

use super::measures::thousands;
use super::table::{Table, Unit};

/// The metrics that grow with the number of pods.
const GROWING: [(&str, &str, Unit); 3] = [
    ("RSS", "RSS for each further pod", Unit::Bytes),
    ("CPU", "CPU for each further pod", Unit::Seconds),
    ("wall", "wall for each further pod", Unit::Seconds),
];

/// Syncs of the same programs, by their number of pods.
#[derive(Debug, Default)]
pub(super) struct Slope(Vec<(usize, Table)>);

impl Slope {
    /// Adds a sync, if it was measured, of more pods than those before it.
    pub(super) fn add(&mut self, pods: usize, sync: Option<Table>) {
        self.0.extend(sync.map(|table| (pods, table)));
    }

    /// Returns a table for each step from one sync to the next, from 10,000 pods on: with fewer, the noise of a whole
    /// process is larger than what the pods add to it.
    pub(super) fn tables(&self) -> Vec<Table> {
        let large: Vec<_> = self.0.iter().filter(|(pods, _)| *pods >= 10_000).collect();
        large.windows(2).map(|pair| step(pair[0], pair[1])).collect()
    }
}

fn step((from, small): &(usize, Table), (to, large): &(usize, Table)) -> Table {
    let place = large.id.split('-').next().unwrap_or_default();
    let title =
        format!("From {} to {} pods, on the {place} server", thousands(*from), thousands(*to));
    let metrics = GROWING.map(|(_, name, unit)| (name, unit));
    let mut table = Table::new(&format!("{place}-slope-{to}"), &title, &large.day, &metrics);
    for row in &large.rows {
        let each = |(metric, _, _): (&str, &str, Unit)| {
            let of = |table: &Table| table.value(&row.program, metric);
            Some((of(large)? - of(small)?) / (to - from) as f64)
        };
        if let [Some(memory), Some(cpu), Some(wall)] = GROWING.map(each) {
            table.add(&row.program, &[memory, cpu, wall]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::programs::OURS;
    use super::*;

    fn sync(pods: usize, rounds: &[[f64; 3]]) -> Table {
        let metrics = [("wall", Unit::Seconds), ("CPU", Unit::Seconds), ("RSS", Unit::Bytes)];
        let mut table = Table::new(&format!("real-sync-{pods}"), "", "", &metrics);
        for values in rounds {
            table.add(OURS, values);
        }
        table
    }

    #[test]
    fn each_further_pod_costs_the_difference_of_the_medians() {
        let mut slope = Slope::default();
        slope.add(1_000, Some(sync(1_000, &[[9.0, 9.0, 9.0]])));
        let rounds = [[1.0, 2.0, 1e6], [1.0, 2.0, 2e6], [1.0, 2.0, 9e6]];
        slope.add(10_000, Some(sync(10_000, &rounds)));
        slope.add(30_000, None);
        assert!(slope.tables().is_empty(), "there is one sync only");
        slope.add(30_000, Some(sync(30_000, &[[3.0, 2.2, 12e6]])));
        let tables = slope.tables();
        assert_eq!((tables.len(), &*tables[0].id), (1, "real-slope-30000"));
        let values = GROWING.map(|(_, name, _)| tables[0].value(OURS, name));
        assert_eq!(values[0], Some(500.0));
        assert!(values[1].is_some_and(|cpu| (cpu - 1e-5).abs() < 1e-9), "{values:?}");
        assert!(values[2].is_some_and(|wall| (wall - 1e-4).abs() < 1e-9), "{values:?}");
    }
}
