//! Minimum ratios for a quick run, low enough that only a real regression falls below them.

use super::programs::{CLIENT_GO, CONTROLLER_RUNTIME, KUBE_RS};
use super::table::Table;

/// Parses lines of `peers/bench/floors.toml` such as `"sync.CPU.client-go" = 2.0`: measure, metric, and the peer,
/// whose best variant counts.
pub(super) fn parse(text: &str) -> Result<Vec<(String, f64)>, String> {
    let mut floors = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let parsed = line.split_once('=').and_then(|(key, value)| {
            Some((key.trim().trim_matches('"').to_owned(), value.trim().parse().ok()?))
        });
        let floor = parsed.ok_or_else(|| {
            format!("floors.toml:{}: write `\"measure.metric.peer\" = ratio`", number + 1)
        })?;
        floors.push(floor);
    }
    Ok(floors)
}

/// Returns the ratios that fall short. Peers that did not run are skipped; an unknown key is an error.
pub(super) fn check(floors: &[(String, f64)], tables: &[Table]) -> Result<Vec<String>, String> {
    let mut short = Vec::new();
    for (key, floor) in floors {
        let parts: Vec<&str> = key.split('.').collect();
        let [measure, metric, peer] = *parts else {
            return Err(format!("floors.toml: {key:?} is not measure.metric.peer"));
        };
        if ![CLIENT_GO, KUBE_RS, CONTROLLER_RUNTIME].contains(&peer) {
            return Err(format!("floors.toml: there is no peer {peer:?} ({key:?})"));
        }
        // `queue` is measured without a server.
        let names = ["embedded", "alone"].map(|place| format!("{place}-{measure}"));
        let is_it = |table: &&Table| names.iter().any(|name| table.id.starts_with(name));
        let Some(table) = tables.iter().find(is_it) else { continue };
        if !table.metrics.iter().any(|known| known.name == metric) {
            return Err(format!("floors.toml: {measure} has no metric {metric:?} ({key:?})"));
        }
        let Some(best) = table.best(peer, metric) else { continue };
        let ratio = table.ratio(table.ours(), &best.program, metric);
        if ratio.is_none_or(|ratio| ratio < *floor) {
            let ratio = ratio.map_or_else(|| "nothing".to_owned(), |ratio| format!("{ratio:.2}"));
            let program = &best.program;
            short.push(format!("{key}: {ratio} times {program}, and {floor} is written down"));
        }
    }
    Ok(short)
}

#[cfg(test)]
mod tests {
    use super::super::programs::OURS;
    use super::super::table::Unit;
    use super::*;

    fn tables() -> Vec<Table> {
        let mut table = Table::new("embedded-sync-10", "", "", &[("CPU", Unit::Seconds)]);
        table.add(OURS, &[1.0]);
        table.add("client-go, JSON", &[4.0]);
        table.add("client-go, JSON, stripped", &[3.0]);
        vec![table]
    }

    fn short(text: &str) -> Result<Vec<String>, String> {
        check(&parse(text)?, &tables())
    }

    #[test]
    fn only_what_is_below_its_floor_falls_short() -> Result<(), String> {
        assert!(short("# why\n\"sync.CPU.client-go\" = 2.5 # and more\n")?.is_empty());
        let found = short("\"sync.CPU.client-go\" = 3.5\n")?;
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("3.00 times client-go, JSON, stripped"), "{found:?}");
        Ok(())
    }

    #[test]
    fn peers_that_did_not_run_do_not_fail_and_nonsense_does() -> Result<(), String> {
        assert!(short("\"sync.CPU.kube-rs\" = 9\n\"events.CPU.kube-rs\" = 9\n")?.is_empty());
        for nonsense in
            ["x\n", "\"sync.CPU\" = 1\n", "\"sync.CPU.us\" = 1\n", "\"sync.x.kube-rs\" = 1\n"]
        {
            assert!(short(nonsense).is_err(), "{nonsense}");
        }
        Ok(())
    }
}
