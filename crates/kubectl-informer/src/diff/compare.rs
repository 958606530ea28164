//! Compares two states of an object.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::place::{At, Place, Stop};
use super::{Change, Diff, Noise, noise, value};
use crate::path::key;

pub(super) fn compare<'a>(old: &'a Value, new: &'a Value) -> Diff<'a> {
    let secret = value::is_secret(old) || value::is_secret(new);
    let mut comparison =
        Comparison { place: Place::default(), diff: Diff { secret, ..Diff::default() } };
    comparison.values(present(Some(old)), present(Some(new)));
    comparison.diff
}

struct Comparison<'a> {
    place: Place<'a>,
    diff: Diff<'a>,
}

/// Treats `null` as absent, as Kubernetes does.
fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

/// Returns the position of a field in the order that readers expect.
fn rank(field: &str) -> u8 {
    match field {
        "apiVersion" | "kind" => 0,
        "metadata" => 1,
        "spec" => 2,
        "status" => 4,
        _ => 3,
    }
}

impl<'a> Comparison<'a> {
    fn at(&mut self, stop: Stop<'a>, compare: impl FnOnce(&mut Self)) {
        self.place.push(stop);
        compare(self);
        self.place.pop();
    }

    fn change(&mut self, old: Option<&'a Value>, new: Option<&'a Value>) {
        self.diff.changes.push(Change { place: self.place.clone(), old, new });
    }

    fn values(&mut self, old: Option<&'a Value>, new: Option<&'a Value>) {
        if old == new {
            return;
        }
        if noise::is_noise(&self.place) {
            let change = Change { place: self.place.clone(), old, new };
            self.diff.noise.push(Noise::Value(change));
            return;
        }
        match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                self.fields(Some(old), Some(new));
            }
            // The fields of a new object are added one by one, because that is how they change
            // later.
            (None, Some(Value::Object(new))) if !new.is_empty() => self.fields(None, Some(new)),
            (Some(Value::Object(old)), None) if !old.is_empty() => self.fields(Some(old), None),
            (Some(Value::Array(a)), Some(Value::Array(b))) if reordered(a, b) => {
                self.change(old, new);
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) => self.lists(old, new),
            (None, Some(Value::Array(list))) if key::names([list]).is_some() => {
                self.lists(&[], list);
            }
            (Some(Value::Array(list)), None) if key::names([list]).is_some() => {
                self.lists(list, &[]);
            }
            _ => self.change(old, new),
        }
    }

    fn fields(&mut self, old: Option<&'a Map<String, Value>>, new: Option<&'a Map<String, Value>>) {
        let names = old.into_iter().chain(new).flat_map(Map::keys).map(String::as_str);
        let top = self.place.len() == 0;
        let names: BTreeSet<_> =
            names.map(|name| (if top { rank(name) } else { 0 }, name)).collect();
        for (_, name) in names {
            let old = present(old.and_then(|fields| fields.get(name)));
            let new = present(new.and_then(|fields| fields.get(name)));
            self.at(Stop::Field(name), |this| this.values(old, new));
        }
    }

    fn lists(&mut self, old: &'a [Value], new: &'a [Value]) {
        if let Some([old_names, new_names]) = key::names([old, new]) {
            self.by_name((old, &old_names), (new, &new_names));
        } else if old.iter().chain(new).all(is_plain) {
            self.plain(old, new);
        } else {
            self.by_position(old, new);
        }
    }

    fn by_name(
        &mut self,
        (old, old_names): (&'a [Value], &[String]),
        (new, new_names): (&'a [Value], &[String]),
    ) {
        let old_at: HashMap<&str, usize> =
            old_names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let mut was_at = Vec::new();
        for (at, name) in new_names.iter().enumerate() {
            let before = old_at.get(name.as_str()).copied();
            was_at.extend(before);
            self.element(Some(name), (old, before), (new, Some(at)));
        }
        if !was_at.is_sorted() {
            self.diff.noise.push(Noise::Order(self.place.clone()));
        }
        let kept: BTreeSet<usize> = was_at.into_iter().collect();
        for (at, name) in old_names.iter().enumerate().filter(|(at, _)| !kept.contains(at)) {
            self.element(Some(name), (old, Some(at)), (new, None));
        }
    }

    /// Compares an element that is in one list or in both.
    fn element(
        &mut self,
        name: Option<&String>,
        (old, old_at): (&'a [Value], Option<usize>),
        (new, new_at): (&'a [Value], Option<usize>),
    ) {
        let (before, now) = (old_at.and_then(|at| old.get(at)), new_at.and_then(|at| new.get(at)));
        let stop = Stop::Element {
            name: name.cloned(),
            old: old_at.and_then(|at| At::new(old, at)),
            new: new_at.and_then(|at| At::new(new, at)),
        };
        self.at(stop, |this| match (before, now) {
            (Some(_), Some(_)) => this.values(before, now),
            // A whole element is added or removed as one change.
            _ => this.change(before, now),
        });
    }

    /// Compares scalar values, which are added and removed but never modified.
    fn plain(&mut self, old: &'a [Value], new: &'a [Value]) {
        for at in missing(old, new).into_iter().filter_map(|at| At::new(old, at)) {
            self.at(Stop::Item(at), |this| this.change(Some(at.value()), None));
        }
        for at in missing(new, old).into_iter().filter_map(|at| At::new(new, at)) {
            self.at(Stop::Item(at), |this| this.change(None, Some(at.value())));
        }
    }

    /// Compares elements without keys by position, after dropping the common start and end of the
    /// lists.
    fn by_position(&mut self, old: &'a [Value], new: &'a [Value]) {
        let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let rest = old[start..].iter().rev().zip(new[start..].iter().rev());
        let end = rest.take_while(|(old, new)| old == new).count();
        let (old_end, new_end) = (old.len() - end, new.len() - end);
        for at in start..old_end.max(new_end) {
            let old_at = (at < old_end).then_some(at);
            let new_at = (at < new_end).then_some(at);
            self.element(None, (old, old_at), (new, new_at));
        }
    }
}

fn is_plain(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// Returns whether two lists have the same scalar values in a different order. That is a change,
/// because the order of a command's arguments is significant.
fn reordered(old: &[Value], new: &[Value]) -> bool {
    old.len() == new.len() && old.iter().chain(new).all(is_plain) && missing(old, new).is_empty()
}

/// Returns the positions of the values that occur in the list but not in the other, or less often
/// there.
fn missing(list: &[Value], other: &[Value]) -> Vec<usize> {
    let mut left: HashMap<String, usize> = HashMap::new();
    for value in other {
        *left.entry(value.to_string()).or_default() += 1;
    }
    let taken = |value: &Value| match left.get_mut(&value.to_string()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let taken: Vec<bool> = list.iter().map(taken).collect();
    (0..list.len()).filter(|at| !taken[*at]).collect()
}
