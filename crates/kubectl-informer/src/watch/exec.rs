//! `--exec`: runs a command for each event.
//!
//! The command is the user's, as typed. An object's data reaches it through standard input and the
//! environment, and is never part of the command line.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::record::Record;
use crate::status::{counted, seconds};

/// The number of commands that run at the same time.
const RUNNING_MAX: usize = 8;

/// The number of events that wait for their command. Beyond it, the watch waits too.
const WAITING_MAX: usize = 1024;

/// The number of bytes of a command's output that are kept. The rest is read and dropped.
const OUTPUT_MAX: u64 = 64 * 1024;

/// The time after which a command is reported as slow.
const SLOW_AFTER: Duration = Duration::from_secs(10);

/// The time in which the next command has to end once the watch has ended.
pub(super) const END_MAX: Duration = Duration::from_secs(10);

/// The object of an event: the position of its type, and its key.
type Key = (usize, String);

/// The commands of a watch. Those that run when this is dropped are killed.
pub(super) struct Exec {
    command: String,
    waiting: VecDeque<Job>,
    running: HashMap<Key, Running>,
    sender: mpsc::Sender<Done>,
    receiver: mpsc::Receiver<Done>,
    failed: u64,
    /// Whether the user knows that commands are slower than events.
    told_full: bool,
}

/// An event that waits for its command.
struct Job {
    key: Key,
    /// The event in words: `UPDATE default/web`.
    words: String,
    environment: Vec<(&'static str, String)>,
    json: String,
}

struct Running {
    words: String,
    pid: u32,
    started: Instant,
    told_slow: bool,
}

/// A command that has ended.
pub(super) struct Done {
    key: Key,
    status: io::Result<ExitStatus>,
    stdout: Output,
    stderr: Output,
}

/// The start of a command's output.
#[derive(Default)]
struct Output {
    text: String,
    cut: bool,
}

impl Exec {
    pub(super) fn new(command: &str) -> Self {
        let (sender, receiver) = mpsc::channel(RUNNING_MAX);
        Self {
            command: command.to_owned(),
            waiting: VecDeque::new(),
            running: HashMap::new(),
            sender,
            receiver,
            failed: 0,
            told_full: false,
        }
    }

    /// Runs the command for an event, after those for earlier events of the same object. Returns
    /// messages for the user.
    pub(super) fn push(&mut self, record: &Record, json: String) -> Vec<String> {
        let object = &record.object;
        let environment = vec![
            ("INFORMER_EVENT", record.happened.as_str().to_owned()),
            ("INFORMER_TYPE", record.watched.of.name()),
            ("INFORMER_KIND", record.watched.of.kind.clone()),
            ("INFORMER_KEY", record.key()),
            ("INFORMER_NAMESPACE", object.namespace().unwrap_or_default().to_owned()),
            ("INFORMER_NAME", object.name().to_owned()),
        ];
        let key = (record.watched.place, record.key());
        let words = format!("{} {}", record.happened.as_str(), record.key());
        self.waiting.push_back(Job { key, words, environment, json });
        let mut notes = self.start();
        if self.is_full() && !std::mem::replace(&mut self.told_full, true) {
            notes.push(format!(
                "--exec: events come faster than commands end: {WAITING_MAX} wait, and the watch with them"
            ));
        }
        notes
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// Returns whether no command runs, and none waits.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Returns the number of commands that run, in words; `None` if there are none.
    pub(super) fn still_running(&self) -> Option<String> {
        let running = self.running.len() as u64;
        (running > 0).then(|| counted(running, "command"))
    }

    /// Forgets the events whose commands have not started. Returns their number.
    pub(super) fn cancel(&mut self) -> usize {
        std::mem::take(&mut self.waiting).len()
    }

    /// Takes the result of a command and starts those that waited for it. Returns its standard
    /// output, and messages for the user.
    pub(super) fn take(&mut self, done: Done) -> (String, Vec<String>) {
        let words = self.running.remove(&done.key).map(|it| it.words).unwrap_or_default();
        let mut notes = Vec::new();
        let problem = match &done.status {
            Ok(status) if status.success() => None,
            Ok(status) => Some(status.to_string()),
            Err(error) => Some(error.to_string()),
        };
        let said = done.stderr.text.trim_end();
        match problem {
            Some(problem) => {
                self.failed += 1;
                let said = if said.is_empty() { String::new() } else { format!(": {said}") };
                notes.push(format!("--exec failed for {words}: {problem}{said}"));
            }
            None if !said.is_empty() => notes.push(said.to_owned()),
            None => {}
        }
        if done.stdout.cut || done.stderr.cut {
            let kept = OUTPUT_MAX / 1024;
            notes.push(format!("--exec: of the output for {words}, only {kept} KiB are shown"));
        }
        let mut text = done.stdout.text;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        notes.extend(self.start());
        (text, notes)
    }

    /// Returns messages about commands that take long, once for each.
    pub(super) fn slow(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        for running in self.running.values_mut() {
            let age = running.started.elapsed();
            if age >= SLOW_AFTER && !std::mem::replace(&mut running.told_slow, true) {
                let (words, age) = (&running.words, seconds(age));
                notes.push(format!("--exec for {words} has not ended after {age}"));
            }
        }
        notes
    }

    /// Returns the number of commands that failed, in words.
    pub(super) fn failures(&self) -> Option<String> {
        (self.failed > 0).then(|| format!("--exec: {} failed", counted(self.failed, "command")))
    }

    /// Kills the commands that run. Returns their number.
    pub(super) fn kill(&mut self) -> usize {
        let running = std::mem::take(&mut self.running);
        for each in running.values() {
            kill(each.pid);
        }
        running.len()
    }

    /// Starts commands while there is room, for objects for which none runs.
    fn start(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        while self.running.len() < RUNNING_MAX {
            let ready = |job: &Job| !self.running.contains_key(&job.key);
            let Some(at) = self.waiting.iter().position(ready) else { break };
            let Some(job) = self.waiting.remove(at) else { break };
            let Job { key, words, environment, json } = job;
            match self.spawn(environment) {
                Ok(child) => {
                    let (pid, started) = (child.id(), Instant::now());
                    let sender = self.sender.clone();
                    let of = key.clone();
                    // The channel has room for each command that runs.
                    std::thread::spawn(move || drop(sender.blocking_send(follow(child, of, json))));
                    self.running.insert(key, Running { words, pid, started, told_slow: false });
                }
                Err(error) => {
                    self.failed += 1;
                    notes.push(format!("--exec cannot be run for {words}: {error}"));
                }
            }
        }
        self.told_full &= !self.waiting.is_empty();
        notes
    }

    fn spawn(&self, environment: Vec<(&'static str, String)>) -> io::Result<Child> {
        let mut command = shell(&self.command);
        command.envs(environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn()
    }
}

/// Returns whether no more events should be taken for now.
pub(super) fn is_full(exec: Option<&Exec>) -> bool {
    exec.is_some_and(Exec::is_full)
}

/// Waits until a command has ended. Never completes if none runs.
pub(super) async fn ended(exec: &mut Option<Exec>) -> Done {
    let done = match exec {
        Some(exec) => exec.receiver.recv().await,
        None => None,
    };
    match done {
        Some(done) => done,
        None => std::future::pending().await,
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a shell for the command, in a process group of its own: a Ctrl-C is for the watch, which
/// waits for its commands.
#[cfg(unix)]
fn shell(command: &str) -> Command {
    use std::os::unix::process::CommandExt as _;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).process_group(0);
    shell
}

/// Returns the command without a shell, because `cmd` would expand the environment before it reads
/// the command.
#[cfg(not(unix))]
fn shell(command: &str) -> Command {
    let mut words = command.split_whitespace();
    let mut program = Command::new(words.next().unwrap_or_default());
    program.args(words);
    program
}

#[cfg(unix)]
fn kill(pid: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended meanwhile.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Without process groups, a command ends by itself.
#[cfg(not(unix))]
fn kill(_pid: u32) {}

/// Passes the event to a command, and waits for its end.
fn follow(mut child: Child, key: Key, json: String) -> Done {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = std::thread::scope(|scope| {
        // A command need not read its input.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(json.as_bytes())));
        let stderr = scope.spawn(move || output(stderr));
        (output(stdout), stderr.join().unwrap_or_default())
    });
    Done { key, status: child.wait(), stdout, stderr }
}

/// Reads all of an output, and keeps its beginning.
fn output(from: Option<impl Read>) -> Output {
    let Some(mut from) = from else { return Output::default() };
    let mut kept = Vec::new();
    let _ = from.by_ref().take(OUTPUT_MAX).read_to_end(&mut kept);
    let cut = io::copy(&mut from, &mut io::sink()).is_ok_and(|rest| rest > 0);
    Output { text: String::from_utf8_lossy(&kept).into_owned(), cut }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn with_jobs(command: &str, keys: &[&str]) -> Exec {
        let mut exec = Exec::new(command);
        exec.waiting = keys
            .iter()
            .map(|key| Job {
                key: (0, (*key).to_owned()),
                words: format!("ADD {key}"),
                environment: Vec::new(),
                json: "{}\n".to_owned(),
            })
            .collect();
        assert!(exec.start().is_empty());
        exec
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_command_is_reported_once_and_can_be_killed() {
        // Only the death of the whole group closes the output.
        let mut exec = with_jobs("sleep 1000 & sleep 1000", &["default/a"]);
        assert_eq!(exec.slow(), [""; 0]);
        tokio::time::advance(SLOW_AFTER).await;
        assert_eq!(exec.slow(), ["--exec for ADD default/a has not ended after 10 s"]);
        assert_eq!(exec.slow(), [""; 0]);
        assert_eq!((exec.kill(), exec.is_idle()), (1, true));
        let mut exec = Some(exec);
        assert!(!ended(&mut exec).await.status.unwrap().success());
    }

    #[test]
    fn few_commands_run_at_once_and_one_for_each_object() {
        let names: Vec<_> = (0..20).map(|n| format!("default/{n}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let exec = with_jobs("sleep 1000", &names);
        assert_eq!((exec.running.len(), exec.waiting.len()), (RUNNING_MAX, 20 - RUNNING_MAX));
        let mut exec = with_jobs("sleep 1000", &["default/a"; 3]);
        assert_eq!((exec.running.len(), exec.waiting.len()), (1, 2));
        assert_eq!((exec.cancel(), exec.waiting.len()), (2, 0));
    }

    #[test]
    fn a_command_without_an_end_in_sight_holds_the_watch_back() {
        let exec = with_jobs("sleep 1000", &vec!["default/a"; WAITING_MAX]);
        assert!(!is_full(Some(&exec)));
        let exec = with_jobs("sleep 1000", &vec!["default/a"; WAITING_MAX + 1]);
        assert!(is_full(Some(&exec)) && !is_full(None));
    }
}
