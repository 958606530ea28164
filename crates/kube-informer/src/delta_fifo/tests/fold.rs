//! A server, a queue and a store. In every history, the events of `Indexer::process` add up to the store, and
//! after a list the store equals the server.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::Event;

#[derive(Clone, Debug)]
enum Step {
    Put(&'static str),
    Delete {
        name: &'static str,
        readable: bool,
    },
    /// A change that the watch misses.
    PutUnseen(&'static str),
    DeleteUnseen(&'static str),
    List,
    /// The server is restored from a backup, and is listed.
    Restore,
    /// The server is restored from a backup, and the watch continues as if nothing had happened.
    RestoreUnseen,
    Backup,
    Bookmark,
    Resync,
    Pop,
    PopBatch,
}

fn step() -> impl Strategy<Value = Step> {
    let name = || select(&["a", "b", "c"][..]);
    let delete = (name(), any::<bool>());
    prop_oneof![
        6 => name().prop_map(Step::Put),
        3 => delete.prop_map(|(name, readable)| Step::Delete { name, readable }),
        1 => name().prop_map(Step::PutUnseen),
        1 => name().prop_map(Step::DeleteUnseen),
        2 => Just(Step::List),
        1 => Just(Step::Restore),
        1 => Just(Step::Backup),
        1 => Just(Step::Bookmark),
        1 => Just(Step::Resync),
        5 => Just(Step::Pop),
        3 => Just(Step::PopBatch),
    ]
}

#[derive(Clone, Default)]
struct Server {
    objects: BTreeMap<&'static str, Object>,
    version: u64,
}

struct World {
    server: Server,
    backup: Server,
    histories: u64,
    queue: DeltaFifo,
    store: Indexer,
    /// The view of a handler that folds the events.
    told: BTreeMap<ObjectKey, Object>,
    synced: bool,
}

impl World {
    fn new(queue: fn(Lister) -> DeltaFifo) -> Self {
        let (store, server) = (Indexer::new(), Server { version: 1, ..Server::default() });
        let backup = server.clone();
        let queue = queue(store.lister());
        let told = BTreeMap::new();
        Self { server, backup, histories: 0, queue, store, told, synced: false }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Put(name) => {
                let object = self.put(name);
                self.queue.update(object).unwrap();
            }
            Step::PutUnseen(name) => drop(self.put(name)),
            Step::Delete { name, readable } => {
                let Some(object) = self.delete(name) else { return };
                if readable {
                    self.queue.delete(object).unwrap();
                } else {
                    let version = object.resource_version().clone();
                    self.queue.unreadable(unreadable(name), version, true).unwrap();
                }
            }
            Step::DeleteUnseen(name) => drop(self.delete(name)),
            Step::List => self.list(),
            Step::Restore => {
                self.server = self.backup.clone();
                self.histories += 1;
                self.list();
            }
            Step::RestoreUnseen => {
                self.server = self.backup.clone();
                self.histories += 1;
            }
            Step::Backup => self.backup = self.server.clone(),
            Step::Bookmark => self.queue.bookmark(self.server.version.into()).unwrap(),
            Step::Resync => self.queue.resync(),
            Step::Pop => drop(self.process(self.queue.pop().now_or_never().flatten())),
            Step::PopBatch => drop(self.process(self.queue.pop_batch().now_or_never().flatten())),
        }
    }

    fn object(&self, name: &str) -> Object {
        let (version, history) = (self.server.version.to_string(), self.histories.to_string());
        let labels = serde_json::json!({"history": history});
        let metadata = serde_json::json!({
            "name": name, "uid": name, "resourceVersion": version, "labels": labels,
        });
        Object::from_json(serde_json::json!({"metadata": metadata}).to_string()).unwrap()
    }

    fn put(&mut self, name: &'static str) -> Object {
        self.server.version += 1;
        let object = self.object(name);
        self.server.objects.insert(name, object.clone());
        object
    }

    /// Deletes an object, and returns its final state.
    fn delete(&mut self, name: &'static str) -> Option<Object> {
        self.server.objects.remove(name)?;
        self.server.version += 1;
        Some(self.object(name))
    }

    fn list(&mut self) {
        let objects = self.server.objects.values().cloned().collect();
        self.queue.replace(objects, vec![], self.server.version.into()).unwrap();
    }

    fn process(&mut self, deltas: Option<Deltas>) -> Option<()> {
        let deltas = deltas?;
        let first_list = deltas.initial;
        for event in self.store.process(deltas) {
            match event {
                Event::Added { object, initial } => {
                    assert_eq!(initial, first_list);
                    assert!(self.told.insert(object.key().clone(), object).is_none());
                }
                Event::Updated { old, new } => {
                    let before = self.told.insert(new.key().clone(), new);
                    assert!(before.is_some_and(|before| before.is_same_instance(&old)));
                }
                Event::Deleted(gone) => assert!(self.told.remove(gone.key()).is_some()),
                Event::Resynced(object) => {
                    assert!(self.told[object.key()].is_same_instance(&object));
                }
                Event::Synced => assert!(!std::mem::replace(&mut self.synced, true)),
            }
        }
        let stored = self.store.lister().list();
        assert_eq!(stored.len(), self.told.len());
        assert!(stored.iter().all(|object| self.told[object.key()].is_same_instance(object)));
        Some(())
    }

    fn drain(&mut self) {
        while self.process(self.queue.pop().now_or_never().flatten()).is_some() {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn c10_c13_c15_events_fold_to_the_store_and_the_store_to_the_server(
        steps in vec(step(), 1..40),
    ) {
        assert_folds(&steps);
    }
}

fn assert_folds(steps: &[Step]) {
    for queue in [DeltaFifo::in_order, DeltaFifo::by_key] {
        let mut world = World::new(queue);
        for step in steps {
            world.step(step);
        }
        world.list();
        world.drain();
        let listed: Vec<_> = world.server.objects.values().collect();
        let mut told = world.told.values();
        assert_eq!(world.told.len(), listed.len());
        assert!(listed.iter().all(|object| object.same_content(told.next().unwrap())));
        assert!(world.queue.has_synced());
    }
}

/// Found by random testing: the observed delete was of a history with lower versions, and was kept in place
/// of the tombstone.
#[test]
fn a_delete_that_a_list_shows_is_not_lost_to_an_older_one_that_was_seen() {
    let after_a_backup = [
        Step::Put("a"),
        Step::Put("a"),
        Step::Put("b"),
        Step::Restore,
        Step::PutUnseen("b"),
        Step::Delete { name: "b", readable: true },
    ];
    let in_between = [Step::Backup, Step::Put("b"), Step::Put("b")];
    let unlisted = [Step::PopBatch, Step::RestoreUnseen, Step::PutUnseen("b")];
    let gone = [Step::Delete { name: "b", readable: true }];
    for steps in [after_a_backup.to_vec(), [&in_between[..], &unlisted, &gone].concat()] {
        assert_folds(&steps);
    }
}
