//! The command line of `picture`.

use std::path::PathBuf;
use std::time::Duration;

/// The command to record, and the output file.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) length: Duration,
    /// Columns and rows.
    pub(crate) size: (usize, usize),
    /// The command line that is shown as typed before the command runs.
    pub(crate) typed: String,
    pub(crate) output: PathBuf,
    /// Empty for the tool itself.
    pub(crate) command: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            length: Duration::from_secs(11),
            size: (100, 30),
            typed: "kubectl informer watch pods".to_owned(),
            output: concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/picture.svg").into(),
            command: Vec::new(),
        }
    }
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            if flag == "--" {
                options.command = rest.cloned().collect();
                if options.command.is_empty() {
                    return Err("after -- comes the command to record".to_owned());
                }
                break;
            }
            let mut value = || rest.next().ok_or_else(|| format!("{flag} wants a value"));
            match flag.as_str() {
                "--seconds" => {
                    options.length = Duration::from_secs(number(flag, value()?, 600)? as u64);
                }
                "--columns" => options.size.0 = number(flag, value()?, 300)?,
                "--rows" => options.size.1 = number(flag, value()?, 100)?,
                "--typed" => options.typed.clone_from(value()?),
                "--output" => options.output = value()?.into(),
                _ => {
                    return Err(format!(
                        "picture does not know {flag}; the command to record comes after --"
                    ));
                }
            }
        }
        Ok(options)
    }
}

fn number(flag: &str, value: &str, max: usize) -> Result<usize, String> {
    let number = value.parse().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| format!("{flag} wants a number from 1 to {max}, not {value:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn flags_and_a_command() {
        assert_eq!(parse(""), Ok(Options::default()));
        let options =
            parse("--seconds 3 --columns 80 --rows 10 --output a.svg -- ls -l --rows").unwrap();
        assert_eq!((options.length, options.size), (Duration::from_secs(3), (80, 10)));
        assert_eq!(options.command, ["ls", "-l", "--rows"]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, problem) in [
            ("--seconds", "--seconds wants a value"),
            ("--seconds soon", "--seconds wants a number from 1 to 600, not \"soon\""),
            ("--columns 0", "--columns wants a number from 1 to 300, not \"0\""),
            ("ls", "picture does not know ls; the command to record comes after --"),
            ("--", "after -- comes the command to record"),
        ] {
            assert_eq!(parse(line).unwrap_err(), problem);
        }
    }
}
