//! Work queues: without a server, each in its own process.

use std::process::Command;

use super::process::Program;
use super::programs::{OURS_QUEUE, directory};
use super::table::{Table, Unit, number};
use crate::real_kubernetes::say;

/// The sizes of the measures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) rounds: usize,
    /// The number of keys that are added, taken and finished, `TURNS` times.
    pub(super) keys: usize,
    /// The number of keys that are delayed, and of keys whose memory is measured.
    pub(super) delayed: usize,
}

const TURNS: usize = 5;

/// Label, program, arguments.
const QUEUES: [(&str, &str, &[&str]); 4] = [
    (OURS_QUEUE, "bench-queue", &[]),
    ("client-go, plain", "bench-client-go", &["-queue", "plain"]),
    ("client-go, rate-limited", "bench-client-go", &["-queue", "rate-limited"]),
    ("controller-runtime, priorities", "bench-client-go", &["-queue", "controller-runtime"]),
];

const METRICS: [(&str, Unit); 8] = [
    ("1 worker", Unit::PerSecond),
    ("CPU for each key, 1 worker", Unit::Seconds),
    ("8 workers", Unit::PerSecond),
    ("CPU for each key, 8 workers", Unit::Seconds),
    ("delayed", Unit::PerSecond),
    ("CPU for each delayed key", Unit::Seconds),
    ("memory for each key", Unit::Bytes),
    ("memory for each delayed key", Unit::Bytes),
];

/// Measures adding, taking and finishing keys, and the memory of queued and delayed ones.
pub(super) fn queues(load: Load, go: bool, day: &str) -> Result<Table, String> {
    let title = "Work queues: keys that are added, taken and done";
    say(title);
    let mut table = Table::new("alone-queue", title, day, &METRICS);
    for _ in 0..load.rounds {
        for (label, program, arguments) in QUEUES {
            if go || program != "bench-client-go" {
                table.add(label, &measure(label, program, arguments, load)?);
            }
        }
    }
    Ok(table)
}

fn measure(label: &str, program: &str, arguments: &[&str], load: Load) -> Result<[f64; 8], String> {
    let mut command = Command::new(directory().join(program));
    let mut queue = Program::start(label, command.args(arguments))?;
    let Load { keys, delayed, .. } = load;
    // Returns the time per key, and the keys per second.
    let mut work = |line: &str, count: usize| {
        let answer = queue.ask(line)?;
        let count = count as f64;
        Ok::<_, String>([count / number(&answer, "wall")?, number(&answer, "cpu")? / count])
    };
    let [one, one_cpu] = work(&format!("work 1 {keys} {TURNS}"), keys * TURNS)?;
    let [many, many_cpu] = work(&format!("work 8 {keys} {TURNS}"), keys * TURNS)?;
    let [later, later_cpu] = work(&format!("delayed 8 {delayed} 1"), delayed)?;
    let memory = |what: &str| {
        // In a new process: memory that was freed before would be reused.
        let mut command = Command::new(directory().join(program));
        let mut queue = Program::start(label, command.args(arguments))?;
        let answer = queue.ask(&format!("{what} 1 {delayed} 1"))?;
        Ok::<_, String>(number(&answer, "bytes")? / delayed as f64)
    };
    let (queued, waiting) = (memory("memory")?, memory("delayed-memory")?);
    Ok([one, one_cpu, many, many_cpu, later, later_cpu, queued, waiting])
}
