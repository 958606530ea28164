//! Log lines for operators.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tracing::Dispatch;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;

/// A second subscriber. With only one, tracing asks just the first thread that reaches a line whether it is
/// enabled, and caches a "no" for all threads.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Logs::default()));

/// Everything that is logged on this thread, line by line.
#[derive(Clone, Default)]
pub(super) struct Logs(Arc<Mutex<Vec<String>>>);

impl Logs {
    pub(super) fn capture() -> (Self, DefaultGuard) {
        LazyLock::force(&SECOND);
        let logs = Self::default();
        (logs.clone(), tracing::subscriber::set_default(logs))
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

struct Line(String);
impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl tracing::Subscriber for Logs {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("kube_informer")
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(format!("{} ", event.metadata().level()));
        event.record(&mut line);
        self.0.lock().push(line.0);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
