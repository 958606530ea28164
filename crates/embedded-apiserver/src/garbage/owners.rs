//! References to owners, and the owners that they mean.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use super::FOREGROUND;
use crate::kinds::Resource;
use crate::server::Shared;
use crate::store::{Key, Revision};

/// The metadata on which garbage collection depends.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    #[serde(deserialize_with = "nullable")]
    pub(super) uid: String,
    pub(super) deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "nullable_items")]
    pub(super) finalizers: Vec<String>,
    #[serde(deserialize_with = "nullable_items")]
    pub(super) owner_references: Vec<Reference>,
}

/// An owner reference.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Reference {
    #[serde(deserialize_with = "nullable")]
    api_version: String,
    #[serde(deserialize_with = "nullable")]
    kind: String,
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) uid: String,
    #[serde(rename = "blockOwnerDeletion", deserialize_with = "nullable")]
    pub(super) blocks: bool,
}

/// Reads `null` as the default, as Go does.
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

fn nullable_items<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    let items: Option<Vec<Option<T>>> = Option::deserialize(from)?;
    Ok(items.unwrap_or_default().into_iter().map(Option::unwrap_or_default).collect())
}

impl Meta {
    pub(super) fn of(revision: &Revision) -> Self {
        // Validation has checked the types, so there is no error.
        serde_json::from_slice(&revision.metadata()).unwrap_or_default()
    }

    /// Returns whether the object is deleted in the foreground: it waits for its dependents.
    pub(super) fn awaits(&self) -> bool {
        self.deletion_timestamp.is_some() && self.finalizers.iter().any(|name| name == FOREGROUND)
    }
}

/// The state of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerState {
    /// It exists, or it is not known that it ever did.
    Present,
    /// It is deleted in the foreground, and waits for its dependents.
    Awaiting,
    /// It has been removed.
    Gone,
}

/// Returns the table and the key of an owner. Returns `None` for a kind that is not served, and for a
/// namespaced owner of a cluster-scoped object, which is invalid.
pub(super) fn locate(
    shared: &Shared,
    dependent: &Resource,
    key: &Key,
    reference: &Reference,
) -> Option<(Arc<str>, Key)> {
    let of = &reference.api_version;
    let (group, version) = of.split_once('/').unwrap_or(("", of));
    let registry = shared.registry.read();
    let mut resources = registry.version(group, version).iter();
    let owner = resources.find(|resource| resource.kind == reference.kind)?;
    if owner.namespaced && !dependent.namespaced {
        return None;
    }
    let namespace = if owner.namespaced { key.namespace() } else { "" };
    Some((Arc::clone(&owner.table), Key::new(namespace, &reference.name)))
}

/// Returns the state of an object's owner.
pub(super) fn state(
    shared: &Shared,
    dependent: &Resource,
    key: &Key,
    reference: &Reference,
) -> OwnerState {
    let Some((table, key)) = locate(shared, dependent, key, reference) else {
        return OwnerState::Present;
    };
    if let Some(found) = shared.store.get(&table, &key) {
        let found = Meta::of(&found);
        if found.uid == reference.uid {
            return if found.awaits() { OwnerState::Awaiting } else { OwnerState::Present };
        }
    }
    let was = |last: &Arc<Revision>| Meta::of(last).uid == reference.uid;
    if shared.store.last_deletions(&table, &key).iter().any(was) {
        OwnerState::Gone
    } else {
        OwnerState::Present
    }
}
