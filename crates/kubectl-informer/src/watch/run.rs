//! The watch itself: turns the events of informers into lines.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, SelectAll, select_all};
use jiff::Timestamp;
use kube_informer::{
    ErrorReport, Event, EventStream, Next, SharedInformer, SharedInformerFactory, Untyped,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::Options;
use super::conditions::Conditions;
use super::tally::Tally;
use crate::chosen::{Chosen, PATIENCE, choose};
use crate::connect::Cluster;
use crate::discovery::Type;
use crate::format::{Columned, Extras, Printer};
use crate::outcome::Outcome;
use crate::plain::{self, Asked};
use crate::record::{Record, Watched};
use crate::screen::{Screen, unread};
use crate::signals::Stop;
use crate::status::{self, Context, Informed};

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
    informer: SharedInformer<Untyped>,
    /// The initial objects, until the list is complete.
    initial: Option<Vec<Record>>,
}

/// A running watch.
pub(super) struct Watch {
    options: Options,
    namespaces: Vec<String>,
    sources: Vec<Source>,
    events: SelectAll<BoxStream<'static, (usize, Event<Untyped>)>>,
    errors: mpsc::UnboundedReceiver<(usize, ErrorReport)>,
    printer: Printer,
    screen: Screen,
    tally: Tally,
    /// Whether a selector or names restrict the objects.
    selects: bool,
    conditions: Conditions,
    factory: SharedInformerFactory,
    cluster: Cluster,
}

impl Watch {
    pub(super) async fn start(options: Options) -> Result<Self, String> {
        let colour = options.color.on(&io::stderr());
        let mut screen = Screen::new(true, colour);
        // `--until` never falls back to the demo cluster.
        let cluster = if options.until.is_empty() {
            Cluster::connect_or_embedded(&options.connect).await?
        } else {
            Cluster::connect(&options.connect).await?
        };
        if let Some(notice) = cluster.notice() {
            screen.note(&notice);
        }
        screen.status(status::connecting(&cluster.place));
        let namespaces = options.scope.namespaces(&cluster)?;
        let chosen = choose(&options.types, &cluster, patience(&options)).await?;
        let printer = printer(&options, &cluster, &chosen, &namespaces).await;
        let named = chosen.iter().any(|each| each.name.is_some());
        if chosen.iter().any(|each| each.of.namespaced) {
            for namespace in options.scope.missing(&cluster).await {
                screen.note(&format!("there is no namespace {namespace}, so far"));
            }
        }

        let (tell, errors) = mpsc::unbounded_channel();
        // Objects are printed as the server sends them, including fields that this client does not
        // know.
        let factory =
            SharedInformerFactory::builder(cluster.client.clone()).protobuf(false).build();
        let mut sources = Vec::new();
        let mut events = Vec::new();
        for (place, each) in chosen.into_iter().enumerate() {
            let tell = tell.clone();
            let informer = each
                .informer(&factory, &options.scope, &namespaces)
                .on_error(move |report| drop(tell.send((place, report.clone()))))
                .build()
                .cast::<Untyped>();
            events.push(stream(&informer, &options).map(move |event| (place, event)).boxed());
            sources.push(Source { of: each.of, informer, initial: Some(Vec::new()) });
        }
        factory.start();
        Ok(Self {
            selects: options.scope.selects() || named,
            conditions: Conditions::new(&options.until, options.any),
            options,
            namespaces,
            sources,
            events: select_all(events),
            errors,
            printer,
            screen,
            tally: Tally::new(),
            factory,
            cluster,
        })
    }

    pub(super) async fn run(mut self, mut stop: Stop) -> Result<Outcome, String> {
        let ended = self.follow(&mut stop).await;
        self.screen.end();
        let ended = ended?;
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
        loop {
            let ended = tokio::select! {
                biased;
                () = stop.requested() => Some(Ended::Interrupted),
                () = at(deadline) => Some(Ended::TimedOut),
                () = &mut unread => Some(Ended::NobodyReads),
                Some((place, report)) = self.errors.recv() => self.error(place, &report)?,
                _ = ticks.tick() => { self.look(); None }
                Some(batch) = events.next() => match self.batch(batch) {
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => Some(Ended::NobodyReads),
                    Err(error) => return Err(format!("cannot write to standard output: {error}")),
                    Ok(ended) => ended,
                },
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
            for record in &records {
                self.observe(record);
                self.show(record)?;
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
        match (Record::new(event, &watched, now), &mut source.initial) {
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
        match self.printer.print(record) {
            Ok(Some(text)) => {
                self.screen.print(&text)?;
                self.tally.count(record.happened);
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

    /// Returns whether the condition of `--count` or `--until` is met. Until all types are listed,
    /// there may be more objects, which do not meet it yet.
    fn is_met(&self) -> bool {
        let waiting = self.options.count.is_some() || !self.conditions.is_empty();
        let whole = self.options.count.is_some()
            || self.options.any
            || self.sources.iter().all(|source| source.initial.is_none());
        waiting && whole && self.missing().is_none()
    }

    /// If there is nothing to show, tells the user why.
    fn say_if_empty(&mut self) {
        let done = self.sources.iter().all(|source| source.initial.is_none());
        if !done || self.tally.initial > 0 {
            return;
        }
        let names: Vec<_> = self.sources.iter().map(|source| source.of.name()).collect();
        let names = names.join(", ");
        let place = if self.sources.iter().any(|source| source.of.namespaced) {
            plain::within_namespaces(&self.namespaces)
        } else {
            String::new()
        };
        let objects: usize = self.sources.iter().map(|source| source.informer.lister().len()).sum();
        self.screen.note(&match objects {
            0 if self.selects => format!("no {names}{place} that are selected yet: waiting"),
            0 => format!("no {names}{place} yet: waiting"),
            _ => format!("none of the {objects} {names}{place} has such a name yet: waiting"),
        });
    }

    fn error(&mut self, place: usize, report: &ErrorReport) -> Result<Option<Ended>, String> {
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
    fn look(&mut self) {
        let sources = &self.sources;
        let over = |place: &usize| sources[*place].informer.is_live();
        let over: Vec<_> = self.tally.troubled.extract_if(.., |place| over(place)).collect();
        if !self.screen.has_status() {
            for place in over {
                self.screen.note(&format!("{}: watching on", self.sources[place].of.name()));
            }
            return;
        }
        let informers: Vec<_> = self.sources.iter().map(Source::informed).collect();
        let line = status::line(
            &informers,
            &Context {
                place: &self.cluster.place,
                namespaces: &self.namespaces,
                reconnects: self.tally.reconnects,
                last: self.tally.last.as_ref().map(|(text, at)| (text.as_str(), *at)),
                started: self.tally.started,
                waiting: self.conditions.progress(),
            },
        );
        self.screen.status(line);
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
    fn informed(&self) -> Informed<'_> {
        Informed { of: &self.of, status: self.informer.status() }
    }
}

/// Formats a duration as the user gave it: `300 ms`, `90 s`.
fn exact(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        millis => format!("{} s", millis / 1000),
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn stream(informer: &SharedInformer<Untyped>, options: &Options) -> EventStream<Untyped> {
    let mut handler = informer.handler();
    handler = match options.resync {
        Some(period) => handler.resync(period),
        None => handler.only_changes(),
    };
    if let Some(name) = options.name.clone() {
        handler = handler.filter(move |object| name.is_match(object.name()));
    }
    if let Some(exclude) = options.exclude.clone() {
        handler = handler.filter(move |object| !exclude.is_match(object.name()));
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
        diff: options.diff || options.path.is_some(),
        path: options.path.clone(),
        width: columns_of_terminal(),
        one_namespace: namespaces.len() == 1,
    };
    Printer::new(options.output.clone(), types, extras)
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_there_is_comes_without_waiting() {
        let command = Options::augment_args(Command::new("watch"));
        let arguments = command.get_matches_from(["watch", "pods", "--embedded"]);
        let begin = Instant::now();
        let mut watch = Watch::start(Options::from_arg_matches(&arguments).unwrap()).await.unwrap();
        let mut there = 0;
        while let Some((_, Event::Added { .. })) = watch.events.next().await {
            there += 1;
        }
        assert_ne!(there, 0);
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }
}
