//! Filters by name, and the objects that pass them.

use std::collections::HashSet;

use regex_lite::Regex;

use crate::record::{Happened, Record};

/// The filters of the command line.
#[derive(Clone, Default, Debug)]
pub(super) struct Names {
    pub(super) only: Option<Regex>,
    pub(super) exclude: Option<Regex>,
}

impl Names {
    pub(super) fn is_empty(&self) -> bool {
        self.only.is_none() && self.exclude.is_none()
    }

    pub(super) fn passes(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.is_match(name))
            && !self.exclude.as_ref().is_some_and(|exclude| exclude.is_match(name))
    }
}

/// The keys of the objects that pass the filters, for each type. Bounded by the cache.
///
/// They are kept rather than counted, so that an event that arrives after its object was counted
/// changes nothing.
#[derive(Debug)]
pub(super) struct Matches(Vec<HashSet<String>>);

impl Matches {
    pub(super) fn new(types: usize) -> Self {
        Self(vec![HashSet::new(); types])
    }

    /// Adds the object of an event, or removes it if it was deleted.
    pub(super) fn observe(&mut self, record: &Record) {
        let Some(keys) = self.0.get_mut(record.watched.place) else { return };
        match record.happened {
            Happened::Add => drop(keys.insert(record.key())),
            Happened::Delete => drop(keys.remove(record.object.key().as_str())),
            Happened::Update | Happened::Resync => {}
        }
    }

    pub(super) fn add(&mut self, place: usize, key: &str) {
        if let Some(keys) = self.0.get_mut(place) {
            keys.insert(key.to_owned());
        }
    }

    /// Returns the number of matching objects of the type at this position.
    pub(super) fn of(&self, place: usize) -> usize {
        self.0.get(place).map_or(0, HashSet::len)
    }

    /// Returns the number of matching objects of all types.
    pub(super) fn all(&self) -> usize {
        self.0.iter().map(HashSet::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_pass_both_filters() {
        let names = |only: Option<&str>, exclude: Option<&str>| Names {
            only: only.map(|only| Regex::new(only).unwrap()),
            exclude: exclude.map(|exclude| Regex::new(exclude).unwrap()),
        };
        assert!(names(None, None).is_empty() && names(None, None).passes("a"));
        let web = names(Some("^web"), Some("canary"));
        assert!(web.passes("web-1"));
        assert!(!web.passes("web-canary") && !web.passes("db-1"));
        assert!(names(None, Some("db")).passes("web-1"));
    }
}
