//! The commands of `--exec` as part of a watch.

use std::io;

use tokio::time::Instant;

use super::Watch;
use crate::duration::at;
use crate::format::event_json;
use crate::record::Record;
use crate::signals::Stop;
use crate::watch::exec::{self, Done, END_MAX, Exec};

impl Watch {
    /// Runs the command of `--exec` for an event.
    pub(super) fn execute(&mut self, record: &Record) {
        let Some(exec) = &mut self.exec else { return };
        let notes = match event_json(record, self.options.old) {
            Ok(json) => exec.push(record, json),
            Err(problem) => vec![problem],
        };
        for note in notes {
            self.screen.note(&note);
        }
    }

    /// Returns whether events wait: for the user, or for commands.
    pub(super) fn holds_back(&self) -> bool {
        self.controls.paused || exec::is_full(self.exec.as_ref())
    }

    /// Reports commands that take long.
    pub(super) fn report_slow(&mut self) {
        let slow = self.exec.as_mut().map(Exec::slow).unwrap_or_default();
        for note in slow {
            self.screen.note(&note);
        }
    }

    /// Shows the output of a command that has ended.
    pub(super) fn take(&mut self, done: Done) -> io::Result<()> {
        let Some(exec) = &mut self.exec else { return Ok(()) };
        let (text, notes) = exec.take(done);
        self.screen.print(&text)?;
        self.screen.flush()?;
        for note in notes {
            self.screen.note(&note);
        }
        Ok(())
    }

    /// Waits for commands, as long as they end one after another: if `all`, also for those that have
    /// not started.
    pub(super) async fn finish(&mut self, stop: &mut Stop, all: bool) {
        let mut deadline = Instant::now() + END_MAX;
        if let Some(count) = self.exec.as_mut().filter(|_| !all).map(Exec::cancel)
            && count > 0
        {
            self.screen.note(&format!("--exec: not run for the last {count} events"));
        }
        let running = self.exec.as_ref().and_then(Exec::still_running);
        if let Some(running) = running.filter(|_| !all) {
            self.screen.note(&format!("--exec: waiting for {running}"));
        }
        while self.exec.as_ref().is_some_and(|exec| !exec.is_idle()) {
            tokio::select! {
                biased;
                () = stop.requested() => break,
                done = exec::ended(&mut self.exec) => {
                    // If the reader of the output has gone, commands still end.
                    let _ = self.take(done);
                    deadline = Instant::now() + END_MAX;
                }
                () = at(Some(deadline)) => break,
            }
        }
        let Some(exec) = &mut self.exec else { return };
        let (waiting, killed) = (exec.cancel(), exec.kill());
        let failures = exec.failures();
        if waiting + killed > 0 {
            self.screen.note(&format!(
                "--exec: {killed} commands had not ended and were killed, {waiting} had not started"
            ));
        }
        if let Some(failures) = failures {
            self.screen.note(&failures);
        }
    }
}
