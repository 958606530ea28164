//! The phases, requests and effects of the protocol.

use std::time::Duration;

use crate::list_watch::{ListOptions, WatchOptions};
use crate::{Error, ResourceVersion};

/// The next request to make.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Request {
    /// Read a page.
    List(ListOptions),
    /// Open a watch, or a streaming list that becomes one.
    Watch(WatchOptions),
    /// Wait until then.
    Wait { until: Duration },
}

/// The effect of something that arrived.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Effect {
    /// Add it to the list that is being read.
    Gather,
    /// Apply it to the store.
    Apply,
    /// Replace the store's content with what was gathered, at this version.
    Replace(ResourceVersion),
    /// Ignore it.
    Ignore,
    /// Report an error with [`Machine::failed`].
    Fail(Error),
}

/// The kinds of watch events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    Added,
    Changed,
    Bookmark {
        initial_events_end: bool,
    },
    /// Something unusable without a version: it shows only that the connection is alive.
    Nothing,
}

/// The action to take when nothing has arrived for a while.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Alarm {
    /// Ask the server for its version, and pass it to
    /// [`Machine::server_is_at`](super::state::Machine::server_is_at).
    AskVersion,
    /// Give up: pass [`Machine::silence`](super::state::Machine::silence) to
    /// [`Machine::failed`](super::state::Machine::failed).
    Silence,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Phase {
    /// Reading a list.
    List { page: Page },
    /// Reading the initial events of a streaming list.
    Stream { asked: Option<ResourceVersion>, began: Duration, heard: Duration },
    /// Watching.
    Watch(Watch),
    /// Waiting, before the next phase.
    Wait { until: Duration, then: Box<Phase> },
}

impl Phase {
    /// Returns this phase after a pause.
    pub(super) fn after(self, now: Duration, pause: Duration) -> Self {
        if pause.is_zero() {
            return self;
        }
        Phase::Wait { until: now + pause, then: Box::new(self) }
    }
}

/// State of a watch.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Watch {
    /// The version that it starts from.
    pub(super) asked: ResourceVersion,
    pub(super) opened: Option<Duration>,
    pub(super) heard: Duration,
    pub(super) events: u64,
    /// Whether it has delivered a version that was not known before.
    pub(super) advanced: bool,
    /// When to ask the server for its version, unless something arrives first.
    pub(super) ask_version_at: Option<Duration>,
}

impl Watch {
    /// Creates a watch that has not been opened yet.
    pub(super) fn from(asked: ResourceVersion, now: Duration) -> Self {
        Self { asked, opened: None, heard: now, events: 0, advanced: false, ask_version_at: None }
    }

    /// Returns how long it has been open.
    pub(super) fn lasted(&self, now: Duration) -> Duration {
        now.saturating_sub(self.opened.unwrap_or(now))
    }

    /// Returns whether the watch starts from no version or from any. It then starts with objects in
    /// no particular order, whose versions say nothing.
    pub(super) fn is_from_any(&self) -> bool {
        self.asked.is_empty() || self.asked == "0"
    }
}

/// A page of a list: its request, and what the earlier pages said.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Page {
    pub(super) asked: Option<ResourceVersion>,
    pub(super) limit: Option<u32>,
    pub(super) token: Option<String>,
    pub(super) version: Option<ResourceVersion>,
    tokens: Tokens,
}

impl Page {
    pub(super) fn first(asked: Option<ResourceVersion>, limit: Option<u32>) -> Self {
        Self { asked, limit, ..Self::default() }
    }

    /// Moves on to the next page; false if the server's tokens repeat.
    #[must_use]
    pub(super) fn turn(&mut self, token: String) -> bool {
        let new = self.tokens.is_new(&token);
        self.token = Some(token);
        new
    }
}

/// Detects repeated tokens, at the latest after the second round of a cycle: each token is compared with an
/// earlier one, which moves on after 1, 2, 4, … pages.
#[derive(Clone, PartialEq, Debug, Default)]
struct Tokens {
    mark: String,
    pages: u64,
    moves_at: u64,
}

impl Tokens {
    fn is_new(&mut self, token: &str) -> bool {
        if token == self.mark {
            return false;
        }
        self.pages += 1;
        if self.pages > self.moves_at {
            token.clone_into(&mut self.mark);
            self.moves_at = self.pages * 2;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_repeat_are_noticed_however_long_the_circle() {
        for (lead, circle) in [(0, 1), (0, 2), (3, 1), (5, 7), (100, 64), (0, 1000)] {
            let mut page = Page::first(None, None);
            let token = |nth: u64| if nth < lead { nth } else { lead + (nth - lead) % circle };
            let limit = 4 * (lead + circle) + 4;
            let noticed = (0..limit).any(|nth| !page.turn(token(nth).to_string()));
            assert!(noticed, "not within {limit} pages, for {lead} and {circle}");
        }
        let mut page = Page::first(None, None);
        assert!((0..100_000).all(|nth| page.turn(nth.to_string())));
    }
}
