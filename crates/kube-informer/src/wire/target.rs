//! The subject of requests.

use std::fmt::Write as _;

use kube_core::ApiResource;

use super::protobuf::ListFields;
use crate::object::Types;
use crate::{Error, Result};

/// Names of namespaces are DNS labels, which are no longer than this.
const NAMESPACE_BYTES_MAX: usize = 63;

/// A resource in a scope, which of its objects, and whether only their metadata.
#[derive(Clone, Default, Debug)]
pub(crate) struct Target {
    /// The part of paths before `/api`; nearly always empty.
    pub(crate) prefix: String,
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// `None` if only the server knows.
    pub(crate) kind: Option<String>,
    /// `None` for cluster-scoped resources and for all namespaces.
    pub(crate) namespace: Option<String>,
    /// The label selector; empty for all.
    pub(crate) labels: String,
    /// The field selector; empty for all.
    pub(crate) fields: String,
    pub(crate) metadata_only: bool,
}

impl Target {
    pub(crate) fn new(resource: &ApiResource) -> Self {
        Self {
            group: resource.group.clone(),
            version: resource.version.clone(),
            plural: resource.plural.clone(),
            kind: Some(resource.kind.clone()).filter(|kind| !kind.is_empty()),
            ..Self::default()
        }
    }

    /// Parses a path such as `/apis/apps/v1/namespaces/web/deployments`, as a kube `Api` has it.
    pub(crate) fn from_path(path: &str, namespace: Option<&str>) -> Option<Self> {
        let (scope, plural) = path.rsplit_once('/')?;
        let scope = match namespace {
            Some(namespace) => scope.strip_suffix(namespace)?.strip_suffix("/namespaces/")?,
            None => scope,
        };
        let (rest, version) = scope.rsplit_once('/')?;
        let (prefix, group) = if let Some(prefix) = rest.strip_suffix("/api") {
            (prefix, "")
        } else {
            let (rest, group) = rest.rsplit_once('/')?;
            (rest.strip_suffix("/apis")?, group)
        };
        Some(Self {
            prefix: prefix.to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.map(str::to_owned),
            ..Self::default()
        })
    }

    /// Returns the path of requests. A name that cannot be part of a path is an error, and never leads to
    /// another path.
    pub(crate) fn path(&self) -> Result<String> {
        for (what, name) in
            [("group", &self.group), ("version", &self.version), ("plural", &self.plural)]
        {
            let core = what == "group" && name.is_empty();
            if !core && !is_path_part(name) {
                return Err(Error::invalid(format!(
                    "{name:?} cannot be the {what} of a resource: letters, digits, '.' and '-' can"
                )));
            }
        }
        let mut path = self.prefix.clone();
        path.push_str(if self.group.is_empty() { "/api/" } else { "/apis/" });
        path.push_str(&self.api_version());
        if let Some(namespace) = &self.namespace {
            if !is_namespace(namespace) {
                return Err(Error::invalid(format!(
                    "{namespace:?} cannot be a namespace: up to {NAMESPACE_BYTES_MAX} lower case \
                     letters, digits and '-' can, with a letter or digit at both ends"
                )));
            }
            path.push_str("/namespaces/");
            path.push_str(namespace);
        }
        path.push('/');
        path.push_str(&self.plural);
        Ok(path)
    }

    /// Returns the API version, such as `v1` or `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            return self.version.clone();
        }
        format!("{}/{}", self.group, self.version)
    }

    /// Returns whether this is [`api_version`](Self::api_version), without allocating.
    pub(crate) fn is_api_version(&self, said: &str) -> bool {
        match said.rsplit_once('/') {
            Some((group, version)) => {
                !group.is_empty() && group == self.group && version == self.version
            }
            None => self.group.is_empty() && said == self.version,
        }
    }

    /// Returns the types of objects that do not declare their own.
    pub(crate) fn types(&self) -> Option<Types> {
        let kind = self.kind.clone()?;
        Some(Types { api_version: self.api_version(), kind })
    }

    /// Returns whether servers offer protobuf for this resource and it can be decoded here. That is so for
    /// the metadata of all objects, and for built-in kinds.
    pub(crate) fn has_protobuf(&self) -> bool {
        let kind = self.kind.as_deref();
        self.metadata_only
            || kind.is_some_and(|kind| ListFields::of(&self.api_version(), kind).is_some())
    }

    /// Returns `pods` or `deployments.apps`, as in messages of `kubectl` and RBAC.
    pub(crate) fn group_resource(&self) -> String {
        if self.group.is_empty() {
            return self.plural.clone();
        }
        format!("{}.{}", self.plural, self.group)
    }

    /// Returns `pods` or `deployments.apps/v1 in web`, with the selectors.
    pub(crate) fn name(&self) -> String {
        let mut name = self.group_resource();
        if !self.group.is_empty() {
            let _ = write!(name, "/{}", self.version);
        }
        if let Some(namespace) = &self.namespace {
            let _ = write!(name, " in {namespace}");
        }
        if !self.labels.is_empty() {
            let _ = write!(name, ", labels {}", self.labels);
        }
        if !self.fields.is_empty() {
            let _ = write!(name, ", fields {}", self.fields);
        }
        if self.metadata_only {
            name.push_str(", metadata only");
        }
        name
    }
}

/// Returns whether a name can be part of a path, without characters that are special there.
fn is_path_part(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    // "." and ".." would lead elsewhere.
    !name.is_empty() && name.bytes().all(fits) && name.bytes().any(|byte| byte != b'.')
}

fn is_namespace(name: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=NAMESPACE_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| edge(byte) || byte == b'-')
        && name.bytes().next().is_some_and(edge)
        && name.bytes().next_back().is_some_and(edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployments() -> Target {
        Target {
            group: "apps".into(),
            version: "v1".into(),
            plural: "deployments".into(),
            ..Target::default()
        }
    }

    #[test]
    fn paths_of_all_scopes_are_built_and_read() {
        for (path, namespace) in [
            ("/api/v1/pods", None),
            ("/api/v1/namespaces", None),
            ("/api/v1/namespaces/web/pods", Some("web")),
            ("/api/v1/namespaces/namespaces/namespaces", Some("namespaces")),
            ("/apis/apps/v1/deployments", None),
            ("/apis/apps/v1/namespaces/web/deployments", Some("web")),
            ("/clusters/one/apis/apps/v1/namespaces/web/deployments", Some("web")),
        ] {
            let target = Target::from_path(path, namespace).unwrap();
            assert_eq!(target.path().unwrap(), path);
            assert_eq!(target.namespace.as_deref(), namespace);
        }
        for path in ["", "/", "/version", "/api/v1", "/nope/v1/pods", "/apis/v1/pods"] {
            assert!(Target::from_path(path, None).is_none(), "{path}");
        }
    }

    #[test]
    fn a_name_that_is_none_is_an_error_and_not_another_path() {
        for namespace in ["a/b", "a?b", "a b", "..", "", "A", "-a", "a-", "a%2fb", &"a".repeat(64)]
        {
            let target = Target { namespace: Some(namespace.into()), ..deployments() };
            let error = target.path().unwrap_err().to_string();
            assert!(error.contains(&format!("{namespace:?} cannot be a namespace")), "{error}");
        }
        for plural in ["", "..", "a/b", "a?b", "a b", "a#b"] {
            let target = Target { plural: plural.into(), ..deployments() };
            let error = target.path().unwrap_err().to_string();
            assert!(error.contains("cannot be the plural of a resource"), "{error}");
        }
        assert!(Target { version: String::new(), ..deployments() }.path().is_err());
    }

    #[test]
    fn names_read_like_what_they_name() {
        assert_eq!(Target::from_path("/api/v1/pods", None).unwrap().name(), "pods");
        let mut target = deployments();
        assert_eq!(target.name(), "deployments.apps/v1");
        target.namespace = Some("web".into());
        assert_eq!(target.name(), "deployments.apps/v1 in web");
        target.labels = "app=web,tier in (a,b)".into();
        target.fields = "metadata.name!=x".into();
        target.metadata_only = true;
        assert_eq!(
            target.name(),
            "deployments.apps/v1 in web, labels app=web,tier in (a,b), fields metadata.name!=x, \
             metadata only"
        );
    }
}
