//! The mode of the terminal: whether keys arrive as they are pressed.
//!
//! The mode belongs to the terminal and outlives the process, so that it is restored however the
//! process ends. It is kept in one place for the whole process, because a second Ctrl-C exits from
//! wherever the process is.

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::fd::AsFd;
    use std::sync::{Mutex, PoisonError};

    use rustix::process::getpgrp;
    use rustix::termios::{
        LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
    };

    /// The mode of standard input before this process changed it.
    static ORIGINAL: Mutex<Option<Termios>> = Mutex::new(None);

    /// Lets keys arrive on standard input as they are pressed, and does not echo them. Signals and
    /// output work as before. Returns false if that is not possible, which includes a process in the
    /// background: it would be stopped for the attempt.
    pub(crate) fn enter() -> bool {
        let input = io::stdin();
        let mut original = ORIGINAL.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_foreground(&input) {
            return false;
        }
        // A shell may resume the process with the mode that this function has set before, so that
        // only the first mode is the original one.
        if original.is_none() {
            *original = tcgetattr(&input).ok();
        }
        original.as_ref().is_some_and(|original| set(&input, &unbuffered(original)))
    }

    /// Restores the mode that the terminal had at first. A process in the background leaves the
    /// terminal alone, because another one uses it.
    pub(crate) fn leave() {
        let input = io::stdin();
        let original = ORIGINAL.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(original) = original.as_ref().filter(|_| is_foreground(&input)) {
            set(&input, original);
        }
    }

    /// Returns whether this process may read from the terminal and change its mode. A terminal that
    /// does not control the process never stops it.
    pub(crate) fn is_foreground(terminal: &impl AsFd) -> bool {
        tcgetpgrp(terminal).map_or(true, |group| group == getpgrp())
    }

    /// Returns whether the terminal is in the mode that [`enter`] sets.
    pub(crate) fn is_entered() -> bool {
        tcgetattr(io::stdin()).is_ok_and(|mode| !mode.local_modes.contains(LocalModes::ICANON))
    }

    /// Returns a mode in which keys arrive without a line ending and are not echoed. A read returns
    /// immediately, with what is there.
    fn unbuffered(original: &Termios) -> Termios {
        let mut mode = original.clone();
        mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        mode.special_codes[SpecialCodeIndex::VMIN] = 0;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        mode
    }

    fn set(terminal: &impl AsFd, mode: &Termios) -> bool {
        tcsetattr(terminal, OptionalActions::Now, mode).is_ok()
    }
}

#[cfg(unix)]
pub(crate) use unix::{enter, is_entered, is_foreground, leave};

/// Does nothing: only Unix terminals have this mode.
#[cfg(not(unix))]
pub(crate) fn leave() {}
