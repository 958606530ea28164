//! A filter for requests, which denials and faults share.

use crate::request::{Target, Verb};

/// A filter that matches requests which meet all its conditions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    pub(crate) user: Option<String>,
    /// If empty, all verbs match.
    pub(crate) verbs: Vec<Verb>,
    pub(crate) group: Option<String>,
    pub(crate) resource: Option<String>,
    pub(crate) namespace: Option<String>,
}

impl Filter {
    /// Returns whether a user's request matches. A request without a target concerns no resource,
    /// and matches only a filter without conditions on one.
    pub(crate) fn fits(&self, user: &str, target: Option<&Target>) -> bool {
        self.user.as_deref().is_none_or(|wanted| wanted == user)
            && target.map_or_else(|| self.asks_for_no_resource(), |target| self.fits_target(target))
    }

    fn fits_target(&self, target: &Target) -> bool {
        (self.verbs.is_empty() || self.verbs.contains(&target.verb))
            && self.group.as_deref().is_none_or(|group| group == target.resource.group)
            && self.resource.as_deref().is_none_or(|resource| resource == target.resource_path())
            && self.namespace.as_deref().is_none_or(|namespace| namespace == target.namespace())
    }

    fn asks_for_no_resource(&self) -> bool {
        self.verbs.is_empty()
            && self.group.is_none()
            && self.resource.is_none()
            && self.namespace.is_none()
    }
}
