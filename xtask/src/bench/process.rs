//! A program that reads commands and answers each with a line of JSON.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The time after which the longest phase is considered stuck.
const ANSWER_MAX: Duration = Duration::from_secs(900);

/// A running program. It is killed when this is dropped, because it has nothing to clean up.
pub(super) struct Program {
    name: String,
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Program {
    pub(super) fn start(name: &str, command: &mut Command) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{name} has no input and output"));
        };
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { name: name.to_owned(), child, input, lines })
    }

    /// Returns its next line.
    pub(super) fn line(&mut self) -> Result<String, String> {
        self.lines.recv_timeout(ANSWER_MAX).map_err(|_| match self.child.try_wait() {
            Ok(Some(status)) => format!("{} ended with {status}", self.name),
            _ => format!("{} says nothing for {} s", self.name, ANSWER_MAX.as_secs()),
        })
    }

    pub(super) fn answer(&mut self) -> Result<Value, String> {
        let line = self.line()?;
        serde_json::from_str(&line)
            .map_err(|error| format!("{} says {line:?}, which is no JSON: {error}", self.name))
    }

    pub(super) fn tell(&mut self, line: &str) -> Result<(), String> {
        let told = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        told.map_err(|error| format!("{} cannot be told {line:?}: {error}", self.name))
    }

    pub(super) fn ask(&mut self, line: &str) -> Result<Value, String> {
        self.tell(line)?;
        self.answer()
    }

    /// Pauses or continues it.
    pub(super) fn pause(&self, pause: bool) -> Result<(), String> {
        let signal = if pause { Signal::STOP } else { Signal::CONT };
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| format!("{} has no id", self.name))?;
        kill_process(id, signal).map_err(|error| format!("cannot signal {}: {error}", self.name))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
