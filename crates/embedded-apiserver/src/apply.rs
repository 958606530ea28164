//! Server-side apply: managers own fields, and an apply merges a configuration into an object.
//!
//! The algorithm is that of Kubernetes' structured-merge-diff. A write is compared with the stored object
//! ([`compare`]), and the changed fields become its author's. An apply also merges ([`merge`]), fails if another
//! manager owns a field with a different value, and removes fields that its author no longer applies
//! ([`update`]). Nothing here knows about requests or storage.

mod compare;
mod last_applied;
mod managers;
mod merge;
mod scale;
mod set;
#[cfg(test)]
mod tests;
mod types;
mod update;
mod validate;

use serde_json::{Map, Value};

pub(crate) use managers::{Author, Managers, Operation, UPDATERS_MAX};
pub(crate) use scale::Replicas;
pub(crate) use set::{Set, path_text};
pub(crate) use types::{Schema, Type};
pub(crate) use update::{Conflict, Tracked, Versions};
pub(crate) use validate::problems;

/// An object, as JSON.
type Object = Map<String, Value>;
