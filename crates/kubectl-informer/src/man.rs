//! `man`: the manual page.

use std::io::{self, Write as _};

use clap::{Args, Command};

use crate::outcome::Outcome;
use crate::screen::written;

/// Prints the manual page of the tool, or of one of its commands.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Options {
    /// The command; otherwise the tool as a whole.
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  kubectl informer man watch | man -l -
  kubectl informer man > ~/.local/share/man/man1/kubectl-informer.1";

/// Prints the manual page. The error is a message for the user.
pub(crate) fn man(options: &Options, tool: Command) -> Result<Outcome, String> {
    // The `help` command has no page of its own.
    let mut tool = tool.disable_help_subcommand(true);
    tool.build();
    let name = tool.get_name().to_owned();
    let (command, title) = match &options.command {
        None => (tool, name),
        Some(word) => {
            let shown = |each: &&Command| !each.is_hide_set();
            let known: Vec<_> = tool.get_subcommands().filter(shown).collect();
            let found = known.iter().find(|each| each.get_name() == word);
            let names = known.iter().map(|each| each.get_name());
            let found = found.ok_or_else(|| {
                format!(
                    "there is no command {word:?}: {} are",
                    names.collect::<Vec<_>>().join(", ")
                )
            })?;
            ((*found).clone(), format!("{name}-{word}"))
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .title(title)
        .source(concat!("kubectl-informer ", env!("CARGO_PKG_VERSION")))
        .manual("kubectl informer")
        .render(&mut page)
        .map_err(|error| format!("the page cannot be written: {error}"))?;
    // The generator's section for extra text contains the examples.
    let page = String::from_utf8_lossy(&page).replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n");
    let mut out = io::stdout().lock();
    written(out.write_all(page.as_bytes()).and_then(|()| out.flush()))
}
