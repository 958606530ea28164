//! Runs a command in a pseudo-terminal, and records its output with times.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The speed of the simulated typing, and the pause before Enter.
const KEY: Duration = Duration::from_millis(55);
const LOOK: Duration = Duration::from_millis(400);

/// How long a command may take until its first output.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// How long a command may take to end after it was interrupted. A loaded machine takes its time.
const FAREWELL_MAX: Duration = Duration::from_secs(60);

/// The output of a terminal, with its times.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(crate) parts: Vec<(Duration, Vec<u8>)>,
    /// When the command was interrupted, if it was.
    pub(crate) interrupted: Option<Duration>,
}

impl Recording {
    /// Records a prompt, and a line being typed.
    pub(crate) fn typed(line: &str) -> Self {
        let mut recording = Self::default();
        if line.is_empty() {
            return recording;
        }
        recording.push(Duration::ZERO, b"\x1b[1;32m$\x1b[0m ");
        let mut at = LOOK;
        for key in line.chars() {
            recording.push(at, key.encode_utf8(&mut [0; 4]).as_bytes());
            at += KEY;
        }
        recording.push(at + LOOK, b"\r\n");
        recording
    }

    pub(crate) fn push(&mut self, at: Duration, bytes: &[u8]) {
        self.parts.push((at, bytes.to_vec()));
    }

    /// Returns the duration of the recording so far.
    fn end(&self) -> Duration {
        self.parts.last().map(|(at, _)| *at).unwrap_or_default()
    }

    /// Appends a run of a command, which is interrupted as by Ctrl-C when its time is over. Its time starts with its
    /// first output.
    pub(crate) fn record(
        &mut self,
        command: &[String],
        size: (usize, usize),
        length: Duration,
    ) -> Result<(), String> {
        let (mut child, output) = start(command, size)?;
        let before = self.end();
        let began = Instant::now();
        let mut deadline = began + SILENCE_MAX;
        let (mut spoke, mut asked) = (false, false);
        loop {
            match output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((at, bytes)) => {
                    self.push(before + at.saturating_duration_since(began), &bytes);
                    if !std::mem::replace(&mut spoke, true) {
                        deadline = at + length;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if asked => {
                    // It did not end in time. The picture is usable without its last output.
                    let _ = child.kill();
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {
                    asked = true;
                    self.interrupted = Some(before + began.elapsed());
                    deadline = Instant::now() + FAREWELL_MAX;
                    // It may have just ended.
                    let _ = kill_process(Pid::from_child(&child), Signal::INT);
                }
            }
        }
        child.wait().map_err(|error| format!("{}: {error}", command.join(" ")))?;
        Ok(())
    }
}

type Output = Receiver<(Instant, Vec<u8>)>;

fn start(command: &[String], (columns, rows): (usize, usize)) -> Result<(Child, Output), String> {
    let (terminal, inside) = terminal(columns as u16, rows as u16)
        .map_err(|error| format!("cannot open a pseudo-terminal: {error}"))?;
    let [program, arguments @ ..] = command else {
        return Err("there is no command to record".to_owned());
    };
    let handle = || inside.try_clone().map(Stdio::from).map_err(|error| error.to_string());
    let child = Command::new(program)
        .args(arguments)
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .stdin(handle()?)
        .stdout(handle()?)
        .stderr(handle()?)
        .spawn()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    let (send, receive) = mpsc::channel();
    thread::spawn(move || read(terminal, &send));
    Ok((child, receive))
}

/// Opens a pseudo-terminal, and returns our end and the command's.
fn terminal(columns: u16, rows: u16) -> std::io::Result<(File, File)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let path = std::ffi::OsStr::from_bytes(name.as_bytes());
    let theirs = OpenOptions::new().read(true).write(true).open(path)?;
    tcsetwinsize(&theirs, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((File::from(ours), theirs))
}

/// Reads until the other end is closed, which Linux reports as an error.
fn read(mut terminal: File, send: &mpsc::Sender<(Instant, Vec<u8>)>) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = terminal.read(&mut buffer) {
        if send.send((Instant::now(), buffer[..length].to_vec())).is_err() {
            return;
        }
    }
}
