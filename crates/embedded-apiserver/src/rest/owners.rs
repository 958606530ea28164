//! The managers of objects' fields, before and after a write.

use std::borrow::Cow;
use std::sync::Arc;

use http::header::USER_AGENT;
use serde_json::Value;

use super::Call;
use super::write::draft;
use crate::apply::{Author, Managers, Operation, Set, Tracked, Type, Versions};
use crate::kinds::{Resource, Subresource, crd, events};
use crate::limits::FIELD_MANAGER_BYTES_MAX;
use crate::object::{self, Object};
use crate::request::Target;
use crate::server::Shared;
use crate::status::Status;
use crate::store::{Draft, Ownership, Revision, Write};

/// A manager without a name.
const UNKNOWN: &str = "unknown";

/// Returns the author of a request.
pub(super) fn author(call: &Call, operation: Operation) -> Author {
    author_of(call, &call.target, operation)
}

/// Returns the author of a request that changes this target: an object whose scale is written.
pub(super) fn author_of(call: &Call, target: &Target, operation: Operation) -> Author {
    let manager = match &*target.query.field_manager {
        "" => from_user_agent(call),
        manager => manager.to_owned(),
    };
    Author {
        manager: if manager.is_empty() { UNKNOWN.to_owned() } else { manager },
        operation,
        api_version: target.resource.api_version(),
        subresource: target.subresource.map_or("", |subresource| subresource.as_str()).to_owned(),
    }
}

/// Returns the name of the client's program: its user agent up to the first slash.
fn from_user_agent(call: &Call) -> String {
    let agent = call.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    let name = agent.unwrap_or_default().split('/').next().unwrap_or_default();
    let printable = name.chars().filter(|c| !c.is_control());
    printable.take(FIELD_MANAGER_BYTES_MAX).collect()
}

/// The stored object that a write changes.
pub(crate) struct Live<'a> {
    pub(super) target: &'a Target,
    pub(super) revision: &'a Revision,
    /// The object in the version of the request, without managedFields.
    pub(crate) object: &'a Object,
    /// The managedFields that the object shows.
    pub(super) shown: Option<&'a Value>,
}

impl Live<'_> {
    pub(super) fn managers(&self) -> Managers {
        match (self.revision.ownership(), self.shown) {
            (Ownership::Shown, None) => Managers::default(),
            (Ownership::Shown, Some(entries)) => {
                let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
                Managers::from_json(entries).unwrap_or_default()
            }
            (other, _) => {
                // The store has events in another form than the one of their other group.
                let stored = match &*self.target.resource.group {
                    events::GROUP => Cow::Owned(self.revision.to_map()),
                    _ => Cow::Borrowed(self.object),
                };
                other.managers(&self.target.storage, &stored)
            }
        }
    }

    /// Returns the object with its managedFields, for a patch that mentions them.
    pub(super) fn with_managers(&self) -> Object {
        let mut object = self.object.clone();
        show(&mut object, &self.managers());
        object
    }
}

/// The object that a write wants to store.
pub(crate) struct Proposal {
    pub(crate) object: Object,
    /// The managers afterwards, if the write determines them: an apply, or a change that no manager owns. Other writes
    /// own what they change.
    pub(super) managers: Option<Managers>,
}

impl From<Object> for Proposal {
    fn from(object: Object) -> Self {
        Self { object, managers: None }
    }
}

/// The claims of a write on the fields that it changes.
pub(super) struct Claim<'a> {
    pub(super) author: &'a Author,
    /// The managers after an apply.
    pub(super) applied: Option<Managers>,
    /// The managedFields that the client sent.
    pub(super) sent: Option<Value>,
}

/// Encodes the new state of an object with its managers.
pub(super) fn owned_draft(
    shared: &Shared,
    live: &Live<'_>,
    new: &mut Object,
    claim: Claim<'_>,
) -> Result<Draft, Status> {
    let target = live.target;
    if shared.options.keep_managed_fields
        && let Some(sent) = claim.sent.as_ref().filter(|sent| is_filled(sent))
    {
        object::metadata_mut(new).insert("managedFields".to_owned(), sent.clone());
        return draft(target, new);
    }
    if let Some(ownership) = creators_still(shared, live, new, &claim) {
        return Ok(draft(target, new)?.owned(ownership));
    }
    let Some(managers) = settle(shared, live, new, claim) else {
        if let Some(shown) = live.shown {
            object::metadata_mut(new).insert("managedFields".to_owned(), shown.clone());
        }
        return Ok(draft(target, new)?.owned(live.revision.ownership().clone()));
    };
    let is_shown = live.shown.is_some() || managers.has_applied();
    if is_shown || managers.is_empty() || shared.options.show_managed_fields {
        show(new, &managers);
        return draft(target, new);
    }
    Ok(draft(target, new)?.owned(Ownership::Apart(managers.to_json().into())))
}

/// Returns the managers after a write that changes nothing that its creator does not own, apart from the status.
fn creators_still(
    shared: &Shared,
    live: &Live<'_>,
    new: &Object,
    claim: &Claim<'_>,
) -> Option<Ownership> {
    let target = live.target;
    let is_told = claim.applied.is_some()
        || (claim.sent.is_some() && target.subresource.is_none())
        || live.shown.is_some()
        || shared.options.show_managed_fields;
    if is_told || live.object == new {
        return None;
    }
    let versions = versions(shared, target);
    live.revision.ownership().after(&Write {
        resource: &target.resource,
        tracked: tracked(target, &versions),
        old: live.object,
        new,
        author: claim.author,
        now: &shared.clock.now_text(),
    })
}

fn is_filled(entries: &Value) -> bool {
    entries.as_array().is_some_and(|entries| !entries.is_empty())
}

/// Returns the managers after a write, or `None` if they do not change.
fn settle(shared: &Shared, live: &Live<'_>, new: &Object, claim: Claim<'_>) -> Option<Managers> {
    let same_object = live.object == new;
    // Subresources ignore managedFields.
    let sent = claim.sent.filter(|_| live.target.subresource.is_none());
    if same_object && claim.applied.is_none() && sent.is_none() {
        return None;
    }
    let before = live.managers();
    let after = if let Some(applied) = claim.applied {
        applied
    } else {
        let base = match &sent {
            Some(Value::Array(entries)) if is_reset(entries) => {
                return Some(Managers::default());
            }
            Some(Value::Array(entries)) => match Managers::from_json(entries) {
                Ok(sent) if !sent.is_empty() => sent,
                // Clients that do not know managedFields must not delete them.
                _ => before.clone(),
            },
            _ => before.clone(),
        };
        // Managers are not tracked again until something is applied.
        if base.is_empty() {
            return (!before.is_empty()).then_some(base);
        }
        let versions = versions(shared, live.target);
        let tracked = tracked(live.target, &versions);
        tracked.update(live.object, new, base, claim.author, &shared.clock.now_text())
    };
    // Only the times differ: nothing has changed.
    if same_object && after.equals_but_for_times(&before) {
        return None;
    }
    Some(after)
}

/// Returns whether a client wants to remove all managers: an empty list, or one empty entry.
fn is_reset(entries: &[Value]) -> bool {
    match entries {
        [] => true,
        [Value::Object(entry)] => entry.is_empty(),
        _ => false,
    }
}

/// Encodes a new object with its managers.
pub(super) fn new_draft(
    shared: &Shared,
    target: &Target,
    object: &mut Object,
    author: &Author,
    applied: Option<&Managers>,
) -> Result<Draft, Status> {
    let metadata = object::metadata_mut(object);
    let sent = metadata.remove("managedFields");
    if shared.options.keep_managed_fields
        && let Some(sent) = sent.filter(is_filled)
    {
        metadata.insert("managedFields".to_owned(), sent);
        return draft(target, object);
    }
    let ownership = Ownership::Creator(shared.creators.author(author));
    let managers = match applied {
        Some(managers) => managers.clone(),
        None if shared.options.show_managed_fields => ownership.managers(&target.resource, object),
        None => return Ok(draft(target, object)?.owned(ownership)),
    };
    show(object, &managers);
    draft(target, object)
}

/// Sets the managedFields of an object.
fn show(object: &mut Object, managers: &Managers) {
    if !managers.is_empty() {
        let entries = serde_json::from_str(&managers.to_json()).unwrap_or_default();
        object::metadata_mut(object).insert("managedFields".to_owned(), entries);
    }
}

/// Returns the fields of an object whose managers a request can change.
pub(super) fn tracked<'a>(target: &'a Target, versions: &'a KnownVersions) -> Tracked<'a> {
    Tracked {
        kind: target.resource.merge_type(),
        api_version: &versions.api_version,
        reset: reset_fields(target),
        versions,
    }
}

/// Returns the fields that a request cannot change.
fn reset_fields(target: &Target) -> Set {
    let resource = &target.resource;
    if target.subresource == Some(Subresource::Approval) {
        return Set::of_fields(&[&["spec"], &["status", "certificate"]]);
    }
    let fields: &[&[&str]] = match (target.is_status(), &*resource.plural) {
        (false, _) if resource.status => &[&["status"]],
        (false, _) => &[],
        (true, _) if resource.custom => &[&["metadata"], &["spec"]],
        (true, _) if resource.group == crd::GROUP => &[&["spec"]],
        (true, "deployments") => &[&["spec"], &["metadata", "labels"]],
        (true, "pods") => {
            &[&["spec"], &["metadata", "ownerReferences"], &["metadata", "deletionTimestamp"]]
        }
        (true, _) => &[&["spec"]],
    };
    Set::of_fields(fields)
}

/// The versions of a resource that are served.
pub(super) struct KnownVersions {
    api_version: String,
    others: Vec<Arc<Resource>>,
}

pub(super) fn versions(shared: &Shared, target: &Target) -> KnownVersions {
    let table = &target.resource.table;
    let registry = shared.registry.read();
    let others = registry.iter().filter(|other| other.table == *table);
    let others = others.filter(|other| other.api_version() != target.resource.api_version());
    KnownVersions { api_version: target.resource.api_version(), others: others.cloned().collect() }
}

impl Versions for KnownVersions {
    fn kind(&self, api_version: &str) -> Option<Type<'_>> {
        let found = self.others.iter().find(|other| other.api_version() == api_version)?;
        Some(found.merge_type())
    }

    fn convert<'v>(
        &'v self,
        object: &'v Value,
        api_version: &str,
    ) -> Option<(Cow<'v, Value>, Type<'v>)> {
        let kind = self.kind(api_version)?;
        let mut converted = object.clone();
        if let Value::Object(members) = &mut converted {
            let is_other = |version: &str| version.starts_with(events::GROUP);
            let from = members.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            match (is_other(from), is_other(api_version)) {
                (false, true) => events::from_core(members),
                (true, false) => events::to_core(members),
                _ => {}
            }
            members.insert("apiVersion".to_owned(), api_version.into());
        }
        Some((Cow::Owned(converted), kind))
    }
}
