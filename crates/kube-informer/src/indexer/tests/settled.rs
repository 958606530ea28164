//! Bodies that are packed after they were stored, because the dictionary came later.

use super::*;
use crate::object::Packer;
use crate::{FieldPath, Transform};

/// Returns an object of 6 KB that has most of its content in common with the others.
fn large(packer: &Packer, n: usize, version: usize) -> Object {
    let env: Vec<_> = (0..120).map(|i| format!("SETTING_{i}={}", i * 31)).collect();
    let json = serde_json::json!({
        "metadata": {"name": format!("web-{n}"), "namespace": "shop", "uid": n.to_string(),
                     "resourceVersion": version.to_string()},
        "spec": {"nodeName": format!("node-{}", n % 3), "env": env, "more": env},
    });
    packer.pack(json.to_string().as_bytes(), None).unwrap()
}

fn packer() -> Packer {
    Packer::new(Transform::default(), None, false)
}

fn all(store: &Store) -> Vec<Object> {
    store.snapshot().0
}

fn bytes(store: &Store) -> usize {
    all(store).iter().map(Object::memory).sum()
}

#[test]
fn list_is_packed_whole_though_its_dictionary_came_midway() {
    let (store, packer) = (Store::new(), packer());
    let objects: Vec<_> = (0..300).map(|n| large(&packer, n, 1)).collect();
    assert!(!objects[0].is_packed() && objects[299].is_packed());
    let ids: Vec<_> = objects.iter().map(|object| object.key().clone()).collect();
    replace(&store, objects, &[], "1");
    assert!(all(&store).iter().all(Object::is_packed));
    assert_eq!(all(&store).iter().map(|object| object.key().clone()).collect::<Vec<_>>(), ids);
    assert_eq!(store.memory(), bytes(&store));
}

#[test]
fn stored_objects_are_packed_when_a_growing_cache_gets_its_dictionary() {
    let (store, packer) = (Store::new(), packer());
    let by_node =
        Index::<crate::Untyped>::field(&store, None, FieldPath::from("spec.nodeName")).unwrap();
    let mut plain = Vec::new();
    for n in 0..300 {
        let object = large(&packer, n, n + 1);
        plain.extend((!object.is_packed()).then(|| object.clone()));
        apply(&store, vec![put_delta(object)]);
        assert_eq!(store.memory(), bytes(&store));
    }
    assert!(!plain.is_empty() && all(&store).iter().all(Object::is_packed));
    for object in &plain {
        let stored = store.get(object.key().into()).unwrap();
        assert!(stored.same_content(object) && !object.is_packed());
    }
    assert_eq!(by_node.get("node-1").len(), 100);
    assert!(store.memory() < 300 * 1000, "{}", store.memory());
}

#[test]
fn object_that_cannot_be_packed_is_tried_once() {
    let (store, packer) = (Store::new(), packer());
    let tiny = packer.pack(br#"{"metadata":{"name":"tiny","uid":"u"}}"#, None).unwrap();
    apply(&store, vec![put_delta(tiny.clone())]);
    for n in 0..300 {
        apply(&store, vec![put_delta(large(&packer, n, n + 1))]);
    }
    assert!(store.get("tiny".into()).unwrap().is_same_instance(&tiny));
    assert!(!store.is_unsettled());
}

#[test]
fn body_is_unpacked_once_for_all_indexes() {
    let (store, packer) = (Store::new(), packer());
    replace(&store, (0..300).map(|n| large(&packer, n, 1)).collect(), &[], "1");
    let field = |path: &str| Index::<crate::Untyped>::field(&store, None, path.into()).unwrap();
    let indexes = [field("spec.nodeName"), field("spec.env[0]"), field("metadata.uid")];
    let function = named(&store, "node", |object| object.field::<String>("spec.nodeName").unwrap());
    let object = large(&packer, 300, 2);
    let before = object.unpacks();
    apply(&store, vec![put_delta(object.clone())]);
    assert_eq!(object.unpacks() - before, 1);
    assert_eq!((indexes[2].get("300").len(), function.get("node-0").len()), (1, 101));
}
