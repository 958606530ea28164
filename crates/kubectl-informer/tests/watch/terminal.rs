//! The tool on a pseudo-terminal.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::support::PATIENCE;

/// A terminal and its output.
pub(crate) struct Terminal {
    child: Child,
    ours: OwnedFd,
    told: Receiver<String>,
    /// The output so far.
    pub(crate) seen: String,
}

impl Terminal {
    /// Runs a command on a terminal of this many columns.
    pub(crate) fn start(mut command: Command, columns: u16) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        set_columns(&ours, columns);
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let theirs = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let their_end = || Stdio::from(theirs.try_clone().unwrap());
        command.env("TERM", "xterm-256color");
        let child =
            command.stdin(their_end()).stdout(their_end()).stderr(their_end()).spawn().unwrap();
        let told = pieces(ours.try_clone().unwrap());
        Self { child, ours, told, seen: String::new() }
    }

    /// Changes the width.
    pub(crate) fn resize(&self, columns: u16) {
        set_columns(&self.ours, columns);
    }

    /// Waits until the output contains this text.
    pub(crate) fn shows(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.seen.contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(piece) = self.told.recv_timeout(left) else {
                let tail: Vec<char> = self.seen.chars().rev().take(600).collect();
                let tail: String = tail.into_iter().rev().collect();
                panic!("{text:?} never came: … {tail:?}");
            };
            self.seen.push_str(&piece);
        }
    }

    /// Types a text.
    pub(crate) fn types(&self, text: &str) {
        let mut keyboard = File::from(self.ours.try_clone().unwrap());
        keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Returns whether the terminal echoes what is typed, and passes on whole lines only.
    pub(crate) fn echoes(&self) -> bool {
        let modes = tcgetattr(&self.ours).unwrap().local_modes;
        let [lines, echo] = [LocalModes::ICANON, LocalModes::ECHO].map(|mode| modes.contains(mode));
        assert_eq!(lines, echo);
        echo
    }

    /// Waits until the terminal echoes, or no longer does.
    pub(crate) fn waits_for_echo(&self, echo: bool) {
        let end = Instant::now() + PATIENCE;
        while self.echoes() != echo {
            assert!(Instant::now() < end, "the mode of the terminal has not changed");
            thread::yield_now();
        }
    }

    /// Waits until the process has been stopped.
    pub(crate) fn waits_for_stop(&self) {
        use rustix::process::{Pid, WaitOptions, waitpid};
        let options = WaitOptions::UNTRACED;
        let (_, status) = waitpid(Some(Pid::from_child(&self.child)), options).unwrap().unwrap();
        assert!(status.stopped(), "{status:?}");
    }

    /// Discards the output so far.
    pub(crate) fn forget(&mut self) {
        self.seen.clear();
    }

    pub(crate) fn signal(&self, signal: &str) {
        let kill = format!("kill -s {signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Waits until the command has ended, and collects its remaining output.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.seen.extend(self.told.iter());
        self.child.wait().unwrap()
    }

    /// Returns the CPU time of the command, if the system provides it.
    pub(crate) fn worked(&self) -> Option<Duration> {
        /// The unit of the numbers, which is the same on every Linux.
        const TICK: Duration = Duration::from_millis(10);
        let text = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // The name in parentheses may contain spaces. The text after it starts with the third
        // field.
        let fields = text.rsplit(')').next()?.split_whitespace();
        let user_and_system = fields.skip(11).take(2).map(|ticks| ticks.parse::<u32>().ok());
        Some(TICK * user_and_system.sum::<Option<u32>>()?)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn set_columns(terminal: &OwnedFd, columns: u16) {
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).unwrap();
}

fn pieces(from: OwnedFd) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut from = File::from(from);
        let mut buffer = [0; 4096];
        let mut left = Vec::new();
        // Reading from a closed terminal is an error.
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            left.extend_from_slice(&buffer[..read]);
            // A character may arrive in two pieces.
            let whole = match std::str::from_utf8(&left) {
                Ok(text) => text.len(),
                Err(error) => error.valid_up_to(),
            };
            let rest = left.split_off(whole);
            let text = String::from_utf8(std::mem::replace(&mut left, rest)).unwrap();
            if sender.send(text).is_err() {
                return;
            }
        }
    });
    receiver
}
