//! The index of objects by their owners, for garbage collection.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Store;
use super::key::Key;
use super::revision::Revision;
use crate::limits::OWNERS_MAX;

/// The owners of an object. `None` for an object without owners, and for one with too many.
pub(crate) type Owners = Option<Arc<[Owner]>>;

/// A reference to an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: Arc<str>,
    /// Whether an owner that is deleted in the foreground waits for the object.
    pub(crate) blocks: bool,
}

/// Reads the owners from an object's metadata.
pub(super) fn owners_of(metadata: &Map<String, Value>) -> Owners {
    let owners = metadata.get("ownerReferences")?.as_array()?;
    if owners.is_empty() || owners.len() > OWNERS_MAX {
        return None;
    }
    let owner = |owner: &Value| Owner {
        uid: owner.get("uid").and_then(Value::as_str).unwrap_or_default().into(),
        blocks: owner.get("blockOwnerDeletion").and_then(Value::as_bool).unwrap_or(false),
    };
    Some(owners.iter().map(owner).collect())
}

/// An object that names an owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dependent {
    owner: Arc<str>,
    /// Sorts the dependents for which an owner waits before the others.
    waited_for: std::cmp::Reverse<bool>,
    pub(crate) table: Arc<str>,
    pub(crate) key: Arc<Key>,
}

/// All dependents, sorted by the uid of their owner.
#[derive(Debug, Default)]
pub(super) struct Owned(BTreeSet<Dependent>);

impl Owned {
    /// Updates the index after a write. Most writes do not change the owners.
    pub(super) fn replace(&mut self, table: &Arc<str>, key: &Arc<Key>, old: &Owners, new: &Owners) {
        if old == new {
            return;
        }
        let entry = |owner: &Owner| Dependent {
            owner: Arc::clone(&owner.uid),
            waited_for: std::cmp::Reverse(owner.blocks),
            table: Arc::clone(table),
            key: Arc::clone(key),
        };
        for owner in old.iter().flat_map(|owners| owners.iter()) {
            self.0.remove(&entry(owner));
        }
        self.0.extend(new.iter().flat_map(|owners| owners.iter()).map(entry));
    }

    /// Replaces the index with that of a snapshot's objects.
    pub(super) fn restore(&mut self, tables: &BTreeMap<Arc<str>, Vec<Arc<Revision>>>) {
        self.0.clear();
        for (table, states) in tables {
            for state in states {
                self.replace(table, state.key(), &None, state.owners());
            }
        }
    }

    /// Returns up to `max` dependents of an owner, from the first or after another one.
    pub(super) fn of(&self, owner: &str, after: Option<&Dependent>, max: usize) -> Vec<Dependent> {
        self.range(owner, after).take(max).cloned().collect()
    }

    /// Returns whether an owner has dependents.
    pub(super) fn any(&self, owner: &str) -> bool {
        !self.0.is_empty() && self.range(owner, None).next().is_some()
    }

    /// Returns whether an owner that is deleted in the foreground has to wait for dependents.
    pub(super) fn any_blocks(&self, owner: &str) -> bool {
        self.range(owner, None).next().is_some_and(|first| first.waited_for.0)
    }

    fn range<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&Dependent>,
    ) -> impl Iterator<Item = &'a Dependent> + use<'a> {
        let first = || Dependent {
            owner: owner.into(),
            waited_for: std::cmp::Reverse(true),
            table: "".into(),
            key: Arc::new(Key::new("", "")),
        };
        let start = match after {
            Some(after) => Bound::Excluded(after.clone()),
            None => Bound::Included(first()),
        };
        self.0.range((start, Bound::Unbounded)).take_while(move |entry| &*entry.owner == owner)
    }
}

/// The reads of garbage collection.
impl Store {
    /// Returns the latest retained deletions of a key: enough to recognize an owner that was deleted a
    /// moment ago.
    pub(crate) fn last_deletions(&self, table: &str, key: &Key) -> Vec<Arc<Revision>> {
        const MAX: usize = 16;
        let state = self.state.read();
        let states = state.tables.get(table).map(|table| table.history(key)).unwrap_or_default();
        states.iter().rev().filter(|state| state.is_deleted()).take(MAX).cloned().collect()
    }

    /// Returns up to `max` objects that name an owner, from the first or after another one.
    pub(crate) fn dependents(
        &self,
        owner: &str,
        after: Option<&Dependent>,
        max: usize,
    ) -> Vec<Dependent> {
        self.state.read().owned.of(owner, after, max)
    }

    /// Returns whether objects name this owner.
    pub(crate) fn has_dependents(&self, owner: &str) -> bool {
        self.state.read().owned.any(owner)
    }

    /// Returns whether an owner that is deleted in the foreground has to wait for objects.
    pub(crate) fn is_blocked(&self, owner: &str) -> bool {
        self.state.read().owned.any_blocks(owner)
    }

    /// Returns the name of the first table after another one.
    pub(crate) fn table_after(&self, name: &str) -> Option<Arc<str>> {
        let bounds = (Bound::Excluded(name), Bound::Unbounded);
        self.state.read().tables.range::<str, _>(bounds).next().map(|(name, _)| Arc::clone(name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owners(references: &Value) -> Owners {
        owners_of(json!({"ownerReferences": references}).as_object().expect("an object"))
    }

    #[test]
    fn dependents_are_found_page_by_page() {
        let mut owned = Owned::default();
        let table: Arc<str> = "pods".into();
        for (name, owner, blocks) in
            [("a", "x", false), ("b", "x", true), ("c", "y", false), ("d", "x", false)]
        {
            let new = owners(&json!([{"uid": owner, "blockOwnerDeletion": blocks}]));
            owned.replace(&table, &Arc::new(Key::new("n", name)), &None, &new);
        }
        let first = owned.of("x", None, 2);
        let names = |found: &[Dependent]| -> Vec<String> {
            found.iter().map(|found| found.key.name().to_owned()).collect()
        };
        assert_eq!(names(&first), ["b", "a"]);
        assert_eq!(names(&owned.of("x", first.last(), 2)), ["d"]);
        assert!(owned.any_blocks("x") && !owned.any_blocks("y"));
        assert!(owned.any("y") && !owned.any("z"));

        let key = Arc::new(Key::new("n", "b"));
        let blocking = owners(&json!([{"uid": "x", "blockOwnerDeletion": true}]));
        owned.replace(&table, &key, &blocking, &owners(&json!([{"uid": "x"}])));
        assert!(!owned.any_blocks("x"));
        owned.replace(&table, &key, &owners(&json!([{"uid": "x"}])), &None);
        assert_eq!(names(&owned.of("x", None, 9)), ["a", "d"]);
    }

    #[test]
    fn objects_with_too_many_owners_are_not_indexed() {
        let many = |count: usize| owners(&vec![json!({"uid": "x"}); count].into());
        assert!(many(OWNERS_MAX).is_some());
        assert!(many(OWNERS_MAX + 1).is_none());
        assert!(owners(&json!([])).is_none());
        assert!(owners(&json!("nonsense")).is_none());
        assert_eq!(owners(&json!([1, null])).expect("two").len(), 2);
    }
}
