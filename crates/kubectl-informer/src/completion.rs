//! `completion`: completion scripts for shells, and the candidates that kubectl requests on Tab.

mod candidates;
mod cluster;
mod words;

use std::io::{self, Write as _};
use std::time::Duration;

use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use tokio::time::timeout;

use self::candidates::Candidate;
use self::words::Place;
use crate::outcome::Outcome;
use crate::screen::written;

/// Prints a script that completes this tool's commands and flags in a shell, or in kubectl.
///
/// For `kubectl informer …` kubectl itself asks, by a script of its own, which also completes types,
/// names of objects, namespaces and contexts. kubectl's own completion must be set up, too.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Options {
    /// For what.
    #[arg(value_name = "SHELL", value_enum)]
    shell: For,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum For {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Elvish,
    /// The script that kubectl runs for `kubectl informer`
    Kubectl,
}

const EXAMPLES: &str = "\
Examples:
  # kubectl informer <TAB>: put the script on the PATH, under this name
  kubectl informer completion kubectl > ~/.local/bin/kubectl_complete-informer
  chmod +x ~/.local/bin/kubectl_complete-informer

  # kubectl-informer <TAB>, in this shell; in ~/.bashrc, in all of them
  source <(kubectl-informer completion bash)

  kubectl-informer completion zsh > ~/.zfunc/_kubectl-informer
  kubectl-informer completion fish > ~/.config/fish/completions/kubectl-informer.fish";

/// A script that forwards the typed words to this tool; kubectl reads its output.
const KUBECTL: &str = "\
#!/bin/sh
# Completes `kubectl informer`: kubectl finds it on the PATH as kubectl_complete-informer.
exec kubectl-informer __complete \"$@\"
";

/// Prints the script. The error is a message for the user.
pub(crate) fn completion(options: &Options, mut tool: Command) -> Result<Outcome, String> {
    let shell = match options.shell {
        For::Bash => Shell::Bash,
        For::Zsh => Shell::Zsh,
        For::Fish => Shell::Fish,
        For::Powershell => Shell::PowerShell,
        For::Elvish => Shell::Elvish,
        For::Kubectl => return print(KUBECTL.as_bytes()),
    };
    // The script goes into memory first, because the generator panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut tool, "kubectl-informer", &mut script);
    if shell == Shell::Bash {
        // The generator spells the name of a command with a dash in two ways.
        let text = String::from_utf8_lossy(&script);
        script = text.replace("kubectl__subcmd__informer", "kubectl__informer").into_bytes();
    }
    print(&script)
}

fn print(text: &[u8]) -> Result<Outcome, String> {
    let mut out = io::stdout().lock();
    written(out.write_all(text).and_then(|()| out.flush()))
}

/// The command that kubectl's script runs. It is not in the table of commands, because the words
/// that follow it are to be completed and not parsed.
pub(crate) const COMPLETE: &str = "__complete";

/// The time limit for candidates: the user has pressed Tab and is waiting.
const PATIENCE: Duration = Duration::from_millis(1500);

/// A directive that tells the shell how to use the candidates, as cobra's scripts understand it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Directive {
    /// Complete file names if there are no candidates.
    Files = 0,
    /// Offer the candidates only.
    Only = 4,
    /// Offer the candidates only, without a space after them: there is more to type.
    Begun = 6,
}

/// Completes the last of the words after `kubectl informer`. It may be empty.
///
/// Prints one candidate per line, with its description after a tab, and then the directive. On any
/// failure there are no candidates: an error message in the middle of a command line would only get
/// in the way. This function exits the process, so that a pending request cannot keep the shell
/// waiting.
pub(crate) async fn complete(words: &[String], mut tool: Command) -> ! {
    tool.build();
    let place = match words::place(&tool, words) {
        Place::Value { arg, begin, .. } if arg.get_id() == "command" => {
            Place::Command { of: tool, begin }
        }
        place => place,
    };
    let directive = match &place {
        Place::Value { arg, .. } if candidates::is_file(arg) => Directive::Files,
        _ => Directive::Only,
    };
    let found = in_time(candidates::candidates(place)).await;
    let begun = !found.is_empty() && found.iter().all(|each| each.word.ends_with('='));
    let directive = if begun { Directive::Begun } else { directive };
    let mut text = String::new();
    for candidate in found {
        text.push_str(&candidate.line());
    }
    text.push_str(&format!(":{}\n", directive as u8));
    let _ = print(text.as_bytes());
    std::process::exit(0)
}

/// Returns the candidates if the search completes in time, and none otherwise.
async fn in_time(search: impl Future<Output = Vec<Candidate>> + Send + 'static) -> Vec<Candidate> {
    // Spawned, because a credential plugin may block the thread that polls the search.
    let found = tokio::spawn(search);
    timeout(PATIENCE, found).await.ok().and_then(Result::ok).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_takes_longer_than_somebody_waits_is_nothing() {
        let begin = Instant::now();
        assert_eq!(in_time(ready(vec![Candidate::new("pods", "")])).await.len(), 1);
        assert_eq!(begin.elapsed(), Duration::ZERO);
        assert!(in_time(pending()).await.is_empty());
        assert!(begin.elapsed() < Duration::from_secs(2));
    }
}
