//! Reacts to the keys that the user presses.

use super::{Ended, Source, Watch};
use crate::keys::{Action, Input, Keys};
use crate::watch::matches::Matches;

/// The keys and their effects. It fits 60 columns.
const HELP: &str = "\
Keys:
  q      ends                  space  pauses, and resumes
  d      shows diffs, or not   /      filters by name
  Enter  adds an empty line    ?      shows this help";

impl Watch {
    pub(super) async fn input(&mut self, input: Input, keys: &mut Keys) -> Option<Ended> {
        let key = match input {
            Input::Key(key) => key,
            Input::Suspend => {
                self.screen.clear();
                keys.suspend().await;
                self.look();
                return None;
            }
        };
        match self.controls.press(key)? {
            Action::Quit => return Some(Ended::Interrupted),
            Action::Pause => self.pause(),
            Action::Diff => {
                self.screen.note(match self.printer.switch_diff() {
                    Some(true) => "with diffs from here on",
                    Some(false) => "without diffs from here on",
                    None => "this format has no diffs",
                });
            }
            Action::Filter => self.filter(),
            Action::Prompt => {}
            Action::Help => self.screen.note(HELP),
            Action::Space => self.screen.note(""),
        }
        self.look();
        None
    }

    /// Notes what is waiting already. Events wait in the backlogs of the informers, which merge
    /// them by object once there are many.
    fn pause(&mut self) {
        if self.controls.paused {
            self.merged_before = self.merged();
            return;
        }
        let merged = self.merged() - self.merged_before;
        if merged > 0 {
            let merged = crate::status::counted(merged, "event");
            self.screen.note(&format!(
                "{merged} during the pause are not shown: they were merged into later ones of the \
                 same objects"
            ));
        }
    }

    fn filter(&mut self) {
        self.count_matches();
        let text = match &self.controls.filter {
            Some(filter) => {
                let objects: usize = self.sources.iter().map(Source::objects).sum();
                let matching = self.matches.as_ref().map_or(objects, Matches::all);
                format!("from here on only names that match {filter}: {matching} of {objects}")
            }
            None => "from here on without a filter".to_owned(),
        };
        self.screen.note(&text);
    }

    /// Counts the objects that pass all filters.
    fn count_matches(&mut self) {
        self.matches = self.is_filtered().then(|| Matches::new(self.sources.len()));
        let Some(matches) = &mut self.matches else { return };
        for (place, source) in self.sources.iter().enumerate() {
            for object in &source.informer.lister().list() {
                let passes =
                    self.names.passes(object.name()) && self.controls.passes(object.name());
                if passes {
                    matches.add(place, object.key().as_str());
                }
            }
        }
    }

    /// Returns the number of events that the backlogs have merged into others.
    pub(super) fn merged(&self) -> u64 {
        self.sources.iter().map(|source| source.registration.merged()).sum()
    }
}
