//! Determines what the word being typed is: a command, a flag, the value of a flag, or an argument.

use clap::{Arg, Command};

/// A flag on the command line, and its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Flag {
    pub(super) id: String,
    pub(super) long: Option<String>,
    /// `None` for flags without a value.
    pub(super) value: Option<String>,
}

/// The words before the one being completed.
#[derive(Clone, Default, Debug)]
pub(super) struct Before {
    pub(super) flags: Vec<Flag>,
    pub(super) arguments: Vec<String>,
}

/// The role of the word being completed, and its beginning.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// The name of a subcommand of this command.
    Command { of: Command, begin: String },
    /// The name of a flag.
    Flag { of: Command, before: Before, begin: String },
    /// The value of a flag, or an argument.
    Value { arg: Arg, before: Before, begin: String },
    /// An unknown role.
    Nothing,
}

/// Determines the role of the last word from the words before it.
pub(super) fn place(tool: &Command, words: &[String]) -> Place {
    let Some((typed, earlier)) = words.split_last() else { return Place::Nothing };
    let mut command = tool;
    let mut before = Before::default();
    // A flag whose value is the next word.
    let mut open: Option<&Arg> = None;
    let mut only_arguments = false;
    for word in earlier {
        if let Some(arg) = open.take() {
            before.push(arg, Some(word));
        } else if only_arguments || !word.starts_with('-') || word == "-" {
            match command.find_subcommand(word) {
                Some(next) if before.arguments.is_empty() => command = next,
                _ => before.arguments.push(word.clone()),
            }
        } else if word == "--" {
            only_arguments = true;
        } else {
            open = before.flag(command, word);
        }
    }
    let begin = typed.clone();
    if let Some(arg) = open {
        return Place::Value { arg: arg.clone(), before, begin };
    }
    if typed.starts_with('-') && !only_arguments {
        return match typed.split_once('=') {
            Some((name, value)) => match long(command, name) {
                Some(arg) => Place::Value { arg: arg.clone(), before, begin: value.to_owned() },
                None => Place::Nothing,
            },
            None => Place::Flag { of: command.clone(), before, begin },
        };
    }
    if command.has_subcommands() && before.arguments.is_empty() {
        return Place::Command { of: command.clone(), begin };
    }
    let positionals: Vec<_> = command.get_positionals().collect();
    let nth = before.arguments.len();
    let arg = positionals.get(nth).or_else(|| {
        // The last argument may accept all further words.
        positionals.last().filter(|last| last.get_num_args().is_some_and(|n| n.max_values() > 1))
    });
    match arg {
        Some(arg) => Place::Value { arg: (*arg).clone(), before, begin },
        None => Place::Nothing,
    }
}

impl Before {
    fn push(&mut self, arg: &Arg, value: Option<&str>) {
        self.flags.push(Flag {
            id: arg.get_id().to_string(),
            long: arg.get_long().map(str::to_owned),
            value: value.map(str::to_owned),
        });
    }

    /// Records a word that begins with a dash. Returns the flag if its value is the next word.
    fn flag<'a>(&mut self, command: &'a Command, word: &str) -> Option<&'a Arg> {
        if word.starts_with("--") {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            let arg = long(command, name)?;
            if takes_value(arg) && value.is_none() {
                return Some(arg);
            }
            self.push(arg, value);
            return None;
        }
        // `-An shop`: several flags in one word, where the last may take the rest as its value.
        for (at, letter) in word.char_indices().skip(1) {
            let arg = command.get_arguments().find(|arg| arg.get_short() == Some(letter))?;
            if !takes_value(arg) {
                self.push(arg, None);
                continue;
            }
            let rest = &word[at + letter.len_utf8()..];
            if rest.is_empty() {
                return Some(arg);
            }
            self.push(arg, Some(rest.strip_prefix('=').unwrap_or(rest)));
            return None;
        }
        None
    }

    /// Returns the last value that was given.
    pub(super) fn value(&self, id: &str) -> Option<&str> {
        self.flags.iter().rev().find(|flag| flag.id == id)?.value.as_deref()
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.flags.iter().any(|flag| flag.id == id)
    }
}

fn long<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let name = name.strip_prefix("--")?;
    command.get_arguments().find(|arg| arg.get_long() == Some(name))
}

pub(super) fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction, Command};
    use proptest::prelude::*;

    use super::*;

    fn tool() -> Command {
        let namespace = Arg::new("namespace").short('n').long("namespace");
        let all = Arg::new("all").short('A').long("all").action(ArgAction::SetTrue);
        let get = Command::new("get").arg(namespace).arg(all).arg(Arg::new("types"));
        let get = get.arg(Arg::new("names").num_args(0..));
        let mut tool = Command::new("tool").subcommand(get);
        tool.build();
        tool
    }

    /// Describes the role of the last word briefly.
    fn at(line: &str) -> String {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        match place(&tool(), &words) {
            Place::Command { of, begin } => format!("command of {} {begin:?}", of.get_name()),
            Place::Flag { begin, .. } => format!("flag {begin:?}"),
            Place::Value { arg, before, begin } => {
                let namespace = before.value("namespace").unwrap_or("-");
                format!("{} {begin:?} in {namespace}", arg.get_id())
            }
            Place::Nothing => "nothing".to_owned(),
        }
    }

    #[test]
    fn every_word_has_its_place() {
        for (line, expected) in [
            ("", "command of tool \"\""),
            ("ge", "command of tool \"ge\""),
            ("get ", "types \"\" in -"),
            ("get po", "types \"po\" in -"),
            ("get pods we", "names \"we\" in -"),
            ("get pods a b c", "names \"c\" in -"),
            ("get -", "flag \"-\""),
            ("get pods --na", "flag \"--na\""),
            ("get -n ", "namespace \"\" in -"),
            ("get --namespace sh", "namespace \"sh\" in -"),
            ("get --namespace=sh", "namespace \"sh\" in -"),
            ("get -n shop pods we", "names \"we\" in shop"),
            ("get -nshop pods we", "names \"we\" in shop"),
            ("get -An shop pods we", "names \"we\" in shop"),
            ("get --namespace=shop po", "types \"po\" in shop"),
            ("get -- -x", "types \"-x\" in -"),
            ("get --nonsense=x", "nothing"),
            ("get -zn po", "types \"po\" in -"),
            ("nonsense x", "nothing"),
        ] {
            assert_eq!(at(line), expected, "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_typed_is_too_much(words in prop::collection::vec("-{0,2}[a-zA-Zß=n]{0,4}", 0..6)) {
            place(&tool(), &words);
        }
    }
}
