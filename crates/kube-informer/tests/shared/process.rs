//! Programs that find their cluster in a kubeconfig and run until a signal, in processes of their own.

use std::path::PathBuf;
use std::process::Stdio;

use embedded_apiserver::{ApiServer, Listening};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

/// A running program. It is killed if the test ends before it.
pub(crate) struct Process {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
    errors: Lines<BufReader<ChildStderr>>,
    kubeconfig: PathBuf,
    _listening: Listening,
}

impl Process {
    /// Starts a program with a kubeconfig for the server, as `edit` returns it.
    pub(crate) async fn start(
        mut command: Command,
        server: &ApiServer,
        edit: impl FnOnce(String) -> String,
    ) -> Self {
        let listening = server.listen("127.0.0.1:0").await.unwrap();
        let name = format!("kube-informer-{:016x}", fastrand::u64(..));
        let kubeconfig = std::env::temp_dir().join(name);
        listening.write_kubeconfig(&kubeconfig).unwrap();
        // The file exists, so it stays readable by its owner alone.
        std::fs::write(&kubeconfig, edit(listening.kubeconfig())).unwrap();
        command.env("KUBECONFIG", &kubeconfig).kill_on_drop(true);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let errors = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, output, errors, kubeconfig, _listening: listening }
    }

    /// Returns the next line of the standard output.
    pub(crate) async fn line(&mut self) -> String {
        let line = self.output.next_line().await.unwrap();
        if let Some(line) = line {
            return line;
        }
        panic!("the program ended: {:?}", rest(&mut self.errors).await);
    }

    /// Returns the next line of the standard error.
    pub(crate) async fn error_line(&mut self) -> String {
        self.errors.next_line().await.unwrap().expect("the program runs")
    }

    /// Sends a signal as soon as the program handles it, and expects it to end successfully.
    pub(crate) async fn end(mut self, signal: Signal) {
        // There is no id any more once the program has been found to have ended.
        while let Some(id) = self.child.id() {
            if handles(id, signal) {
                kill_process(Pid::from_raw(id.cast_signed()).unwrap(), signal).unwrap();
                break;
            }
            self.child.try_wait().unwrap();
            tokio::task::yield_now().await;
        }
        let errors = rest(&mut self.errors).await;
        let status = self.child.wait().await.unwrap();
        assert!(status.success(), "{status}: {errors:?}");
    }
}

/// Returns whether a process has a handler for a signal, which would otherwise kill it. Only Linux
/// tells; elsewhere this is always true.
fn handles(process: u32, signal: Signal) -> bool {
    let path = format!("/proc/{process}/status");
    let Ok(status) = std::fs::read_to_string(path) else { return true };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_none_or(|mask| mask & (1 << (signal.as_raw() - 1)) != 0)
}

async fn rest<R: AsyncRead + Unpin>(lines: &mut Lines<BufReader<R>>) -> Vec<String> {
    let mut all = Vec::new();
    while let Ok(Some(line)) = lines.next_line().await {
        all.push(line);
    }
    all
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}
