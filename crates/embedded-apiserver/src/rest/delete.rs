//! Delete: immediate, or with a deletionTimestamp if finalizers or a grace period come first.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::write::{body_codec, draft, dry_run_error, served};
use super::{Call, compressed};
use crate::body::Body;
use crate::clock::seconds;
use crate::codec::Codec;
use crate::garbage::{self, FOREGROUND, ORPHAN};
use crate::kinds::events;
use crate::lifecycle;
use crate::limits::WRITE_RETRIES_MAX;
use crate::matcher::Matcher;
use crate::object::{self, Object};
use crate::request::{Target, parse_version};
use crate::response;
use crate::server::Shared;
use crate::status::{FieldError, Status};
use crate::store::{EventType, Expected, Key, Revision};
use crate::view::{ListMeta, View};

/// `DeleteOptions`, the body of a delete.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeleteOptions {
    kind: Option<String>,
    grace_period_seconds: Option<i64>,
    preconditions: Option<Preconditions>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    dry_run: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

/// The fate of the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They are kept, without their references to it.
    Orphan,
}

impl Propagation {
    const ALL: [(&str, Self); 3] = [
        ("Foreground", Self::Foreground),
        ("Background", Self::Background),
        ("Orphan", Self::Orphan),
    ];
}

/// The outcome of a delete.
pub(super) enum Outcome {
    Deleted(Arc<Revision>),
    /// The object is removed when its finalizers are done, or its grace period expires.
    Pending(Arc<Revision>),
}

pub(super) fn delete(
    shared: &Arc<Shared>,
    call: &Call,
    view: &View,
) -> Result<Response<Body>, Status> {
    let target = &call.target;
    let (options, dry_run) = DeleteOptions::of(call)?;
    match delete_one(shared, target, &options, dry_run)? {
        Outcome::Deleted(revision) if !returns_object(target) => {
            let object = revision.to_map();
            let mut details = json!({"name": target.name(), "kind": target.resource.plural});
            if !target.resource.group.is_empty() {
                details["group"] = json!(target.resource.group);
            }
            details["uid"] = object::meta_text(&object, "uid").into();
            let success = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": details,
            });
            Ok(response::encoded(StatusCode::OK, view.codec(), view.other(&success)?))
        }
        Outcome::Deleted(revision) | Outcome::Pending(revision) => {
            Ok(response::encoded(StatusCode::OK, view.codec(), view.object(&revision)?))
        }
    }
}

/// Returns whether a delete responds with the object instead of a `Status`.
fn returns_object(target: &Target) -> bool {
    matches!(
        &*target.resource.plural,
        "pods"
            | "services"
            | "serviceaccounts"
            | "podtemplates"
            | "persistentvolumes"
            | "persistentvolumeclaims"
            | "resourcequotas"
            | "storageclasses"
            | "volumeattachments"
            | "csidrivers"
            | "csinodes"
    ) && !target.resource.custom
}

pub(super) fn delete_collection(
    shared: &Arc<Shared>,
    call: &Call,
    view: &View,
) -> Result<Response<Body>, Status> {
    let (options, dry_run) = DeleteOptions::of(call)?;
    parse_version(&call.target.query.resource_version)?;
    let matcher = Matcher::new(&call.target)?;
    let table = &call.target.resource.table;
    let page =
        shared.store.list(table, None, &matcher.page()).map_err(|_| Status::no_such_resource())?;
    for item in &page.items {
        let mut target = call.target.clone();
        target.name = Some(item.key().name().to_owned());
        let namespace = item.key().namespace();
        target.namespace = target.resource.namespaced.then(|| namespace.to_owned());
        match delete_one(shared, &target, &options, dry_run) {
            // Another request was faster.
            Err(status) if status.code == StatusCode::NOT_FOUND => {}
            outcome => drop(outcome?),
        }
    }
    let meta = ListMeta { version: page.version, ..ListMeta::default() };
    let (body, len) = view.list(&meta, page.items)?;
    Ok(compressed(call, view.codec(), body, len))
}

impl DeleteOptions {
    /// Reads the options from the body, or else from the query. Also returns whether it is a dry
    /// run.
    fn of(call: &Call) -> Result<(Self, bool), Status> {
        let query = &call.target.query;
        let mut options = match &*call.body {
            [] => Self::default(),
            body => Self::decode(body_codec(call, false)?, body)?,
        };
        if let Some(kind) = options.kind.as_deref().filter(|kind| *kind != "DeleteOptions") {
            return Err(Status::bad_request(format!("the body is a {kind:?}, no DeleteOptions")));
        }
        options.grace_period_seconds = options.grace_period_seconds.or(query.grace_period);
        options.propagation_policy =
            options.propagation_policy.or_else(|| query.propagation_policy.clone());
        options.orphan_dependents = options.orphan_dependents.or(query.orphan_dependents);
        let values = options.dry_run.take().unwrap_or_else(|| query.dry_run.clone());
        let errors: Vec<_> =
            options.policy_errors().into_iter().chain(dry_run_error(&values)).collect();
        match &*errors {
            [] => Ok((options, !values.is_empty())),
            errors => Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", errors)),
        }
    }

    /// Reads the options in an eviction. Also returns whether it is a dry run.
    pub(super) fn of_eviction(options: Value, dry_run: bool) -> Result<(Self, bool), Status> {
        let mut options: Self = match options {
            Value::Null => Self::default(),
            options => serde_json::from_value(options).map_err(|error| {
                Status::bad_request(format!("deleteOptions is no DeleteOptions: {error}"))
            })?,
        };
        let values = options.dry_run.take().unwrap_or_default();
        let errors: Vec<_> =
            options.policy_errors().into_iter().chain(dry_run_error(&values)).collect();
        match &*errors {
            [] => Ok((options, dry_run || !values.is_empty())),
            errors => Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", errors)),
        }
    }

    /// Returns the same options for a new version, if they asserted the one before.
    pub(super) fn at_version(mut self, version: u64) -> Self {
        let asserted = self.preconditions.as_mut().and_then(|p| p.resource_version.as_mut());
        if let Some(asserted) = asserted {
            *asserted = version.to_string();
        }
        self
    }

    fn decode(codec: Codec, body: &[u8]) -> Result<Self, Status> {
        if codec == Codec::Protobuf {
            return kube_schema::from_slice(body).map_err(|error| {
                Status::bad_request(format!("the body is no DeleteOptions: {error}"))
            });
        }
        // Parsed as a map first, because serde would accept a list as the fields in order.
        let map: Object = serde_json::from_slice(body).map_err(|error| {
            let why = object::json_error(&error);
            Status::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
        })?;
        serde_json::from_value(Value::Object(map))
            .map_err(|error| Status::bad_request(format!("the body is no DeleteOptions: {error}")))
    }

    fn policy_errors(&self) -> Vec<FieldError> {
        const FIELD: &str = "propagationPolicy";
        let Some(policy) = self.propagation_policy.as_deref() else { return Vec::new() };
        let mut errors = Vec::new();
        if self.orphan_dependents.is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(FIELD, policy, why));
        }
        if !Propagation::ALL.iter().any(|(name, _)| *name == policy) {
            let known = ["Foreground", "Background", "Orphan", "nil"];
            errors.push(FieldError::not_supported(FIELD, policy, &known));
        }
        errors
    }

    /// Returns the finalizer with which an object of this resource waits for garbage collection.
    fn finalizer(&self, target: &Target, finalizers: &[Value]) -> Option<&'static str> {
        let named = self.propagation_policy.as_deref().and_then(|policy| {
            Propagation::ALL.iter().find(|(name, _)| *name == policy).map(|(_, policy)| *policy)
        });
        let asked = match self.orphan_dependents {
            Some(true) => Some(Propagation::Orphan),
            Some(false) => Some(Propagation::Background),
            None => named,
        };
        let resource = &target.resource;
        match asked {
            _ if &*resource.table == events::TABLE => None,
            Some(Propagation::Orphan) => Some(ORPHAN),
            Some(Propagation::Foreground) => Some(FOREGROUND),
            Some(Propagation::Background) => None,
            None => [ORPHAN, FOREGROUND]
                .into_iter()
                .find(|own| finalizers.iter().any(|name| name == own))
                // These kinds are older than garbage collection, and did not delete their pods.
                .or(match (&*resource.group, &*resource.plural) {
                    ("batch", "jobs") | ("", "replicationcontrollers") => Some(ORPHAN),
                    _ => None,
                }),
        }
    }

    /// Sets the finalizers of garbage collection. Returns whether they changed.
    fn set_finalizers(&self, target: &Target, object: &mut Object) -> bool {
        let metadata = object::metadata_mut(object);
        let old = metadata.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
        let wanted = self.finalizer(target, &old);
        let is_own = |name: &&Value| *name == ORPHAN || *name == FOREGROUND;
        if old.iter().filter(is_own).map(Value::as_str).eq(wanted.iter().map(|own| Some(*own))) {
            return false;
        }
        let mut new: Vec<Value> = old.iter().filter(|name| !is_own(name)).cloned().collect();
        new.extend(wanted.map(Value::from));
        if new.is_empty() {
            metadata.remove("finalizers");
        } else {
            metadata.insert("finalizers".to_owned(), new.into());
        }
        true
    }

    pub(super) fn check_preconditions(
        &self,
        target: &Target,
        object: &Object,
    ) -> Result<(), Status> {
        let Some(wanted) = &self.preconditions else { return Ok(()) };
        let conflict = |why: String| {
            let mut what = target.resource.group_resource();
            what.resource = &target.resource.kind;
            Err(Status::conflict(what, target.name(), why))
        };
        let uid = object::meta_text(object, "uid");
        if let Some(wanted) = wanted.uid.as_deref().filter(|wanted| *wanted != uid) {
            return conflict(format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). \
                 The object might have been deleted and then recreated"
            ));
        }
        let version = object::meta_text(object, "resourceVersion");
        if let Some(wanted) = wanted.resource_version.as_deref().filter(|v| *v != version) {
            return conflict(format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the \
                 ResourceVersion in record ({version}). The object might have been modified"
            ));
        }
        Ok(())
    }
}

/// Deletes an object for the garbage collector, if it has this uid.
pub(crate) fn collect(
    shared: &Arc<Shared>,
    target: &Target,
    uid: Option<&str>,
    policy: Propagation,
) -> Result<(), Status> {
    let policy = Propagation::ALL.iter().find(|(_, known)| *known == policy);
    let options = DeleteOptions {
        preconditions: uid
            .map(|uid| Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        propagation_policy: policy.map(|(name, _)| (*name).to_owned()),
        ..DeleteOptions::default()
    };
    delete_one(shared, target, &options, false).map(drop)
}

pub(super) fn delete_one(
    shared: &Arc<Shared>,
    target: &Target,
    options: &DeleteOptions,
    dry_run: bool,
) -> Result<Outcome, Status> {
    let (table, key) = (&target.resource.table, Key::new(target.namespace(), target.name()));
    lifecycle::check_delete(target)?;
    let _definitions = lifecycle::hold_definitions(shared, target);
    for _ in 0..WRITE_RETRIES_MAX {
        let current = shared
            .store
            .get(table, &key)
            .ok_or_else(|| Status::not_found(target.resource.group_resource(), target.name()))?;
        let mut object = served(target, &current);
        options.check_preconditions(target, &object)?;
        let mut changed = mark(shared, target, &mut object, options.grace_period_seconds);
        let waits = options.set_finalizers(target, &mut object);
        changed |= waits;
        let goes = object::may_go(&object) && lifecycle::may_go(shared, target);
        if !(goes || changed) {
            return Ok(Outcome::Pending(current));
        }
        if dry_run && goes {
            return Ok(Outcome::Deleted(current));
        }
        let mut version = current.version();
        // An object that is removed immediately is shown in its last state, not as terminating. For
        // some kinds, watchers see it terminating first.
        if !goes || (changed && lifecycle::is_told_first(target)) {
            lifecycle::deleting(target, &mut object);
            // The creator does not own the finalizers of garbage collection.
            let ownership = if waits {
                current.ownership().settled(&target.storage, &current.to_map())
            } else {
                current.ownership().clone()
            };
            let draft = draft(target, &object)?.owned(ownership);
            if dry_run {
                let preview = draft.seal(Arc::clone(current.key()), EventType::Modified, version);
                return Ok(Outcome::Pending(Arc::new(preview)));
            }
            match shared.store.put(table, Expected::Version(version), &draft) {
                Ok(revision) if !goes => {
                    garbage::marked(shared, target, &revision);
                    return Ok(Outcome::Pending(revision));
                }
                Ok(revision) => version = revision.version(),
                Err(_) => continue,
            }
        }
        lifecycle::before_delete(shared, target, &object);
        if let Ok(revision) = lifecycle::remove(shared, target, &key, version) {
            lifecycle::deleted(shared, target, &revision);
            return Ok(Outcome::Deleted(revision));
        }
    }
    let why = "the object has been modified; please apply your changes to the latest version and \
               try again";
    Err(Status::conflict(target.resource.group_resource(), target.name(), why))
}

/// Sets an object's deletionTimestamp, or brings it forward. Returns whether it changed.
fn mark(shared: &Shared, target: &Target, object: &mut Object, asked: Option<i64>) -> bool {
    let asked = asked.map(|seconds| if seconds < 0 { 1 } else { seconds });
    let period = lifecycle::grace_period(shared, target, object, asked);
    let metadata = object::metadata_mut(object);
    if metadata.contains_key("deletionTimestamp") {
        let current =
            metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
        // A grace period can only be shortened.
        let Some(period) = asked.filter(|&asked| asked < current) else { return false };
        metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(period));
        metadata.insert("deletionTimestamp".to_owned(), due(shared, period).into());
        return true;
    }
    metadata.insert("deletionTimestamp".to_owned(), due(shared, period).into());
    if !lifecycle::is_namespace(target) {
        metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(period));
    }
    if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
        metadata.insert("generation".to_owned(), json!(generation.saturating_add(1)));
    }
    true
}

fn due(shared: &Shared, period: i64) -> String {
    let period = std::time::Duration::from_secs(u64::try_from(period).unwrap_or(0));
    seconds(shared.clock.now().saturating_add(period).unwrap_or(jiff::Timestamp::MAX))
}
