//! An error is logged when it begins, when it changes, and when it is over; not once per retry.

use std::fmt::{self, Write as _};
use std::sync::{Arc, LazyLock};

use embedded_apiserver::{ApiServer, Fault, Verb};
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

use super::reflecting::reflect;
use super::scene::{Listed, Maps, maps_of, seconds, server};

/// While there is one subscriber only, tracing asks just the thread that comes to a line first whether anybody wants
/// it, and remembers a no for all threads. So there are always two.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Log::default()));

/// What is logged from INFO on, as `LEVEL message`.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
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

fn watching(server: &ApiServer) -> (Log, tracing::subscriber::DefaultGuard) {
    LazyLock::force(&SECOND);
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    server.add("a", "1");
    (log, guard)
}

#[tokio::test(start_paused = true)]
async fn an_error_that_repeats_is_logged_once_and_so_are_its_change_and_its_end() {
    let server = server();
    let (log, _guard) = watching(&server);
    let reflecting = reflect(Listed(maps_of(&server)));
    seconds(2).await;
    assert_eq!(log.lines(), [""; 0], "all is well");

    server.faults().on(Verb::Watch).nth(1).times(20).inject(Fault::status(503));
    server.drop_watches();
    seconds(1500).await;
    let errors = reflecting.errors.len();
    assert_eq!(errors, 20, "it was tried again and again");
    let lines = log.lines();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(lines[0].starts_with("WARN configmaps: cannot watch configmaps"), "{}", lines[0]);
    assert!(lines[0].contains("503"), "{}", lines[0]);
    // Once more when something else is done about it.
    assert!(
        lines[1].starts_with("WARN") && lines[1].contains("polling with lists"),
        "{}",
        lines[1]
    );
    assert!(lines[2].starts_with("INFO configmaps: recovered from: "), "{}", lines[2]);

    server.faults().on(Verb::Watch).nth(1).times(2).inject(Fault::status(503));
    server.faults().on(Verb::Watch).nth(3).times(2).inject(Fault::status(403));
    server.drop_watches();
    seconds(1500).await;
    assert_eq!(reflecting.errors.len() - errors, 4);
    let lines = log.lines();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(lines[0].contains("503") && lines[1].contains("403"), "{lines:#?}");
    assert!(lines[2].starts_with("INFO configmaps: recovered"), "{}", lines[2]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_is_no_warning() {
    let server = server();
    let (log, _guard) = watching(&server);
    let reflecting = reflect(maps_of(&server));
    seconds(2).await;
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
    seconds(5).await;
    let lines = log.lines();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines.iter().all(|line| line.starts_with("INFO ")), "{lines:#?}");
    reflecting.stop().await;
}
