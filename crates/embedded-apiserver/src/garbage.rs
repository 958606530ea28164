//! Garbage collection and the emptying of namespaces, which kube-controller-manager does in a real
//! cluster.
//!
//! Writes leave chores, and the request that left them does them before it returns, up to a limit. A
//! task does the rest.
//!
//! # Architecture invariants
//! - A step touches a bounded number of objects. Dependents are found by an index, so that the work is
//!   linear in their number.
//! - The task exists only while there are chores, has no timers, and does not keep the server alive.
//! - An object is collected only if its owner has been here: test data often names owners that it
//!   leaves out.

mod owners;

use std::sync::{Arc, Weak};

use serde_json::Value;
use tokio::runtime::Handle;

use self::owners::{Meta, OwnerState};
use crate::apply::Author;
use crate::chores::{Chore, Place};
use crate::lifecycle;
use crate::limits::COLLECTED_AT_ONCE_MAX;
use crate::object::{self, Object};
use crate::request::{Target, Verb};
use crate::rest::{self, Propagation};
use crate::server::Shared;
use crate::store::{Dependent, Key, PageRequest, Revision};

/// The manager of the fields that garbage collection changes: the program that does it in a cluster.
const MANAGER: &str = "kube-controller-manager";

/// The finalizer of an owner whose dependents lose their references to it before it is removed.
pub(crate) const ORPHAN: &str = "orphan";

/// The finalizer of an owner whose dependents are deleted before it is removed.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Leaves chores after the creation of an object.
pub(crate) fn created(shared: &Shared, target: &Target, revision: &Revision) {
    if shared.options.garbage_collection && revision.owners().is_some() {
        let meta = Meta::of(revision);
        let doubtful = |reference| {
            owners::state(shared, &target.resource, revision.key(), reference)
                != OwnerState::Present
        };
        if meta.owner_references.iter().any(doubtful) {
            examine_later(shared, target, revision);
        }
    }
}

/// Leaves chores after an update of an object.
pub(crate) fn updated(shared: &Shared, target: &Target, old: &Revision, new: &Revision) {
    if !shared.options.garbage_collection || old.owners() == new.owners() {
        return;
    }
    unblock_owners(shared, target, old);
    if new.owners().is_some() {
        examine_later(shared, target, new);
    }
}

fn examine_later(shared: &Shared, target: &Target, revision: &Revision) {
    let table = Arc::clone(&target.storage.table);
    shared.chores.push(Chore::Examine { table, key: Arc::clone(revision.key()) });
}

/// Leaves chores after an object was marked for deletion.
pub(crate) fn marked(shared: &Shared, target: &Target, revision: &Revision) {
    if !shared.options.garbage_collection {
        return;
    }
    let meta = Meta::of(revision);
    let has = |finalizer: &str| meta.finalizers.iter().any(|name| name == finalizer);
    let owner = place(target, revision, &meta);
    if has(ORPHAN) {
        shared.chores.push(Chore::Orphan { owner, after: None });
    } else if has(FOREGROUND) {
        let dependents = Chore::Dependents {
            owner: Arc::clone(&owner.uid),
            namespaced: target.resource.namespaced,
            gone: false,
            after: None,
        };
        shared.chores.push(dependents);
        shared.chores.push(Chore::Unblock(owner));
    }
    if lifecycle::is_namespace(target) {
        let namespace = revision.key().name().into();
        shared.chores.push(Chore::Empty { namespace, table: "".into(), after: None });
    }
}

/// Leaves chores after an object was removed.
pub(crate) fn removed(shared: &Shared, target: &Target, revision: &Revision) {
    if !shared.options.garbage_collection {
        return;
    }
    let uid = Meta::of(revision).uid;
    if shared.store.has_dependents(&uid) {
        let namespaced = target.resource.namespaced;
        let owner = uid.into();
        shared.chores.push(Chore::Dependents { owner, namespaced, gone: true, after: None });
    }
    unblock_owners(shared, target, revision);
}

/// Lets the owners of an object look whether they still have to wait for it.
fn unblock_owners(shared: &Shared, target: &Target, revision: &Revision) {
    let Some(owners) = revision.owners() else { return };
    if !owners.iter().any(|owner| owner.blocks) {
        return;
    }
    for reference in Meta::of(revision).owner_references.iter().filter(|owner| owner.blocks) {
        let found = owners::locate(shared, &target.resource, revision.key(), reference);
        if let Some((table, key)) = found {
            let uid = reference.uid.as_str().into();
            shared.chores.push(Chore::Unblock(Place { table, key: key.into(), uid }));
        }
    }
}

fn place(target: &Target, revision: &Revision, meta: &Meta) -> Place {
    Place {
        table: Arc::clone(&target.storage.table),
        key: Arc::clone(revision.key()),
        uid: meta.uid.as_str().into(),
    }
}

/// Does the chores that writes have left: a limited number of them, or all if there is no runtime for
/// a task that does the rest.
pub(crate) fn settle(shared: &Arc<Shared>) {
    if !shared.chores.begin() {
        return;
    }
    let worker = Worker(Arc::downgrade(shared));
    if !turn(shared) {
        return worker.finish();
    }
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(work(worker));
        return;
    }
    while turn(shared) {}
    worker.finish();
}

/// The reservation of the queue. If it is dropped early, such as with its runtime, the next request
/// continues.
struct Worker(Weak<Shared>);

impl Worker {
    /// Forgets the reservation, which ended with the last chore. Another worker may have its own.
    fn finish(mut self) {
        self.0 = Weak::new();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.chores.leave();
        }
    }
}

async fn work(worker: Worker) {
    loop {
        tokio::task::yield_now().await;
        let Some(shared) = worker.0.upgrade() else { return };
        if !turn(&shared) {
            return worker.finish();
        }
    }
}

/// Does chores, up to a limit. Returns whether there are more.
fn turn(shared: &Arc<Shared>) -> bool {
    let mut touched = 0;
    while touched < COLLECTED_AT_ONCE_MAX {
        let Some(chore) = shared.chores.take() else { return false };
        touched += 1 + step(shared, chore);
    }
    true
}

/// Does a step of a chore. Returns the number of objects that it touched.
fn step(shared: &Arc<Shared>, chore: Chore) -> usize {
    match chore {
        Chore::Dependents { owner, namespaced, gone, after } => {
            let batch = shared.store.dependents(&owner, after.as_ref(), COLLECTED_AT_ONCE_MAX);
            let last = last_of_many(&batch);
            // A cluster-scoped object cannot have a namespaced owner.
            let valid = |found: &&Dependent| !(namespaced && found.key.namespace().is_empty());
            for found in batch.iter().filter(valid) {
                examine(shared, &found.table, &found.key, Some(&*owner).filter(|_| gone));
            }
            if last.is_some() {
                let more = Chore::Dependents { owner, namespaced, gone, after: last };
                shared.chores.resume(more);
            }
            batch.len()
        }
        Chore::Examine { table, key } => {
            examine(shared, &table, &key, None);
            1
        }
        Chore::Orphan { owner, after } => {
            let batch = shared.store.dependents(&owner.uid, after.as_ref(), COLLECTED_AT_ONCE_MAX);
            for found in &batch {
                drop_references(shared, &found.table, &found.key, &[&owner.uid]);
            }
            match last_of_many(&batch) {
                Some(last) => shared.chores.resume(Chore::Orphan { owner, after: Some(last) }),
                None => drop_finalizer(shared, &owner, ORPHAN),
            }
            batch.len()
        }
        Chore::Unblock(owner) => {
            if !shared.store.is_blocked(&owner.uid) {
                drop_finalizer(shared, &owner, FOREGROUND);
            }
            1
        }
        Chore::Empty { namespace, table, after } => empty(shared, &namespace, &table, after),
        Chore::Scan { table, after } => scan(shared, &table, after.as_ref()),
    }
}

/// Returns the last of a full batch, after which there may be more.
fn last_of_many(batch: &[Dependent]) -> Option<Dependent> {
    batch.last().filter(|_| batch.len() == COLLECTED_AT_ONCE_MAX).cloned()
}

/// Deletes an object that has no owner left, or drops its references to owners that are gone.
/// `gone` is the uid of an owner that is known to be gone.
fn examine(shared: &Arc<Shared>, table: &Arc<str>, key: &Key, gone: Option<&str>) {
    let Some(revision) = shared.store.get(table, key) else { return };
    let Some(target) = target(shared, table, key) else { return };
    let meta = Meta::of(&revision);
    if meta.deletion_timestamp.is_some() || revision.owners().is_none() {
        return;
    }
    let (mut kept, mut awaited, mut loose) = (false, false, Vec::new());
    for reference in &meta.owner_references {
        let state = match gone {
            Some(gone) if *gone == *reference.uid => OwnerState::Gone,
            _ => owners::state(shared, &target.resource, key, reference),
        };
        match state {
            OwnerState::Present => kept = true,
            OwnerState::Gone => loose.push(&*reference.uid),
            OwnerState::Awaiting => {
                awaited = true;
                loose.push(&*reference.uid);
            }
        }
    }
    if loose.is_empty() {
        return;
    }
    if kept {
        return drop_references(shared, table, key, &loose);
    }
    let has = |finalizer: &str| meta.finalizers.iter().any(|name| name == finalizer);
    let policy = if awaited && shared.store.has_dependents(&meta.uid) {
        break_cycle(shared, table, key, &meta.uid);
        Propagation::Foreground
    } else if has(ORPHAN) {
        Propagation::Orphan
    } else if has(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    // If it fails, the object has changed, and its next write leaves a chore again.
    drop(rest::collect(shared, &target, Some(&meta.uid), policy));
}

/// Lets the owners of an object no longer wait for it, if one of its own dependents also waits: in a
/// cycle of owners, each would wait for the next.
fn break_cycle(shared: &Arc<Shared>, table: &Arc<str>, key: &Key, uid: &str) {
    let dependents = shared.store.dependents(uid, None, COLLECTED_AT_ONCE_MAX);
    let awaiting = |found: &Dependent| {
        shared.store.get(&found.table, &found.key).is_some_and(|found| Meta::of(&found).awaits())
    };
    if dependents.iter().any(awaiting) {
        change(shared, table, key, |metadata| {
            for owner in items(metadata, "ownerReferences") {
                if let Some(blocks) = owner.get_mut("blockOwnerDeletion") {
                    *blocks = false.into();
                }
            }
        });
    }
}

fn drop_references(shared: &Arc<Shared>, table: &Arc<str>, key: &Key, uids: &[&str]) {
    change(shared, table, key, |metadata| {
        if let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") {
            let uid = |owner: &Value| owner.get("uid").and_then(Value::as_str).map(str::to_owned);
            owners.retain(|owner| !uid(owner).is_some_and(|uid| uids.contains(&&*uid)));
        }
    });
}

/// Removes a finalizer of garbage collection from an owner, which may then be removed.
fn drop_finalizer(shared: &Arc<Shared>, owner: &Place, finalizer: &str) {
    let found = shared.store.get(&owner.table, &owner.key);
    let Some(meta) = found.map(|found| Meta::of(&found)) else { return };
    if *meta.uid == *owner.uid
        && meta.deletion_timestamp.is_some()
        && meta.finalizers.iter().any(|name| name == finalizer)
    {
        change(shared, &owner.table, &owner.key, |metadata| {
            if let Some(Value::Array(finalizers)) = metadata.get_mut("finalizers") {
                finalizers.retain(|name| name != finalizer);
            }
        });
    }
}

/// Changes the metadata of an object.
fn change(shared: &Arc<Shared>, table: &Arc<str>, key: &Key, edit: impl Fn(&mut Object)) {
    let Some(target) = target(shared, table, key) else { return };
    let author = Author::server(MANAGER, &target.resource.api_version(), "");
    let changed = rest::modify(shared, &target, &author, false, |live| {
        let mut new = live.object.clone();
        let metadata = object::metadata_mut(&mut new);
        edit(metadata);
        for list in ["ownerReferences", "finalizers"] {
            if metadata.get(list).and_then(Value::as_array).is_some_and(Vec::is_empty) {
                metadata.remove(list);
            }
        }
        Ok(new.into())
    });
    if let Err(status) = changed {
        tracing::debug!(%table, object = %key, %status, "garbage collection cannot change an object");
    }
}

fn items<'a>(object: &'a mut Object, list: &str) -> impl Iterator<Item = &'a mut Object> {
    let list = object.get_mut(list).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Deletes objects of a namespace, in one table at a time. Returns their number.
fn empty(shared: &Arc<Shared>, namespace: &Arc<str>, table: &str, after: Option<Key>) -> usize {
    let mut table: Option<Arc<str>> = match after {
        Some(_) => Some(table.into()),
        None => shared.store.table_after(table),
    };
    let mut start = after;
    while let Some(current) = table {
        if shared.store.count(&current, Some(namespace)) > 0 {
            let first = start.take();
            let items = page(shared, &current, Some(namespace), first.as_ref());
            let next = items.last().map(|last| last.key().successor());
            for item in &items {
                if let Some(target) = target(shared, &current, item.key()) {
                    drop(rest::collect(shared, &target, None, Propagation::Background));
                }
            }
            let after = next.filter(|_| items.len() == COLLECTED_AT_ONCE_MAX);
            let namespace = Arc::clone(namespace);
            shared.chores.resume(Chore::Empty { namespace, table: current, after });
            return items.len();
        }
        table = shared.store.table_after(&current);
    }
    lifecycle::release_namespace(shared, namespace);
    0
}

/// Leaves the chores of the objects of a table, which has been restored. Returns their number.
fn scan(shared: &Arc<Shared>, table: &str, after: Option<&Key>) -> usize {
    let mut table: Option<Arc<str>> = match after {
        Some(_) => Some(table.into()),
        None => shared.store.table_after(table),
    };
    while let Some(vacant) = table.take_if(|table| shared.store.count(table, None) == 0) {
        table = shared.store.table_after(&vacant);
    }
    let Some(table) = table else { return 0 };
    let items = page(shared, &table, None, after);
    for item in &items {
        let Some(target) = target(shared, &table, item.key()) else { continue };
        if Meta::of(item).deletion_timestamp.is_some() {
            marked(shared, &target, item);
        } else {
            created(shared, &target, item);
        }
    }
    let next = items.last().map(|last| last.key().successor());
    let after = next.filter(|_| items.len() == COLLECTED_AT_ONCE_MAX);
    shared.chores.resume(Chore::Scan { table, after });
    items.len()
}

fn page(
    shared: &Shared,
    table: &str,
    namespace: Option<&str>,
    start: Option<&Key>,
) -> Vec<Arc<Revision>> {
    let request =
        PageRequest { namespace, start, limit: COLLECTED_AT_ONCE_MAX, ..PageRequest::default() };
    shared.store.list(table, None, &request).map(|page| page.items).unwrap_or_default()
}

/// Returns the target of a write to an object.
fn target(shared: &Shared, table: &str, key: &Key) -> Option<Target> {
    let place = (key.namespace(), key.name());
    Target::stored(&shared.registry.read(), Verb::Update, table, place)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::ApiServer;

    #[tokio::test(start_paused = true)]
    async fn the_server_is_freed_while_chores_are_left() {
        let server = ApiServer::start();
        let map = |name: &str, owners: Value| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "ownerReferences": owners},
            })
        };
        let owner = server.create(map("owner", json!([]))).unwrap();
        let uid = &owner["metadata"]["uid"];
        let owners =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]);
        for at in 0..4 * COLLECTED_AT_ONCE_MAX {
            server.create(map(&format!("child-{at}"), owners.clone())).unwrap();
        }
        server.delete("configmaps", "default", "owner").unwrap();
        assert!(server.count("configmaps", "") > 0, "a task does the rest");
        let shared = Arc::downgrade(&server.shared);
        drop(server);
        assert_eq!(shared.strong_count(), 0);
    }
}
