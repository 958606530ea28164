//! Tells the user about the state of the watch: the status line, and messages beside the events.

use kube_informer::{ErrorReport, Next};
use tokio::time::Instant;

use super::{Ended, Source, Watch};
use crate::plain::{self, Asked};
use crate::screen::{Pieces, Screen};
use crate::status::{self, Context, Informed};

impl Watch {
    /// If there is nothing to show, or an object that was named does not exist, tells the user.
    pub(super) fn say_if_empty(&mut self) {
        if self.sources.iter().any(|source| source.initial.is_some()) {
            return;
        }
        let missing = |source: &&Source| source.name.is_some() && source.is_empty();
        let mut messages = Vec::new();
        for source in self.sources.iter().filter(missing) {
            let (object, place) = (source.object(), self.place(&[source]));
            messages.push(format!("there is no {object}{place} yet: waiting for it"));
        }
        if messages.is_empty() && self.tally.initial == 0 {
            messages.push(self.nothing());
        }
        for message in messages {
            self.screen.note(&message);
        }
    }

    /// Explains why there is nothing to show.
    fn nothing(&self) -> String {
        let sources: Vec<_> = self.sources.iter().collect();
        let names: Vec<_> = sources.iter().map(|source| source.of.name()).collect();
        let (names, place) = (names.join(", "), self.place(&sources));
        let objects: usize = sources.iter().map(|source| source.informer.lister().len()).sum();
        match objects {
            0 if self.selects => format!("no {names}{place} that are selected yet: waiting"),
            0 => format!("no {names}{place} yet: waiting"),
            _ => format!("none of the {objects} {names}{place} has such a name yet: waiting"),
        }
    }

    /// Names the namespaces of these types, unless they have none.
    fn place(&self, sources: &[&Source]) -> String {
        if sources.iter().any(|source| source.of.namespaced) {
            plain::within_namespaces(&self.namespaces)
        } else {
            String::new()
        }
    }

    pub(super) fn error(
        &mut self,
        place: usize,
        report: &ErrorReport,
    ) -> Result<Option<Ended>, String> {
        let source = &self.sources[place];
        let asked = Asked {
            of: &source.of,
            namespaces: &self.namespaces,
            place: &self.cluster.place,
            during: Some(&report.during),
        };
        let (error, problem) = (&report.error, plain::problem(&report.error, &asked));
        if plain::is_final(error) && !source.informer.has_synced() {
            return Err(plain::message(error, &asked));
        }
        let again =
            matches!(report.next, Next::Resume { .. } | Next::Relist { .. } | Next::Poll { .. });
        let since = again && !self.tally.troubled.contains(&place);
        if since {
            self.tally.troubled.push(place);
            self.tally.reconnects += 1;
        }
        let told = self.tally.last.as_ref().is_some_and(|(last, _)| *last == problem);
        self.tally.last = Some((problem.clone(), Instant::now()));
        if (since || !told) && !self.screen.has_status() {
            let (name, origin) = (source.of.name(), &self.cluster.place.origin);
            self.screen.note(&format!("{name}: {problem}; {} ({origin})", report.next));
        }
        Ok(None)
    }

    /// Checks the informers, and reports their state.
    pub(super) fn look(&mut self) {
        let sources = &self.sources;
        let over = |place: &usize| sources[*place].informer.is_live();
        let over: Vec<_> = self.tally.troubled.extract_if(.., |place| over(place)).collect();
        if !self.screen.has_status() {
            for place in over {
                self.screen.note(&format!("{}: watching on", self.sources[place].of.name()));
            }
            return;
        }
        let line = self.line();
        self.screen.status(line);
    }

    /// Returns the status line, or the prompt in its place.
    fn line(&self) -> Pieces {
        if let Some(prompt) = self.controls.prompt(Screen::columns()) {
            return prompt;
        }
        if self.controls.paused {
            let held = self.sources.iter().map(|source| source.registration.backlog()).sum();
            let merged = self.merged() - self.merged_before;
            return status::paused(held, merged, self.matches.is_some());
        }
        let matching = |place| self.matches.as_ref().map(|matches| matches.of(place));
        let informers: Vec<_> = self
            .sources
            .iter()
            .enumerate()
            .map(|(place, source)| Informed {
                of: &source.of,
                name: source.name.as_deref(),
                matching: matching(place),
                status: source.informer.status(),
            })
            .collect();
        let context = Context {
            place: &self.cluster.place,
            namespaces: &self.namespaces,
            reconnects: self.tally.reconnects,
            last: self.tally.last.as_ref().map(|(text, at)| (text.as_str(), *at)),
            started: self.tally.started,
            waiting: self.conditions.progress(),
        };
        let mut line = status::line(&informers, &context);
        if self.has_keys {
            status::hint(&mut line, Screen::columns());
        }
        line
    }
}
