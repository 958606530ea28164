//! A handler that folds its events, and checks that each event is allowed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube_informer::{Deleted, Event, FinalState, Object, Registration, SharedInformer};
use tokio::sync::Notify;

/// The uid and version that identify a state of an object.
pub(crate) type State = (String, String);

pub(crate) fn state<K>(object: &Object<K>) -> State {
    (object.uid().to_owned(), object.resource_version().to_string())
}

/// A handler, and the state folded from its events.
pub(crate) struct Fold {
    told: Arc<Told>,
    _registration: Registration,
}

struct Told {
    beliefs: Mutex<Beliefs>,
    news: Arc<Notify>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Beliefs {
    pub(crate) view: BTreeMap<String, State>,
    pub(crate) synced: bool,
    pub(crate) added: usize,
    pub(crate) updated: usize,
    pub(crate) deleted: usize,
    pub(crate) resynced: usize,
    /// The keys of deletes that were detected by a relist.
    pub(crate) tombstones: Vec<String>,
    /// Events that it should not have received.
    pub(crate) wrong: Vec<String>,
}

impl Fold {
    /// Registers a handler that receives events as values.
    pub(crate) fn of_events<K: 'static>(informer: &SharedInformer<K>, news: &Arc<Notify>) -> Self {
        let told = Told::new(news);
        let hears = told.clone();
        let registration = informer.handler().name("events").for_each(move |event| match event {
            Event::Added { object, .. } => hears.take(|beliefs| beliefs.add(&object)),
            Event::Updated { old, new } => hears.take(|beliefs| beliefs.update(&old, &new)),
            Event::Deleted(deleted) => hears.take(|beliefs| beliefs.delete(&deleted)),
            Event::Resynced(object) => hears.take(|beliefs| beliefs.resync(&object)),
            Event::Synced => hears.take(Beliefs::sync),
        });
        Self { told, _registration: registration }
    }

    /// Registers a handler with callbacks, as in client-go.
    pub(crate) fn of_callbacks<K: 'static>(
        informer: &SharedInformer<K>,
        news: &Arc<Notify>,
    ) -> Self {
        let told = Told::new(news);
        let [adds, updates, deletes, syncs] = [(); 4].map(|()| told.clone());
        let registration = informer
            .handler()
            .name("callbacks")
            .on_add(move |object, _| adds.take(|beliefs| beliefs.add(object)))
            .on_update(move |old, new| updates.take(|beliefs| beliefs.update(old, new)))
            .on_delete(move |deleted| deletes.take(|beliefs| beliefs.delete(deleted)))
            .on_synced(move || syncs.take(Beliefs::sync))
            .register();
        Self { told, _registration: registration }
    }

    pub(crate) fn beliefs(&self) -> Beliefs {
        self.told.lock().clone()
    }
}

impl Told {
    fn new(news: &Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { beliefs: Mutex::default(), news: news.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, Beliefs> {
        self.beliefs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, change: impl FnOnce(&mut Beliefs)) {
        change(&mut self.lock());
        self.news.notify_one();
    }
}

impl Beliefs {
    fn add<K>(&mut self, object: &Object<K>) {
        self.added += 1;
        if let Some(had) = self.view.insert(object.key().to_string(), state(object)) {
            self.wrong.push(format!("added {}, which it had: {had:?}", object.key()));
        }
    }

    fn update<K>(&mut self, old: &Object<K>, new: &Object<K>) {
        self.updated += 1;
        let had = self.view.insert(new.key().to_string(), state(new));
        if had.as_ref() != Some(&state(old)) {
            self.wrong.push(format!(
                "updated {} from {:?}, while it had {had:?}",
                new.key(),
                state(old)
            ));
        }
    }

    fn delete<K>(&mut self, deleted: &Deleted<K>) {
        self.deleted += 1;
        let key = deleted.key().to_string();
        if self.view.remove(&key).is_none() {
            self.wrong.push(format!("deleted {key}, which it did not have"));
        }
        if deleted.final_state == FinalState::Unknown {
            self.tombstones.push(key);
        }
    }

    fn resync<K>(&mut self, object: &Object<K>) {
        self.resynced += 1;
        if self.view.get(&object.key().to_string()) != Some(&state(object)) {
            self.wrong.push(format!("resynced {} as it does not have it", object.key()));
        }
    }

    fn sync(&mut self) {
        if std::mem::replace(&mut self.synced, true) {
            self.wrong.push("synced twice".to_owned());
        }
    }
}
