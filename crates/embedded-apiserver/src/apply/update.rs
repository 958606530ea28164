//! The effect of a write on the managers of an object.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::Value;

use super::Object;
use super::compare::{Comparison, compare, equal, field_set};
use super::managers::{Author, Entry, Managers, Operation};
use super::merge::{merge, reconcile, remove, with_named_fields};
use super::set::{Element, Set};
use super::types::Type;

/// The manager of fields that were written before anything was applied, if they are not known.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The fields of an object whose managers are tracked.
pub(crate) struct Tracked<'a> {
    /// The type of the object in the version of the request.
    pub(crate) kind: Type<'a>,
    /// The version of the request.
    pub(crate) api_version: &'a str,
    /// The fields that the request cannot change, and whose managers therefore do not change.
    pub(crate) reset: Set,
    /// Other versions of the object.
    pub(crate) versions: &'a dyn Versions,
}

/// Converts objects to the versions in which managers wrote them.
pub(crate) trait Versions {
    /// Returns the type of objects in another version, or `None` if the version is not known any more.
    fn kind(&self, api_version: &str) -> Option<Type<'_>>;

    /// Returns an object in another version, and its type. Returns `None` if the version is not known any more.
    fn convert<'v>(
        &'v self,
        object: &'v Value,
        api_version: &str,
    ) -> Option<(Cow<'v, Value>, Type<'v>)>;
}

/// A field of an applied configuration that another manager owns, with a different value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) author: Author,
    pub(crate) path: Vec<Element>,
}

/// The result of an apply.
pub(crate) struct Applied {
    /// `None` if the object does not change, although its managers may.
    pub(crate) object: Option<Value>,
    pub(crate) managers: Managers,
}

/// Fields that belong to no manager.
fn unmanaged() -> Set {
    Set::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
}

impl Tracked<'_> {
    /// Returns the managers after a create, update or patch: the author owns the fields that it changed.
    pub(crate) fn update(
        &self,
        old: &Object,
        new: &Object,
        managers: Managers,
        author: &Author,
        now: &str,
    ) -> Managers {
        let mut managers = self.reconciled(managers);
        let changes = self.changes(old, new);
        let conflicts = self.conflicts(old, new, &managers, &changes, None);
        release(&mut managers, &conflicts);
        let fields = changes.modified.union(&changes.added).difference(&unmanaged());
        if !fields.is_empty() {
            let previous = managers.take(author);
            let fields =
                previous.map_or_else(|| fields.clone(), |previous| fields.union(&previous.fields));
            managers.0.push(Entry { author: author.clone(), time: Some(now.to_owned()), fields });
        }
        managers.cap();
        managers
    }

    /// Returns whether the author of an update owns some of its changes.
    pub(crate) fn adds_or_modifies(&self, old: &Object, new: &Object) -> bool {
        let changes = self.changes(old, new);
        let none = |fields: &Set| fields.difference(&unmanaged()).is_empty();
        !none(&changes.modified) || !none(&changes.added)
    }

    /// Applies a configuration: merges it into the object, and removes what its author applied before and no longer does,
    /// unless other managers own it.
    pub(crate) fn apply(
        &self,
        live: &Value,
        config: &Value,
        managers: &Managers,
        author: &Author,
        now: &str,
        force: bool,
    ) -> Result<Applied, Vec<Conflict>> {
        let mut managers = managers.clone();
        if managers.is_empty() {
            let before = Author {
                manager: BEFORE_FIRST_APPLY.to_owned(),
                operation: Operation::Update,
                subresource: String::new(),
                ..author.clone()
            };
            managers = self.update(&Object::new(), object(live), managers, &before, now);
        }
        let mut managers = self.reconciled(managers);
        let mut last = managers.take(author);
        let fields = field_set(self.kind, config).without(&self.reset);
        let time = last.as_mut().and_then(|last| last.time.take());
        managers.0.push(Entry { author: author.clone(), time, fields });
        let merged = merge(self.kind, live, config);
        let new = self.prune(merged, &managers, last);
        let changes = self.changes(object(live), object(&new));
        let conflicts =
            self.conflicts(object(live), object(&new), &managers, &changes, Some(author));
        if !force {
            let taken = conflicts.iter().flat_map(|(author, comparison)| {
                let paths = comparison.taken.paths();
                paths.into_iter().map(|path| Conflict { author: author.clone(), path })
            });
            let mut taken: Vec<Conflict> = taken.collect();
            if !taken.is_empty() {
                taken.sort_by(|a, b| a.author.manager.cmp(&b.author.manager));
                return Err(taken);
            }
        }
        release(&mut managers, &conflicts);
        let is_new = !equal(live, &new);
        if let Some(mut entry) = managers.take(author) {
            entry.fields = entry.fields.difference(&unmanaged());
            if is_new {
                entry.time = Some(now.to_owned());
            }
            if !entry.fields.is_empty() {
                managers.0.push(entry);
            }
        }
        Ok(Applied { object: is_new.then_some(new), managers })
    }

    /// Returns the object in the version of an entry, and its type.
    fn converted<'v>(
        &'v self,
        object: &'v Value,
        api_version: &str,
    ) -> Option<(Cow<'v, Value>, Type<'v>)> {
        let is_current = |object: &Value| {
            object.get("apiVersion").is_none_or(|version| version == self.api_version)
        };
        if api_version == self.api_version && is_current(object) {
            return Some((Cow::Borrowed(object), self.kind));
        }
        self.versions.convert(object, api_version)
    }

    /// Adapts the sets of all managers to the current types, and drops those of unknown versions.
    fn reconciled(&self, managers: Managers) -> Managers {
        let entries = managers.0.into_iter().filter_map(|mut entry| {
            let version = &*entry.author.api_version;
            let kind = if version == self.api_version {
                self.kind
            } else {
                self.versions.kind(version)?
            };
            entry.fields = reconcile(kind, &entry.fields);
            Some(entry)
        });
        Managers(entries.collect())
    }

    fn changes(&self, old: &Object, new: &Object) -> Comparison {
        compare(self.kind, old, new).without(&self.reset)
    }

    /// Returns what a change takes from each manager.
    fn conflicts(
        &self,
        old: &Object,
        new: &Object,
        managers: &Managers,
        changes: &Comparison,
        except: Option<&Author>,
    ) -> Vec<(Author, Loss)> {
        let others = managers
            .0
            .iter()
            .filter(|entry| !except.is_some_and(|author| entry.author.is_same_as(author)));
        let losses = others.filter_map(|entry| {
            let version = &*entry.author.api_version;
            let changes = if version == self.api_version {
                Cow::Borrowed(changes)
            } else {
                let [old, new] = [old, new].map(|object| Value::Object(object.clone()));
                let ((old, kind), (new, _)) =
                    (self.converted(&old, version)?, self.converted(&new, version)?);
                Cow::Owned(compare(kind, object(&old), object(&new)).without(&self.reset))
            };
            let taken = entry.fields.intersection(&changes.modified.union(&changes.added));
            let loss = Loss { taken, removed: changes.removed.clone() };
            Some((entry.author.clone(), loss))
        });
        losses.collect()
    }

    /// Removes the fields that the author applied last time but not this time, and that no manager owns now.
    fn prune(&self, merged: Value, managers: &Managers, last: Option<Entry>) -> Value {
        let Some(last) = last.filter(|last| !last.fields.is_empty()) else { return merged };
        let last_version = &*last.author.api_version;
        let Some((original, kind)) = self.converted(&merged, last_version) else { return merged };
        let original = original.into_owned();
        let applied = with_named_fields(kind, &last.fields);
        let mut pruned = remove(kind, &original, &applied);
        // Fields that other managers own come back, in the version in which they own them.
        let mut versions = vec![last_version];
        versions.extend(managers.0.iter().map(|entry| &*entry.author.api_version));
        versions[1..].sort_unstable();
        versions.dedup();
        for (at, version) in versions.iter().enumerate() {
            if at > 0 && *version == last_version {
                continue;
            }
            pruned = self.with_owned(&original, pruned, version, managers);
        }
        // Fields that the author did not apply come back, too.
        let Some((pruned, kind)) = self.converted(&pruned, last_version) else { return merged };
        let gone = named_fields(kind, &original).difference(&named_fields(kind, &pruned));
        let pruned = remove(kind, &original, &gone.intersection(&applied));
        match self.converted(&pruned, self.api_version) {
            Some((pruned, _)) => pruned.into_owned(),
            None => merged,
        }
    }

    /// Adds the fields of an object to its pruned form that managers own in a version.
    fn with_owned(
        &self,
        object: &Value,
        pruned: Value,
        version: &str,
        managers: &Managers,
    ) -> Value {
        let Some((left, kind)) = self.converted(&pruned, version) else { return pruned };
        let Some((object, _)) = self.converted(object, version) else { return pruned };
        let entries = managers.0.iter().filter(|entry| entry.author.api_version == version);
        let owned = entries.fold(Set::default(), |all, entry| all.union(&entry.fields));
        let kept = named_fields(kind, &left).union(&with_named_fields(kind, &owned));
        remove(kind, &object, &named_fields(kind, &object).difference(&kept))
    }
}

/// Returns the members of an object.
fn object(value: &Value) -> &Object {
    static EMPTY: LazyLock<Object> = LazyLock::new(Object::new);
    value.as_object().unwrap_or(&EMPTY)
}

/// Returns the fields of an object, and the fields that contain them.
fn named_fields(kind: Type<'_>, object: &Value) -> Set {
    with_named_fields(kind, &field_set(kind, object))
}

/// The fields that a manager loses by a change of another one.
struct Loss {
    taken: Set,
    removed: Set,
}

fn release(managers: &mut Managers, losses: &[(Author, Loss)]) {
    for entry in &mut managers.0 {
        for (_, loss) in losses.iter().filter(|(author, _)| entry.author.is_same_as(author)) {
            entry.fields = entry.fields.difference(&loss.taken).difference(&loss.removed);
        }
    }
    managers.0.retain(|entry| !entry.fields.is_empty());
}
