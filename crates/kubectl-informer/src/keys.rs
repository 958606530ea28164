//! Keys that a user presses while a command runs on a terminal.

mod controls;
mod decode;

pub(crate) use self::controls::{Action, Controls};
pub(crate) use self::decode::Key;

/// An input of the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Input {
    Key(Key),
    /// Ctrl-Z: clean up the screen, and then call [`Keys::suspend`].
    Suspend,
}

#[cfg(unix)]
pub(crate) use self::unix::Keys;

#[cfg(unix)]
mod unix {
    use std::collections::VecDeque;
    use std::io::{self, IsTerminal as _};
    use std::process::exit;
    use std::thread;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::{Errno, read};
    use rustix::process::{Signal, getpid, kill_process};
    use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
    use tokio::sync::mpsc;

    use super::decode::Decoder;
    use super::{Input, Key};
    use crate::terminal;

    /// The number of bytes to read at once. The rest of a large paste waits in the terminal.
    const READ: usize = 256;

    /// The number of reads that wait to be processed.
    const READS_MAX: usize = 8;

    /// How often to look whether the process is in the foreground again.
    const LOOK_EVERY: Duration = Duration::from_millis(200);

    /// The keys of a terminal. While this lives, the terminal does not echo them.
    pub(crate) struct Keys {
        input: mpsc::Receiver<Vec<u8>>,
        decoder: Decoder,
        decoded: VecDeque<Key>,
        suspends: Signals,
        resumes: Signals,
    }

    impl Keys {
        /// Returns the keys, if standard input and standard output are a terminal.
        pub(crate) fn open() -> Option<Self> {
            let capable = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
            if !capable || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
                return None;
            }
            let (sender, input) = mpsc::channel(READS_MAX);
            let keys = Self {
                input,
                decoder: Decoder::default(),
                decoded: VecDeque::new(),
                suspends: signal(SignalKind::from_raw(Signal::TSTP.as_raw())).ok()?,
                resumes: signal(SignalKind::from_raw(Signal::CONT.as_raw())).ok()?,
            };
            restore_on(SignalKind::hangup())?;
            restore_on(SignalKind::quit())?;
            terminal::enter();
            // A thread of its own, because tokio's would keep the process from ending until the next
            // key. It ends with the process.
            thread::Builder::new().name("keys".to_owned()).spawn(move || listen(&sender)).ok()?;
            Some(keys)
        }

        /// Waits for the next input. Cancel safe.
        pub(crate) async fn next(&mut self) -> Input {
            loop {
                if let Some(key) = self.decoded.pop_front() {
                    return Input::Key(key);
                }
                tokio::select! {
                    biased;
                    _ = self.suspends.recv() => return Input::Suspend,
                    _ = self.resumes.recv() => drop(terminal::enter()),
                    Some(bytes) = self.input.recv() => {
                        self.decoded.extend(self.decoder.decode(&bytes));
                    }
                }
            }
        }

        /// Sets the mode of the terminal again after a shell has moved the process to the foreground,
        /// which it does without a signal if the process was running.
        #[expect(clippy::unused_self, reason = "the mode is changed only while keys are open")]
        pub(crate) fn check(&self) {
            if !terminal::is_entered() {
                terminal::enter();
            }
        }

        /// Stops the process, as Ctrl-Z does by default. Returns when it is resumed.
        pub(crate) async fn suspend(&mut self) {
            terminal::leave();
            if kill_process(getpid(), Signal::STOP).is_ok() {
                // The process may run on for a moment before it stops.
                self.resumes.recv().await;
            }
            terminal::enter();
        }
    }

    impl Drop for Keys {
        fn drop(&mut self) {
            terminal::leave();
        }
    }

    /// Sends what the terminal has until it is closed.
    fn listen(sender: &mpsc::Sender<Vec<u8>>) {
        let input = io::stdin();
        // Reading in the background would stop the process.
        let may_read = || terminal::is_foreground(&input) && terminal::is_entered();
        while !sender.is_closed() {
            if !may_read() {
                thread::sleep(LOOK_EVERY);
                continue;
            }
            let mut ready = [PollFd::new(&input, PollFlags::IN)];
            match poll(&mut ready, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => return,
            }
            let closed = ready[0].revents().intersects(PollFlags::HUP | PollFlags::ERR);
            // The process may be in the background by now.
            if !may_read() {
                continue;
            }
            let mut bytes = vec![0; READ];
            match read(&input, &mut bytes[..]) {
                // In this mode of the terminal, that is not the end.
                Ok(0) | Err(Errno::INTR) if !closed => {}
                Ok(length @ 1..) => {
                    bytes.truncate(length);
                    if sender.blocking_send(bytes).is_err() {
                        return;
                    }
                }
                _ => return,
            }
        }
    }

    /// Restores the terminal before a signal ends the process, as it would by default.
    fn restore_on(kind: SignalKind) -> Option<()> {
        /// The exit code that shells use for a program that a signal has ended, without its number.
        const SIGNALLED: i32 = 128;
        let mut signals = signal(kind).ok()?;
        tokio::spawn(async move {
            signals.recv().await;
            terminal::leave();
            eprintln!();
            exit(SIGNALLED + kind.as_raw_value());
        });
        Some(())
    }
}

/// No keys: only Unix terminals send them as they are pressed.
#[cfg(not(unix))]
pub(crate) struct Keys(std::convert::Infallible);

#[cfg(not(unix))]
impl Keys {
    pub(crate) fn open() -> Option<Self> {
        None
    }

    pub(crate) async fn next(&mut self) -> Input {
        match self.0 {}
    }

    pub(crate) fn check(&self) {}

    pub(crate) async fn suspend(&mut self) {}
}

/// Waits for the next input, or forever if there are no keys.
pub(crate) async fn next(keys: Option<&mut Keys>) -> Input {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}
