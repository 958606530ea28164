//! A standalone reflector, with a store that refuses some writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube_informer::list_watch::KubeListWatch;
use kube_informer::reflector::ReflectorStore;
use kube_informer::{Error, ErrorReport, Object, ObjectKey, Reflector, ResourceVersion, Result};
use tokio_util::sync::CancellationToken;

use super::history::{History, Place, Scope, Told};
use super::informers::{Errors, ListsOnly, PODS, differ};

/// The objects that the reflector has written, and those that the store refused.
struct Content {
    objects: BTreeMap<ObjectKey, Object>,
    /// The version of the content.
    version: Option<u64>,
    /// The last version that the store was offered, including refused writes.
    seen: Option<u64>,
    /// The keys of objects that were refused or could not be read.
    missed: BTreeSet<String>,
    /// Whether an object without a key could not be read.
    nameless: bool,
    is_watching: bool,
    /// The percentages of lists and of events that are refused.
    refuses: (u8, u8),
    rng: fastrand::Rng,
}

impl Content {
    fn refuse(&mut self, percent: u8, what: &str) -> Result<()> {
        if self.rng.u8(..100) < percent {
            return Err(Error::connection(format!("the model's store refuses {what}")));
        }
        Ok(())
    }

    fn is_at(&mut self, version: &ResourceVersion) {
        self.seen = version.as_str().parse().ok();
        self.version = self.seen;
    }

    /// Handles one event. A refused object is offered again only by a list.
    fn event(&mut self, object: Object, is_there: bool) -> Result<()> {
        self.is_at(object.resource_version());
        let (key, percent) = (object.key().clone(), self.refuses.1);
        if let Err(error) = self.refuse(percent, "an event") {
            self.missed.insert(key.as_str().to_owned());
            return Err(error);
        }
        self.missed.remove(key.as_str());
        if is_there {
            self.objects.insert(key, object);
        } else {
            self.objects.remove(&key);
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Store(Arc<Mutex<Content>>);

impl Store {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReflectorStore for Store {
    fn replace(
        &mut self,
        objects: Vec<Object>,
        unreadable: Vec<Error>,
        version: ResourceVersion,
    ) -> Result<()> {
        let mut content = self.content();
        let percent = content.refuses.0;
        content.seen = version.as_str().parse().ok();
        content.refuse(percent, "a list")?;
        content.is_at(&version);
        content.objects =
            objects.into_iter().map(|object| (object.key().clone(), object)).collect();
        let keys = unreadable.iter().map(|error| Some(error.key()?.as_str().to_owned()));
        content.nameless = keys.clone().any(|key| key.is_none());
        content.missed = keys.flatten().collect();
        Ok(())
    }

    fn add(&mut self, object: Object) -> Result<()> {
        self.content().event(object, true)
    }

    fn update(&mut self, object: Object) -> Result<()> {
        self.content().event(object, true)
    }

    fn delete(&mut self, object: Object) -> Result<()> {
        self.content().event(object, false)
    }

    fn bookmark(&mut self, version: ResourceVersion) -> Result<()> {
        self.content().is_at(&version);
        Ok(())
    }

    fn unreadable(&mut self, error: Error, version: ResourceVersion, deleted: bool) -> Result<()> {
        let mut content = self.content();
        if !version.is_empty() {
            content.is_at(&version);
        }
        match error.key() {
            Some(key) if deleted => _ = content.objects.remove(key),
            Some(key) => _ = content.missed.insert(key.as_str().to_owned()),
            None => content.nameless = true,
        }
        Ok(())
    }

    fn known(&self, key: &ObjectKey) -> Option<Object> {
        self.content().objects.get(key).cloned()
    }
}

/// All pods, in the model's own store.
pub(crate) struct Mirror {
    store: Store,
    reflector: Option<Reflector<Store>>,
    stop: CancellationToken,
    place: Place,
}

impl Mirror {
    const SCOPE: Scope = PODS;

    pub(crate) fn new(rng: &mut fastrand::Rng, source: KubeListWatch, errors: Errors) -> Self {
        let content = Content {
            objects: BTreeMap::new(),
            version: None,
            seen: None,
            missed: BTreeSet::new(),
            nameless: false,
            is_watching: false,
            refuses: (0, 0),
            rng: rng.fork(),
        };
        let store = Store(Arc::new(Mutex::new(content)));
        let reflector = if rng.bool() {
            Reflector::new(source, store.clone())
        } else {
            Reflector::new(ListsOnly(source), store.clone())
        };
        let seen = store.clone();
        let reflector = reflector
            .seed(rng.u64(..))
            .on_state(move |state| seen.content().is_watching = state.as_str() == "watching")
            .on_error(move |report: &ErrorReport| {
                errors.lock().expect("nobody panics with it").push(format!("mirror: {report}"));
            });
        let (reflector, stop) = (Some(reflector), CancellationToken::new());
        Self { store, reflector, stop, place: (0, 0) }
    }

    pub(crate) fn start(&mut self) {
        let stop = self.stop.clone().cancelled_owned();
        tokio::spawn(self.reflector.take().expect("it has not begun").run_until(stop));
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Sets the percentages of lists and of events that the store refuses.
    pub(crate) fn refuse(&self, lists: u8, events: u8) {
        self.store.content().refuses = (lists, events);
    }

    /// Returns the version that the reflector resumes from.
    pub(crate) fn last_seen(&self) -> Option<u64> {
        self.store.content().seen
    }

    pub(crate) fn is_watching(&self) -> bool {
        self.store.content().is_watching
    }

    /// Returns whether something was missed that only a list can repair.
    pub(crate) fn has_missed_something(&self) -> bool {
        let content = self.store.content();
        content.nameless || !content.missed.is_empty()
    }

    pub(crate) fn has_nameless_failures(&self) -> bool {
        self.store.content().nameless
    }

    /// Drops all histories before this one.
    pub(crate) fn forget_before(&mut self, epoch: usize) {
        if self.place.0 < epoch {
            self.place = (epoch, 0);
        }
    }

    /// Checks that the content is the server's state at its version, except for refused objects.
    pub(crate) fn check_honesty(&mut self, history: &History) -> Result<(), String> {
        let content = self.store.content();
        let Some(version) = content.version else {
            return if content.objects.is_empty() { Ok(()) } else { Err("I7: no version".into()) };
        };
        let told = told(&content);
        let mut why = format!("I7: {version} is before {:?}", self.place);
        let place = history.place(self.place, version, |epoch| {
            let Some(state) = history.at((epoch, version), &Self::SCOPE) else { return false };
            let difference = differ(&told, &state, &content.missed);
            if let Some(difference) = &difference {
                why = format!("I7: at {version} of history {epoch}: {difference}");
            }
            difference.is_none()
        });
        self.place = place.ok_or(why)?;
        Ok(())
    }

    /// checks that lists were offered until the store accepted one.
    pub(crate) fn check_content(&self, history: &History) -> Result<(), String> {
        let content = self.store.content();
        if content.version.is_none() {
            return Err("the mirror has taken no list".into());
        }
        let state = history.at((history.current(), history.top()), &Self::SCOPE);
        let state = state.expect("there is a current state");
        let difference = differ(&told(&content), &state, &content.missed);
        difference.map_or(Ok(()), |difference| Err(format!("R-29: the mirror: {difference}")))
    }
}

fn told(content: &Content) -> BTreeMap<String, Told> {
    content.objects.values().map(Told::of).map(|told| (told.key.clone(), told)).collect()
}
