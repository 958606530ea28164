//! Handlers of every kind, which record their events.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use kube_informer::{
    Deleted, Event, EventHandler, EventStream, FinalState, HandlerBuilder, Object, Registration,
    RegistrationGuard, SharedInformer, Untyped,
};

use super::fold::{Fold, Wants, What};
use super::history::Told;
use super::informers::Probe;

/// An event of a handler, and the state of the cache at that moment.
pub(crate) struct Entry {
    pub(crate) handler: usize,
    pub(crate) what: What,
    /// The version of the object in the cache, and that of the cache itself.
    pub(crate) cached: Option<u64>,
    pub(crate) version: u64,
}

pub(crate) type Log = Arc<Mutex<Vec<Entry>>>;

/// Records every event.
#[derive(Clone)]
pub(crate) struct Recorder {
    pub(crate) id: usize,
    pub(crate) log: Log,
    pub(crate) probe: Probe,
}

impl Recorder {
    pub(crate) fn note(&self, event: &Event) {
        let what = match event {
            Event::Added { object, initial } => {
                What::Added { told: Told::of(object), initial: *initial }
            }
            Event::Updated { old, new } => What::Updated { old: Told::of(old), new: Told::of(new) },
            Event::Deleted(gone) => {
                let known = gone.final_state == FinalState::Known;
                What::Deleted { told: Told::of(&gone.object), known }
            }
            Event::Resynced(object) => What::Resynced(Told::of(object)),
            Event::Synced => What::Synced,
        };
        let lister = self.probe.lock().expect("nobody panics with it").clone();
        let cached = event.object().zip(lister.as_ref());
        let cached = cached.and_then(|(object, lister)| lister.get(object.key()));
        let number = |version: &str| version.parse().unwrap_or_default();
        let cached = cached.map(|object| number(object.resource_version().as_str()));
        let version = lister.map_or(0, |lister| number(lister.resource_version().as_str()));
        let entry = Entry { handler: self.id, what, cached, version };
        self.log.lock().expect("nobody panics with it").push(entry);
    }
}

impl EventHandler<Untyped> for Recorder {
    fn on_add(&mut self, object: &Object, initial: bool) {
        self.note(&Event::Added { object: object.clone(), initial });
    }
    fn on_update(&mut self, old: &Object, new: &Object) {
        self.note(&Event::Updated { old: old.clone(), new: new.clone() });
    }
    fn on_delete(&mut self, deleted: &Deleted) {
        self.note(&Event::Deleted(deleted.clone()));
    }
    fn on_resync(&mut self, object: &Object) {
        self.note(&Event::Resynced(object.clone()));
    }
    fn on_synced(&mut self) {
        self.note(&Event::Synced);
    }
}

/// A filter, implemented twice: on objects, and on recorded events.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Filter {
    /// By a label, which can change.
    Web,
    /// By the name, which cannot change.
    Name(char),
}

impl Filter {
    pub(crate) fn passes(self, name: &str, app: Option<&str>) -> bool {
        match self {
            Filter::Web => app == Some("web"),
            Filter::Name(end) => name.ends_with(end),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Style {
    Closures { knows_resyncs: bool },
    Trait,
    ForEach,
    Stream,
}

enum Seat {
    Handler(Registration),
    Guarded(RegistrationGuard),
    Stream {
        stream: EventStream,
        recorder: Recorder,
        /// The number of steps for which it is not polled.
        idle: u32,
    },
}

pub(crate) struct Handler {
    pub(crate) id: usize,
    /// The position of its informer.
    pub(crate) informer: usize,
    pub(crate) filter: Option<Filter>,
    pub(crate) resync: Option<Duration>,
    pub(crate) wants: Wants,
    pub(crate) fold: Fold,
    style: Style,
    seat: Option<Seat>,
}

impl Handler {
    /// Registers a random handler.
    pub(crate) fn join(
        rng: &mut fastrand::Rng,
        informer: usize,
        handle: &SharedInformer,
        recorder: Recorder,
        style: Option<u8>,
    ) -> Self {
        let knows_resyncs = rng.bool();
        let style = match style.unwrap_or_else(|| rng.u8(..4)) {
            0 => Style::Closures { knows_resyncs },
            1 => Style::Trait,
            2 => Style::ForEach,
            _ => Style::Stream,
        };
        let filter = match rng.u8(..6) {
            0 => Some(Filter::Web),
            1 => Some(Filter::Name(['a', 'b'][rng.usize(..2)])),
            _ => None,
        };
        let resync = (rng.u8(..4) == 0).then(|| Duration::from_secs(rng.u64(1..90)));
        let only_changes = rng.u8(..4) == 0;
        let mut builder = handle.handler();
        if let Some(filter) = filter {
            builder = builder
                .filter(move |object| filter.passes(object.name(), object.labels().get("app")));
        }
        if let Some(period) = resync {
            builder = builder.resync(period);
        }
        if only_changes {
            builder = builder.only_changes();
        }
        let wants = Wants {
            resync: resync.is_some(),
            only_changes,
            filtered: filter.is_some(),
            knows_resyncs: !matches!(style, Style::Closures { knows_resyncs: false }),
        };
        let (id, fold) = (recorder.id, Fold::new(wants));
        let seat = Some(sit(builder, style, recorder, rng.bool()));
        Self { id, informer, filter, resync, wants, fold, style, seat }
    }

    pub(crate) fn describe(&self) -> String {
        let Self { id, informer, filter, resync, style, wants, .. } = self;
        let only_changes = wants.only_changes;
        format!(
            "handler {id} of informer {informer}: {style:?} {filter:?} {resync:?} only_changes={only_changes}"
        )
    }

    pub(crate) fn registration(&self) -> &Registration {
        match self.seat.as_ref().expect("it has not left") {
            Seat::Handler(registration) => registration,
            Seat::Guarded(guard) => guard,
            Seat::Stream { stream, .. } => stream.registration(),
        }
    }

    /// Removes the handler. It is not called any more from the moment that this begins.
    pub(crate) async fn leave(mut self) {
        match self.seat.take() {
            Some(Seat::Handler(registration)) => registration.remove().await,
            Some(Seat::Guarded(guard)) => drop(guard),
            Some(Seat::Stream { stream, .. }) => drop(stream),
            None => {}
        }
    }

    /// If it is a stream, leaves it unpolled for this many steps.
    pub(crate) fn pause(&mut self, steps: u32) {
        if let Some(Seat::Stream { idle, .. }) = &mut self.seat {
            *idle = steps;
        }
    }

    /// Reads the queued events of a stream, unless it is paused; with `always`, even then.
    pub(crate) async fn poll(&mut self, always: bool) {
        let Some(Seat::Stream { stream, recorder, idle }) = &mut self.seat else { return };
        if *idle > 0 && !always {
            *idle -= 1;
            return;
        }
        loop {
            match stream.next().now_or_never() {
                Some(Some(event)) => recorder.note(&event),
                // The stream yields to other tasks now and then.
                None if stream.registration().backlog() > 0 => tokio::task::yield_now().await,
                Some(None) | None => return,
            }
        }
    }
}

fn sit(builder: HandlerBuilder, style: Style, recorder: Recorder, guarded: bool) -> Seat {
    let registration = match style {
        Style::Closures { knows_resyncs } => closures(builder, &recorder, knows_resyncs),
        Style::Trait => builder.register(recorder),
        Style::ForEach => builder.for_each(move |event| recorder.note(&event)),
        Style::Stream => return Seat::Stream { stream: builder.stream(), recorder, idle: 0 },
    };
    if guarded { Seat::Guarded(registration.remove_on_drop()) } else { Seat::Handler(registration) }
}

fn closures(builder: HandlerBuilder, recorder: &Recorder, knows_resyncs: bool) -> Registration {
    let [mut add, mut update, mut delete, mut resync, mut synced] =
        std::array::from_fn(|_| recorder.clone());
    let callbacks = builder
        .on_add(move |object, initial| add.on_add(object, initial))
        .on_update(move |old, new| update.on_update(old, new))
        .on_delete(move |deleted| delete.on_delete(deleted))
        .on_synced(move || synced.on_synced());
    if knows_resyncs {
        callbacks.on_resync(move |object| resync.on_resync(object)).register()
    } else {
        callbacks.register()
    }
}
