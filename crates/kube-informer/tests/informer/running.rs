//! An informer of config maps, and handlers that check their events.

use std::collections::BTreeMap;
use std::sync::Arc;

use embedded_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{
    Event, FinalState, FromSource, InformerBuilder, ListWatch, Registration, SharedInformer,
};

use parking_lot::Mutex;

use super::scene::{Errors, maps_of};

type Builder = InformerBuilder<ConfigMap, FromSource>;

/// An informer, and its reported errors.
pub(crate) struct Running {
    pub(crate) server: ApiServer,
    pub(crate) informer: SharedInformer<ConfigMap>,
    pub(crate) errors: Errors,
}

impl Running {
    /// Builds the informer without starting it.
    pub(crate) fn new(server: ApiServer) -> Self {
        let source = maps_of(&server);
        Self::from_source(server, source, |builder| builder)
    }

    pub(crate) fn from_source(
        server: ApiServer,
        source: impl ListWatch,
        options: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let errors = Errors::default();
        let builder = SharedInformer::from_source(source).seed(1).on_error(errors.recorder());
        Self { server, informer: options(builder).build(), errors }
    }

    /// Builds and starts the informer, and waits for its sync.
    pub(crate) async fn synced(server: ApiServer) -> Self {
        Self::new(server).sync().await
    }

    pub(crate) async fn sync(self) -> Self {
        self.informer.start();
        self.informer.wait_for_sync().await.expect("all is well");
        self
    }

    /// Returns the names in the cache, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            self.informer.lister().list().iter().map(|object| object.name().to_owned()).collect();
        names.sort();
        names
    }

    pub(crate) fn state(&self) -> &'static str {
        self.informer.state().as_str()
    }
}

/// A handler that records its events, and inconsistencies among them: I10, I11, I16.
#[derive(Clone, Default)]
pub(crate) struct Book(Arc<Mutex<Pages>>);

#[derive(Default)]
struct Pages {
    /// The objects that its events add up to: versions by name.
    objects: BTreeMap<String, String>,
    /// The newest version that it has received of each object.
    newest: BTreeMap<String, u64>,
    log: Vec<String>,
    wrong: Vec<String>,
    /// Objects that it received in an older state than before: I2.
    older: Vec<String>,
}

impl Book {
    pub(crate) fn keep(informer: &SharedInformer<ConfigMap>) -> Self {
        Self::keep_registered(informer).0
    }

    pub(crate) fn keep_registered(informer: &SharedInformer<ConfigMap>) -> (Self, Registration) {
        let book = Self::default();
        let registration = informer.handler().for_each(book.writer());
        (book, registration)
    }

    pub(crate) fn writer(&self) -> impl FnMut(Event<ConfigMap>) + Send + 'static {
        let book = self.clone();
        move |event| book.take(&event)
    }

    pub(crate) fn take(&self, event: &Event<ConfigMap>) {
        let mut pages = self.0.lock();
        let line = line(event);
        if !pages.believes(event) {
            pages.wrong.push(line.clone());
        }
        if !pages.goes_on(event) {
            pages.older.push(line.clone());
        }
        pages.log.push(line);
    }

    /// The events since the last call: `add a`, `add a initially`, `update a`,
    /// `repeat a`, `delete a`, `miss a` (a delete that was missed), `resync a`, `synced`.
    pub(crate) fn news(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().log)
    }

    /// Objects that it received in an older state than before.
    pub(crate) fn older(&self) -> Vec<String> {
        self.0.lock().older.clone()
    }

    /// Returns whether its events were always consistent, and now add up to the informer's content.
    pub(crate) fn is_right(&self, informer: &SharedInformer<ConfigMap>) -> bool {
        let pages = self.0.lock();
        assert_eq!(pages.wrong, [""; 0], "these do not add up");
        let list = informer.lister().list();
        list.len() == pages.objects.len()
            && list.iter().all(|object| {
                pages
                    .objects
                    .get(object.name())
                    .is_some_and(|told| *object.resource_version() == **told)
            })
    }
}

impl Pages {
    /// Returns whether no state is older than an earlier one; a missed delete has the last one.
    fn goes_on(&mut self, event: &Event<ConfigMap>) -> bool {
        let Some(object) = event.object() else { return true };
        let version: u64 = object.resource_version().as_str().parse().expect("a number");
        let newest = self.newest.entry(object.name().to_owned()).or_default();
        let goes_on = version >= *newest;
        *newest = version.max(*newest);
        goes_on
    }

    /// Applies an event, and returns whether it is consistent with the earlier ones.
    fn believes(&mut self, event: &Event<ConfigMap>) -> bool {
        let Some(object) = event.object() else { return true };
        let (name, version) = (object.name().to_owned(), object.resource_version().to_string());
        let known = self.objects.get(&name).cloned();
        match event {
            Event::Added { .. } => {
                self.objects.insert(name, version);
                known.is_none()
            }
            Event::Updated { old, .. } => {
                self.objects.insert(name, version);
                known.is_some_and(|known| *old.resource_version() == *known)
            }
            Event::Deleted(_) => self.objects.remove(&name).is_some(),
            Event::Resynced(_) => known == Some(version),
            Event::Synced => true,
        }
    }
}

fn line(event: &Event<ConfigMap>) -> String {
    let what = match event {
        Event::Added { initial: true, object } => {
            return format!("add {} initially", object.name());
        }
        Event::Added { .. } => "add",
        Event::Updated { old, new } if old.same_version(new) => "repeat",
        Event::Updated { .. } => "update",
        Event::Deleted(deleted) if deleted.final_state == FinalState::Unknown => "miss",
        Event::Deleted(_) => "delete",
        Event::Resynced(_) => "resync",
        Event::Synced => return "synced".to_owned(),
    };
    format!("{what} {}", event.object().map_or("", |object| object.name()))
}
