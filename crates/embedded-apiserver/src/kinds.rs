//! The served resources: built-in ones, and those of `CustomResourceDefinition`s.

mod builtin;
pub(crate) mod crd;
pub(crate) mod events;
mod registry;
pub(crate) mod scale;
mod selectable;
mod subresource;

use std::borrow::Cow;
use std::sync::Arc;

pub(crate) use registry::{Registry, versions};
pub(crate) use selectable::field_text;
pub(crate) use subresource::Subresource;

use crate::apply::{Schema, Type};
use crate::status::GroupResource;

/// A string that is static for built-in resources and owned for custom ones.
pub(crate) type Text = Cow<'static, str>;

/// A resource in one version, such as `apps/v1 deployments`.
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
    /// Whether there is a `status` subresource: writes to the object ignore `.status`, and writes
    /// to `status` ignore the rest.
    pub(crate) status: bool,
    /// The fields that its `scale` subresource shows, if it has one.
    pub(crate) scale: Option<scale::ScalePaths>,
    /// Whether `metadata.generation` counts changes outside of metadata and status.
    pub(crate) generation: bool,
    /// Whether an update without a resourceVersion overwrites the object instead of being rejected.
    pub(crate) unconditional_update: bool,
    pub(crate) name_rule: NameRule,
    /// The field selectors in addition to `metadata.name` and `metadata.namespace`, as dotted
    /// paths.
    pub(crate) selectable: Arc<[Text]>,
    /// The printer columns of a custom resource. Those of built-in kinds are in `print`.
    pub(crate) columns: Vec<PrinterColumn>,
    pub(crate) custom: bool,
    /// Whether objects can be stored. Others are only posted, and answered at once: bindings.
    pub(crate) stored: bool,
    /// The schema of a custom resource. Those of built-in kinds are in `kube-schema`.
    pub(crate) schema: Option<Arc<Schema>>,
    /// The table that stores the objects: `plural.group`, shared by all versions of a resource.
    pub(crate) table: Arc<str>,
}

/// An item of `additionalPrinterColumns` in a `CustomResourceDefinition`.
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

/// The names that objects of a resource may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// DNS-1123 subdomain of up to 253 bytes: most kinds.
    Subdomain,
    /// DNS-1123 label of up to 63 bytes: namespaces.
    Label,
    /// Anything that can be a path segment: RBAC.
    PathSegment,
}

impl Resource {
    pub(crate) fn group_resource(&self) -> GroupResource<'_> {
        GroupResource { group: &self.group, resource: &self.plural }
    }

    /// Returns `v1` or `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        match &*self.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Returns the type of the objects, by which configurations are merged into them.
    pub(crate) fn merge_type(&self) -> Type<'_> {
        match &self.schema {
            Some(schema) => Type::CustomObject(schema),
            None => kube_schema::message(&self.api_version(), &self.kind)
                .map_or(Type::Deduced, Type::of_kind),
        }
    }

    /// Returns the start of an object's JSON, up to its metadata:
    /// `{"apiVersion":"v1","kind":"Pod",`.
    pub(crate) fn head(&self) -> Vec<u8> {
        // Groups, versions and kinds contain no character that JSON escapes.
        format!(r#"{{"apiVersion":"{}","kind":"{}","#, self.api_version(), self.kind).into_bytes()
    }

    /// Returns whether a single request can delete all objects. It cannot for namespaces, because
    /// each deletion includes the namespace's contents.
    pub(crate) fn deletes_collections(&self) -> bool {
        !(self.group.is_empty() && self.plural == "namespaces")
    }
}
