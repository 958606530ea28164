//! Candidates for the word that is being completed.

use std::collections::HashSet;

use clap::builder::StyledStr;
use clap::{Arg, Command, ValueHint};

use super::cluster::Asked;
use super::words::{Before, Place, takes_value};

/// A candidate and its description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Candidate {
    pub(super) word: String,
    pub(super) meaning: String,
}

impl Candidate {
    pub(super) fn new(word: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self { word: word.into(), meaning: meaning.into() }
    }

    pub(super) fn line(&self) -> String {
        // Each line is one candidate, with its description after a tab.
        let one = |text: &str| text.replace(['\n', '\r', '\t'], " ");
        match one(&self.meaning).trim() {
            "" => format!("{}\n", one(&self.word)),
            meaning => format!("{}\t{meaning}\n", one(&self.word)),
        }
    }
}

/// Returns whether an argument is a file name, which shells complete themselves.
pub(super) fn is_file(arg: &Arg) -> bool {
    arg.get_value_hint() == ValueHint::FilePath
        || arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "FILE"))
}

/// Returns every candidate for the word.
pub(super) async fn candidates(place: Place) -> Vec<Candidate> {
    match place {
        Place::Nothing => Vec::new(),
        Place::Command { of, begin } => beginning(&begin, commands(&of)),
        Place::Flag { of, before, begin } => beginning(&begin, flags(&of, &before, &begin)),
        Place::Value { arg, before, begin } => value(&arg, &before, &begin).await,
    }
}

fn beginning(begin: &str, mut all: Vec<Candidate>) -> Vec<Candidate> {
    let mut seen = HashSet::new();
    all.retain(|each| each.word.starts_with(begin) && seen.insert(each.word.clone()));
    all
}

fn commands(of: &Command) -> Vec<Candidate> {
    let shown = of.get_subcommands().filter(|each| !each.is_hide_set());
    shown.map(|each| Candidate::new(each.get_name(), sentence(each.get_about()))).collect()
}

fn flags(of: &Command, before: &Before, begin: &str) -> Vec<Candidate> {
    let mut flags = Vec::new();
    for arg in of.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let again = matches!(arg.get_action(), clap::ArgAction::Append);
        if before.has(arg.get_id().as_str()) && !again {
            continue;
        }
        let meaning = sentence(arg.get_help());
        if let Some(long) = arg.get_long() {
            flags.push(Candidate::new(format!("--{long}"), meaning.clone()));
        }
        if let Some(short) = arg.get_short().filter(|_| begin == "-") {
            flags.push(Candidate::new(format!("-{short}"), meaning));
        }
    }
    flags
}

async fn value(arg: &Arg, before: &Before, begin: &str) -> Vec<Candidate> {
    let possible = arg.get_possible_values();
    if !possible.is_empty() && takes_value(arg) {
        let shown = possible.iter().filter(|value| !value.is_hide_set());
        let all = shown.map(|value| Candidate::new(value.get_name(), sentence(value.get_help())));
        return beginning(begin, all.collect());
    }
    let asked = Asked { before, begin };
    match arg.get_id().as_str() {
        "output" => beginning(begin, formats()),
        "context" => beginning(begin, asked.contexts()),
        "cluster" => beginning(begin, asked.clusters()),
        "user" => beginning(begin, asked.users()),
        "namespace" => last_of_list(begin, asked.namespaces().await),
        "types" => types(&asked, begin).await,
        "names" | "name" => match before.arguments.first() {
            Some(of) if !of.contains('/') => {
                let names = asked.names(of).await;
                let given = |name: &Candidate| before.arguments[1..].contains(&name.word);
                beginning(begin, names.into_iter().filter(|name| !given(name)).collect())
            }
            // After `TYPE/NAME` come more of these.
            Some(_) => types(&asked, begin).await,
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Completes types, or the name of an object after `pods/`.
async fn types(asked: &Asked<'_>, begin: &str) -> Vec<Candidate> {
    match begin.rsplit_once(',').map_or(begin, |(_, last)| last).split_once('/') {
        Some((of, _)) => {
            let mut names = asked.names(of).await;
            for name in &mut names {
                name.word = format!("{of}/{}", name.word);
            }
            last_of_list(begin, names)
        }
        None => last_of_list(begin, asked.types().await),
    }
}

/// Completes the last item of a comma-separated list.
fn last_of_list(begin: &str, all: Vec<Candidate>) -> Vec<Candidate> {
    let Some((before, begin)) = begin.rsplit_once(',') else { return beginning(begin, all) };
    let given: Vec<_> = before.split(',').collect();
    let all = beginning(begin, all).into_iter().filter(|each| !given.contains(&each.word.as_str()));
    all.map(|each| Candidate { word: format!("{before},{}", each.word), ..each }).collect()
}

fn formats() -> Vec<Candidate> {
    let formats = [
        ("text", "For people"),
        ("wide", "With more columns"),
        ("json", "For programs"),
        ("yaml", "For both"),
        ("name", "TYPE/NAME"),
        ("jsonpath=", "An expression, as for kubectl"),
        ("custom-columns=", "Columns of one's own, as for kubectl"),
        ("template=", "A template in the language of Go's"),
    ];
    formats.map(|(word, meaning)| Candidate::new(word, meaning)).to_vec()
}

/// Returns the first sentence of a help text.
fn sentence(help: Option<&StyledStr>) -> String {
    let text = help.map(ToString::to_string).unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
    first.split_once(". ").map_or(first, |(first, _)| first).trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(candidates: &[Candidate]) -> Vec<&str> {
        candidates.iter().map(|each| each.word.as_str()).collect()
    }

    #[test]
    fn only_the_last_of_a_list_is_completed() {
        let all =
            || ["pods", "deployments", "daemonsets"].map(|it| Candidate::new(it, "")).to_vec();
        assert_eq!(words(&last_of_list("d", all())), ["deployments", "daemonsets"]);
        assert_eq!(words(&last_of_list("pods,de", all())), ["pods,deployments"]);
        let rest = last_of_list("pods,", all());
        assert_eq!(words(&rest), ["pods,deployments", "pods,daemonsets"]);
        assert_eq!(words(&last_of_list("x,y", all())), Vec::<&str>::new());
    }

    #[test]
    fn a_candidate_is_one_line() {
        assert_eq!(Candidate::new("a", "").line(), "a\n");
        assert_eq!(Candidate::new("a", "b\nc\td").line(), "a\tb c d\n");
    }
}
