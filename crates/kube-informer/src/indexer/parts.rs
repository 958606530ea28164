//! Content that is listed and watched as a whole, or in parts of one namespace each.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::ResourceVersion;

/// The parts of the content, each with its own version.
pub(super) struct Parts(Vec<Part>);

struct Part {
    /// The namespace of the part; `None` if the only part is all namespaces.
    namespace: Option<Arc<str>>,
    /// Empty before the first list, or if the server provides none.
    version: ResourceVersion,
    listed: bool,
}

impl Part {
    fn of(namespace: Option<Arc<str>>) -> Self {
        Self { namespace, version: ResourceVersion::default(), listed: false }
    }
}

impl Default for Parts {
    fn default() -> Self {
        Self(vec![Part::of(None)])
    }
}

impl Parts {
    pub(super) fn of_namespaces(namespaces: &[Arc<str>]) -> Self {
        Self(namespaces.iter().map(|namespace| Part::of(Some(namespace.clone()))).collect())
    }

    /// Returns the namespace of a part; `None` if it is everything.
    pub(super) fn namespace(&self, part: usize) -> Option<&str> {
        self.0.get(part)?.namespace.as_deref()
    }

    /// Advances the version of a part, never back: after a list, all changes are of one history. An empty
    /// version has no effect.
    pub(super) fn advance(&mut self, part: usize, version: &ResourceVersion) {
        let Some(part) = self.0.get_mut(part) else { return };
        let older = *version < part.version;
        if !older && !version.is_empty() {
            part.version = version.clone();
        }
    }

    /// Returns whether a version is older than the part's.
    pub(super) fn is_before(&self, part: usize, version: &ResourceVersion) -> bool {
        self.0.get(part).is_some_and(|part| *version < part.version)
    }

    /// Sets the version of a part after a list, whatever it was before.
    pub(super) fn set(&mut self, part: usize, version: ResourceVersion) {
        if let Some(part) = self.0.get_mut(part) {
            (part.version, part.listed) = (version, true);
        }
    }

    /// Returns whether every part has been listed.
    pub(super) fn are_listed(&self) -> bool {
        self.0.iter().all(|part| part.listed)
    }

    /// Returns the version of the whole: the lowest version of any part. It is empty before all parts are
    /// listed, or if versions cannot be compared.
    pub(super) fn version(&self) -> ResourceVersion {
        let mut versions = self.0.iter().map(|part| &part.version);
        let first = versions.next().cloned().unwrap_or_default();
        versions.fold(first, |least, version| match version.partial_cmp(&least) {
            Some(Ordering::Less) => version.clone(),
            Some(_) => least,
            None => ResourceVersion::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_the_whole_is_as_far_as_the_part_that_is_least_far() {
        let mut parts = Parts::of_namespaces(&["a".into(), "b".into()]);
        parts.set(0, "7".into());
        assert!(!parts.are_listed() && parts.version().is_empty());
        parts.set(1, "9".into());
        assert!(parts.are_listed());
        assert_eq!(parts.version(), "7");
        parts.advance(0, &"12".into());
        assert_eq!(parts.version(), "9");
        parts.advance(0, &"3".into());
        parts.advance(1, &"10".into());
        assert_eq!(parts.version(), "10");
    }

    #[test]
    fn versions_that_cannot_be_compared_promise_nothing_together() {
        let mut parts = Parts::of_namespaces(&["a".into(), "b".into()]);
        parts.set(0, "x".into());
        parts.set(1, "y".into());
        assert!(parts.version().is_empty() && parts.are_listed());
    }
}
