use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde::Deserialize;
use serde_json::json;

use super::memo::MEMO_ENTRIES_MAX;
use super::*;
use crate::Transform;

fn pod(packer: &Packer, name: &str) -> Object<Pod> {
    let json = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1",
                     "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}], "nodeName": "n1"},
    });
    packer.pack(json.to_string().as_bytes(), None).unwrap().cast()
}

fn packer() -> Packer {
    Packer::new(Transform::default(), None, false)
}

#[test]
fn an_object_takes_little_more_than_its_bytes() {
    // The cost of each of a hundred thousand objects, before its texts. The key takes 48 bytes, and needs no
    // allocation of its own if it is short. A shared text in its place would be a pointer and an offset, 24
    // bytes, plus an allocation with two counters before the text: more in total for every key of eight bytes
    // or more.
    assert!(size_of::<Raw>() <= 200, "{}", size_of::<Raw>());
    for key in ["kube-system/coredns-5d78c9869d-8xkzp", "default/web-0", "worker-1"] {
        let inline = size_of::<ObjectKey>() + key.parse::<ObjectKey>().unwrap().allocated();
        let shared = size_of::<(Arc<str>, u32)>() + 2 * size_of::<usize>() + key.len();
        assert!(inline <= shared, "{key}: {inline}, not {shared}");
    }
    assert_eq!(size_of::<Object<Pod>>(), size_of::<usize>());
    let object = pod(&packer(), "web-0");
    let bytes = object.to_json().unwrap().len();
    assert!(object.memory() >= bytes && object.memory() < bytes + 220, "{}", object.memory());
}

#[test]
fn r32_a_body_is_memory_of_its_own_and_given_out_without_a_copy() {
    let list = r#"{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}"#;
    let item = &list[10..35];
    let object: Object = Object::from_json(item).unwrap();
    let (one, other) = (object.to_json().unwrap(), object.to_json().unwrap());
    assert_eq!((&one[..], one.as_ptr()), (item.as_bytes(), other.as_ptr()));
    assert!(!list.as_bytes().as_ptr_range().contains(&one.as_ptr()));
    drop((object, other));
    assert_eq!(&one[..], item.as_bytes(), "it lives as long as it is held");
}

#[test]
fn s2_clones_and_casts_are_the_same_instance() {
    let object = pod(&packer(), "web-0");
    let cast: Object<ConfigMap> = object.clone().cast();
    assert!(object.is_same_instance(&cast) && object.is_same_instance(&object.clone()));
    let again = pod(&packer(), "web-0");
    assert!(object.same_version(&again) && !object.is_same_instance(&again));
    assert!(!object.same_version(&pod(&packer(), "web-1")));
}

#[test]
fn i18_decoding_is_free_while_the_result_is_held() {
    let packer = packer();
    let object = pod(&packer, "web-0");
    let first = object.decode().unwrap();
    assert_eq!(first.spec.as_ref().unwrap().node_name.as_deref(), Some("n1"));
    assert!(Arc::ptr_eq(&first, &object.clone().decode().unwrap()));
    // Another object is decoded separately, even if its content is equal.
    assert!(!Arc::ptr_eq(&first, &pod(&packer, "web-0").decode().unwrap()));
    let weak = Arc::downgrade(&first);
    drop(first);
    assert_eq!(weak.strong_count(), 0, "nothing but the caller holds it");
    assert!(object.decode().is_ok());
}

#[test]
fn what_was_decoded_is_remembered_for_each_type() {
    #[derive(Deserialize)]
    struct Labelled {
        metadata: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        labels: BTreeMap<String, String>,
    }
    let object = pod(&packer(), "web-0");
    let other: Object<Labelled> = object.clone().cast();
    let (whole, part) = (object.decode().unwrap(), other.decode().unwrap());
    assert_eq!(part.metadata.labels["app"], "web");
    assert!(Arc::ptr_eq(&whole, &object.decode().unwrap()));
    assert!(Arc::ptr_eq(&part, &other.decode().unwrap()));
}

#[test]
fn no_more_is_remembered_than_is_bounded() {
    let packer = packer();
    let objects: Vec<_> = (0..2 * MEMO_ENTRIES_MAX).map(|n| pod(&packer, &n.to_string())).collect();
    let memo = &objects[0].raw.codec.common.memo;
    let held = objects[1].decode().unwrap();
    for object in &objects {
        object.decode().unwrap();
        assert!(memo.len() <= MEMO_ENTRIES_MAX);
    }
    // Results that are not held are evicted first.
    assert!(Arc::ptr_eq(&held, &objects[1].decode().unwrap()));
    let all: Vec<_> = objects.iter().map(|object| object.decode().unwrap()).collect();
    assert_eq!(memo.len(), MEMO_ENTRIES_MAX);
    let last = objects.last().unwrap().decode().unwrap();
    assert!(Arc::ptr_eq(all.last().unwrap(), &last), "the latest stay");
}

#[test]
fn an_object_knows_who_controls_it() {
    let owner: Object = Object::from_json(r#"{"metadata":{"name":"web","uid":"o"}}"#).unwrap();
    let object = |uid: &str, controller: bool| -> Object {
        let owner = json!({"uid": uid, "controller": controller});
        let json = json!({"metadata": {"name": "a", "ownerReferences": [owner]}});
        Object::from_json(json.to_string()).unwrap()
    };
    assert!(object("o", true).is_controlled_by(&owner));
    assert!(!object("o", false).is_controlled_by(&owner));
    assert!(!object("other", true).is_controlled_by(&owner));
}

#[test]
fn a_typed_object_can_be_packed() {
    let typed = pod(&packer(), "web-0").decode().unwrap();
    let packed = Object::pack(&*typed).unwrap();
    assert_eq!((packed.key().as_str(), packed.uid()), ("shop/web-0", "web-0"));
    assert_eq!(packed.decode().unwrap(), typed);
}

#[test]
fn an_error_of_a_transform_is_the_source() {
    let refuse =
        |_: &mut serde_json::Value| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    let packer = Packer::new(Transform::try_map(refuse), None, false);
    let theirs: Object = Object::from_json(r#"{"metadata":{"name":"a"}}"#).unwrap();
    let json = theirs.to_json().unwrap();
    for error in [packer.pack(&json, None).unwrap_err(), packer.repack(theirs).unwrap_err()] {
        let source = std::error::Error::source(&error).unwrap();
        let kind = source.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        assert_eq!((error.is_unreadable(), kind), (true, Some(std::io::ErrorKind::NotFound)));
    }
}

#[test]
fn k5_an_event_has_the_key_of_its_object() {
    let object = pod(&packer(), "web-0");
    let gone = Deleted { object: object.clone(), final_state: FinalState::Unknown };
    for event in [
        Event::Added { object: object.clone(), initial: true },
        Event::Updated { old: object.clone(), new: object.clone() },
        Event::Deleted(gone),
        Event::Resynced(object.clone()),
    ] {
        assert_eq!(event.key(), Some(object.key()));
    }
    assert_eq!(Event::<Pod>::Synced.key(), None);
}

#[test]
fn objects_can_be_sent_whatever_they_decode_to() {
    fn check<T: Send + Sync + 'static>() {}
    check::<Object<std::cell::Cell<()>>>();
    check::<Event<std::rc::Rc<()>>>();
}
