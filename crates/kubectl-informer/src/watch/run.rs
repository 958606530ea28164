//! The watch itself: turns the events of informers into lines.

mod bookmarks;
mod commands;
mod press;
mod report;

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, SelectAll, select_all};
use jiff::Timestamp;
use kube_informer::{
    Event, EventStream, Registration, SharedInformer, SharedInformerFactory, Untyped,
};
use tokio::time::{MissedTickBehavior, interval};

use super::Options;
use super::conditions::Conditions;
use super::exec::{self, Exec};
use super::matches::{Matches, Names};
use super::tally::Tally;
use crate::caches::{self, Reports};
use crate::chosen::{Chosen, PATIENCE, choose};
use crate::connect::Cluster;
use crate::discovery::Type;
use crate::duration::at;
use crate::format::{Columned, Extras, Printer};
use crate::keys::{self, Controls, Keys};
use crate::metrics::Exporter;
use crate::outcome::Outcome;
use crate::record::{Record, Watched};
use crate::screen::{Screen, unread};
use crate::signals::Stop;
use crate::status;
use crate::ui::Ui;

/// How often the status line is updated. Its text changes at most once a second, but a new state
/// should be visible immediately.
const STATUS_EVERY: Duration = Duration::from_millis(200);

/// The minimum time limit for the server's first response.
const CONNECT_MIN: Duration = Duration::from_secs(5);

/// The maximum number of events to process before their output is shown.
const BATCH: usize = 256;

/// A type and its informer.
struct Source {
    of: Arc<Type>,
    /// The name of the object, if only one was chosen.
    name: Option<String>,
    informer: SharedInformer<Untyped>,
    registration: Registration,
    bookmark: Option<bookmarks::Bookmark>,
    /// The initial objects, until the list is complete.
    initial: Option<Vec<Record>>,
}

/// A running watch.
pub(super) struct Watch {
    options: Options,
    namespaces: Vec<String>,
    sources: Vec<Source>,
    events: SelectAll<BoxStream<'static, (usize, Event<Untyped>)>>,
    errors: Reports,
    printer: Printer,
    screen: Screen,
    tally: Tally,
    /// Whether a selector or names restrict the objects.
    selects: bool,
    names: Names,
    /// The objects that pass the filters by name, if there are any filters.
    matches: Option<Matches>,
    conditions: Conditions,
    exec: Option<Exec>,
    has_keys: bool,
    controls: Controls,
    /// The number of merged events before the pause.
    merged_before: u64,
    factory: SharedInformerFactory,
    _exporter: Option<Exporter>,
    cluster: Cluster,
    #[expect(dead_code, reason = "held, not read: the page is served as long as it exists")]
    ui: Option<Ui>,
}

impl Watch {
    pub(super) async fn start(mut options: Options) -> Result<Self, String> {
        if options.watch_events {
            options.output = options.output.of_watch_events()?;
        }
        let colour = options.color.on(&io::stderr());
        let mut screen = Screen::new(true, colour);
        let exporter = Exporter::start_if(options.metrics).await?;
        // `--until` never falls back to the demo cluster.
        let mut cluster = if options.until.is_empty() {
            Cluster::connect_or_embedded(&options.connect).await?
        } else {
            Cluster::connect(&options.connect).await?
        };
        if let Some(notice) = cluster.notice() {
            screen.note(&notice);
        }
        if let Some(exporter) = &exporter {
            exporter.measure(&mut cluster);
            screen.note(&exporter.notice());
        }
        screen.status(status::connecting(&cluster.place));
        let namespaces = options.scope.namespaces(&cluster)?;
        let (types, names) = options.subject()?;
        let chosen = choose(&types, &cluster, patience(&options)).await?;
        let printer = printer(&options, &cluster, &chosen, &namespaces).await;
        let single = chosen.iter().any(|each| each.name.is_some());
        if chosen.iter().any(|each| each.of.namespaced) {
            for namespace in options.scope.missing(&cluster).await {
                screen.note(&format!("there is no namespace {namespace}, so far"));
            }
        }

        let (reporter, errors) = caches::reports();
        // Objects are printed as the server sends them, including fields that this client does not
        // know.
        let factory =
            SharedInformerFactory::builder(cluster.client.clone()).protobuf(false).build();
        let mut sources = Vec::new();
        let mut events = Vec::new();
        for (place, each) in chosen.into_iter().enumerate() {
            let informer = each
                .informer(&factory, &options.scope, &namespaces)
                .on_error(reporter.of(place))
                .build()
                .cast::<Untyped>();
            let stream = stream(&informer, &options, &names);
            let (of, name, registration) = (each.of, each.name, stream.registration().clone());
            events.push(stream.map(move |event| (place, event)).boxed());
            let initial = Some(Vec::new());
            sources.push(Source { of, name, informer, registration, bookmark: None, initial });
        }
        if let Some(exporter) = &exporter {
            exporter.add(&factory);
        }
        factory.start();
        let ui = options.ui.serve(&factory, cluster.server()).await?;
        if let Some(ui) = &ui {
            screen.note(&ui.line());
        }
        Ok(Self {
            selects: options.scope.selects() || single,
            matches: (!names.is_empty()).then(|| Matches::new(sources.len())),
            names,
            conditions: Conditions::new(&options.until, options.any),
            exec: options.exec.as_deref().map(Exec::new),
            has_keys: false,
            controls: Controls::default(),
            merged_before: 0,
            options,
            namespaces,
            sources,
            events: select_all(events),
            errors,
            printer,
            screen,
            tally: Tally::new(),
            factory,
            _exporter: exporter,
            cluster,
            ui,
        })
    }

    pub(super) async fn run(mut self, mut stop: Stop) -> Result<Outcome, String> {
        let ended = self.follow(&mut stop).await;
        self.screen.end();
        let ended = ended?;
        self.finish(&mut stop, matches!(ended, Ended::Met)).await;
        if let Ended::Interrupted = ended {
            self.screen.note(&self.tally.summary());
        }
        self.factory.stop();
        let missing = self.missing().filter(|_| !matches!(ended, Ended::Met | Ended::NobodyReads));
        let Some(missing) = missing else { return Ok(Outcome::Met) };
        let time = self.tally.started.elapsed();
        let time = self.options.timeout.filter(|timeout| *timeout <= time).unwrap_or(time);
        self.screen.note(&format!("{missing}, within {}", exact(time)));
        Ok(Outcome::Unmet)
    }

    /// Describes the awaited condition that is not met.
    fn missing(&self) -> Option<String> {
        let shown = self.tally.shown();
        if let Some(count) = self.options.count.filter(|&count| shown < count) {
            return Some(format!("only {shown} of {count} events"));
        }
        self.conditions.unmet().map(|unmet| format!("not met: {unmet}"))
    }

    async fn follow(&mut self, stop: &mut Stop) -> Result<Ended, String> {
        let deadline = self.options.timeout.map(|timeout| self.tally.started + timeout);
        let mut ticks = interval(STATUS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut events = std::mem::take(&mut self.events).ready_chunks(BATCH);
        let mut unread = std::pin::pin!(unread());
        // Opened only now, because a credential plugin may have asked the user for something.
        let mut keys = Keys::open().filter(|_| self.screen.has_status());
        self.has_keys = keys.is_some();
        loop {
            let ended = tokio::select! {
                biased;
                () = stop.requested() => Some(Ended::Interrupted),
                () = at(deadline) => Some(Ended::TimedOut),
                () = &mut unread => Some(Ended::NobodyReads),
                input = keys::next(keys.as_mut()) => match &mut keys {
                    Some(keys) => self.input(input, keys).await,
                    None => None,
                },
                Some((place, report)) = self.errors.recv() => self.error(place, &report)?,
                done = exec::ended(&mut self.exec) => end_of_output(self.take(done))?,
                _ = ticks.tick() => {
                    keys.iter().for_each(Keys::check);
                    self.look();
                    self.report_slow();
                    end_of_output(self.mark())?
                }
                Some(batch) = events.next(), if !self.holds_back() => {
                    let mut ended = None;
                    let printed = self.batch(batch).map(|met| ended = met);
                    end_of_output(printed)?.or(ended)
                }
            };
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    fn batch(&mut self, batch: Vec<(usize, Event<Untyped>)>) -> io::Result<Option<Ended>> {
        let now = Timestamp::now();
        let mut ended = None;
        self.printer.resize(columns_of_terminal());
        for (place, event) in batch {
            let records = self.take_in(place, event, now);
            self.printer.expect(&records);
            // Each record is dropped after it is shown, and its parsed object with it.
            for record in records {
                self.observe(&record);
                self.show(&record)?;
                // Without `--any`, every existing object counts, so that all of them are observed
                // first.
                if (self.options.count.is_some() || self.options.any) && self.is_met() {
                    ended = Some(Ended::Met);
                    break;
                }
            }
            ended = ended.or_else(|| self.is_met().then_some(Ended::Met));
            if ended.is_some() {
                break;
            }
        }
        self.screen.flush()?;
        Ok(ended)
    }

    /// Returns the records to show now. Initial objects wait until the list is complete, so that
    /// they can be shown in order.
    fn take_in(&mut self, place: usize, event: Event<Untyped>, now: Timestamp) -> Vec<Record> {
        let source = &mut self.sources[place];
        let watched = Watched { place, of: source.of.clone() };
        let record = Record::new(event, &watched, now);
        let passing = record.as_ref().filter(|record| self.controls.passes(record.object.name()));
        if let (Some(matches), Some(record)) = (&mut self.matches, passing) {
            matches.observe(record);
        }
        match (record, &mut source.initial) {
            (Some(record), Some(initial)) if record.initial => {
                initial.push(record);
                Vec::new()
            }
            (Some(record), _) => vec![record],
            (None, initial) => {
                let mut all = initial.take().unwrap_or_default();
                self.tally.initial += all.len();
                self.say_if_empty();
                if self.options.watch_only {
                    return Vec::new();
                }
                all.sort_by(|a, b| a.object.key().cmp(b.object.key()));
                all
            }
        }
    }

    fn show(&mut self, record: &Record) -> io::Result<()> {
        if !self.controls.passes(record.object.name()) {
            return Ok(());
        }
        match self.printer.print(record) {
            Ok(Some(text)) => {
                self.screen.print(&text)?;
                self.tally.count(record.happened);
                self.execute(record);
            }
            Ok(None) => {}
            // If one object cannot be shown, the others still can.
            Err(problem) => self.screen.note(&problem),
        }
        Ok(())
    }

    fn observe(&mut self, record: &Record) {
        // An object that cannot be read meets no condition.
        if let Err(problem) = self.conditions.observe(record) {
            self.screen.note(&problem);
        }
    }

    /// Returns whether objects are filtered by name, on the command line or with `/`.
    fn is_filtered(&self) -> bool {
        !self.names.is_empty() || self.controls.filter.is_some()
    }

    /// Returns whether the condition of `--count` or `--until` is met. Until all types are listed,
    /// there may be more objects, which do not meet it yet.
    fn is_met(&self) -> bool {
        let waiting = self.options.count.is_some() || !self.conditions.is_empty();
        let whole = self.options.count.is_some()
            || self.options.any
            || self.sources.iter().all(|source| source.initial.is_none());
        waiting && whole && self.missing().is_none()
    }
}

/// The reason for the end of a watch.
enum Ended {
    /// The awaited condition was met.
    Met,
    TimedOut,
    Interrupted,
    /// The reader of its output has gone.
    NobodyReads,
}

impl Source {
    fn is_empty(&self) -> bool {
        self.objects() == 0
    }

    fn objects(&self) -> usize {
        self.informer.lister().len()
    }

    /// Returns the name of the only object, with its type: `deployment.apps/web`.
    fn object(&self) -> String {
        format!("{}/{}", self.of.singular_name(), self.name.as_deref().unwrap_or_default())
    }
}

/// Formats a duration as the user gave it: `300 ms`, `90 s`.
fn exact(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        millis => format!("{} s", millis / 1000),
    }
}

/// Returns the end of the watch if its output has no reader any more. Other errors are for the user.
fn end_of_output(printed: io::Result<()>) -> Result<Option<Ended>, String> {
    match printed {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Some(Ended::NobodyReads)),
        Err(error) => Err(format!("cannot write to standard output: {error}")),
    }
}

fn stream(
    informer: &SharedInformer<Untyped>,
    options: &Options,
    names: &Names,
) -> EventStream<Untyped> {
    let mut handler = informer.handler();
    handler = match options.resync {
        Some(period) => handler.resync(period),
        None => handler.only_changes(),
    };
    if !names.is_empty() {
        let names = names.clone();
        handler = handler.filter(move |object| names.passes(object.name()));
    }
    handler.stream()
}

/// Returns the time limit for the server's first response. However short the requested timeout is,
/// it starts only after the tool has connected.
fn patience(options: &Options) -> Duration {
    options.timeout.map_or(PATIENCE, |timeout| timeout.clamp(CONNECT_MIN, PATIENCE))
}

/// Returns the current width of the terminal, if there is one.
fn columns_of_terminal() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0.into())
}

async fn printer(
    options: &Options,
    cluster: &Cluster,
    chosen: &[Chosen],
    namespaces: &[String],
) -> Printer {
    let mut types = Vec::new();
    for each in chosen {
        let columns = crate::columns::columns(&cluster.client, &each.of).await;
        types.push(Columned::new(&each.of, columns));
    }
    let extras = Extras {
        colour: options.color.on(&io::stdout()),
        headers: !options.no_headers,
        old: options.old,
        watch_events: options.watch_events,
        diff: options.diff || options.path.is_some(),
        path: options.path.clone(),
        labels: options.labels.clone(),
        width: columns_of_terminal(),
        one_namespace: namespaces.len() == 1,
    };
    Printer::new(options.output.clone(), types, extras)
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};
    use tokio::time::Instant;

    use super::*;
    use crate::record::PARSES;

    async fn start(arguments: &[&str]) -> Watch {
        let command = Options::augment_args(Command::new("watch"));
        let arguments = [&["watch", "--embedded"], arguments].concat();
        let options = Options::from_arg_matches(&command.get_matches_from(arguments)).unwrap();
        Watch::start(options).await.unwrap()
    }

    /// The conditions, the columns, their widths, the note and the difference all read the object.
    #[tokio::test(start_paused = true)]
    async fn each_state_is_parsed_once_per_event() {
        for (arguments, cost) in [
            (&["pods", "--until", "deleted"][..], 1),
            (&["pods", "--until", "deleted", "--diff"], 1),
            (&["pods", "--diff", "-o", "yaml", "--old"], 1),
            (&["pods", "-o", "json"], 0),
            (&["pods", "-o", "name"], 0),
        ] {
            let mut watch = start(arguments).await;
            let mut updates = 0;
            while updates < 20 {
                let (place, event) = watch.events.next().await.unwrap();
                let records = watch.take_in(place, event, Timestamp::now());
                PARSES.set(0);
                watch.printer.expect(&records);
                let mut states = 0;
                for record in &records {
                    watch.observe(record);
                    watch.printer.print(record).unwrap();
                    updates += usize::from(record.old.is_some());
                    states += 1 + usize::from(record.old.is_some());
                }
                assert_eq!(PARSES.get(), states * cost, "{arguments:?}");
            }
        }
    }

    /// Bookmarks are printed only when every event up to their version has been.
    #[tokio::test(start_paused = true)]
    async fn bookmarks_follow_all_events_up_to_their_version() {
        let mut watch = start(&["pods", "--watch-events"]).await;
        let mut bookmarks: Vec<u64> = Vec::new();
        let mut last = 0;
        while bookmarks.len() < 3 {
            let (place, event) = watch.events.next().await.unwrap();
            for record in watch.take_in(place, event, Timestamp::now()) {
                let version: u64 = record.version().parse().unwrap();
                assert!(bookmarks.last().is_none_or(|bookmark| *bookmark < version));
                last = last.max(version);
            }
            let text = watch.bookmarks().unwrap();
            assert!(text.lines().count() <= 1, "{text}");
            if let Some(line) = text.lines().next() {
                let event: serde_json::Value = serde_json::from_str(line).unwrap();
                let metadata = &event["object"]["metadata"];
                assert_eq!(
                    (&event["type"], &event["object"]["kind"]),
                    (&json("BOOKMARK"), &json("Pod"))
                );
                let end = &metadata["annotations"]["k8s.io/initial-events-end"];
                assert_eq!(end == "true", bookmarks.is_empty(), "{line}");
                let version = metadata["resourceVersion"].as_str().unwrap().parse().unwrap();
                assert!(version >= last, "{line}");
                bookmarks.push(version);
            }
        }
    }

    fn json(text: &str) -> serde_json::Value {
        serde_json::Value::from(text)
    }

    #[tokio::test(start_paused = true)]
    async fn what_there_is_comes_without_waiting() {
        let begin = Instant::now();
        let mut watch = start(&["pods"]).await;
        let mut there = 0;
        while let Some((_, Event::Added { .. })) = watch.events.next().await {
            there += 1;
        }
        assert_ne!(there, 0);
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }
}
