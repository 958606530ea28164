use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::{FieldPath, Transform, Untyped};

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-0", "namespace": "shop", "uid": "0d9a1a4e-95c7-4d27-8f1e-0c3f6bd1c7aa",
            "resourceVersion": "4711", "generation": 3,
            "creationTimestamp": "2026-03-01T12:00:00Z", "deletionTimestamp": "2026-03-02T12:00:00Z",
            "labels": {"app": "web", "example.com/tier": "front"},
            "annotations": {"example.com/team": "shöp \"1\""},
            "finalizers": ["example.com/drain"],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "u-1"},
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-2",
                 "controller": true, "blockOwnerDeletion": true},
            ],
            "managedFields": [
                {"manager": "kubelet", "operation": "Update", "apiVersion": "v1",
                 "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {}}},
                {"manager": "kubectl", "operation": "Apply", "apiVersion": "v1"},
            ],
        },
        "spec": {
            "nodeName": "node-1", "priority": 0, "hostNetwork": true,
            "containers": [
                {"name": "web", "image": "web:1", "resources": {"limits": {"cpu": "100m"}},
                 "ports": [{"containerPort": 80, "protocol": "TCP"}],
                 "livenessProbe": {"httpGet": {"port": "http"}}},
                {"name": "proxy", "image": "proxy:2", "resources": {}},
            ],
        },
        "status": {"phase": "Running", "startTime": "2026-03-01T12:00:01Z"},
    })
}

fn types() -> Types {
    Types { api_version: "v1".to_owned(), kind: "Pod".to_owned() }
}

/// Returns an object's message, without an envelope.
fn message(object: &Value) -> Vec<u8> {
    let body = kube_schema::to_vec(object).expect("a built-in kind");
    Envelope::parse(&body).expect("it was just written").raw.to_vec()
}

fn packer() -> Packer {
    Packer::new(Transform::default(), None, false)
}

/// Returns the same pod, packed from JSON and from protobuf.
fn both(packer: &Packer) -> [Object<Pod>; 2] {
    let json = packer.pack(pod().to_string().as_bytes(), None).unwrap();
    let protobuf = packer.pack_protobuf(&message(&pod()), &types()).unwrap();
    assert!(is_protobuf(&protobuf.raw.text().unwrap()));
    [json.cast(), protobuf.cast()]
}

#[test]
fn the_header_is_the_same() {
    let [json, protobuf] = both(&packer());
    assert_eq!(json.key(), protobuf.key());
    assert_eq!((json.uid(), json.generation()), (protobuf.uid(), protobuf.generation()));
    assert!(json.same_version(&protobuf));
    assert_eq!(json.labels(), protobuf.labels());
    assert_eq!(json.controller(), protobuf.controller());
    assert_eq!(json.deletion_timestamp(), protobuf.deletion_timestamp());
    assert!(protobuf.deletion_timestamp().is_some() && protobuf.controller().is_some());
}

#[test]
fn everything_is_read_as_from_json() {
    let packers = [packer(), packer().with_plain_bodies(), packer().train_on(64)];
    for packer in &packers {
        for _ in 0..100 {
            both(packer);
        }
        let [json, protobuf] = both(packer);
        assert_eq!(json.decode().unwrap(), protobuf.decode().unwrap());
        let value = |object: &Object<Pod>| object.decode_as::<Value>().unwrap();
        assert_eq!(value(&json), value(&protobuf));
        let text = protobuf.to_json().unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), value(&json));
        assert_eq!(json.annotations(), protobuf.annotations());
        assert_eq!(json.finalizers(), protobuf.finalizers());
        assert_eq!(json.owner_references(), protobuf.owner_references());
        assert_eq!(json.creation_timestamp(), protobuf.creation_timestamp());
        for path in [
            "spec.nodeName",
            "spec.containers[*].image",
            "spec.containers[1].name",
            "kind",
            "metadata.labels['example.com/tier']",
            "/spec/containers/0/ports/0/containerPort",
            "spec.containers[0].resources.limits.cpu",
            "metadata.labels",
            "spec",
            "spec.nope",
            "spec.nodeName.deeper",
            "metadata.labels[*]",
            "spec.hostNetwork",
            "spec.containers[0].livenessProbe.httpGet.port",
            "spec.priority",
            "[*]",
        ] {
            let path = FieldPath::from(path);
            let found = |object: &Object<Pod>| object.field::<Value>(&path).unwrap();
            assert_eq!(found(&json), found(&protobuf), "{path}");
            assert_eq!(json.index_values(&path), protobuf.index_values(&path), "{path}");
        }
    }
}

#[test]
fn a_type_with_few_fields_borrows_nothing_and_reads_them() {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Slim {
        spec: Spec,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        node_name: String,
    }
    let [_, protobuf] = both(&packer());
    assert_eq!(protobuf.decode_as::<Slim>().unwrap().spec.node_name, "node-1");
}

/// As for JSON: the field, what was expected, and no value.
#[test]
fn what_does_not_decode_is_named_in_the_same_words() {
    #[derive(Deserialize, Debug)]
    #[serde(rename_all = "camelCase")]
    struct Wrong {
        #[serde(rename = "spec")]
        _spec: Spec,
    }
    #[derive(Deserialize, Debug)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        #[serde(rename = "nodeName")]
        _node_name: u32,
    }
    let [json, protobuf] = both(&packer());
    let why = |object: &Object<Pod>| object.decode_as::<Wrong>().unwrap_err().to_string();
    assert_eq!(why(&json), why(&protobuf));
    assert!(why(&protobuf).contains("spec.nodeName: invalid type: string, expected u32"));
}

#[test]
fn managed_fields_are_cut_out_unless_they_are_kept() {
    let keeping = Packer::new(Transform::default(), None, true);
    let managed = FieldPath::from("metadata.managedFields[*].manager");
    let found =
        |packer: &Packer| both(packer).map(|pod| pod.field::<Vec<String>>(&managed).unwrap());
    assert_eq!(found(&packer()), [None, None]);
    let names = vec!["kubelet".to_owned(), "kubectl".to_owned()];
    assert_eq!(found(&keeping), [Some(names.clone()), Some(names)]);
    let [_, protobuf] = both(&packer().with_plain_bodies());
    let without = message(&protobuf.decode_as().unwrap());
    let text = protobuf.raw.text().unwrap();
    assert_eq!(Envelope::parse(&text).unwrap().raw, without, "as if it had never had any");
}

#[test]
fn t4_a_transform_makes_json_of_it() {
    let [_, protobuf] = both(&packer());
    let lean = Transform::drop_fields(["spec", "metadata.labels"]).apply(&protobuf).unwrap();
    assert!(lean.labels().is_empty() && lean.field::<Value>("spec").unwrap().is_none());
    assert_eq!(lean.field::<String>("status.phase").unwrap().as_deref(), Some("Running"));
}

#[test]
fn an_object_without_a_key_is_not_kept_and_named_as_far_as_it_can_be() {
    let pack = |object: &Value| packer().pack_protobuf(&message(object), &types());
    let nameless = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop"}});
    let error = pack(&nameless).unwrap_err();
    assert!(error.is_unreadable() && error.key().is_none(), "{error}");
    assert!(error.to_string().contains("metadata.name is not there"), "{error}");
    let twice = [message(&pod()), message(&pod())].concat();
    let error = packer().pack_protobuf(&twice, &types()).unwrap_err();
    assert!(error.to_string().contains("metadata is not there once"), "{error}");
    assert!(packer().pack_protobuf(b"", &types()).unwrap_err().is_unreadable());
}

#[test]
fn i19_an_object_that_breaks_off_anywhere_is_not_kept() {
    let message = message(&pod());
    for at in 0..message.len() {
        let cut = packer().pack_protobuf(&message[..at], &types());
        // A message that is cut between two fields is still a message.
        assert!(cut.is_err() || cut.unwrap().key().name() == "web-0");
    }
}

proptest! {
    #[test]
    fn i19_any_bytes_are_an_object_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        at in any::<prop::sample::Index>(),
        flip in 1_u8..,
    ) {
        let mut damaged = message(&pod());
        let at = at.index(damaged.len());
        damaged[at] ^= flip;
        for message in [&bytes, &damaged] {
            if let Ok(object) = packer().pack_protobuf(message, &types()) {
                let object: Object<Untyped> = object;
                let _ = (object.to_json(), object.decode_as::<Pod>(), object.annotations());
                let _ = object.field::<Value>("spec.containers[*].image");
            }
        }
    }
}
