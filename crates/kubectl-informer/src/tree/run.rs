//! Follows a tree: on a terminal it is redrawn in place, elsewhere printed whenever it changes.

use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, SelectAll, select_all};
use jiff::Timestamp;
use kube_informer::{ErrorReport, Event, Index, Object, Untyped};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::model::{ColumnsOf, Owned, Row, grow, text};
use super::{Follow, Request, Root};
use crate::caches::Caches;
use crate::chosen::Chosen;
use crate::columns::columns;
use crate::connect::Cluster;
use crate::duration::at;
use crate::live::Live;
use crate::outcome::Outcome;
use crate::plain::{self, Asked};
use crate::screen::{Screen, unread, written};
use crate::signals::Stop;

/// How often the tree is drawn. Changes in between are shown together.
const DRAW_EVERY: Duration = Duration::from_millis(250);

/// The maximum number of events to process at once.
const BATCH: usize = 256;

/// The field by which objects name their owners.
const OWNERS: &str = "metadata.ownerReferences[*].uid";

/// A running tree.
pub(super) struct Running<'a> {
    request: Request<'a>,
    root: Root,
    caches: Caches,
    events: SelectAll<BoxStream<'static, (usize, Event<Untyped>)>>,
    /// The objects of each type by their owners.
    owners: Vec<Index<Untyped>>,
    /// The types that have not synced, and those that cannot be listed.
    waiting: HashSet<usize>,
    refused: HashSet<usize>,
    columns: ColumnsOf,
    /// The last state of the root.
    last: Option<Object<Untyped>>,
    live: Option<Live>,
    /// The text on the terminal, or the rows that were printed last.
    drawn: String,
    printed: Vec<Row>,
    screen: Screen,
    cluster: Cluster,
}

/// The reason for the end.
enum Ended {
    Stopped,
    NotWritten(io::Error),
}

impl<'a> Running<'a> {
    pub(super) fn start(
        request: Request<'a>,
        root: Root,
        owned: &[Chosen],
        cluster: Cluster,
        screen: Screen,
    ) -> Result<Self, String> {
        let namespaces = root.namespace.iter().cloned().collect();
        let mut caches = Caches::within(owned.iter(), &cluster, request.scope, namespaces);
        let index = |cache: &crate::caches::Cache| cache.informer.index_by_field(OWNERS);
        let owners = caches.all.iter().map(index).collect::<Result<_, _>>();
        let streams = caches.all.iter().enumerate().map(|(place, cache)| {
            let events = cache.informer.handler().only_changes().stream();
            events.map(move |event| (place, event)).boxed()
        });
        let events = select_all(streams.collect::<Vec<_>>());
        caches.start();
        let live = request.follow != Follow::Once && io::stdout().is_terminal();
        Ok(Self {
            waiting: (0..caches.all.len()).collect(),
            refused: HashSet::new(),
            owners: owners.map_err(|error| error.to_string())?,
            live: live.then(Live::default),
            columns: ColumnsOf::new(),
            last: None,
            drawn: String::new(),
            printed: Vec::new(),
            request,
            root,
            caches,
            events,
            screen,
            cluster,
        })
    }

    pub(super) async fn run(mut self, mut stop: Stop) -> Result<Outcome, String> {
        let patience = Instant::now() + self.request.patience;
        if !self.synced(&mut stop, patience).await? {
            return Ok(if self.request.follow == Follow::Once {
                Outcome::Unmet
            } else {
                Outcome::Met
            });
        }
        self.screen.end();
        self.tell_what_is_missing();
        let root = &self.root;
        let exists = self.find_root().is_some();
        let Follow::Until(length) = self.request.follow else {
            if !exists {
                let (of, name) = (root.of.name(), &root.name);
                self.screen.note(&format!("Error from server (NotFound): {of} {name:?} not found"));
                return Ok(Outcome::Unmet);
            }
            return written(self.draw().await);
        };
        if !exists {
            let place = plain::within_namespaces(root.namespace.as_slice());
            let (of, name) = (root.of.name(), &root.name);
            self.screen.note(&format!("no {of} {name:?}{place} yet: waiting"));
        }
        match self.follow(&mut stop, length.map(|length| Instant::now() + length)).await {
            Ended::Stopped => Ok(Outcome::Met),
            Ended::NotWritten(error) => written(Err(error)),
        }
    }

    /// Waits until all types are listed that can be. Returns false if the user interrupts the wait.
    async fn synced(&mut self, stop: &mut Stop, patience: Instant) -> Result<bool, String> {
        let total = self.caches.all.len();
        while !self.waiting.is_empty() {
            let done = total - self.waiting.len();
            self.screen.status(vec![(format!("◌ syncing: {done} of {total} types"), None)]);
            tokio::select! {
                biased;
                () = stop.requested() => return Ok(false),
                Some((place, report)) = self.caches.errors.recv() => self.error(place, &report)?,
                Some((place, event)) = self.events.next() => {
                    if let Event::Synced = event {
                        self.waiting.remove(&place);
                    }
                }
                () = sleep_until(patience) => break,
            }
        }
        if self.waiting.contains(&0) {
            let (name, patience) = (self.root.of.name(), self.request.patience);
            return Err(format!(
                "{name} are not complete after {patience:?}\nmore time may help: --timeout 5m"
            ));
        }
        Ok(true)
    }

    /// Names the types that are not part of the tree.
    fn tell_what_is_missing(&mut self) {
        let names = |places: &HashSet<usize>| {
            let all = self.caches.all.iter().enumerate();
            let names = all.filter(|(place, _)| places.contains(place));
            names.map(|(_, cache)| cache.of.name()).collect::<Vec<_>>().join(", ")
        };
        let (refused, waiting) = (names(&self.refused), names(&self.waiting));
        if !refused.is_empty() {
            self.screen.note(&format!("without {refused}, which cannot be listed and watched"));
        }
        if !waiting.is_empty() {
            self.screen.note(&format!("so far without {waiting}, which take longer to list"));
        }
    }

    async fn follow(&mut self, stop: &mut Stop, deadline: Option<Instant>) -> Ended {
        let mut ticks = interval(DRAW_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut events = std::mem::take(&mut self.events).ready_chunks(BATCH);
        let mut unread = std::pin::pin!(unread());
        let mut changed = true;
        loop {
            tokio::select! {
                biased;
                () = stop.requested() => return Ended::Stopped,
                () = at(deadline) => return Ended::Stopped,
                () = &mut unread => return Ended::Stopped,
                Some((place, report)) = self.caches.errors.recv() => {
                    if let Err(problem) = self.error(place, &report) {
                        self.screen.note(&problem);
                    }
                }
                // On a terminal, ages change too.
                _ = ticks.tick(), if changed || self.live.is_some() => {
                    changed = false;
                    if let Err(error) = self.draw().await {
                        return Ended::NotWritten(error);
                    }
                }
                Some(_) = events.next() => changed = true,
            }
        }
    }

    /// Handles an error of an informer. A type that cannot be listed is left out, unless it is that
    /// of the root.
    fn error(&mut self, place: usize, report: &ErrorReport) -> Result<(), String> {
        let cache = &self.caches.all[place];
        if plain::is_final(&report.error) && !cache.informer.has_synced() {
            if place == 0
                && let Some(refusal) = self.caches.refusal(place, report, &self.cluster)
            {
                return Err(refusal);
            }
            self.waiting.remove(&place);
            self.refused.insert(place);
        } else if self.live.is_none() && self.waiting.is_empty() {
            let asked = Asked {
                of: &cache.of,
                namespaces: &self.caches.namespaces,
                place: &self.cluster.place,
                during: Some(&report.during),
            };
            let problem = plain::problem(&report.error, &asked);
            self.screen.note(&format!("{}: {problem}; {}", cache.of.name(), report.next));
        }
        Ok(())
    }

    fn find_root(&self) -> Option<Object<Untyped>> {
        let lister = self.caches.all.first()?.informer.lister();
        match &self.root.namespace {
            Some(namespace) => lister.namespace(namespace).get(&self.root.name),
            None => lister.get(self.root.name.as_str()),
        }
    }

    /// Draws the tree, or prints it if it has changed.
    async fn draw(&mut self) -> io::Result<()> {
        let (rows, left_out) = self.rows().await;
        let headers = self.request.headers;
        if let Some(live) = &mut self.live {
            let width = Some(Live::columns());
            let trouble =
                self.caches.trouble(&self.cluster, |place| !self.refused.contains(&place));
            let text = format!("{trouble}{}", text(&rows, left_out, width, headers));
            if text == self.drawn {
                return Ok(());
            }
            live.draw(&text)?;
            self.drawn = text;
            return Ok(());
        }
        let same = rows.len() == self.printed.len()
            && !rows.iter().zip(&self.printed).any(|(row, printed)| row.differs(printed));
        if same {
            return Ok(());
        }
        let gap = if self.printed.is_empty() { "" } else { "\n" };
        let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0.into());
        let text = text(&rows, left_out, width, headers);
        self.printed = rows;
        let mut out = io::stdout().lock();
        out.write_all(format!("{gap}{text}").as_bytes()).and_then(|()| out.flush())
    }

    async fn rows(&mut self) -> (Vec<Row>, usize) {
        let root = self.find_root();
        let gone = root.is_none();
        self.last = root.or_else(|| self.last.take());
        let Some(object) = self.last.clone() else { return (Vec::new(), 0) };
        let all = self.caches.all.iter().zip(&self.owners);
        let owned = |uid: &str| {
            let all = all.clone();
            let each = all.flat_map(|(cache, index)| {
                let objects = index.get(uid).into_vec().into_iter();
                objects.map(|object| Owned { of: cache.of.clone(), object })
            });
            each.collect()
        };
        let (nodes, left_out) = grow(Owned { of: self.root.of.clone(), object }, owned);
        for (_, node) in &nodes {
            let name = node.of.name();
            if !self.columns.contains_key(&name) {
                let columns = columns(&self.cluster.client, &node.of).await;
                self.columns.insert(name, columns);
            }
        }
        let now = Timestamp::now();
        let rows = nodes.iter().map(|(branch, node)| Row::new(branch, node, &self.columns, now));
        let mut rows: Vec<_> = rows.collect();
        if gone && !rows.is_empty() {
            rows[0] = rows[0].clone().deleted();
        }
        (rows, left_out)
    }
}
