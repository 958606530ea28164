//! The fields of an object that its `scale` subresource shows, and the `Scale` itself.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::builtin::{cluster, namespaced};
use super::{Resource, Text};

pub(crate) const GROUP: &str = "autoscaling";
pub(crate) const VERSION: &str = "v1";
pub(crate) const KIND: &str = "Scale";

/// Members in a path. A path comes from a definition and decides how deep objects can become; real ones have two or
/// three.
pub(super) const PATH_MEMBERS_MAX: usize = 16;

/// The fields of an object that are its scale, as dotted paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: Text,
    pub(crate) status_replicas: Text,
    pub(crate) selector: SelectorField,
}

/// The field that selects the pods of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SelectorField {
    /// `spec.selector` is a `LabelSelector`.
    LabelSelector,
    /// `spec.selector` is a map of labels: replication controllers.
    Labels,
    /// The field at this path is a selector as text: custom resources.
    Text(Text),
    /// The definition of the custom resource names none.
    Absent,
}

impl ScalePaths {
    /// The scale of a built-in kind.
    pub(super) const fn builtin(selector: SelectorField) -> Self {
        Self {
            spec_replicas: Cow::Borrowed("spec.replicas"),
            status_replicas: Cow::Borrowed("status.replicas"),
            selector,
        }
    }

    /// Reads `subresources.scale` of a definition's version. Returns `None` if it has none that can be served.
    pub(super) fn custom(scale: &Value) -> Option<Self> {
        let path = |field: &str, roots: &[&str]| {
            let path = scale[field].as_str()?;
            is_path_under(path, roots).then(|| Cow::Owned(path[1..].to_owned()))
        };
        Some(Self {
            spec_replicas: path("specReplicasPath", &[".spec."])?,
            status_replicas: path("statusReplicasPath", &[".status."])?,
            selector: path("labelSelectorPath", &[".spec.", ".status."])
                .map_or(SelectorField::Absent, SelectorField::Text),
        })
    }
}

/// Whether a path of a definition is a plain one under one of these roots.
pub(crate) fn is_path_under(path: &str, roots: &[&str]) -> bool {
    let members = path.split('.').skip(1);
    roots.iter().any(|root| path.starts_with(root))
        && members.clone().count() <= PATH_MEMBERS_MAX
        && members.into_iter().all(|member| !member.is_empty())
}

/// Returns the resource whose one kind is `Scale`. It is not served by itself, only as a subresource of `of`.
pub(crate) fn resource(of: &Resource) -> Arc<Resource> {
    let row = if of.namespaced { namespaced("scales", KIND) } else { cluster("scales", KIND) };
    Arc::new(Resource { group: Cow::Borrowed(GROUP), version: Cow::Borrowed(VERSION), ..row })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn definitions_name_the_fields_of_a_scale() {
        let scale = |status: &str| {
            ScalePaths::custom(&json!({
                "specReplicasPath": ".spec.size", "statusReplicasPath": status,
            }))
        };
        let read = scale(".status.size.now").expect("both paths are valid");
        assert_eq!(
            (&*read.spec_replicas, &*read.status_replicas),
            ("spec.size", "status.size.now")
        );
        assert_eq!(read.selector, SelectorField::Absent);
        let deep = format!(".status{}", ".x".repeat(PATH_MEMBERS_MAX));
        for refused in ["", "status.size", ".spec.size", ".status.", ".status.a..b", &deep] {
            assert_eq!(scale(refused), None, "{refused}");
        }
        assert_eq!(ScalePaths::custom(&Value::Null), None);
    }
}
