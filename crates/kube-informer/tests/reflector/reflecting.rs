//! A running reflector, and a record of its writes.

use std::sync::Arc;

use kube_informer::reflector::ReflectorStore;
use kube_informer::{Error, ListWatch, Object, Reflector, ResourceVersion, Result, State};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::scene::{Errors, settle};

/// A store that records its calls: `replace a b @7`, `add c @8`, `bookmark @9`.
#[derive(Clone, Default)]
pub(crate) struct Written(Arc<Mutex<Vec<String>>>);

impl Written {
    fn write(&self, text: String) {
        self.0.lock().push(text);
    }

    fn object(&self, what: &str, object: &Object) {
        self.write(format!("{what} {} @{}", object.name(), object.resource_version()));
    }
}

impl ReflectorStore for Written {
    fn replace(
        &mut self,
        objects: Vec<Object>,
        unreadable: Vec<Error>,
        version: ResourceVersion,
    ) -> Result<()> {
        let mut names: Vec<_> =
            objects.iter().map(|object| format!("{} ", object.name())).collect();
        names.sort();
        let bad = if unreadable.is_empty() { "" } else { "and unreadable " };
        self.write(format!("replace {}{bad}@{version}", names.concat()));
        Ok(())
    }
    fn add(&mut self, object: Object) -> Result<()> {
        self.object("add", &object);
        Ok(())
    }
    fn update(&mut self, object: Object) -> Result<()> {
        self.object("update", &object);
        Ok(())
    }
    fn delete(&mut self, object: Object) -> Result<()> {
        self.object("delete", &object);
        Ok(())
    }
    fn bookmark(&mut self, version: ResourceVersion) -> Result<()> {
        self.write(format!("bookmark @{version}"));
        Ok(())
    }
}

/// A running reflector.
pub(crate) struct Reflecting {
    pub(crate) errors: Errors,
    states: Arc<Mutex<Vec<&'static str>>>,
    written: Written,
    stop: CancellationToken,
    task: JoinHandle<Written>,
}

pub(crate) fn reflect(source: impl ListWatch) -> Reflecting {
    reflect_with(source, |reflector| reflector)
}

pub(crate) fn reflect_with(
    source: impl ListWatch,
    options: impl FnOnce(Reflector<Written>) -> Reflector<Written>,
) -> Reflecting {
    let (errors, written, stop) = (Errors::default(), Written::default(), CancellationToken::new());
    let states = Arc::new(Mutex::new(Vec::new()));
    let seen = states.clone();
    let reflector = Reflector::new(source, written.clone())
        .seed(1)
        .on_error(errors.recorder())
        .on_state(move |state: State| seen.lock().push(state.as_str()));
    let stopped = stop.clone().cancelled_owned();
    let task = tokio::spawn(options(reflector).run_until(stopped));
    Reflecting { errors, states, written, stop, task }
}

impl Reflecting {
    pub(crate) fn written(&self) -> Vec<String> {
        self.written.0.lock().clone()
    }

    /// Returns the writes since the last call.
    pub(crate) fn news(&self) -> Vec<String> {
        std::mem::take(&mut self.written.0.lock())
    }

    /// Returns the states since the last call.
    pub(crate) fn states(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.states.lock())
    }

    /// Stops it at once, whatever it is doing.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        settle().await;
        assert!(self.task.is_finished(), "it does not stop");
    }
}
