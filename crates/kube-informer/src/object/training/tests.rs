use serde_json::{Value, json};

use super::*;
use crate::object::Packer;
use crate::{FieldPath, Transform};

fn packer() -> Packer {
    Packer::new(Transform::default(), None, false)
}

/// Returns an object of 6 KB that has most of its content in common with others of its kind.
fn pod(kind: &str, n: usize) -> Value {
    let env =
        |i: usize| json!({"name": format!("{kind}_{i}"), "value": format!("{kind}{}", i * 31)});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("{kind}-{n}"), "namespace": "shop", "resourceVersion": n.to_string()},
        "spec": {"nodeName": format!("node-{}", n % 9), "env": (0..120).map(env).collect::<Vec<_>>()},
    })
}

fn pack(packer: &Packer, value: &Value) -> Object {
    packer.pack(value.to_string().as_bytes(), None).unwrap()
}

#[test]
fn objects_are_packed_once_there_are_enough() {
    let packer = packer();
    let objects: Vec<_> = (0..300).map(|n| pack(&packer, &pod("web", n))).collect();
    let first = objects.iter().position(Object::is_packed).expect("some are packed");
    assert!(first >= SAMPLES_MIN && objects[first..].iter().all(Object::is_packed), "{first}");
    for (n, object) in objects.iter().enumerate() {
        assert_eq!(object.decode_as::<Value>().unwrap(), pod("web", n));
        let plain: Object = Object::from_json(pod("web", n).to_string()).unwrap();
        assert_eq!(object.to_json().unwrap(), plain.to_json().unwrap());
        assert!(object.same_content(&plain) && plain.same_content(object));
        assert!(n < first || object.memory() < plain.memory() / 5, "{}", object.memory());
    }
}

#[test]
fn few_objects_stay_plain() {
    let packer = packer();
    let objects: Vec<_> = (0..50).map(|n| pack(&packer, &pod("web", n))).collect();
    assert!(!objects.iter().any(Object::is_packed));
    // However often they change.
    for version in 0..2000 {
        assert!(!pack(&packer, &pod("web", version % 50)).is_packed());
    }
    let sampled = packer.training.0.lock().sampling.as_ref().unwrap().objects.len();
    assert!(sampled <= SAMPLES_MIN, "{sampled}: dead ones are forgotten");
}

#[test]
fn small_and_random_bodies_stay_plain() {
    let packer = packer();
    let _kept: Vec<_> = (0..200).map(|n| pack(&packer, &pod("web", n))).collect();
    let tiny = pack(&packer, &json!({"metadata": {"name": "a"}}));
    let mut random = fastrand::Rng::with_seed(1);
    let noise: String = (0..5000).map(|_| random.char('#'..'~')).collect();
    let noise = pack(&packer, &json!({"metadata": {"name": "b"}, "data": noise}));
    assert!(!tiny.is_packed() && !noise.is_packed());
    assert_eq!(noise.field::<String>("metadata.name").unwrap().unwrap(), "b");
}

#[test]
fn a_packed_body_is_unpacked_once_for_all_readers() {
    let packer = packer();
    let objects: Vec<_> = (0..250).map(|n| pack(&packer, &pod("web", n))).collect();
    let (object, before) = (objects.last().unwrap(), objects[0].unpacks());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let path = FieldPath::from("spec.nodeName");
                assert_eq!(object.index_values(&path).len(), 1);
                assert!(object.field::<String>(&path).unwrap().is_some());
                assert!(object.decode_as::<Value>().is_ok() && object.to_json().is_ok());
                assert!(object.creation_timestamp().is_none());
            });
        }
    });
    assert_eq!(object.unpacks() - before, 1);
    assert!(objects[249].same_content(&objects[249].clone()));
}

#[test]
fn a_second_dictionary_is_trained_on_a_spread_of_objects() {
    let packer = packer().train_on(16);
    let kinds = ["web", "queue", "cache", "search"];
    // Sorted, as lists are.
    let pods = kinds.iter().flat_map(|kind| (0..150).map(|n| pod(kind, n)));
    let objects: Vec<_> = pods.map(|pod| pack(&packer, &pod)).collect();
    let (first, second) = (&objects[16].raw.codec, &objects[599].raw.codec);
    assert!(objects[16].is_packed() && !Arc::ptr_eq(first, second));
    let kept = |kind| pack(&packer, &pod(kind, 1)).raw.body.kept().len();
    let (web, search) = (kept("web"), kept("search"));
    assert!(web < 2 * search && search < 2 * web, "{web} {search}");
}

#[test]
fn a_dictionary_is_replaced_when_objects_have_become_others() {
    let packer = packer().train_on(16);
    let mut old: Vec<_> = (0..3000).map(|n| pack(&packer, &pod("web", n))).collect();
    let first = packer.training.codec();
    assert!(first.has_dictionary() && Arc::ptr_eq(&first, &old[2999].raw.codec));
    let new: Vec<_> = (0..3000).map(|n| pack(&packer, &pod("queue", n))).collect();
    let second = packer.training.codec();
    assert!(!Arc::ptr_eq(&first, &second));
    let kept = |object: &Object| object.raw.body.kept().len();
    let (before, after) = (kept(&new[0]), kept(&new[2999]));
    assert!(after * 3 < before * 2, "{before} {after}");
    for (n, object) in old.iter().enumerate().step_by(97) {
        assert_eq!(object.decode_as::<Value>().unwrap(), pod("web", n));
    }
    // The old dictionary is dropped with the last object that needs it.
    let replaced = Arc::downgrade(&first);
    drop((first, new));
    old.truncate(2500);
    assert!(replaced.strong_count() > 0);
    drop(old);
    assert_eq!(replaced.strong_count(), 0);
}

#[test]
fn the_same_objects_are_packed_the_same_way() {
    let bodies = || {
        let packer = packer();
        let pack = |n| pack(&packer, &pod("web", n)).raw.body.kept().to_vec();
        (0..400).map(pack).collect::<Vec<_>>()
    };
    assert_eq!(bodies(), bodies());
}

#[test]
fn objects_from_before_the_dictionary_are_settled_later() {
    let packer = packer();
    let mut objects: Vec<_> = (0..200).map(|n| pack(&packer, &pod("web", n))).collect();
    let held = objects[1].clone();
    assert!(!objects[0].is_packed() && !held.is_packed());
    let typed = objects[0].clone().cast::<k8s_openapi::api::core::v1::Pod>().decode().unwrap();
    assert!(objects[0].settle() && objects[1].settle() && !objects[199].settle());
    assert!(objects[0].is_packed() && objects[1].is_packed() && !held.is_packed());
    assert!(held.same_content(&objects[1]));
    assert_eq!(objects[0].decode_as::<Value>().unwrap(), pod("web", 0));
    let again = objects[0].clone().cast::<k8s_openapi::api::core::v1::Pod>().decode().unwrap();
    assert!(Arc::ptr_eq(&typed, &again), "it is still the same object");
    assert!(!objects[0].settle());
}

#[test]
fn plain_bodies_stay_plain_on_request() {
    let packer = packer().with_plain_bodies();
    let mut objects: Vec<_> = (0..300).map(|n| pack(&packer, &pod("web", n))).collect();
    assert!(!objects.iter().any(Object::is_packed) && !objects[0].settle());
    // Bodies that another packer has packed are unpacked.
    let packing = self::packer();
    let theirs: Vec<_> = (0..300).map(|n| pack(&packing, &pod("web", n))).collect();
    let ours = packer.repack(theirs[299].clone()).unwrap();
    assert!(theirs[299].is_packed() && !ours.is_packed() && ours.same_content(&theirs[299]));
}

#[test]
fn tests_can_train_on_a_few_small_objects() {
    let packer = packer().train_on(8);
    let small = |n: usize| {
        let metadata = json!({"name": format!("web-{n}"), "namespace": "default",
            "annotations": {"stamp": n.to_string(), "text": "größer als ☃ 🦀"}});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    };
    let objects: Vec<_> = (0..20).map(|n| pack(&packer, &small(n))).collect();
    assert!(!objects[7].is_packed() && objects[8..].iter().all(Object::is_packed));
}
