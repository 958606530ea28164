//! The section of BENCHMARKS.md.

use std::collections::BTreeSet;

use super::programs::{
    CLIENT_GO, FLOOR, KUBE_RS, OUR_NAME, OURS, OURS_DECODED, OURS_METADATA, OURS_QUEUE,
};
use super::show::{aligned, markdown};
use super::table::Table;

const BEGIN: &str = "<!-- begin: written by `cargo xtask bench`; do not edit -->\n";
const END: &str = "<!-- end: written by `cargo xtask bench` -->\n";

/// Less than this is noise, not a loss.
const LOSS: f64 = 0.95;

/// Circumstances of a run, besides its numbers.
pub(super) struct Circumstances {
    pub(super) machine: String,
    pub(super) versions: String,
    /// The file of each plot, and its description.
    pub(super) plots: Vec<(String, String)>,
}

/// Inserts the section: in place of the old one, or before the first other one.
pub(super) fn replace(document: &str, section: &str) -> String {
    let (before, rest) = match document.split_once(BEGIN) {
        Some((before, rest)) => (before, rest.split_once(END).map_or("", |(_, after)| after)),
        None => document.split_at(document.find("\n## ").map_or(document.len(), |at| at + 1)),
    };
    let rest = rest.trim_start_matches('\n');
    format!("{}\n\n{BEGIN}{section}{END}\n{rest}", before.trim_end())
}

pub(super) fn section(tables: &[Table], circumstances: &Circumstances) -> String {
    let Circumstances { machine, versions, plots } = circumstances;
    let days: BTreeSet<&str> = tables.iter().map(|table| &*table.day).collect();
    let days = days.into_iter().collect::<Vec<_>>().join(" and ");
    let pictures = plots.iter().map(|(file, what)| format!("![{what}]({file})\n"));
    let pictures: Vec<String> = pictures.collect();
    let all: Vec<String> = tables.iter().map(markdown).collect();
    format!(
        "## Comparison with client-go and kube-rs

    cargo xtask bench            # all of this on the embedded server; an hour
    cargo xtask bench --real     # the same on the real kube-apiserver; half an hour
    cargo xtask bench --quick    # a few minutes; fails if a ratio is below peers/bench/floors.toml

Measured on {days}: {machine}; {versions}.

{HOW}
### How many times better

Of {OURS}, which is the default, against each peer with its defaults and against its best variant, which may be a
different one for each number. Below 1, ours is worse.

{}
### Where ours loses

{}
{}
### All numbers

Each number is followed by how many times better {OURS} is; programs that cache only metadata are compared with ours that does so too.

{}",
        short(tables),
        losses(tables),
        pictures.join("\n"),
        all.join("\n"),
    )
}

const HOW: &str = "\
- Each program is a separate process with its default runtime and allocator. They take turns on one server, in several
  rounds, over TLS, and do the same work: cache all pods, with one handler that counts.
- Numbers are medians, followed by the minimum and maximum. The machine is virtual: if wall times vary, compare CPU times.
  CPU time is that of the program alone, in user and kernel mode; RSS is measured one second after the sync, the peak up to then.
- Pods have 11 KB of JSON, 13 KB on the real server, which adds its own managedFields (`peers/bench/src/data.rs`): two containers
  with environment, probes and mounts, a status, an owner, and managedFields of two managers, which ours drops, *stripped* programs
  drop after decoding them, and others keep.
- On the real server, client-go streams its lists (WatchList) and asks for protobuf, as it does by default, and so does ours. On the
  embedded server all programs read JSON, which costs client-go far more, except in the measure of events in protobuf. For
  client-go, see the real server.
- A *floor* gets the same list in protobuf, with resourceVersion=0, and discards it: the time that the server and the network take
  by themselves. It is not a peer, and is not listed among the losses.
- On the embedded server, watch events are queued in the socket and in the server while the client is stopped, so that the client is
  the bottleneck once it is resumed. On the real server they arrive as they are written.
- Latency is measured from before the write is sent to the server, so it includes the write.
- Work queues have no server. In each round, one task adds 100,000 keys `namespace/name` while workers take them; each is done at once
  and forgotten by the limiter (client-go's *plain* queue has none). Delayed keys, a million, are due within the second after they
  are added. Memory is the resident memory in addition to the keys themselves.
- A relist follows when the server reports that a version has expired; its wall time includes each program's own pause before it.
";

/// The default variant of each peer: the first of these that ran. client-go asks for protobuf, and accepts JSON if the server
/// has no protobuf.
const DEFAULTS: [(&str, &[&str]); 2] = [
    (CLIENT_GO, &["client-go, protobuf", "client-go, JSON", "client-go, rate-limited"]),
    (KUBE_RS, &["kube-rs, default"]),
];

fn short(tables: &[Table]) -> String {
    let heading = ["what", "of", "client-go", "its best", "kube-rs", "its best"];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    for table in tables {
        for metric in &table.metrics {
            let ratio = |program: Option<&str>| {
                let ratio = program.and_then(|peer| table.ratio(table.ours(), peer, &metric.name));
                ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.1}"))
            };
            let first = metric.name == table.metrics[0].name;
            let title = if first { table.title.clone() } else { String::new() };
            let mut cells = vec![title, metric.name.clone()];
            for (peer, forms) in DEFAULTS {
                cells.push(ratio(forms.iter().copied().find(|form| table.row(form).is_some())));
                cells.push(ratio(table.best(peer, &metric.name).map(|row| &*row.program)));
            }
            lines.push(cells);
        }
    }
    aligned(&lines)
}

/// Returns every number at which a peer is better than ours, with the best peer.
fn losses(tables: &[Table]) -> String {
    let heading = ["which of ours", "what", "of", "times worse", "than"];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    // The most used variants come first.
    for ours in [OURS, OURS_QUEUE, OURS_METADATA, OURS_DECODED] {
        for table in tables {
            for metric in &table.metrics {
                let Some((peer, times)) = worst(table, ours, &metric.name) else { continue };
                let times = format!("{times:.1}");
                lines.push(
                    [ours, &table.title, &metric.name, &times, peer].map(str::to_owned).to_vec(),
                );
            }
        }
    }
    if lines.len() == 1 { "Nowhere in these numbers.\n".to_owned() } else { aligned(&lines) }
}

/// Returns the peer that is furthest ahead of one of ours, and by which factor.
fn worst<'a>(table: &'a Table, ours: &str, metric: &str) -> Option<(&'a str, f64)> {
    let peers = table.rows.iter().filter(|row| ![OUR_NAME, FLOOR].contains(&row.peer()));
    let comparable = peers.filter(|row| row.is_metadata() == (ours == OURS_METADATA));
    let ahead = comparable.filter_map(|row| {
        let ratio = table.ratio(ours, &row.program, metric).filter(|ratio| *ratio < LOSS)?;
        Some((&*row.program, 1.0 / ratio))
    });
    ahead.max_by(|first, second| first.1.total_cmp(&second.1))
}

#[cfg(test)]
mod tests {
    use super::super::table::Unit;
    use super::*;

    #[test]
    fn the_section_is_put_before_others_and_later_replaced() {
        let once = replace("# B\n\n    run\n\n## Old\n\ntext\n", "## New\n\none\n");
        assert!(once.starts_with("# B\n\n    run\n\n<!-- begin"), "{once}");
        assert!(once.ends_with("\n\n## Old\n\ntext\n"), "{once}");
        let twice = replace(&once, "## New\n\ntwo\n");
        assert!(twice.contains("two") && !twice.contains("one"));
        assert_eq!(replace(&twice, "## New\n\none\n"), once);
    }

    #[test]
    fn losses_are_named_whoever_has_them() {
        let mut table = Table::new("x", "Sync", "d", &[("CPU", Unit::Seconds)]);
        table.add(OURS, &[1.0]);
        table.add(OURS_DECODED, &[5.0]);
        table.add("kube-rs, default", &[2.0]);
        table.add("client-go, JSON", &[0.5]);
        table.add("client-go, metadata alone", &[0.1]);
        table.add("floor, curl", &[0.01]);
        let text = losses(&[table.clone()]);
        let lines: Vec<String> =
            text.lines().skip(2).map(|line| line.replace([' ', '|'], "")).collect();
        let expected =
            ["ours,packedSyncCPU2.0client-go,JSON", "ours,decodedSyncCPU10.0client-go,JSON"];
        assert_eq!(lines, expected, "{text}");
        table.rows.truncate(2);
        assert_eq!(losses(&[table]), "Nowhere in these numbers.\n");
    }
}
