//! Feeds the events of informers into the counts, and shows these.

mod press;

use std::io::{self, Write as _};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, SelectAll, select_all};
use http::Request;
use jiff::Timestamp;
use kube_core::{DynamicObject, Resource as _};
use kube_informer::{ErrorReport, Event, Untyped};
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::count::Counts;
use super::show::View;
use super::{Format, Options};
use crate::caches::Caches;
use crate::chosen::{Chosen, PATIENCE, choose, types};
use crate::connect::Cluster;
use crate::diff::diff;
use crate::discovery::Type;
use crate::duration::at;
use crate::keys::{self, Controls, Keys};
use crate::live::Live;
use crate::outcome::Outcome;
use crate::plain;
use crate::record::{Happened, Record, Watched};
use crate::screen::{Screen, written};
use crate::signals::Stop;

/// The types that change often in most clusters.
const USUAL: [&str; 6] = [
    "pods",
    "deployments.apps",
    "nodes",
    "leases.coordination.k8s.io",
    "endpointslices.discovery.k8s.io",
    "events",
];

/// How often the view is refreshed.
const REFRESH: Duration = Duration::from_secs(1);

/// The time limit for the initial lists.
const SYNC_MAX: Duration = Duration::from_secs(60);

/// The maximum number of events to process at once.
const BATCH: usize = 256;

/// A running `top`.
pub(super) struct Top {
    options: Options,
    caches: Caches,
    events: SelectAll<BoxStream<'static, (usize, Event<Untyped>)>>,
    counts: Counts,
    live: Option<Live>,
    controls: Controls,
    /// The text that stays on the terminal during a pause.
    paused: Option<String>,
    /// Whether the keys are listed.
    helps: bool,
    /// The start of counting.
    since: Instant,
    screen: Screen,
    cluster: Cluster,
}

impl Top {
    pub(super) async fn start(options: Options, live: bool) -> Result<Self, String> {
        let mut screen = Screen::new(true, crate::color::When::Auto.on(&io::stderr()));
        let cluster = Cluster::connect_or_embedded(&options.connect).await?;
        if let Some(notice) = cluster.notice() {
            screen.note(&notice);
        }
        let chosen = chosen(&options, &cluster, &mut screen).await?;
        let mut caches = Caches::new(chosen.iter(), &cluster, &options.scope)?;
        let streams = caches.all.iter().enumerate().map(|(place, cache)| {
            let events = cache.informer.handler().only_changes().stream();
            events.map(move |event| (place, event)).boxed()
        });
        let events = select_all(streams.collect::<Vec<_>>());
        caches.start();
        let counts = Counts::new(caches.all.len());
        let live = live.then(Live::default);
        Ok(Self {
            options,
            caches,
            events,
            counts,
            live,
            controls: Controls::default(),
            paused: None,
            helps: false,
            since: Instant::now(),
            screen,
            cluster,
        })
    }

    pub(super) async fn run(
        mut self,
        mut stop: Stop,
        length: Option<Duration>,
    ) -> Result<Outcome, String> {
        if !self.caches.synced(&self.cluster, SYNC_MAX, &mut self.screen, &mut stop).await? {
            return Ok(Outcome::Met);
        }
        self.screen.end();
        self.since = Instant::now();
        let followed = self.follow(&mut stop, length.map(|length| self.since + length)).await?;
        let text = match self.options.output {
            Format::Text => self.view().text()?,
            Format::Json => self.view().json()?,
        };
        written(followed.and_then(|()| {
            if let Some(live) = &mut self.live {
                return live.end(&text);
            }
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        }))
    }

    /// Counts until stopped. The inner error is that of the output.
    async fn follow(
        &mut self,
        stop: &mut Stop,
        deadline: Option<Instant>,
    ) -> Result<io::Result<()>, String> {
        let mut refresh = interval(REFRESH);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut events = std::mem::take(&mut self.events).ready_chunks(BATCH);
        let mut keys = self.live.as_ref().and_then(|_| Keys::open());
        loop {
            tokio::select! {
                biased;
                () = stop.requested() => return Ok(Ok(())),
                () = at(deadline) => return Ok(Ok(())),
                input = keys::next(keys.as_mut()) => if let Some(keys) = &mut keys {
                    match self.input(input, keys).await? {
                        Ok(false) => {}
                        Ok(true) => return Ok(Ok(())),
                        Err(error) => return Ok(Err(error)),
                    }
                },
                Some((place, report)) = self.caches.errors.recv() => self.note(place, &report),
                _ = refresh.tick() => {
                    keys.iter().for_each(Keys::check);
                    // Drawing again would take away what the user has selected.
                    if !self.controls.paused && let Err(error) = self.draw()? {
                        return Ok(Err(error));
                    }
                }
                Some(batch) = events.next() => {
                    for (place, event) in batch {
                        self.count(place, event)?;
                    }
                }
            }
        }
    }

    fn count(&mut self, place: usize, event: Event<Untyped>) -> Result<(), String> {
        let watched = Watched { place, of: self.caches.all[place].of.clone() };
        let Some(record) = Record::new(event, &watched, Timestamp::now()) else { return Ok(()) };
        // Objects that existed at the start have not changed.
        if record.initial {
            return Ok(());
        }
        let bytes = record.object.to_json().map_or(0, |json| json.len() as u64);
        let changed = changed(&record)?;
        let at = self.since.elapsed();
        self.counts.count((place, record.key()), record.happened, bytes, changed, at);
        Ok(())
    }

    /// Reports an error. A live view has its own line for it.
    fn note(&mut self, place: usize, report: &ErrorReport) {
        if self.live.is_none() {
            let asked = plain::Asked {
                of: &self.caches.all[place].of,
                namespaces: &self.caches.namespaces,
                place: &self.cluster.place,
                during: Some(&report.during),
            };
            let problem = plain::problem(&report.error, &asked);
            let name = self.caches.all[place].of.name();
            self.screen.note(&format!("{name}: {problem}; {}", report.next));
        }
    }

    fn view(&self) -> View<'_> {
        let types = self.caches.all.iter();
        View {
            counts: &self.counts,
            types: types.map(|it| (it.of.clone(), it.informer.lister().len())).collect(),
            time: self.since.elapsed(),
            limit: self.options.limit,
            filter: self.controls.filter.as_ref(),
            width: self.live.as_ref().map(|_| Live::columns()),
        }
    }
}

/// Returns the paths that an update changed, without noise.
fn changed(record: &Record) -> Result<Vec<String>, String> {
    if record.happened != Happened::Update {
        return Ok(Vec::new());
    }
    let Some(old) = record.old_value().transpose()? else { return Ok(Vec::new()) };
    let new = record.value()?;
    let diff = diff(old, new);
    Ok(diff.changes().iter().map(crate::diff::Change::path).collect())
}

async fn chosen(
    options: &Options,
    cluster: &Cluster,
    screen: &mut Screen,
) -> Result<Vec<Chosen>, String> {
    if !options.types.is_empty() {
        return choose(&options.types.join(","), cluster, PATIENCE).await;
    }
    let types = types(cluster, PATIENCE).await?;
    let namespaces = options.scope.namespaces(cluster)?;
    let mut there = Vec::new();
    for of in USUAL.iter().filter_map(|word| types.find(word).ok()).flatten() {
        if may_list(cluster, of, &namespaces).await {
            there.push(of.name());
        } else {
            screen.note(&format!("without {}, which you may not list", of.name()));
        }
    }
    if there.is_empty() {
        return Err("you may list none of the types that usually change most\n\
                    name those that you may, or a namespace with -n NAMESPACE"
            .to_owned());
    }
    choose(&there.join(","), cluster, PATIENCE).await
}

/// Returns whether listing is not forbidden. Any other problem may have passed by the time the type
/// is watched.
async fn may_list(cluster: &Cluster, of: &Type, namespaces: &[String]) -> bool {
    let namespace = namespaces.first().map(String::as_str).filter(|_| of.namespaced);
    let path = format!("{}?limit=1", DynamicObject::url_path(&of.resource(), namespace));
    let Ok(request) = Request::get(path).body(Vec::new()) else { return true };
    let listed = cluster.client.request::<Value>(request).await;
    !matches!(listed, Err(kube_client::Error::Api(status)) if status.code == 403)
}
