//! Merges a configuration into an object, and removes fields from it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Object;
use super::set::{Element, Set, Tree};
use super::types::{Keys, List, Shaped, Type};

/// Merges a valid configuration into an object.
pub(crate) fn merge(kind: Type<'_>, live: &Value, config: &Value) -> Value {
    merged(kind, Some(live), Some(config)).unwrap_or(Value::Null)
}

fn merged(kind: Type<'_>, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    let Some(wanted) = config else { return live.cloned() };
    // If the types differ, that of the configuration wins.
    match kind.shaped(wanted) {
        Some(Shaped::Map(map)) if !map.atomic => {
            let [live_members, config_members] =
                [live, config].map(|value| value.and_then(Value::as_object));
            if live_members.is_none_or(Object::is_empty)
                && config_members.is_none_or(Object::is_empty)
            {
                return config.or(live).cloned();
            }
            let mut out = Object::new();
            for (name, value) in live_members.into_iter().flatten() {
                let config = config_members.and_then(|members| members.get(name));
                out.extend(
                    merged(map.member(name), Some(value), config)
                        .map(|value| (name.clone(), value)),
                );
            }
            for (name, value) in config_members.into_iter().flatten() {
                if live_members.is_none_or(|members| !members.contains_key(name)) {
                    out.extend(
                        merged(map.member(name), None, Some(value))
                            .map(|value| (name.clone(), value)),
                    );
                }
            }
            (!out.is_empty()).then_some(Value::Object(out))
        }
        Some(Shaped::List(list)) if !matches!(list.keys, Keys::Atomic) => {
            let [live_items, config_items] =
                [live, config].map(|value| value.and_then(Value::as_array));
            if live_items.is_none_or(Vec::is_empty) && config_items.is_none_or(Vec::is_empty) {
                return config.or(live).cloned();
            }
            let [live_items, config_items] = [live_items, config_items]
                .map(|items| items.map(Vec::as_slice).unwrap_or_default());
            let out = merge_items(&list, live_items, config_items);
            (!out.is_empty()).then_some(Value::Array(out))
        }
        _ => config.or(live).cloned(),
    }
}

/// Merges lists whose items have keys. Items of the configuration are in its order. Items of the object alone stay
/// between the items that they were between.
fn merge_items(list: &List<'_>, live: &[Value], config: &[Value]) -> Vec<Value> {
    let identified = |items: &[Value]| -> Vec<(Option<Element>, usize)> {
        (0..items.len()).map(|at| (list.element(&items[at]).ok(), at)).collect()
    };
    let (left, right) = (identified(live), identified(config));
    let wanted: BTreeMap<&Element, &Value> =
        right.iter().filter_map(|(element, at)| Some((element.as_ref()?, &config[*at]))).collect();
    // Items with the same keys are not merged with the configuration, but replaced by it.
    let mut present: BTreeMap<&Element, Option<&Value>> = BTreeMap::new();
    for (element, at) in left.iter().filter_map(|(element, at)| Some((element.as_ref()?, *at))) {
        let value = if present.contains_key(element) { None } else { Some(&live[at]) };
        present.insert(element, value);
    }
    let mut shared = right
        .iter()
        .filter_map(|(element, _)| element.as_ref())
        .filter(|e| present.contains_key(e));
    let mut next_shared = shared.next();
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.len().max(config.len()));
    let take = |element: &Element, out: &mut Vec<Value>| {
        let live = present.get(element).copied().flatten();
        out.extend(merged(list.items, live, wanted.get(element).copied()));
    };
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        if let Some((element, at)) = left.get(l) {
            let Some(element) = element else {
                // It cannot be identified, so no configuration changes it.
                out.push(live[*at].clone());
                l += 1;
                continue;
            };
            if !wanted.contains_key(element) {
                out.push(live[*at].clone());
                l += 1;
                continue;
            }
            let same = right.get(r).is_some_and(|(other, _)| other.as_ref() == Some(element));
            if same {
                take(element, &mut out);
                done.insert(element);
                (l, r, next_shared) = (l + 1, r + 1, shared.next());
                continue;
            }
            let waits = r < right.len() && next_shared.is_some_and(|next| next != element);
            if waits || done.contains(element) {
                l += 1;
                if waits {
                    continue;
                }
            }
        }
        if let Some((element, _)) = right.get(r) {
            if let Some(element) = element {
                take(element, &mut out);
                done.insert(element);
                if next_shared == Some(element) {
                    next_shared = shared.next();
                }
            }
            r += 1;
        }
    }
    out
}

/// Removes the fields and items of a set. Those below an atomic value cannot be removed alone. A map or list that loses
/// everything stays, unless it is in the set itself: a manager may own it.
pub(crate) fn remove(kind: Type<'_>, value: &Value, fields: &Set) -> Value {
    let left = |kind: Type<'_>, value: &Value, tree: Option<&Tree>| match tree {
        Some(tree) if tree.member => None,
        Some(tree) => Some(remove(kind, value, &tree.below)),
        None => Some(value.clone()),
    };
    match (kind.shaped(value), value) {
        (Some(Shaped::Map(map)), Value::Object(members)) if !map.atomic => {
            let members = members.iter().filter_map(|(name, value)| {
                let tree = fields.at(&Element::field(name));
                Some((name.clone(), left(map.member(name), value, tree)?))
            });
            Value::Object(members.collect())
        }
        (Some(Shaped::List(list)), Value::Array(items)) if !matches!(list.keys, Keys::Atomic) => {
            let items = items.iter().filter_map(|item| {
                let tree = list.element(item).ok().and_then(|element| fields.at(&element));
                left(list.items, item, tree)
            });
            Value::Array(items.collect())
        }
        _ => value.clone(),
    }
}

/// Adds the fields that have paths below them. A set that was made from a configuration has only the leaves.
pub(crate) fn with_named_fields(kind: Type<'_>, fields: &Set) -> Set {
    let map = kind.forms().map;
    Set::collect(fields.iter().map(|(element, tree)| {
        let mut tree = tree.clone();
        let inner = match element {
            Element::Field(name) => {
                let field = map.and_then(|map| map.field(name));
                tree.member |= field.is_some();
                field.or_else(|| map.and_then(|map| map.known(name)))
            }
            _ => kind.forms().list.map(|list| list.items),
        };
        tree.below = with_named_fields(inner.unwrap_or(Type::Deduced), &tree.below);
        (element.clone(), tree)
    }))
}

/// Adapts a set to a type that has changed since: the fields of a value that is atomic now are that value.
pub(crate) fn reconcile(kind: Type<'_>, fields: &Set) -> Set {
    Set::collect(
        fields
            .iter()
            .map(|(element, tree)| (element.clone(), reconciled(inner_type(kind, element), tree))),
    )
}

fn inner_type<'a>(kind: Type<'a>, element: &Element) -> Option<Type<'a>> {
    let forms = kind.forms();
    match element {
        Element::Field(name) => forms.map.filter(|map| !map.is_free())?.known(name),
        _ => forms.list.map(|list| list.items),
    }
}

fn reconciled(kind: Option<Type<'_>>, tree: &Tree) -> Tree {
    let Some(kind) = kind.filter(|_| !tree.below.is_empty()) else { return tree.clone() };
    let is_atomic = match kind.forms().first() {
        Some(Shaped::Map(map)) => map.atomic,
        Some(Shaped::List(list)) => matches!(list.keys, Keys::Atomic),
        _ => false,
    };
    if is_atomic {
        return Tree::leaf();
    }
    Tree { member: tree.member, below: reconcile(kind, &tree.below) }
}
