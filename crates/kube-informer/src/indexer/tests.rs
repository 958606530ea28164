//! The store against client-go's rules and our own invariants.

mod indexes;
mod model;
mod process;
mod races;
mod rules;
mod settled;
mod stress;
mod users;

use std::sync::Arc;

use super::*;
use crate::Lister;

/// Parses an object: `shop/web@7` is the object of that key at that version.
fn object(text: &str) -> Object {
    labelled(text, &[])
}

fn labelled(text: &str, labels: &[(&str, &str)]) -> Object {
    let (key, version) = text.split_once('@').unwrap();
    made(key, "uid", version, labels)
}

fn made(key: &str, uid: &str, version: &str, labels: &[(&str, &str)]) -> Object {
    let key: ObjectKey = key.parse().unwrap();
    let labels: serde_json::Map<_, _> =
        labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    let json = serde_json::json!({
        "metadata": {
            "namespace": key.namespace().unwrap_or_default(),
            "name": key.name(),
            "uid": uid,
            "resourceVersion": version,
            "labels": labels,
        },
        "spec": {"nodeName": labels.get("node")},
    });
    Object::from_json(json.to_string()).unwrap()
}

fn put_delta(object: Object) -> Delta {
    Delta::Updated(object)
}

fn deleted(object: Object) -> Delta {
    Delta::Deleted(Deleted { object, final_state: FinalState::Known })
}

fn missed(object: Object) -> Delta {
    Delta::Deleted(Deleted { object, final_state: FinalState::Unknown })
}

fn apply(store: &Store, deltas: Vec<Delta>) -> Vec<Applied> {
    write(store, deltas, Accept::Newer)
}

fn write(store: &Store, deltas: Vec<Delta>, accept: Accept) -> Vec<Applied> {
    let batches = Batch::of(deltas);
    batches.flat_map(|batch| store.write(0, batch, accept, || ()).0.applied).collect()
}

/// Replaces the content. Objects with the keys in `keep` are in the list, too, but could not be read.
fn replace(store: &Store, objects: Vec<Object>, keep: &[&str], version: &str) -> Vec<Applied> {
    let unreadable = keep.iter().map(|key| unreadable(key)).collect();
    apply(store, vec![Delta::ReplacedAll { objects, unreadable, version: version.into() }])
}

fn unreadable(key: &str) -> Error {
    Error::new(crate::error::Cause::Unreadable { key: Some(key.parse().unwrap()) }, "no metadata")
}

/// Formats the effects of a write: `+a@1`, `a@1>a@2`, `-a@3`, `?a@3` for a missed delete, and for lists `*a@1`
/// initial, `=a@1` unchanged.
fn said(applied: &[Applied]) -> String {
    let one = |applied: &Applied| match applied {
        Applied::Added(object) => format!("+{}", text(object)),
        Applied::Updated { old, new } => format!("{}>{}", text(old), text(new)),
        Applied::Deleted(gone) if gone.final_state == FinalState::Known => {
            format!("-{}", text(&gone.object))
        }
        Applied::Deleted(gone) => format!("?{}", text(&gone.object)),
        Applied::List(listed, objects) => {
            let mark = if *listed == Listed::Initial { "*" } else { "=" };
            objects
                .iter()
                .map(|object| format!("{mark}{}", text(object)))
                .collect::<Vec<_>>()
                .join(" ")
        }
        Applied::Synced => "synced".to_owned(),
    };
    applied.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn text<K>(object: &Object<K>) -> String {
    format!("{}@{}", object.key(), object.resource_version())
}

fn texts<'a, K: 'a>(objects: impl IntoIterator<Item = &'a Object<K>>) -> String {
    objects.into_iter().map(text).collect::<Vec<_>>().join(" ")
}

/// Returns the whole content, and the version.
fn content(store: &Store) -> String {
    let (objects, version) = store.snapshot();
    format!("{} at {version}", texts(&objects))
}

fn put(store: &Store, text: &str) -> String {
    said(&apply(store, vec![put_delta(object(text))]))
}

/// Returns an index by the parts of the label `tags`, separated by dots: none, one or many values.
fn by_tags(store: &Arc<Store>) -> Index {
    named(store, "tags", |object| {
        let tags = object.labels().get("tags").unwrap_or_default();
        tags.split('.').filter(|tag| !tag.is_empty()).map(Arc::from).collect::<Vec<Arc<str>>>()
    })
}

fn named<V: IntoIterator<Item: Into<Arc<str>>>>(
    store: &Arc<Store>,
    name: &str,
    values: impl Fn(&Object) -> V + Send + Sync + 'static,
) -> Index {
    Index::function(store, None, name, values).unwrap()
}

fn tagged(text: &str, tags: &str) -> Object {
    labelled(text, &[("tags", tags)])
}

fn lister(store: &Arc<Store>) -> Lister {
    Lister::new(store.clone(), None)
}
