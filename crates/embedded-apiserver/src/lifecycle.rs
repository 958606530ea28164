//! Kinds whose objects have side effects: namespaces contain other objects,
//! `CustomResourceDefinition`s serve resources, and pods terminate gracefully. Controllers would use
//! the same hooks.

use std::sync::Arc;

use parking_lot::MutexGuard;
use serde_json::{Value, json};

use crate::garbage;
use crate::kinds::crd;
use crate::object::{self, Object};
use crate::request::{Target, Verb};
use crate::server::Shared;
use crate::status::{Cause, FieldError, Status};
use crate::store::{Draft, Key, PageRequest, Revision, Stale};

const NAMESPACES: &str = "namespaces";
const EVENTS: &str = "events";
const TERMINATING: &str = "Terminating";

/// Returns whether the target is a namespace, whose deletion differs from other kinds.
pub(crate) fn is_namespace(target: &Target) -> bool {
    target.resource.group.is_empty() && target.resource.plural == NAMESPACES
}

fn is_crd(target: &Target) -> bool {
    target.resource.group == crd::GROUP && target.resource.plural == crd::PLURAL
}

fn is_pod(target: &Target) -> bool {
    target.resource.group.is_empty() && target.resource.plural == "pods"
}

/// Locks out other writes of definitions, so that the stored and the served definitions change
/// together.
pub(crate) fn hold_definitions<'a>(
    shared: &'a Shared,
    target: &Target,
) -> Option<MutexGuard<'a, ()>> {
    is_crd(target).then(|| shared.definitions.lock())
}

/// Checks that the object's namespace exists and is not terminating. Returns that namespace, which
/// must not change before the object is stored: see [`create`].
pub(crate) fn check_namespace(
    shared: &Shared,
    target: &Target,
    name: &str,
) -> Result<Option<Arc<Revision>>, Status> {
    let Some(namespace) = target.namespace.as_deref().filter(|_| target.resource.namespaced) else {
        return Ok(None);
    };
    let namespaces = crate::status::GroupResource { group: "", resource: NAMESPACES };
    let found = shared
        .store
        .get(NAMESPACES, &Key::new("", namespace))
        .ok_or_else(|| Status::not_found(namespaces, namespace))?;
    if !is_terminating(&found) {
        return Ok(Some(found));
    }
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let mut status = Status::forbidden(target.resource.group_resource(), name, why);
    status.details.get_or_insert_default().causes.push(Cause {
        reason: "NamespaceTerminating".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    });
    Err(status)
}

/// Stores a new object in the namespace that [`check_namespace`] returned.
pub(crate) fn create(
    shared: &Shared,
    target: &Target,
    draft: &Draft,
    namespace: Option<&Revision>,
) -> Result<Arc<Revision>, Stale> {
    let holder = namespace.map(|namespace| (NAMESPACES, namespace));
    shared.store.create(&target.resource.table, draft, holder)
}

/// Removes an object. A namespace is removed only if it is still empty.
pub(crate) fn remove(
    shared: &Shared,
    target: &Target,
    key: &Key,
    version: u64,
) -> Result<Arc<Revision>, Stale> {
    if is_namespace(target) {
        return shared.store.delete_vacant(NAMESPACES, key, version, EVENTS);
    }
    shared.store.delete(&target.resource.table, key, version)
}

/// Completes and validates an object of these kinds before it is created.
pub(crate) fn prepare_create(
    shared: &Shared,
    target: &Target,
    object: &mut Object,
) -> Vec<FieldError> {
    if !is_crd(target) {
        return Vec::new();
    }
    crd::prepare(object);
    let definition = Value::Object(object.clone());
    let errors = crd::validate(&definition);
    object.insert(
        "status".to_owned(),
        crd::established_status(&definition["spec"], &shared.clock.now_text()),
    );
    errors
}

/// Completes and validates an object of these kinds before it is updated.
pub(crate) fn prepare_update(target: &Target, old: &Object, new: &mut Object) -> Vec<FieldError> {
    if !is_crd(target) || target.is_status() {
        return Vec::new();
    }
    crd::prepare(new);
    let definition = Value::Object(new.clone());
    crd::refresh_status(new.entry("status").or_insert(Value::Null), &definition["spec"]);
    crd::validate_update(&definition, &Value::Object(old.clone()))
}

/// Applies the side effects of an object's creation.
pub(crate) fn created(shared: &Arc<Shared>, target: &Target, object: &Object, revision: &Revision) {
    if is_crd(target) {
        shared.serve_custom(&Value::Object(object.clone()));
    }
    garbage::created(shared, target, revision);
}

/// Applies the side effects of an object's update.
pub(crate) fn updated(
    shared: &Arc<Shared>,
    target: &Target,
    object: &Object,
    old: &Revision,
    new: &Revision,
) {
    if is_crd(target) && !object::metadata(object).contains_key("deletionTimestamp") {
        shared.serve_custom(&Value::Object(object.clone()));
    }
    garbage::updated(shared, target, old, new);
}

/// Rejects the deletion of namespaces that are permanent.
pub(crate) fn check_delete(target: &Target) -> Result<(), Status> {
    if is_namespace(target) && matches!(target.name(), "default" | "kube-public" | "kube-system") {
        let why = "this namespace may not be deleted";
        return Err(Status::forbidden(target.resource.group_resource(), target.name(), why));
    }
    Ok(())
}

/// Returns the grace period of a deleted object.
pub(crate) fn grace_period(
    shared: &Shared,
    target: &Target,
    object: &Object,
    asked: Option<i64>,
) -> i64 {
    // Without a simulated kubelet a pod would never terminate, so it is removed immediately.
    if !is_pod(target) || !shared.options.pods_run {
        return 0;
    }
    let at = |pointer: [&str; 2]| object.get(pointer[0]).and_then(|part| part.get(pointer[1]));
    let scheduled = at(["spec", "nodeName"]).and_then(Value::as_str).is_some_and(|n| !n.is_empty());
    let phase = at(["status", "phase"]).and_then(Value::as_str).unwrap_or_default();
    if !scheduled || matches!(phase, "Succeeded" | "Failed") {
        return 0;
    }
    let own = at(["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    asked.or(own).unwrap_or(30).max(0)
}

/// Returns whether watchers see an object with a deletionTimestamp before it is removed, even if it
/// is removed immediately. This applies to pods, whose deletion is always graceful, if only with
/// zero seconds, and to definitions, whose deletion cannot be undone once their objects are being
/// deleted.
pub(crate) fn is_told_first(target: &Target) -> bool {
    is_pod(target) || is_crd(target)
}

/// Returns whether nothing besides finalizers prevents the removal of an object.
pub(crate) fn may_go(shared: &Shared, target: &Target) -> bool {
    !is_namespace(target) || is_vacant(shared, target.name())
}

/// Returns whether a namespace contains nothing but events, which users do not delete themselves.
fn is_vacant(shared: &Shared, namespace: &str) -> bool {
    shared.store.namespace_is_empty_but(namespace, EVENTS)
}

fn delete_events(shared: &Shared, namespace: &str) {
    let all = PageRequest { namespace: Some(namespace), ..PageRequest::default() };
    for item in shared.store.list(EVENTS, None, &all).into_iter().flat_map(|page| page.items) {
        drop(shared.store.delete(EVENTS, item.key(), item.version()));
    }
}

/// Marks a terminating object that cannot be removed yet.
pub(crate) fn deleting(target: &Target, object: &mut Object) {
    if is_namespace(target) {
        object.insert("status".to_owned(), json!({"phase": TERMINATING}));
    }
}

/// Applies the side effects of removing an object that has a deletionTimestamp: a definition's
/// resources are removed before it.
pub(crate) fn before_delete(shared: &Arc<Shared>, target: &Target, object: &Object) {
    if is_crd(target) {
        end_custom(shared, &Value::Object(object.clone()));
    }
}

/// Cleans up after an object was removed: deletes a namespace's events, and a terminating namespace
/// that has become empty. `last` is its last state.
pub(crate) fn deleted(shared: &Arc<Shared>, target: &Target, last: &Revision) {
    garbage::removed(shared, target, last);
    if is_namespace(target) {
        delete_events(shared, target.name());
    }
    let Some(namespace) = target.namespace.as_deref().filter(|_| target.resource.namespaced) else {
        return;
    };
    release_namespace(shared, namespace);
}

/// Removes a namespace that is terminating and has become empty.
pub(crate) fn release_namespace(shared: &Arc<Shared>, namespace: &str) {
    if let Some(found) = shared.store.get(NAMESPACES, &Key::new("", namespace)) {
        release(shared, &found);
    }
}

fn is_terminating(namespace: &Revision) -> bool {
    namespace.fields().iter().any(|phase| &**phase == TERMINATING)
}

/// Removes a terminating namespace that has become empty.
fn release(shared: &Shared, namespace: &Revision) {
    let name = namespace.key().name();
    if is_terminating(namespace) && is_vacant(shared, name) && object::may_go(&namespace.to_map()) {
        delete_events(shared, name);
        let (key, version) = (namespace.key(), namespace.version());
        let target = Target::stored(&shared.registry.read(), Verb::Delete, NAMESPACES, ("", name));
        // If the namespace has changed in the meantime, the write that changed it checks again.
        if let Ok(last) = shared.store.delete_vacant(NAMESPACES, key, version, EVENTS)
            && let Some(target) = target
        {
            garbage::removed(shared, &target, &last);
        }
    }
}

/// Stops serving a custom resource, deletes its objects and ends its watches.
fn end_custom(shared: &Arc<Shared>, definition: &Value) {
    let Some((group, plural)) = crd::names(definition) else { return };
    let target =
        Target::stored(&shared.registry.read(), Verb::Delete, &crd::table(group, plural), ("", ""));
    let Some(table) = shared.unserve_custom(group, plural) else { return };
    let gone = shared.store.close_table(&table);
    for (target, last) in
        target.iter().flat_map(|target| gone.iter().map(move |last| (target, last)))
    {
        garbage::removed(shared, target, last);
    }
    // Its objects may have been the last ones in terminating namespaces.
    let namespaces = shared.store.list(NAMESPACES, None, &PageRequest::default());
    for namespace in namespaces.into_iter().flat_map(|page| page.items) {
        release(shared, &namespace);
    }
}
