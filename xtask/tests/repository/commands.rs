//! Checks that the commands a newcomer reads first are run before a change lands.
//!
//! They are the `cargo` lines of README's first `sh` block. Each must be a prefix of a command in `.ci/run`, which
//! may have more arguments: `watch pods` ends with Ctrl-C, `watch pods --count 5` by itself.

use crate::finding::Finding;
use crate::markdown::blocks;
use crate::tree::Tree;

const README: &str = "README.md";
const RUN: &str = ".ci/run";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let blocks = blocks(tree.get(README).unwrap_or_default(), "sh");
    let commands: Vec<(usize, Vec<&str>)> =
        blocks.first().map(|(number, lines)| commands(*number, lines)).unwrap_or_default();
    if commands.is_empty() {
        let message =
            "the first ```sh block has the commands to begin with, but there is no `cargo` in it";
        return vec![Finding::new(README, 0, message)];
    }
    let run: Vec<Vec<&str>> = tree.get(RUN).unwrap_or_default().lines().map(words).collect();
    let missing =
        commands.into_iter().filter(|(_, command)| !run.iter().any(|run| run.starts_with(command)));
    let message = |command: &[&str]| {
        format!(
            "`{0}` is not run by {RUN}: add `run {0} …` there, or change it here",
            command.join(" ")
        )
    };
    missing.map(|(line, command)| Finding::new(README, line, message(&command))).collect()
}

fn commands<'a>(first: usize, lines: &[&'a str]) -> Vec<(usize, Vec<&'a str>)> {
    let numbered = lines.iter().enumerate().map(|(number, line)| (first + number, words(line)));
    numbered.filter(|(_, words)| words.first() == Some(&"cargo")).collect()
}

/// Returns the command of a line, without wrappers and comments.
fn words(line: &str) -> Vec<&str> {
    let words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
    let mut words: Vec<&str> = words.collect();
    let start = words.iter().position(|word| *word == "cargo");
    // Only variables, our own `run`, and a time limit may precede it.
    let runs = |word: &&str| {
        word.contains('=') || *word == "run" || *word == "timeout" || word.parse::<u32>().is_ok()
    };
    match start {
        Some(start) if words[..start].iter().all(runs) => words.split_off(start),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Name\n\n```sh\ncargo run --release -- watch pods   # look\ncargo test --workspace\n```\n\n\
        ```sh\ncargo later\n```\n";

    fn findings(readme: &str, run: &str) -> Vec<String> {
        check(&Tree::of([(README, readme), (RUN, run)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn commands_may_go_on() {
        let run = "A=1 run cargo test --workspace\nrun timeout 60 cargo run --release -- watch pods --count 5\n";
        assert_eq!(findings(TEXT, run), [""; 0]);
    }

    #[test]
    fn commands_that_are_not_run_are_found() {
        let found =
            findings(TEXT, "run cargo test --workspace\n# run cargo run --release -- watch pods\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("README.md:4: `cargo run --release -- watch pods` is not run"),
            "{found:?}"
        );
        let found =
            findings(TEXT, "echo cargo test --workspace\nrun cargo run --release -- watch\n");
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(findings("# Name\n", "").len(), 1);
    }
}
