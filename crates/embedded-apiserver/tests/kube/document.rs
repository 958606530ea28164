//! A typical custom resource of a controller: derived, with a schema and a status.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired state.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tests.example.com",
    version = "v1",
    kind = "Document",
    namespaced,
    status = "DocumentStatus",
    shortname = "doc",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Shown", "type": "string", "jsonPath": ".status.shown"}"#
)]
pub(crate) struct DocumentSpec {
    pub(crate) text: String,
}

/// The observed state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DocumentStatus {
    pub(crate) shown: String,
}
