//! The subresources that are served, with their verbs and kinds.

use std::borrow::Cow;
use std::sync::Arc;

use super::builtin::{cluster, namespaced};
use super::{Resource, Text, scale};

/// A subresource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subresource {
    Approval,
    Attach,
    Binding,
    EphemeralContainers,
    Eviction,
    Exec,
    Finalize,
    Log,
    PortForward,
    Proxy,
    Resize,
    Scale,
    Status,
}

impl Subresource {
    /// Returns the subresources of a resource in the order of a real server: by name, except for
    /// custom resources.
    pub(crate) fn of(resource: &Resource) -> Vec<Self> {
        let status = resource.status.then_some(Self::Status);
        let scale = resource.scale.as_ref().map(|_| Self::Scale);
        if resource.custom {
            return status.into_iter().chain(scale).collect();
        }
        let own: &[Self] = match (&*resource.group, &*resource.plural) {
            ("", "pods") => &[
                Self::Attach,
                Self::Binding,
                Self::EphemeralContainers,
                Self::Eviction,
                Self::Exec,
                Self::Log,
                Self::PortForward,
                Self::Proxy,
                Self::Resize,
            ],
            ("", "nodes" | "services") => &[Self::Proxy],
            ("", "namespaces") => &[Self::Finalize],
            ("certificates.k8s.io", "certificatesigningrequests") => &[Self::Approval],
            _ => &[],
        };
        own.iter().copied().chain(scale).chain(status).collect()
    }

    /// Returns its name in paths.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Attach => "attach",
            Self::Binding => "binding",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Eviction => "eviction",
            Self::Exec => "exec",
            Self::Finalize => "finalize",
            Self::Log => "log",
            Self::PortForward => "portforward",
            Self::Proxy => "proxy",
            Self::Resize => "resize",
            Self::Scale => "scale",
            Self::Status => "status",
        }
    }

    /// Returns its verbs, as discovery lists them.
    pub(crate) fn verbs(self) -> &'static [&'static str] {
        match self {
            Self::Attach | Self::Exec | Self::PortForward => &["create", "get"],
            Self::Binding | Self::Eviction => &["create"],
            Self::Finalize => &["update"],
            Self::Log => &["get"],
            Self::Proxy => &["create", "delete", "get", "patch", "update"],
            Self::Approval
            | Self::EphemeralContainers
            | Self::Resize
            | Self::Scale
            | Self::Status => &["get", "patch", "update"],
        }
    }

    /// Returns the group and version of its objects, if they are not those of the resource.
    pub(crate) fn group_version(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Eviction => Some(("policy", "v1")),
            Self::Scale => Some((scale::GROUP, scale::VERSION)),
            _ => None,
        }
    }

    /// Returns the kind of its objects.
    pub(crate) fn kind(self, of: &Resource) -> Text {
        match self {
            Self::Attach => Cow::Borrowed("PodAttachOptions"),
            Self::Binding => Cow::Borrowed("Binding"),
            Self::Eviction => Cow::Borrowed("Eviction"),
            Self::Exec => Cow::Borrowed("PodExecOptions"),
            Self::PortForward => Cow::Borrowed("PodPortForwardOptions"),
            Self::Proxy => Cow::Owned(format!("{}ProxyOptions", of.kind)),
            Self::Scale => Cow::Borrowed(scale::KIND),
            Self::Approval
            | Self::EphemeralContainers
            | Self::Finalize
            | Self::Log
            | Self::Resize
            | Self::Status => of.kind.clone(),
        }
    }

    /// Returns a resource whose objects are those of the subresource, for reading them.
    pub(crate) fn resource(self, of: &Resource) -> Arc<Resource> {
        let row = if of.namespaced { namespaced("", "") } else { cluster("", "") };
        let (group, version) = match self.group_version() {
            Some((group, version)) => (Cow::Borrowed(group), Cow::Borrowed(version)),
            None => (of.group.clone(), of.version.clone()),
        };
        Arc::new(Resource { group, version, kind: self.kind(of), ..row })
    }

    /// Returns whether requests may take any time.
    pub(crate) fn is_long_running(self) -> bool {
        matches!(self, Self::Attach | Self::Exec | Self::Log | Self::PortForward | Self::Proxy)
    }
}
