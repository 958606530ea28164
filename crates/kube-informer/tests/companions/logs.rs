//! Trouble with events is logged when it begins and when it is over, and not once for each event.

use std::fmt::{self, Write as _};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use embedded_apiserver::{Denial, Verb};
use k8s_openapi::api::core::v1::ObjectReference;
use kube_informer::{EventType, Recorder};
use parking_lot::Mutex;
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

use crate::scene::{create, server};

/// With one subscriber only, tracing would remember for all threads what that of another test does not want.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Log::default()));

/// What is logged from INFO on, as `LEVEL message`.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Whether there are as many lines as these, and each begins like its own.
    fn has(&self, beginnings: &[&str]) -> bool {
        let lines = std::mem::take(&mut *self.0.lock());
        let fits = lines.iter().zip(beginnings).all(|(line, start)| line.starts_with(start));
        lines.len() == beginnings.len() && fits || panic!("{lines:#?}")
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("kube_informer")
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut message = Message(format!("{} ", event.metadata().level()));
        event.record(&mut message);
        self.0.lock().push(message.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

fn watching() -> (Log, tracing::subscriber::DefaultGuard) {
    LazyLock::force(&SECOND);
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    (log, guard)
}

#[tokio::test(start_paused = true)]
async fn outage_is_logged_when_it_begins_and_when_it_is_over() {
    let (log, _guard) = watching();
    let server = server();
    let map = create(&server, "a");
    let recorder = Recorder::new(server.client(), "example.com/controller").unwrap();
    for _ in 0..2 {
        server.refuse_connections();
        for nth in 0..20 {
            recorder.event(&map, EventType::Normal, &format!("R{nth}"), "Start", "");
        }
        sleep(Duration::from_secs(60)).await;
        assert!(log.has(&["WARN events wait, and are lost after 2 minutes: cannot "]));
        server.accept_connections();
        recorder.flush().await;
        assert!(log.has(&["INFO events are written again"]));
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_are_logged_once() {
    let (log, _guard) = watching();
    let server = server();
    let map = create(&server, "a");
    server.access().deny(Denial::verbs([Verb::Create]).user("jane"));
    let recorder = Recorder::new(server.client_as("jane"), "example.com/controller").unwrap();
    for nth in 0..10 {
        recorder.event(&map, EventType::Normal, &format!("R{nth}"), "Start", "");
    }
    recorder.flush().await;
    assert!(log.has(&["WARN an event is lost"]));
    for _ in 0..10 {
        recorder.event(ObjectReference::default(), EventType::Normal, "Up", "Start", "");
    }
    recorder.flush().await;
    assert!(log.has(&["WARN an event is not recorded: an event is about an object"]));
}
