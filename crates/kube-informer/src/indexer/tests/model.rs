//! Random writes against a plain map, with every index recomputed after each.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::List;

const KEYS: [&str; 6] = ["a/x", "a/y", "b/x", "b/y", "x", "y"];
const TAGS: [&str; 6] = ["", "p", "q", "p.q", "q.r.p", "q.q"];
const NODES: [&str; 3] = ["", "n1", "n2"];

#[derive(Clone, Debug)]
enum Step {
    Apply(Vec<Write>),
    Replace { objects: Vec<Given>, keep: Vec<&'static str>, version: u64 },
    Put(Given),
    Remove(&'static str),
    AddIndex(usize),
    DropIndex(usize),
}

#[derive(Clone, Debug)]
enum Write {
    Put(Given),
    Delete(Given),
    Missed(Given),
    Bookmark(u64),
}

/// The description of an object.
#[derive(Clone, Debug)]
struct Given {
    key: &'static str,
    uid: &'static str,
    /// 0 is no version, and every seventh is not a number.
    version: u64,
    tags: &'static str,
    node: &'static str,
}

impl Given {
    fn object(&self) -> Object {
        let labels = [("tags", self.tags), ("node", self.node)];
        let labels: Vec<_> = labels.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        made(self.key, self.uid, &version(self.version), &labels)
    }
}

fn version(number: u64) -> String {
    match number {
        0 => String::new(),
        opaque if opaque.is_multiple_of(7) => format!("v{opaque}"),
        number => number.to_string(),
    }
}

fn given() -> impl Strategy<Value = Given> {
    let texts = (select(&KEYS[..]), select(&["1", "2"][..]), select(&TAGS[..]), select(&NODES[..]));
    let given = |((key, uid, tags, node), version)| Given { key, uid, version, tags, node };
    (texts, 0..40_u64).prop_map(given)
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        6 => given().prop_map(Write::Put),
        2 => given().prop_map(Write::Delete),
        1 => given().prop_map(Write::Missed),
        1 => (0..40_u64).prop_map(Write::Bookmark),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let replace = (vec(given(), 0..8), vec(select(&KEYS[..]), 0..3), 0..40_u64);
    prop_oneof![
        6 => vec(write(), 0..5).prop_map(Step::Apply),
        2 => replace.prop_map(|(objects, keep, version)| Step::Replace { objects, keep, version }),
        1 => given().prop_map(Step::Put),
        1 => select(&KEYS[..]).prop_map(Step::Remove),
        1 => (0..4_usize).prop_map(Step::AddIndex),
        1 => (0..4_usize).prop_map(Step::DropIndex),
    ]
}

/// The expected content of the store, in its simplest form.
#[derive(Default)]
struct Model {
    objects: BTreeMap<ObjectKey, Object>,
    version: String,
    synced: bool,
}

fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}

fn is_older(version: &str, than: &str) -> bool {
    matches!((number(version), number(than)), (Some(version), Some(than)) if version < than)
}

fn is_equal(one: &Object, other: &Object) -> bool {
    one.to_json().unwrap() == other.to_json().unwrap()
}

impl Model {
    fn advance(&mut self, version: &str) {
        if !version.is_empty() && !is_older(version, &self.version) {
            version.clone_into(&mut self.version);
        }
    }

    fn put(&mut self, new: &Object, force: bool) -> String {
        let version = new.resource_version().as_str();
        self.advance(version);
        if let Some(old) = self.objects.get(new.key()) {
            let known = old.resource_version().as_str();
            let repeated = !version.is_empty() && version == known && new.uid() == old.uid();
            if !force && (repeated || is_older(version, known)) {
                return String::new();
            }
        }
        match self.objects.insert(new.key().clone(), new.clone()) {
            Some(old) => format!("{}>{}", text(&old), text(new)),
            None => format!("+{}", text(new)),
        }
    }

    fn delete(&mut self, gone: &Object) -> String {
        let version = gone.resource_version().as_str();
        self.advance(version);
        match self.objects.get(gone.key()) {
            Some(old) if !is_older(version, old.resource_version().as_str()) => {
                self.objects.remove(gone.key());
                format!("-{}", text(gone))
            }
            _ => String::new(),
        }
    }

    fn missed(&mut self, key: &ObjectKey) -> String {
        self.objects.remove(key).map_or_else(String::new, |old| format!("?{}", text(&old)))
    }

    /// Returns the expected effects: deleted, updated, added, unchanged, and whether it is the first list.
    fn replace(&mut self, list: &[Object], keep: &[ObjectKey], version: &str) -> String {
        let is_last = |(at, object): &(usize, &Object)| {
            list[at + 1..].iter().all(|later| later.key() != object.key())
        };
        let list: Vec<&Object> =
            list.iter().enumerate().filter(is_last).map(|(_, object)| object).collect();
        let goes_back = is_older(version, &self.version);
        let added = if self.synced { "+" } else { "*" };
        let mut said: [Vec<String>; 4] = Default::default();
        let mut new = BTreeMap::new();
        for (key, old) in &self.objects {
            let is_ahead = is_older(version, old.resource_version().as_str());
            if keep.contains(key) && !is_ahead {
                new.insert(key.clone(), old.clone());
            } else if list.iter().all(|object| object.key() != key) {
                said[0].push(format!("?{}", text(old)));
            }
        }
        for &object in &list {
            let object_version = object.resource_version().as_str();
            let stays = match self.objects.get(object.key()) {
                None => {
                    said[2].push(format!("{added}{}", text(object)));
                    object
                }
                // A list may be of another history, in which a version is a different state.
                Some(old)
                    if !object_version.is_empty()
                        && old.same_version(object)
                        && (!goes_back || is_equal(old, object)) =>
                {
                    said[3].push(format!("={}", text(old)));
                    old
                }
                Some(old) => {
                    said[1].push(format!("{}>{}", text(old), text(object)));
                    object
                }
            };
            new.insert(object.key().clone(), stays.clone());
        }
        self.objects = new;
        version.clone_into(&mut self.version);
        if !std::mem::replace(&mut self.synced, true) {
            said[3].push("synced".to_owned());
        }
        said.concat().join(" ")
    }
}

type ValuesOf = fn(&Object) -> Vec<String>;

/// The store under test, its indexes with their expected content, and the model.
#[derive(Default)]
struct World {
    store: Arc<Store>,
    model: Model,
    indexes: Vec<(Index, ValuesOf)>,
    named: usize,
}

fn tags_of(object: &Object) -> Vec<String> {
    let tags = object.labels().get("tags").unwrap_or_default();
    tags.split('.').filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

fn key_of(object: &Object) -> Vec<String> {
    vec![object.key().to_string()]
}

fn node_of(object: &Object) -> Vec<String> {
    object.labels().get("node").map(str::to_owned).into_iter().collect()
}

impl World {
    fn step(&mut self, step: Step) {
        match step {
            Step::Apply(writes) => self.apply(writes),
            Step::Replace { objects, keep, version } => {
                self.replace(&objects, &keep, &self::version(version));
            }
            Step::Put(given) => {
                let object = given.object();
                self.model.put(&object, true);
                super::write(&self.store, vec![put_delta(object)], Accept::Any);
            }
            Step::Remove(key) => {
                let removed = self.store.get(key.into()).map(missed);
                let removed = removed.into_iter().collect();
                let removed = super::write(&self.store, removed, Accept::Any);
                assert_eq!(said(&removed), self.model.missed(&key.parse().unwrap()));
            }
            Step::AddIndex(kind) => {
                let index: (_, ValuesOf) = match kind {
                    0 => (self.named("tags", tags_of), tags_of),
                    1 => (Index::label(&self.store, None, "node"), node_of),
                    2 => {
                        let field = Index::field(&self.store, None, "spec.nodeName".into());
                        (field.unwrap(), node_of)
                    }
                    _ => (self.named("key", key_of), key_of),
                };
                self.indexes.push(index);
            }
            Step::DropIndex(nth) => {
                if nth < self.indexes.len() {
                    drop(self.indexes.remove(nth));
                }
            }
        }
    }

    fn apply(&mut self, writes: Vec<Write>) {
        let (mut changes, mut expected) = (Vec::new(), Vec::new());
        for write in writes {
            let (change, said) = match write {
                Write::Put(given) => {
                    let object = given.object();
                    let said = self.model.put(&object, false);
                    (put_delta(object), said)
                }
                Write::Delete(given) => {
                    let said = self.model.delete(&given.object());
                    (deleted(given.object()), said)
                }
                Write::Missed(given) => {
                    let said = self.model.missed(given.object().key());
                    (missed(given.object()), said)
                }
                Write::Bookmark(number) => {
                    let version = version(number);
                    self.model.advance(&version);
                    (Delta::Bookmark(version.into()), String::new())
                }
            };
            changes.push(change);
            expected.extend(Some(said).filter(|said| !said.is_empty()));
        }
        assert_eq!(said(&apply(&self.store, changes)), expected.join(" "));
    }

    fn replace(&mut self, objects: &[Given], keep: &[&str], version: &str) {
        let objects: Vec<Object> = objects.iter().map(Given::object).collect();
        let kept: Vec<ObjectKey> = keep.iter().map(|key| key.parse().unwrap()).collect();
        let expected = self.model.replace(&objects, &kept, version);
        assert_eq!(said(&replace(&self.store, objects, keep, version)), expected);
    }

    /// Adds an index by a function, under a unique name.
    fn named(&mut self, name: &str, values: ValuesOf) -> Index {
        self.named += 1;
        super::named(&self.store, &format!("{name} {}", self.named), values)
    }

    /// Checks that the store equals the model, and that each index equals one that is computed from scratch.
    fn check(&self) {
        let lister = lister(&self.store);
        self.check_list(&lister.list(), |_| true);
        assert_eq!(lister.len(), self.model.objects.len());
        let bytes: usize = self.model.objects.values().map(Object::memory).sum();
        assert_eq!(self.store.memory(), bytes);
        for key in KEYS {
            assert_eq!(
                lister.get(key).map(|object| text(&object)),
                self.model.objects.get(&key.parse().unwrap()).map(text)
            );
        }
        for namespace in ["a", "b", "c"] {
            let list = lister.namespace(namespace).list();
            self.check_list(&list, |object| object.namespace() == Some(namespace));
            assert_eq!(list.len(), lister.namespace(namespace).len());
        }
        for (index, values) in &self.indexes {
            let all: BTreeSet<String> = self.model.objects.values().flat_map(values).collect();
            let found: Vec<String> = index.values().iter().map(ToString::to_string).collect();
            assert_eq!(found, all.iter().cloned().collect::<Vec<_>>());
            for value in &all {
                self.check_list(&index.get(value), |object| values(object).contains(value));
            }
        }
    }

    fn check_list(&self, list: &List, filter: impl Fn(&Object) -> bool) {
        let expected = self.model.objects.values().filter(|object| filter(object));
        let expected: Vec<&Object> = expected.collect();
        let mut found: Vec<&Object> = list.iter().collect();
        found.sort_unstable_by(|one, other| one.key().cmp(other.key()));
        assert!(
            found.len() == expected.len()
                && found.iter().zip(&expected).all(|(one, other)| one.is_same_instance(other)),
            "{found:?} instead of {expected:?}"
        );
        assert_eq!(list.resource_version().as_str(), self.model.version);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn i2_i5_i7_i15_i16_the_store_is_what_a_plain_map_would_be(steps in vec(step(), 1..30)) {
        let mut world = World::default();
        for step in steps {
            world.step(step);
            world.check();
        }
        world.replace(&[], &[], "1");
        world.check();
    }

    #[test]
    fn the_same_writes_give_the_same_order_everywhere(steps in vec(step(), 1..30)) {
        let mut worlds = [World::default(), World::default()];
        for step in steps {
            let orders = worlds.each_mut().map(|world| {
                world.step(step.clone());
                let lists = world.indexes.iter().flat_map(|(index, _)| {
                    index.values().into_iter().map(|value| texts(&index.get(&value)))
                });
                let lists: Vec<String> = lists.collect();
                (texts(&world.store.snapshot().0), texts(&world.store.namespace("a").0), lists)
            });
            prop_assert_eq!(&orders[0], &orders[1]);
        }
    }
}
