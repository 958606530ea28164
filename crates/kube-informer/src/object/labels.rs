//! Labels, shared between objects that have the same ones.

use std::fmt;

use crate::Selector;

/// An object's labels, sorted by name.
#[derive(Default, PartialEq, Eq, Hash)]
pub struct Labels {
    /// All names and values, concatenated.
    text: Box<str>,
    /// The end of each name and of each value.
    ends: Box<[(u32, u32)]>,
}

impl Labels {
    /// Creates labels that are given in any order. If a name occurs twice, the last value counts.
    #[cfg(test)]
    pub(crate) fn new<N: AsRef<str>, V: AsRef<str>>(
        labels: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let labels: Vec<(N, V)> = labels.into_iter().collect();
        let pairs = labels.iter().map(|(name, value)| (name.as_ref(), value.as_ref()));
        let sorted: std::collections::BTreeMap<_, _> = pairs.collect();
        Self::sorted(sorted.into_iter())
    }

    /// Creates labels that are given sorted by name, without duplicates.
    pub(super) fn sorted<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for (name, value) in labels {
            text.push_str(name);
            let end = text.len() as u32;
            text.push_str(value);
            ends.push((end, text.len() as u32));
        }
        Self { text: text.into(), ends: ends.into() }
    }

    /// Returns the value of a label.
    pub fn get(&self, label: &str) -> Option<&str> {
        // Most objects have so few labels that a linear search is as fast as any.
        self.iter().find(|(name, _)| *name == label).map(|(_, value)| value)
    }

    /// Returns all labels, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut start = 0;
        self.ends.iter().map(move |&(name, value)| {
            let (from, name) = (start, name as usize);
            start = value as usize;
            let part = |range| self.text.get(range).unwrap_or_default();
            (part(from..name), part(name..start))
        })
    }

    /// Returns the number of labels.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns whether a selector matches these labels.
    pub fn matches(&self, selector: &Selector) -> bool {
        selector.matches(self)
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
