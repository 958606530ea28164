//! Faults as text, for command lines, files and HTTP.
//!
//! A rule is a line of words: the matching requests first, then when, how often and which fault, in
//! any order. A line that starts with an action on the whole server is carried out immediately.

mod value;

use std::fmt;

use http::HeaderValue;
use value::{
    bytes_of, code, header, levels, name, none, number, positive, probability, text, time,
};

use super::{FaultRule, Faults, words};
use crate::exposure::befall;
use crate::faults::{Fault, FaultId};
use crate::limits::{FAULT_RULES_MAX, SNAPSHOTS_MAX};
use crate::request::Verb;
use crate::server::ApiServer;
use crate::store::Snapshot;

/// An error in the text of a fault, with the valid alternatives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultTextError(String);

impl fmt::Display for FaultTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FaultTextError {}

type Parsed<T> = Result<T, FaultTextError>;

fn wrong<T>(problem: impl Into<String>) -> Parsed<T> {
    Err(FaultTextError(problem.into()))
}

/// A parsed line.
#[derive(Debug)]
pub(crate) enum Order<'a> {
    /// A rule that waits for matching requests.
    Rule(Box<(FaultRule<'a>, Fault)>),
    /// An immediate action.
    Now(Act),
}

/// An immediate action.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// A fault of the server that needs no matching request.
    Fault(Fault),
    Snapshot(String),
    Upgrade,
    Flaky(f64),
}

impl<'a> Faults<'a> {
    /// Injects a rule that is written as text, or carries out an immediate action.
    ///
    /// ```
    /// # use embedded_apiserver::ApiServer;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let server = ApiServer::start();
    /// let faults = server.faults();
    /// faults.inject_text("watch pods after-events=10 half-open").unwrap();
    /// faults.inject_text("list deployments.apps status=429 retry-after=5 times=3").unwrap();
    /// faults.inject_text("any latency=200ms always probability=0.5").unwrap();
    /// faults.inject_text("drop-watches").unwrap();
    /// assert_eq!(faults.pending(), 3);
    /// let problem = faults.inject_text("watch pods half-opne").unwrap_err().to_string();
    /// assert!(problem.contains("half-opne") && problem.contains("half-open"));
    /// # }
    /// ```
    ///
    /// See [`Faults::TEXT_FORMS`] for the syntax. `down` requires a tokio runtime.
    ///
    /// Returns the rules that were created: none for an immediate action, several for some
    /// scenarios.
    pub fn inject_text(self, text: &str) -> Result<Vec<FaultId>, FaultTextError> {
        self.carry_out(self.parse(text)?)
    }

    /// Returns the rules that can still fire as text, oldest first.
    pub fn rules(self) -> Vec<(FaultId, String)> {
        self.state().rules.lock().iter().map(|rule| (rule.id, rule.to_string())).collect()
    }

    pub(crate) fn carry_out(self, order: Order<'_>) -> Parsed<Vec<FaultId>> {
        match order {
            Order::Rule(rule) => {
                let (rule, fault) = *rule;
                if self.pending() >= FAULT_RULES_MAX {
                    return wrong(format!("there are {FAULT_RULES_MAX} rules already"));
                }
                Ok(vec![rule.inject(fault)])
            }
            Order::Now(act) => self.act(act),
        }
    }

    fn act(self, act: Act) -> Parsed<Vec<FaultId>> {
        let server = self.server;
        match act {
            Act::Fault(fault) => befall(server, &fault),
            Act::Snapshot(name) => {
                let snapshot = server.store().snapshot();
                let mut snapshots = self.state().snapshots.lock();
                if snapshots.len() >= SNAPSHOTS_MAX && !snapshots.contains_key(&name) {
                    return wrong(format!("there are {SNAPSHOTS_MAX} snapshots already"));
                }
                snapshots.insert(name, snapshot);
            }
            Act::Upgrade => return Ok(self.control_plane_upgrade()),
            Act::Flaky(probability) => return Ok(self.flaky_network(probability)),
        }
        Ok(Vec::new())
    }

    /// Parses one line.
    pub(crate) fn parse(self, text: &str) -> Parsed<Order<'a>> {
        let mut words = text.split_whitespace();
        let Some(first) = words.next() else {
            return wrong(format!("this is empty; {}", words::BEGINNINGS));
        };
        let verb = VERBS.into_iter().find(|verb| verb.as_str() == first);
        if verb.is_none() && first != "any" {
            return self.parse_act(first, words).map(Order::Now);
        }
        let mut line = Line::new(FaultRule::new(self.server, verb));
        let mut words = words.peekable();
        if let Some(word) = words.next_if(|word| is_resource(word)) {
            line.rule = resource(self.server, line.rule, word)?;
            line.resource = Some(word);
        }
        for word in words {
            let (key, value) = split(word);
            line.seen(key)?;
            line.take(self, word, key, value)?;
        }
        line.finish().map(|rule| Order::Rule(Box::new(rule)))
    }

    fn parse_act<'t>(self, first: &str, mut rest: impl Iterator<Item = &'t str>) -> Parsed<Act> {
        let (key, value) = split(first);
        let act = match key {
            "compact" | "drop-watches" | "restart" | "down" => fault(key, value)?.map(Act::Fault),
            "rollback" => {
                let snapshot = self.snapshot(value)?;
                let silent = rest.next();
                if let Some(word) = silent.filter(|word| *word != "silent") {
                    return wrong(format!("{word:?}: behind a rollback there may be: silent"));
                }
                Some(Act::Fault(Fault::Rollback { snapshot, silent: silent.is_some() }))
            }
            "snapshot" => Some(Act::Snapshot(name(key, value)?)),
            "control-plane-upgrade" => none(key, value).map(|()| Some(Act::Upgrade))?,
            "flaky-network" => Some(Act::Flaky(probability(key, value)?)),
            _ => None,
        };
        let Some(act) = act else {
            return wrong(format!("{first:?} is no beginning; {}", words::BEGINNINGS));
        };
        match rest.next() {
            Some(word) => wrong(format!("{word:?}: nothing may follow {first:?}")),
            None => Ok(act),
        }
    }

    fn snapshot(self, value: Option<&str>) -> Parsed<Snapshot> {
        let name = name("rollback", value)?;
        let snapshots = self.state().snapshots.lock();
        if let Some(snapshot) = snapshots.get(&name) {
            return Ok(snapshot.clone());
        }
        let known: Vec<_> = snapshots.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        wrong(format!(
            "rollback={name}: there is no such snapshot; there are: {known}; snapshot=NAME makes one"
        ))
    }
}

const VERBS: [Verb; 8] = [
    Verb::Get,
    Verb::List,
    Verb::Watch,
    Verb::Create,
    Verb::Update,
    Verb::Patch,
    Verb::Delete,
    Verb::DeleteCollection,
];

/// A partially parsed rule.
struct Line<'a, 't> {
    rule: FaultRule<'a>,
    resource: Option<&'t str>,
    keys: Vec<&'t str>,
    fault: Option<(&'t str, Fault)>,
    retry_after: Option<HeaderValue>,
    silent: bool,
}

impl<'a, 't> Line<'a, 't> {
    fn new(rule: FaultRule<'a>) -> Self {
        Self { rule, resource: None, keys: vec![], fault: None, retry_after: None, silent: false }
    }

    /// Rejects a word that repeats or contradicts an earlier one.
    fn seen(&mut self, key: &'t str) -> Parsed<()> {
        let pairs = [("always", "times"), ("after-events", "after-bytes")];
        for other in &self.keys {
            let contradicts = |(a, b): &(&str, &str)| (key, *other) == (*a, *b);
            if *other == key {
                return wrong(format!("{key} is said twice"));
            }
            if pairs.iter().any(|(a, b)| contradicts(&(a, b)) || contradicts(&(b, a))) {
                return wrong(format!("{other} and {key} contradict each other"));
            }
        }
        self.keys.push(key);
        Ok(())
    }

    fn take(
        &mut self,
        faults: Faults<'_>,
        word: &'t str,
        key: &'t str,
        value: Option<&'t str>,
    ) -> Parsed<()> {
        let rule = self.rule.clone();
        self.rule = match key {
            "namespace" => rule.namespace(text(key, value)?),
            "group" => rule.group(text(key, value)?),
            "user" => rule.user(text(key, value)?),
            "nth" => rule.nth(positive(key, value)?),
            "after-events" => rule.after_events(number(key, value)?),
            "after-bytes" => rule.after_bytes(number(key, value)?),
            "times" => rule.times(positive(key, value)?),
            "always" => none(key, value).map(|()| rule.always())?,
            "probability" => rule.probability(probability(key, value)?),
            "retry-after" => {
                self.retry_after = Some(header(key, value)?);
                rule
            }
            "silent" => {
                none(key, value)?;
                self.silent = true;
                rule
            }
            "rollback" => {
                let fault = Fault::Rollback { snapshot: faults.snapshot(value)?, silent: false };
                self.set_fault(word, fault)?;
                rule
            }
            _ => {
                let Some(fault) = fault(key, value)? else {
                    return wrong(format!(
                        "{word:?} is neither a fault nor an option; {}",
                        words::REST
                    ));
                };
                self.set_fault(word, fault)?;
                rule
            }
        };
        Ok(())
    }

    fn set_fault(&mut self, word: &'t str, fault: Fault) -> Parsed<()> {
        if let Some((other, _)) = &self.fault {
            return wrong(format!("{other} and {word}: a rule has one fault"));
        }
        self.fault = Some((word, fault));
        Ok(())
    }

    fn finish(self) -> Parsed<(FaultRule<'a>, Fault)> {
        let Some((word, mut fault)) = self.fault else {
            let meant = self.resource.map(|word| format!(" ({word:?} was taken for a resource)"));
            return wrong(format!(
                "no fault is named{}; {}",
                meant.unwrap_or_default(),
                words::REST
            ));
        };
        match &mut fault {
            Fault::Status { retry_after, .. } => *retry_after = self.retry_after,
            _ if self.retry_after.is_some() => {
                return wrong(format!("retry-after is for status=CODE, not for {word}"));
            }
            Fault::Rollback { silent, .. } => *silent = self.silent,
            _ => {}
        }
        if self.silent && !matches!(fault, Fault::Rollback { .. }) {
            return wrong(format!("silent is for rollback=SNAPSHOT, not for {word}"));
        }
        Ok((self.rule, fault))
    }
}

/// Parses a fault with its value. Returns `None` if no fault has this name.
fn fault(key: &str, value: Option<&str>) -> Parsed<Option<Fault>> {
    let bare = |fault| none(key, value).map(|()| fault);
    Ok(Some(match key {
        "refused" => bare(Fault::Refused)?,
        "down" => Fault::Down(time(key, value)?),
        "reset" => bare(Fault::Reset)?,
        "lost-answer" => bare(Fault::LostAnswer)?,
        "half-open" => bare(Fault::HalfOpen)?,
        "stalled-headers" => bare(Fault::StalledHeaders)?,
        "stalled-body" => bare(Fault::StalledBody)?,
        "slow-bytes" => {
            let (bytes, every) = value.and_then(|value| value.split_once('/')).unzip();
            Fault::SlowBytes { bytes: bytes_of(key, bytes)?.max(1), every: time(key, every)? }
        }
        "latency" => Fault::Latency(time(key, value)?),
        "status" => Fault::Status { code: code(key, value)?, retry_after: None },
        "gone" => bare(Fault::Gone)?,
        "html" => Fault::Html(code(key, value)?),
        "content-type" => Fault::ContentType(header(key, value)?),
        "stale-list" => Fault::StaleList { versions: number(key, value)? },
        "compact" => bare(Fault::Compact)?,
        "drop-watches" => bare(Fault::DropWatches)?,
        "restart" => bare(Fault::Restart)?,
        "drop-event" => bare(Fault::DropEvent)?,
        "duplicate-event" => bare(Fault::DuplicateEvent)?,
        "reorder-events" => bare(Fault::ReorderEvents)?,
        "bookmark-lost" => bare(Fault::BookmarkLost)?,
        "end-bookmark-missing" => bare(Fault::EndBookmarkMissing)?,
        "wrong-type" => bare(Fault::WrongType)?,
        "oversized" => Fault::Oversized { bytes: bytes_of(key, value)? },
        "too-deep" => Fault::TooDeep { levels: levels(key, value)? },
        "truncated" => bare(Fault::Truncated)?,
        "split-utf8" => bare(Fault::SplitUtf8)?,
        "malformed-utf8" => bare(Fault::MalformedUtf8)?,
        _ => return Ok(None),
    }))
}

/// Returns whether the second word of a rule is its resource, and not an option or a fault.
fn is_resource(word: &str) -> bool {
    let known = Fault::all_names().contains(&word) || ["always", "silent"].contains(&word);
    !known && !word.contains('=')
}

/// Parses `pods`, `pods/status` or `deployments.apps`; also `pod` and `deploy`.
fn resource<'a>(server: &ApiServer, rule: FaultRule<'a>, word: &str) -> Parsed<FaultRule<'a>> {
    let (whole, subresource) = match word.split_once('/') {
        Some((whole, subresource)) => (whole, format!("/{subresource}")),
        None => (word, String::new()),
    };
    let (name, group) = match whole.split_once('.') {
        Some((name, group)) => (name, Some(group)),
        None => (whole, None),
    };
    let registry = server.shared.registry.read();
    let found = registry.iter().find(|known| {
        let named = known.plural == name || known.singular == name;
        (named || known.short_names.iter().any(|short| short == name))
            && group.is_none_or(|group| known.group == group)
    });
    let plural = match (found, group) {
        (Some(known), _) => known.plural.to_string(),
        // The resource may be defined later.
        (None, Some(group)) if !group.is_empty() => name.to_owned(),
        (None, _) => {
            return wrong(format!(
                "{word:?} is neither a resource that is served nor a fault nor an option; one that \
                 is not there yet has its group behind it, as in widgets.example.com; {}",
                words::REST
            ));
        }
    };
    let rule = rule.resource(plural + &subresource);
    Ok(match group {
        Some(group) => rule.group(group),
        None => rule,
    })
}

fn split(word: &str) -> (&str, Option<&str>) {
    match word.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (word, None),
    }
}

#[cfg(test)]
mod tests;
