//! Lists in strategic merge patches: merging by keys, and the order of the result.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use kube_schema::{Form, PatchStrategy, Shape, Type};
use serde_json::Value;

use super::{
    PATCH, Refusal, SET_ORDER, Schema, directed_field, expected, go_type, merge_objects, no_field,
    plain, unknown_directive, without_marked,
};
use crate::object::Object;

const MAP: &str = "map[string]interface {}";
const LIST: &str = "[]interface {}";

/// The merge strategy of a field's lists.
pub(super) struct ListField {
    items: Schema,
    merges: bool,
    key: Option<&'static str>,
}

impl ListField {
    /// Returns the merge strategy of a member's lists. Lists of unknown fields are replaced.
    pub(super) fn of(schema: Schema, name: &str) -> Result<Self, Refusal> {
        let Some(field) = schema.field(name)? else {
            return Ok(Self { items: Schema::Unknown, merges: false, key: None });
        };
        let items = match (field.shape(), field.kind()) {
            (Shape::List, kind) => Schema::of(kind),
            (_, Type::Message(message)) if message.form() == Form::List => Schema::Other("string"),
            (Shape::Optional, kind) => Schema::of(kind),
            _ => {
                let why = "expected slice or array type, but got: struct";
                return Err(Refusal::Mismatch(why.to_owned()));
            }
        };
        let merges = field.patch_strategy() == PatchStrategy::Merge;
        Ok(Self { items, merges, key: field.merge_key() })
    }

    /// Merges two lists. With `deletes`, the second contains scalars to remove from the first.
    pub(super) fn merge(
        &self,
        original: Vec<Value>,
        patch: Vec<Value>,
        deletes: bool,
    ) -> Result<Vec<Value>, Refusal> {
        if !self.merges && !deletes {
            return Ok(patch.into_iter().map(plain).collect());
        }
        if original.is_empty() && patch.is_empty() {
            return Ok(original);
        }
        if !are_objects(&original, &patch)? {
            return self.merge_scalars(original, patch, deletes);
        }
        let Some(key) = self.key else {
            let why = match self.items {
                Schema::Message(_) | Schema::Unknown => "struct",
                Schema::Other(kind) => kind,
            };
            return Err(Refusal::Mismatch(format!(
                "cannot merge lists without merge key for {why}"
            )));
        };
        let (original, patch) = apply_directives(original, patch, key)?;
        let (patch_order, server_order) =
            (Order::of(&patch, Some(key))?, Order::of(&original, Some(key))?);
        let merged = self.merge_items(original, patch, key)?;
        arrange(merged, &patch_order, &server_order, Some(key))
    }

    fn merge_scalars(
        &self,
        original: Vec<Value>,
        patch: Vec<Value>,
        deletes: bool,
    ) -> Result<Vec<Value>, Refusal> {
        let (patch_order, server_order) = (Order::of(&patch, None)?, Order::of(&original, None)?);
        if deletes {
            return Ok(original.into_iter().filter(|item| !patch_order.has(item)).collect());
        }
        if let (Some(_), Some(item)) = (self.key, original.first().or(patch.first())) {
            return Err(expected(MAP, item));
        }
        let mut seen = HashSet::new();
        let mut both = original;
        both.extend(patch);
        let mut merged = Vec::with_capacity(both.len());
        for item in both {
            if seen.insert(Scalar::of(&item)?) {
                merged.push(item);
            }
        }
        arrange(merged, &patch_order, &server_order, None)
    }

    /// Merges each item of the patch into the first that has its key, or appends it.
    fn merge_items(
        &self,
        original: Vec<Value>,
        patch: Vec<Value>,
        key: &str,
    ) -> Result<Vec<Value>, Refusal> {
        let mut merged = original;
        let mut places = HashMap::new();
        for (at, item) in merged.iter().enumerate() {
            places.entry(key_of(item, key)?).or_insert(at);
        }
        for item in patch {
            match places.entry(key_of(&item, key)?) {
                Entry::Occupied(place) => {
                    let old = &mut merged[*place.get()];
                    let (Value::Object(before), Value::Object(change)) = (old.take(), item) else {
                        return Err(Refusal::Unprocessable);
                    };
                    *old = Value::Object(merge_objects(before, change, self.items)?);
                }
                Entry::Vacant(place) => {
                    place.insert(merged.len());
                    merged.push(plain(item));
                }
            }
        }
        Ok(merged)
    }
}

/// Applies the `$patch` directives of items. Returns the remaining items of both lists.
fn apply_directives(
    original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Refusal> {
    let (mut items, mut deleted, mut replace) = (Vec::new(), HashSet::new(), false);
    for item in patch {
        match item.get(PATCH) {
            None => items.push(item),
            Some(directive) => match directive.as_str() {
                Some("delete") => drop(deleted.insert(key_of(&item, key)?)),
                Some("replace") => replace = true,
                Some("merge") => {
                    let why = "merging lists cannot yet be specified in the patch";
                    return Err(Refusal::Mismatch(why.to_owned()));
                }
                _ => return Err(unknown_directive(directive)),
            },
        }
    }
    if replace {
        return Ok((items.into_iter().map(plain).collect(), Vec::new()));
    }
    if deleted.is_empty() {
        return Ok((original, items));
    }
    let is_left = |item: &Value| key_of(item, key).is_ok_and(|value| !deleted.contains(&value));
    Ok((original.into_iter().filter(is_left).collect(), items))
}

/// Merges and orders the lists for which a patch sets an order, and removes them from the patch.
pub(super) fn set_orders(
    original: &mut Object,
    patch: &mut Object,
    schema: Schema,
) -> Result<(), Refusal> {
    let orders: Vec<String> =
        patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
    for directive in orders {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(expected(LIST, &other.unwrap_or_default())),
        };
        let name = directed_field(&directive, SET_ORDER)
            .ok_or(Refusal::Malformed("invalid patch format of setElementOrder list"))?;
        let (old, new) = (taken_list(original, name)?, taken_list(patch, name)?);
        if schema.field(name)?.is_none() {
            return Err(no_field(schema.name(), name));
        }
        let field = ListField::of(schema, name)?;
        check_order(new.as_deref().unwrap_or_default(), &order, field.key)?;
        if let Some(ordered) = in_order(&field, old, new, &order)? {
            original.insert(name.to_owned(), Value::Array(ordered));
        }
    }
    Ok(())
}

fn taken_list(object: &mut Object, name: &str) -> Result<Option<Vec<Value>>, Refusal> {
    match object.remove(name) {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(other) => Err(expected(LIST, &other)),
    }
}

/// Merges two lists in the order that a patch sets.
fn in_order(
    field: &ListField,
    old: Option<Vec<Value>>,
    new: Option<Vec<Value>>,
    order: &[Value],
) -> Result<Option<Vec<Value>>, Refusal> {
    if old.is_none() && new.is_none() {
        return Ok(None);
    }
    let empty = Vec::new();
    let (olds, news) = (old.as_ref().unwrap_or(&empty), new.as_ref().unwrap_or(&empty));
    if olds.is_empty() && news.is_empty() {
        let why = "no elements in any of the given slices";
        return Err(Refusal::Mismatch(why.to_owned()));
    }
    are_objects(olds, news)?;
    let server_order = order_after_deletions(olds, news, field.key)?;
    let merged = match (old, new) {
        (Some(old), Some(new)) => field.merge(old, new, false)?,
        (Some(old), None) => old,
        (None, new) => new.into_iter().flatten().filter_map(without_marked).collect(),
    };
    arrange(merged, &Order::of(order, field.key)?, &server_order, field.key).map(Some)
}

/// Returns the order of a list after a patch has deleted some of its items. In Go, new items first
/// take the places of deleted ones, and then the list is ordered.
fn order_after_deletions(
    olds: &[Value],
    news: &[Value],
    key: Option<&str>,
) -> Result<Order, Refusal> {
    let Some(key) = key else { return Order::of(olds, None) };
    let is_deleted = |item: &&Value| item.get(PATCH).is_some_and(|word| word == "delete");
    let deleted = Order::of(news.iter().filter(is_deleted), Some(key))?;
    let is_left = |item: &&Value| item.get(key).is_none_or(|value| !deleted.has(value));
    let left: Vec<&Value> = olds.iter().filter(is_left).collect();
    let mut order = Order::of(left.iter().copied(), Some(key))?;
    let mut places = left.len()..olds.len();
    for item in news.iter().filter(|item| item.get(PATCH).is_none()) {
        if let Entry::Vacant(entry) = order.0.entry(key_of(item, key)?)
            && let Some(place) = places.next()
        {
            entry.insert(place);
        }
    }
    Ok(order)
}

/// Checks that the items of a patch occur in an order, and in the same sequence.
fn check_order(items: &[Value], order: &[Value], key: Option<&str>) -> Result<(), Refusal> {
    if items.is_empty() || order.is_empty() {
        return Ok(());
    }
    if let (Some(_), Some(item)) = (key, items.iter().find(|item| !item.is_object())) {
        return Err(expected(MAP, item));
    }
    let mut items = items.iter().filter(|item| item.get(PATCH).is_none()).peekable();
    for place in order {
        let Some(item) = items.peek() else { break };
        if sort_value(item, key)? == sort_value(place, key)? {
            items.next();
        }
    }
    if items.peek().is_some() {
        // A real server includes both lists.
        let why = format!("The order in patch list doesn't match {SET_ORDER} list");
        return Err(Refusal::Mismatch(why));
    }
    Ok(())
}

/// Orders a merged list. The items of the patch keep the patch's order. Each other item comes
/// before the first item of the patch that it used to precede.
fn arrange(
    merged: Vec<Value>,
    patch_order: &Order,
    server_order: &Order,
    key: Option<&str>,
) -> Result<Vec<Value>, Refusal> {
    let (mut patched, mut others) = (Vec::new(), Vec::new());
    for item in merged {
        let value = sort_value(&item, key)?;
        let server_place = server_order.place(&value);
        match patch_order.place(&value) {
            Some(place) => patched.push((place, server_place, item)),
            None => others.push((server_place, item)),
        }
    }
    patched.sort_by_key(|(place, _, _)| *place);
    // Items that are in neither list come last. This requires an empty order.
    others.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));
    let mut arranged = Vec::with_capacity(patched.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, server_place, item) in patched {
        let is_before = |other: &(Option<usize>, Value)| matches!((other.0, server_place), (Some(other), Some(place)) if other < place);
        while let Some((_, other)) = others.next_if(is_before) {
            arranged.push(other);
        }
        arranged.push(item);
    }
    arranged.extend(others.map(|(_, item)| item));
    Ok(arranged)
}

/// The positions of a list's items, by their merge keys or scalar values.
struct Order(HashMap<Scalar, usize>);

impl Order {
    fn of<'a>(
        items: impl IntoIterator<Item = &'a Value>,
        key: Option<&str>,
    ) -> Result<Self, Refusal> {
        let mut places = HashMap::new();
        for (at, item) in items.into_iter().enumerate() {
            places.entry(sort_value(item, key)?).or_insert(at);
        }
        Ok(Self(places))
    }

    fn place(&self, value: &Scalar) -> Option<usize> {
        self.0.get(value).copied()
    }

    fn has(&self, value: &Value) -> bool {
        Scalar::of(value).is_ok_and(|value| self.0.contains_key(&value))
    }
}

#[cfg(test)]
std::thread_local! {
    /// The number of scalars that were read on this thread, with which tests measure the work of a
    /// merge.
    pub(super) static SCALARS_READ: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A value that identifies an item. As in Go, an integer never equals a float.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Scalar {
    Null,
    Bool(bool),
    Integer(i64),
    Float(u64),
    Text(String),
}

impl Scalar {
    fn of(value: &Value) -> Result<Self, Refusal> {
        #[cfg(test)]
        SCALARS_READ.with(|count| count.set(count.get() + 1));
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match number.as_i64() {
                Some(integer) => Self::Integer(integer),
                None => Self::Float(number.as_f64().unwrap_or_default().to_bits()),
            },
            Value::String(text) => Self::Text(text.clone()),
            // A real server panics.
            Value::Array(_) | Value::Object(_) => return Err(Refusal::Unprocessable),
        })
    }
}

fn sort_value(item: &Value, key: Option<&str>) -> Result<Scalar, Refusal> {
    match key {
        Some(key) => key_of(item, key),
        None => Scalar::of(item),
    }
}

/// Returns the value of an item's merge key.
fn key_of(item: &Value, key: &str) -> Result<Scalar, Refusal> {
    let members = item.as_object().ok_or_else(|| expected(MAP, item))?;
    match members.get(key) {
        Some(value) => Scalar::of(value),
        // A real server includes the item.
        None => Err(Refusal::Mismatch(format!("map does not contain declared merge key: {key}"))),
    }
}

/// Returns whether the items of two lists are objects. Otherwise all must be scalars of the same
/// type.
fn are_objects(original: &[Value], patch: &[Value]) -> Result<bool, Refusal> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else { return Ok(false) };
    // There are no lists of lists, and a real server panics on null.
    if first.is_null() || first.is_array() {
        return Err(Refusal::Unprocessable);
    }
    if items.any(|item| go_type(item) != go_type(first)) {
        // A real server includes both lists.
        return Err(Refusal::Mismatch("list element types are not identical".to_owned()));
    }
    Ok(first.is_object())
}
