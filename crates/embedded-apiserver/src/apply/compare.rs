//! The fields of an object, and those that differ between two objects.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use kube_schema::{Message, Type as Kind};
use serde_json::Value;

use super::Object;
use super::set::{Element, Scalar, Set, Tree};
use super::types::{Keys, List, Map, Shaped, Type, typed_value};

/// The differences between two objects. No path is in more than one of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) removed: Set,
    pub(crate) modified: Set,
    pub(crate) added: Set,
}

impl Comparison {
    /// Returns the differences without those at or below the paths of a set.
    pub(crate) fn without(&self, fields: &Set) -> Self {
        Self {
            removed: self.removed.without(fields),
            modified: self.modified.without(fields),
            added: self.added.without(fields),
        }
    }
}

/// Compares two objects of a type.
pub(crate) fn compare(kind: Type<'_>, old: &Object, new: &Object) -> Comparison {
    let map = kind.forms().map;
    let trees = map.and_then(|map| compare_members(&map, Some(old), Some(new)));
    let Trees { removed, modified, added } = trees.unwrap_or_default();
    Comparison { removed: removed.below, modified: modified.below, added: added.below }
}

/// The differences at and below a path.
#[derive(Default)]
struct Trees {
    removed: Tree,
    modified: Tree,
    added: Tree,
}

impl Trees {
    fn extend(&mut self, other: Self) {
        let join = |into: &mut Tree, from: Tree| {
            into.member |= from.member;
            into.below = into.below.union(&from.below);
        };
        join(&mut self.removed, other.removed);
        join(&mut self.modified, other.modified);
        join(&mut self.added, other.added);
    }

    /// Collects the differences of members or items.
    fn collect(parts: Vec<(Element, Self)>) -> Self {
        let (mut removed, mut modified, mut added) = (Vec::new(), Vec::new(), Vec::new());
        for (element, part) in parts {
            modified.push((element.clone(), part.modified));
            removed.push((element.clone(), part.removed));
            added.push((element, part.added));
        }
        let tree = |parts| Tree { member: false, below: Set::collect(parts) };
        Self { removed: tree(removed), modified: tree(modified), added: tree(added) }
    }
}

fn differences(kind: Type<'_>, old: Option<&Value>, new: Option<&Value>) -> Trees {
    // Most of an object stays as it is.
    if old == new {
        return Trees::default();
    }
    let forms = kind.forms();
    match (old, new) {
        (None, None) => Trees::default(),
        // Values of different types: the fields of the old one are gone, those of the new one are added.
        (Some(a), Some(b)) if forms.decides(a) != forms.decides(b) => {
            let mut trees = shaped(forms.of(a), old, new);
            trees.extend(shaped(forms.of(b), old, new));
            trees
        }
        (Some(value), None) | (_, Some(value)) => shaped(forms.of(value), old, new),
    }
}

fn shaped(shape: Option<Shaped<'_>>, old: Option<&Value>, new: Option<&Value>) -> Trees {
    let trees = match shape {
        Some(Shaped::Map(map)) if !map.atomic => {
            let [old, new] = [old, new].map(|value| value.and_then(Value::as_object));
            compare_members(&map, old, new)
        }
        Some(Shaped::List(list)) if !matches!(list.keys, Keys::Atomic) => {
            compare_items(&list, old, new)
        }
        _ => None,
    };
    let Some(mut trees) = trees else { return leaf(old, new) };
    trees.added.member |= old.is_none();
    trees.removed.member |= new.is_none();
    trees
}

/// Compares values that have no parts with managers of their own.
fn leaf(old: Option<&Value>, new: Option<&Value>) -> Trees {
    let mut trees = Trees::default();
    match (old, new) {
        (None, _) => trees.added.member = true,
        (_, None) => trees.removed.member = true,
        (Some(old), Some(new)) => trees.modified.member = !equal(old, new),
    }
    trees
}

/// Returns whether values are equal. Numbers are compared by their values.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => a == b || Scalar(a.clone()) == Scalar(b.clone()),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// Compares objects member by member, unless both are empty.
fn compare_members(map: &Map<'_>, old: Option<&Object>, new: Option<&Object>) -> Option<Trees> {
    let (old, new) = (members(map, old), members(map, new));
    if old.is_empty() && new.is_empty() {
        return None;
    }
    let mut parts = Vec::with_capacity(old.len().max(new.len()));
    let (mut left, mut right) = (old.into_iter().peekable(), new.into_iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return Some(Trees::collect(parts)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.0.cmp(b.0),
        };
        let a = if order.is_le() { left.next() } else { None };
        let b = if order.is_ge() { right.next() } else { None };
        let Some((name, _)) = a.or(b) else { continue };
        let trees = differences(map.member(name), a.map(|a| a.1), b.map(|b| b.1));
        parts.push((Element::field(name), trees));
    }
}

/// Returns the members of an object, sorted by name. A built-in object has the members that its type would have in Go.
fn members<'v>(map: &Map<'_>, object: Option<&'v Object>) -> Vec<(&'v str, &'v Value)> {
    let Some(object) = object else { return Vec::new() };
    let mut members: Vec<(&str, &Value)> = match map.message() {
        None => object.iter().map(|(name, value)| (name.as_str(), value)).collect(),
        Some(message) => {
            let known = |name: &str, value: &'v Value| match message.field_named(name) {
                Some(field) => typed_value(field, Some(value)),
                None => Some(value),
            };
            let mut members = object
                .iter()
                .filter_map(|(name, value)| Some((name.as_str(), known(name, value)?)))
                .collect();
            add_absent(message, object, &mut members);
            members
        }
    };
    if !members.is_sorted_by(|a, b| a.0 < b.0) {
        members.sort_by(|a, b| a.0.cmp(b.0));
    }
    members
}

/// Adds the fields of a message that Go never leaves out.
fn add_absent<'v>(message: Message, object: &Object, members: &mut Vec<(&'v str, &'v Value)>) {
    for field in message.fields() {
        match field.kind() {
            Kind::Message(inlined) if field.is_inline() => add_absent(inlined, object, members),
            _ if field.omits_zero()
                || object.get(field.name()).is_some_and(|value| !value.is_null()) => {}
            _ => members.extend(typed_value(field, None).map(|value| (field.name(), value))),
        }
    }
}

/// Compares lists item by item, unless both are empty.
fn compare_items(list: &List<'_>, old: Option<&Value>, new: Option<&Value>) -> Option<Trees> {
    let empty = |value: Option<&Value>| value.and_then(Value::as_array).is_none_or(Vec::is_empty);
    if empty(old) && empty(new) {
        return None;
    }
    let mut items: BTreeMap<Element, [Vec<&Value>; 2]> = BTreeMap::new();
    for (side, value) in [old, new].into_iter().enumerate() {
        for item in value.and_then(Value::as_array).into_iter().flatten() {
            // Items that cannot be identified belong to no manager.
            let Ok(element) = list.element(item) else { continue };
            items.entry(element).or_default()[side].push(item);
        }
    }
    let parts = items.into_iter().map(|(element, [old, new])| {
        let trees = match (&*old, &*new) {
            ([] | [_], [] | [_]) => {
                differences(list.items, old.first().copied(), new.first().copied())
            }
            // Items with the same keys have one manager.
            ([_, _, ..], [_, _, ..]) => {
                let same = old.len() == new.len() && old.iter().zip(&new).all(|(a, b)| equal(a, b));
                Trees { modified: Tree { member: !same, ..Tree::default() }, ..Trees::default() }
            }
            ([_, _, ..], _) => {
                let mut trees = differences(list.items, None, new.first().copied());
                trees.removed.member = true;
                trees
            }
            (_, _) => {
                let mut trees = differences(list.items, old.first().copied(), None);
                trees.added.member = true;
                trees
            }
        };
        (element, trees)
    });
    Some(Trees::collect(parts.collect()))
}

/// Returns the fields of a configuration that is applied: those that its manager wants to own.
pub(crate) fn field_set(kind: Type<'_>, value: &Value) -> Set {
    fields(kind, value).below
}

fn fields(kind: Type<'_>, value: &Value) -> Tree {
    match kind.shaped(value) {
        Some(Shaped::Map(map)) if !map.atomic => {
            let members = value.as_object().into_iter().flatten();
            let parts = members.map(|(name, value)| {
                let mut tree = fields(map.member(name), value);
                let is_empty = value.is_null() || value.as_object().is_some_and(Object::is_empty);
                tree.member |= is_empty || map.field(name).is_none();
                (Element::field(name), tree)
            });
            Tree { member: false, below: Set::collect(parts) }
        }
        Some(Shaped::List(list)) if !matches!(list.keys, Keys::Atomic) => {
            Tree { member: false, below: item_set(&list, value) }
        }
        _ => Tree::leaf(),
    }
}

fn item_set(list: &List<'_>, value: &Value) -> Set {
    let mut items: BTreeMap<Element, (Tree, usize)> = BTreeMap::new();
    for item in value.as_array().into_iter().flatten() {
        let Ok(element) = list.element(item) else { continue };
        let (tree, count) = items.entry(element).or_default();
        *count += 1;
        *tree = match count {
            1 => Tree { member: true, ..fields(list.items, item) },
            _ => Tree::leaf(),
        };
    }
    Set::collect(items.into_iter().map(|(element, (tree, _))| (element, tree)))
}
