//! What the protocol can be at, what it asks for, and what it makes of what comes.

use std::time::Duration;

use crate::list_watch::{ListOptions, WatchOptions};
use crate::{Error, ResourceVersion};

/// What to do next.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Request {
    /// Read a page.
    List(ListOptions),
    /// Open a watch, or a streaming list that becomes one.
    Watch(WatchOptions),
    /// Do nothing until then.
    Wait { until: Duration },
}

/// What to do with something that came.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Effect {
    /// Keep it with the rest of the list that is being read.
    Gather,
    /// Hand it on.
    Apply,
    /// What was gathered is the whole content at this version.
    Replace(ResourceVersion),
    /// Nothing.
    Ignore,
    /// It shows that something is wrong: tell [`Machine::failed`].
    Fail(Error),
}

/// What kind of event came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    Added,
    Changed,
    Bookmark { initial_events_end: bool },
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Phase {
    /// Reading a list: which version was asked for, on which page, and what the first page said.
    List { page: Page },
    /// Reading the initial events of a streaming list.
    Stream { asked: Option<ResourceVersion>, began: Duration, heard: Duration },
    /// Watching, since when; events since then.
    Watch { asked: ResourceVersion, opened: Option<Duration>, heard: Duration, events: u64 },
    /// Waiting, and then.
    Wait { until: Duration, then: Box<Phase> },
}

#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Page {
    pub(super) asked: Option<ResourceVersion>,
    pub(super) limit: Option<u32>,
    pub(super) token: Option<String>,
    pub(super) version: Option<ResourceVersion>,
}
