//! Kills child processes when their parent is gone.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A shell at the other end of a pipe. The kernel closes the pipe however this process ends; the shell then kills all
/// processes that were started and have not ended, and removes the directory.
#[derive(Debug)]
pub(crate) struct Leash {
    shell: Child,
}

impl Leash {
    pub(crate) fn new(directory: &Path) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", include_str!("leash.sh"), "leash"]).arg(directory);
        // Ctrl-C reaches all processes of the terminal's group, and must not end this one.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { shell: command.spawn()? })
    }

    pub(crate) fn begun(&mut self, pid: u32) -> io::Result<()> {
        self.tell("begun", pid)
    }

    /// Reports that a process has ended. Call this before waiting for it: until then, its PID cannot be reused.
    pub(crate) fn ended(&mut self, pid: u32) -> io::Result<()> {
        self.tell("ended", pid)
    }

    fn tell(&mut self, what: &str, pid: u32) -> io::Result<()> {
        match &mut self.shell.stdin {
            Some(pipe) => pipe.write_all(format!("{what} {pid}\n").as_bytes()),
            None => Ok(()),
        }
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // The shell exits by itself now.
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::process::ExitStatusExt as _;

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").spawn().unwrap()
    }

    #[test]
    fn what_has_begun_and_not_ended_is_killed_with_its_directory() {
        let directory = std::env::temp_dir().join(format!("leash-{}", std::process::id()));
        fs::create_dir_all(directory.join("inside")).unwrap();
        let (mut kept, mut left) = (sleeper(), sleeper());
        let mut leash = Leash::new(&directory).unwrap();
        leash.begun(kept.id()).unwrap();
        leash.begun(left.id()).unwrap();
        leash.ended(kept.id()).unwrap();
        drop(leash);
        assert_eq!(left.wait().unwrap().signal(), Some(9));
        assert!(!directory.exists());
        assert_eq!(kept.try_wait().unwrap(), None);
        kept.kill().unwrap();
        kept.wait().unwrap();
    }
}
