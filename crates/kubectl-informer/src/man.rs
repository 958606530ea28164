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
    let page = copyable(&String::from_utf8_lossy(&page));
    let mut out = io::stdout().lock();
    written(out.write_all(page.as_bytes()).and_then(|()| out.flush()))
}

/// Lays out a page so that what it shows can be copied: words are not hyphenated, spaces are not
/// stretched, examples are not wrapped, and characters that have a meaning in a shell stay
/// themselves.
fn copyable(page: &str) -> String {
    /// The generator's section for extra text, which has titles of its own.
    const EXTRA: &str = ".SH EXTRA";
    let mut text = String::new();
    let mut extra = false;
    // Whether the last line was indented, and is shown as it is.
    let mut indented = false;
    for line in page.lines() {
        let request = line.starts_with('.');
        let indent = line.starts_with(' ') || (indented && line.is_empty());
        match (std::mem::replace(&mut indented, indent), indent) {
            (false, true) => text.push_str(".nf\n"),
            (true, false) => text.push_str(".fi\n"),
            _ => {}
        }
        let line = if request { line.to_owned() } else { literal(line) };
        let title = line.strip_suffix(':').filter(|_| extra && !request && !indent);
        extra = if request { line == EXTRA } else { extra };
        match title {
            _ if line == EXTRA => {}
            Some(title) => text.push_str(&format!(".SH \"{}\"\n", title.to_uppercase())),
            None => text.push_str(&format!("{line}\n")),
        }
        if line.starts_with(".TH ") {
            text.push_str(".nh\n.ad l\n");
        }
    }
    text.push_str(if indented { ".fi\n" } else { "" });
    text
}

/// Writes characters that some formatters replace with typographic ones by their names.
fn literal(line: &str) -> String {
    line.replace('^', "\\(ha").replace('~', "\\(ti").replace('`', "\\(ga")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_shown_as_they_are() {
        let page = "\
.ie \\n(.g .ds Aq \\(aq
.TH tool 1
.SH OPTIONS
As in `a`
.SH EXTRA
Examples:
  a \\*(Aq^b\\*(Aq > ~/c

  d

Exit codes: 0
.SH VERSION
v1
";
        let expected = "\
.ie \\n(.g .ds Aq \\(aq
.TH tool 1
.nh
.ad l
.SH OPTIONS
As in \\(gaa\\(ga
.SH \"EXAMPLES\"
.nf
  a \\*(Aq\\(hab\\*(Aq > \\(ti/c

  d

.fi
Exit codes: 0
.SH VERSION
v1
";
        assert_eq!(copyable(page), expected);
    }
}
