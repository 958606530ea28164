//! What the server serves: the built-in resources, and those of `CustomResourceDefinition`s.

mod builtin;
pub(crate) mod crd;
pub(crate) mod events;
mod registry;
mod selectable;

use std::borrow::Cow;
use std::sync::Arc;

pub(crate) use registry::{Registry, versions};
pub(crate) use selectable::field_text;

use crate::status::GroupResource;

/// A text that is a constant for built-in resources and owned for custom ones.
pub(crate) type Text = Cow<'static, str>;

/// One resource in one version, such as `apps/v1 deployments`.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts, not a state")]
pub(crate) struct Resource {
    pub(crate) group: Text,
    pub(crate) version: Text,
    pub(crate) kind: Text,
    pub(crate) list_kind: Text,
    pub(crate) plural: Text,
    pub(crate) singular: Text,
    pub(crate) short_names: Vec<Text>,
    pub(crate) categories: Vec<Text>,
    pub(crate) namespaced: bool,
    /// Has a `status` subresource: writes to the object leave `.status` alone, and the reverse.
    pub(crate) status: bool,
    /// `metadata.generation` counts the changes of everything but metadata and status.
    pub(crate) generation: bool,
    /// An update without a resourceVersion overwrites, rather than being refused.
    pub(crate) unconditional_update: bool,
    pub(crate) name_rule: NameRule,
    /// Field selectors beside `metadata.name` and `metadata.namespace`, as dotted paths.
    pub(crate) selectable: Arc<[Text]>,
    /// Printer columns of a custom resource; built-in kinds have theirs in `print`.
    pub(crate) columns: Vec<PrinterColumn>,
    pub(crate) custom: bool,
    /// Where its objects are kept: `plural.group`, one for all versions of a resource.
    pub(crate) table: Arc<str>,
}

/// `additionalPrinterColumns` of a `CustomResourceDefinition`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PrinterColumn {
    pub(crate) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i32,
    pub(crate) json_path: String,
}

/// Which names an object of a resource may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// DNS-1123 subdomain, up to 253 bytes: most kinds.
    Subdomain,
    /// DNS-1123 label, up to 63 bytes: namespaces.
    Label,
    /// Anything that can be a path segment: RBAC.
    PathSegment,
}

impl Resource {
    pub(crate) fn group_resource(&self) -> GroupResource<'_> {
        GroupResource { group: &self.group, resource: &self.plural }
    }

    /// `v1`, or `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        match &*self.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The start of an object's JSON, up to its metadata: `{"apiVersion":"v1","kind":"Pod",`.
    pub(crate) fn head(&self) -> Vec<u8> {
        // Groups, versions and kinds have no character that JSON would escape.
        format!(r#"{{"apiVersion":"{}","kind":"{}","#, self.api_version(), self.kind).into_bytes()
    }

    /// Whether all its objects can be deleted in one request: not so for namespaces, each of which
    /// takes everything in it along.
    pub(crate) fn deletes_collections(&self) -> bool {
        !(self.group.is_empty() && self.plural == "namespaces")
    }
}
