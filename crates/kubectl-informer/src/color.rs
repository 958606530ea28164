//! When to use colours, and which ones.

use std::io::IsTerminal;

use clap::ValueEnum;

/// When to colour.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Also into files and pipes
    Always,
    /// Not at all
    Never,
}

impl When {
    /// Returns whether output to `stream` is coloured.
    pub(crate) fn on(self, stream: &impl IsTerminal) -> bool {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        match self {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                stream.is_terminal() && !set("NO_COLOR") && !dumb
            }
        }
    }
}

/// A text style: the parameters of an SGR sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Style(&'static str);

pub(crate) const BOLD: Style = Style("1");
pub(crate) const DIM: Style = Style("2");
pub(crate) const RED: Style = Style("31");
pub(crate) const GREEN: Style = Style("32");
pub(crate) const YELLOW: Style = Style("33");
pub(crate) const BLUE: Style = Style("34");

/// The colours of objects. They are legible on light and dark backgrounds, and events use none of
/// them.
const PALETTE: [Style; 12] = [
    Style("38;5;33"),
    Style("38;5;37"),
    Style("38;5;61"),
    Style("38;5;67"),
    Style("38;5;97"),
    Style("38;5;133"),
    Style("38;5;136"),
    Style("38;5;68"),
    Style("38;5;172"),
    Style("38;5;65"),
    Style("38;5;168"),
    Style("38;5;73"),
];

/// Returns the colour of an object. The same key has the same colour in every run.
pub(crate) fn of(key: &str) -> Style {
    // FNV-1a is small, and its result is the same on every platform.
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    PALETTE[((hash ^ (hash >> 32)) % PALETTE.len() as u64) as usize]
}

/// Applies a style to a text, if colours are on.
pub(crate) fn paint(text: &str, style: Style, colour: bool) -> String {
    if colour && !text.is_empty() {
        format!("\x1b[{}m{text}\x1b[0m", style.0)
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_keeps_its_colour() {
        assert_eq!(of("default/nginx"), of("default/nginx"));
        assert!((0..50).any(|n| of(&format!("default/pod-{n}")) != of("default/nginx")));
    }

    #[test]
    fn without_colour_nothing_is_added() {
        assert_eq!(paint("Running", GREEN, false), "Running");
        assert_eq!(paint("Running", GREEN, true), "\x1b[32mRunning\x1b[0m");
    }
}
