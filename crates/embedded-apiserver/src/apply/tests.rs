//! Properties of writes and applies, for any sequence of them.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::compare::{Comparison, compare, equal, field_set};
use super::managers::{Author, Entry, Managers, Operation};
use super::merge::{merge, reconcile, remove, with_named_fields};
use super::set::Set;
use super::types::{Schema, Type};
use super::update::{Tracked, Versions};
use super::validate::problems;

struct OneVersion;

impl Versions for OneVersion {
    fn kind(&self, _: &str) -> Option<Type<'_>> {
        None
    }

    fn convert<'v>(&'v self, _: &'v Value, _: &str) -> Option<(Cow<'v, Value>, Type<'v>)> {
        None
    }
}

/// A schema with a field of each type of list and map.
fn schema() -> Schema {
    let text = json!({"type": "string"});
    let item = json!({"type": "object", "properties": {"k": text, "v": {"type": "integer"}, "p": {
        "type": "string", "default": "TCP"}}});
    let spec = json!({"type": "object", "properties": {
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"], "items": item},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "list": {"type": "array", "items": text},
        "map": {"type": "object", "additionalProperties": text},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "text": text,
    }});
    Schema::of_definition(&json!({"type": "object", "properties": {"spec": spec}}), false)
}

fn config() -> impl Strategy<Value = Value> {
    let text = || "[xy]";
    let map = || prop::option::of(prop::collection::btree_map("[ab]", text(), 0..3));
    let set = || prop::option::of(prop::collection::btree_set("[abc]", 1..3));
    let keyed = prop::collection::btree_map("[abc]", prop::option::of(0..3_i64), 1..3);
    (prop::option::of(keyed), set(), set(), map(), map(), map(), prop::option::of(text())).prop_map(
        |(keyed, set, list, map, whole, free, text)| {
            let mut spec = serde_json::Map::new();
            let mut put = |name: &str, value: Option<Value>| {
                spec.extend(value.map(|value| (name.to_owned(), value)));
            };
            put(
                "keyed",
                keyed.map(|items| {
                    items
                        .into_iter()
                        .map(|(k, v)| match v {
                            Some(v) => json!({"k": k, "v": v}),
                            None => json!({"k": k}),
                        })
                        .collect()
                }),
            );
            put("set", set.map(|set| json!(set)));
            put("list", list.map(|list| json!(list)));
            put("map", map.map(|map| json!(map)));
            put("whole", whole.map(|whole| json!(whole)));
            put("free", free.map(|free| json!({"deep": free})));
            put("text", text.map(Value::from));
            json!({"apiVersion": "t/v1", "kind": "T", "metadata": {"name": "t"}, "spec": spec})
        },
    )
}

fn author(manager: &str, operation: Operation) -> Author {
    let (manager, api_version) = (manager.to_owned(), "t/v1".to_owned());
    Author { manager, operation, api_version, subresource: String::new() }
}

fn tracked(schema: &Schema) -> Tracked<'_> {
    Tracked {
        kind: Type::CustomObject(schema),
        api_version: "t/v1",
        reset: Set::default(),
        versions: &OneVersion,
    }
}

/// Applies by force, and returns the object and its managers.
fn applied(
    schema: &Schema,
    state: &(Value, Managers),
    manager: &str,
    config: &Value,
) -> (Value, Managers) {
    let (live, managers) = state;
    let author = author(manager, Operation::Apply);
    let outcome = tracked(schema).apply(live, config, managers, &author, "now", true);
    let outcome = outcome.expect("it is forced");
    (outcome.object.unwrap_or_else(|| live.clone()), outcome.managers)
}

fn empty() -> (Value, Managers) {
    (json!({}), Managers::default())
}

proptest! {
    #[test]
    fn applying_twice_changes_nothing(first in config(), second in config()) {
        let schema = schema();
        let state = applied(&schema, &empty(), "one", &first);
        let state = applied(&schema, &state, "two", &second);
        prop_assert_eq!(applied(&schema, &state, "two", &second), state);
    }

    #[test]
    fn the_only_manager_has_exactly_its_configuration(first in config(), second in config()) {
        let schema = schema();
        let kind = Type::CustomObject(&schema);
        let state = applied(&schema, &empty(), "one", &first);
        let (object, managers) = applied(&schema, &state, "one", &second);
        prop_assert_eq!(field_set(kind, &object), field_set(kind, &second));
        let left = compare(kind, second.as_object().unwrap(), object.as_object().unwrap());
        prop_assert!(left.added.is_empty() && left.modified.is_empty(), "{:?}", left);
        prop_assert!(managers.0.len() <= 1);
    }

    #[test]
    fn fields_of_other_managers_stay(first in config(), second in config()) {
        let schema = schema();
        let kind = Type::CustomObject(&schema);
        let state = applied(&schema, &empty(), "one", &first);
        let state = applied(&schema, &state, "two", &second);
        let nothing = json!({"apiVersion": "t/v1", "kind": "T", "metadata": {"name": "t"}});
        let (object, managers) = applied(&schema, &state, "one", &nothing);
        prop_assert!(managers.0.iter().all(|entry| entry.author.manager == "two"));
        let missing = field_set(kind, &second).difference(&field_set(kind, &object));
        let containers = missing.paths().into_iter().all(|path| !managers.0.iter().any(|e| e.fields.has(&path)));
        prop_assert!(containers, "{:?} of {}", missing, object);
    }

    #[test]
    fn conflicts_are_what_force_would_take(first in config(), second in config()) {
        let schema = schema();
        let (live, managers) = applied(&schema, &empty(), "one", &first);
        let two = author("two", Operation::Apply);
        let outcome = tracked(&schema).apply(&live, &second, &managers, &two, "now", false);
        let forced = applied(&schema, &(live, managers.clone()), "two", &second);
        let left = |managers: &Managers| {
            let one = managers.0.iter().find(|entry| entry.author.manager == "one");
            one.map(|entry| entry.fields.clone()).unwrap_or_default()
        };
        let taken = left(&managers).difference(&left(&forced.1));
        match outcome {
            Ok(outcome) => prop_assert_eq!(outcome.managers, forced.1),
            Err(conflicts) => {
                prop_assert!(conflicts.iter().all(|conflict| taken.has(&conflict.path)));
            }
        }
    }

    #[test]
    fn an_update_owns_what_it_changed(first in config(), second in config()) {
        let schema = schema();
        let (live, managers) = applied(&schema, &empty(), "one", &first);
        let new = merge(Type::CustomObject(&schema), &live, &second);
        let update = author("two", Operation::Update);
        let (old, new) = (live.as_object().unwrap(), new.as_object().unwrap());
        let after = tracked(&schema).update(old, new, managers.clone(), &update, "now");
        let changes = compare(Type::CustomObject(&schema), old, new);
        let mine = after.0.iter().find(|entry| entry.author == update).map(|entry| entry.fields.clone());
        prop_assert_eq!(mine.unwrap_or_default(), changes.added.union(&changes.modified));
        let same = tracked(&schema).update(new, new, after.clone(), &update, "later");
        prop_assert_eq!(same, after);
    }

    #[test]
    fn comparing_removing_and_merging_agree(first in config(), second in config()) {
        let schema = schema();
        let kind = Type::CustomObject(&schema);
        prop_assert!(problems(kind, &first).is_empty());
        let merged = merge(kind, &first, &second);
        let back = compare(kind, second.as_object().unwrap(), merged.as_object().unwrap());
        prop_assert!(back.removed.is_empty() && back.modified.is_empty(), "{:?}", back);
        prop_assert!(equal(&merge(kind, &merged, &second), &merged), "merging again changes nothing");
        let nothing = remove(kind, &first, &with_named_fields(kind, &field_set(kind, &first)));
        prop_assert_eq!(nothing, json!({}));
        let same = compare(kind, first.as_object().unwrap(), first.as_object().unwrap());
        prop_assert_eq!(same, Comparison::default());
    }

    #[test]
    fn managers_survive_the_round_trip(first in config(), second in config()) {
        let schema = schema();
        let state = applied(&schema, &empty(), "one", &first);
        let (_, managers) = applied(&schema, &state, "two", &second);
        let entries: Vec<Value> = serde_json::from_str(&managers.to_json()).unwrap();
        let read = Managers::from_json(&entries).unwrap();
        prop_assert!(read.equals_but_for_times(&managers));
        prop_assert_eq!(read.to_json(), managers.to_json());
    }
}

#[test]
fn the_oldest_of_many_updaters_are_merged() {
    let mut managers = Managers::default();
    for at in 0..13 {
        let name = format!("m{at:02}");
        let fields = Set::of_fields(&[&["spec", &name]]);
        let time = Some(format!("2026-01-01T00:00:{at:02}Z"));
        managers.0.push(Entry { author: author(&name, Operation::Update), time, fields });
    }
    managers.cap();
    assert_eq!(managers.0.len(), 10);
    let merged = managers.take(&author("ancient-changes", Operation::Update)).unwrap();
    assert_eq!(
        merged.fields,
        Set::of_fields(&[&["spec", "m00"], &["spec", "m01"], &["spec", "m02"], &["spec", "m03"]])
    );
    assert_eq!(merged.time.as_deref(), Some("2026-01-01T00:00:03Z"));
}

#[test]
fn a_configuration_says_what_is_wrong_with_it() {
    let schema = schema();
    let wrong = |spec: Value| problems(Type::CustomObject(&schema), &json!({"spec": spec}));
    assert_eq!(wrong(json!({"no": 1})), [".spec.no: field not declared in schema"]);
    assert_eq!(wrong(json!({"text": 1})), [".spec.text: expected string, got number"]);
    assert_eq!(wrong(json!({"map": []})), [".spec.map: expected map, got array"]);
    assert_eq!(wrong(json!({"list": {}})), [".spec.list: expected list, got object"]);
    let twice = json!({"keyed": [{"k": "a"}, {"k": "a", "p": "TCP"}]});
    assert_eq!(wrong(twice), [r#".spec.keyed: duplicate entries for key [k="a",p="TCP"]"#]);
    assert_eq!(
        wrong(json!({"set": [{}]})),
        [".spec.set: element 0: associative list without keys has an element that's a map type"]
    );
    assert!(wrong(json!({"free": {"any": [{}, 1]}, "whole": null})).is_empty());
}

#[test]
fn values_of_a_type_that_became_atomic_are_one_field() {
    let schema = schema();
    let old = json!({"f:spec": {"f:whole": {"f:a": {}}, "f:list": {"k:{\"k\":\"a\"}": {}}, "f:map": {"f:a": {}}}});
    let old = Set::from_json(old.as_object().unwrap()).unwrap();
    let expected = json!({"f:spec": {"f:whole": {}, "f:list": {}, "f:map": {"f:a": {}}}});
    let expected = Set::from_json(expected.as_object().unwrap()).unwrap();
    assert_eq!(reconcile(Type::CustomObject(&schema), &old), expected);
}
