//! Labels, shared between objects that have the same ones.

use crate::Selector;

/// An object's labels, sorted by their names.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels(Vec<(Box<str>, Box<str>)>);

impl Labels {
    pub(crate) fn new(labels: impl IntoIterator<Item = (Box<str>, Box<str>)>) -> Self {
        let mut labels: Vec<_> = labels.into_iter().collect();
        labels.sort_unstable();
        Self(labels)
    }

    /// The value of a label.
    pub fn get(&self, label: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(name, _)| (**name).cmp(label)).ok()?;
        Some(&self.0[at].1)
    }

    /// All of them, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// None.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a selector matches.
    pub fn matches(&self, selector: &Selector) -> bool {
        selector.matches(self)
    }
}
