//! Properties that hold for any two states.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::super::*;

/// Generates realistic objects, with everything that the comparison treats specially: names, noise,
/// nulls.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let name = prop_oneof![
            Just("name"),
            Just("type"),
            Just("status"),
            Just("metadata"),
            Just("lastProbeTime"),
            Just("resourceVersion"),
            Just("a.b"),
            Just("x"),
            Just("port"),
            Just("conditions"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..4).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(name, v)| (name.to_owned(), v)).collect())
            }),
        ]
    })
}

/// Applies changes to the old state. Knows the syntax of places, and nothing about how changes are
/// found.
fn apply(mut object: Value, changes: &[Change<'_>]) -> Value {
    // Removing an element by its position shifts the elements after it.
    let (removed, others): (Vec<_>, Vec<_>) = changes.iter().partition(|c| c.new.is_none());
    for change in others.into_iter().chain(removed.into_iter().rev()) {
        let text = change.path();
        let list = text.strip_suffix("[]");
        let path: Path = match list.unwrap_or(&text) {
            "" => Path::new(Vec::new()),
            other => other.parse().unwrap(),
        };
        if list.is_some() {
            let list = walk(&mut object, path.steps()).as_array_mut().unwrap();
            match (change.old, change.new) {
                (Some(old), _) => {
                    let at = list.iter().position(|value| value == old).unwrap();
                    list.remove(at);
                }
                (None, new) => list.push(new.unwrap().clone()),
            }
            continue;
        }
        let Some((end, parents)) = path.steps().split_last() else {
            object = change.new.cloned().unwrap_or_default();
            continue;
        };
        set(walk(&mut object, parents), end, change);
    }
    object
}

/// Follows steps, and creates what is missing.
fn walk<'a>(object: &'a mut Value, steps: &[Step]) -> &'a mut Value {
    steps.iter().fold(object, |value, step| match step {
        Step::Index(at) => value.get_mut(*at as usize).unwrap(),
        Step::Field(name) | Step::Named(name) if value.is_null() || value.is_object() => {
            if value.is_null() {
                *value = Value::Object(Map::new());
            }
            value.as_object_mut().unwrap().entry(name).or_insert(Value::Null)
        }
        Step::Named(name) => {
            let at = named(value, name).unwrap();
            &mut value[at]
        }
        _ => unreachable!("{step}"),
    })
}

fn named(list: &Value, name: &str) -> Option<usize> {
    let list = list.as_array().unwrap();
    let found = path::key::find(list, name);
    list.iter().position(|value| found.iter().any(|found| std::ptr::eq(*found, value)))
}

fn set(parent: &mut Value, step: &Step, change: &Change<'_>) {
    if parent.is_null() {
        let list = match (step, change.new) {
            (Step::Named(name), Some(new)) => {
                !path::key::find(std::slice::from_ref(new), name).is_empty()
            }
            (step, _) => matches!(step, Step::Index(_)),
        };
        *parent = if list { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
    }
    match (parent, step, change.new) {
        (Value::Object(fields), Step::Field(name) | Step::Named(name), Some(new)) => {
            fields.insert(name.clone(), new.clone());
        }
        (Value::Object(fields), Step::Field(name) | Step::Named(name), None) => {
            fields.remove(name);
        }
        (Value::Array(list), Step::Index(at), Some(new)) if change.old.is_some() => {
            list[*at as usize] = new.clone();
        }
        (Value::Array(list), Step::Index(at), Some(new)) => list.insert(*at as usize, new.clone()),
        (Value::Array(list), Step::Index(at), None) => drop(list.remove(*at as usize)),
        (Value::Array(list), Step::Named(_), _) => {
            let at = list.iter().position(|value| Some(value) == change.old);
            match (at, change.new) {
                (Some(at), Some(new)) => list[at] = new.clone(),
                (Some(at), None) => drop(list.remove(at)),
                (None, new) => list.push(new.unwrap().clone()),
            }
        }
        (parent, step, _) => unreachable!("{step} of {parent}"),
    }
}

/// Reduces a state to what the comparison considers: no nulls, no empty objects and lists, and no
/// order where it is insignificant.
fn essence(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), essence(value)));
            let fields: Map<_, _> = fields.filter(|(_, value)| !value.is_null()).collect();
            if fields.is_empty() { Value::Null } else { Value::Object(fields) }
        }
        Value::Array(list) if list.is_empty() => Value::Null,
        Value::Array(list) => {
            let mut list: Vec<_> = list.iter().map(essence).collect();
            list.sort_by_key(Value::to_string);
            Value::Array(list)
        }
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn the_changes_lead_from_the_old_state_to_the_new_one(old in value(), new in value()) {
        let changes = diff(&old, &new);
        let noise: Vec<_> = changes.noise.iter().filter_map(|noise| match noise {
            Noise::Value(change) => Some(change.clone()),
            Noise::Order(_) => None,
        }).collect();
        let all: Vec<_> = changes.changes.iter().cloned().chain(noise).collect();
        let shown: Vec<_> = all.iter().map(Change::to_json).collect();
        let applied = apply(old.clone(), &all);
        prop_assert_eq!(essence(&applied), essence(&new), "{:?}", shown);
    }

    #[test]
    fn nothing_changed_is_no_change(state in value()) {
        let same = state.clone();
        let changes = diff(&state, &same);
        prop_assert!(changes.is_empty() && changes.noise.is_empty());
        prop_assert_eq!(changes.render(Some(80), true), "");
    }

    #[test]
    fn lines_fit_and_paths_can_be_read(old in value(), new in value(), width in 0_usize..120) {
        let changes = diff(&old, &new);
        for line in changes.render(Some(width), false).lines() {
            prop_assert!(crate::cells::width(line) <= width.max(40), "{}", line);
        }
        for change in changes.changes() {
            let path: Path = change.path().parse().unwrap();
            prop_assert!(!change.under(path.steps()).is_empty(), "{}", path);
        }
    }
}
