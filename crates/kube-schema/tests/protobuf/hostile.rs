//! Bytes that no encoder writes: an error or a value, never a panic, never a long wait.

use kube_schema::{Envelope, Error, Message, Type, from_slice, message, push_field, to_vec};
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::made::{Amount, Maker};

fn pod(raw: &[u8]) -> Vec<u8> {
    Envelope { api_version: "v1", kind: "Pod", raw }.to_vec()
}

fn read(raw: &[u8]) -> Result<Value, String> {
    from_slice(&pod(raw)).map_err(|error: Error| error.to_string())
}

fn part(of: Message, name: &str) -> Message {
    match of.field_named(name).expect("a field").kind() {
        Type::Message(message) => message,
        other => panic!("{name} is {other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_are_a_value_or_an_error(bytes: Vec<u8>, seed: u64) {
        let all: Vec<_> = kube_schema::kinds().collect();
        let (api_version, kind, message) = all[seed as usize % all.len()];
        let _ = message.decode::<Value>(&bytes);
        let _ = message.decode::<IgnoredAny>(&bytes);
        let _ = from_slice::<Value>(&Envelope { api_version, kind, raw: &bytes }.to_vec());
        let _ = from_slice::<Value>(&bytes);
        let _ = kube_schema::WatchFrame::parse(&bytes);
    }

    #[test]
    fn damaged_objects_are_a_value_or_an_error(seed: u64, at: usize, byte: u8, cut: bool) {
        let mut bytes = to_vec(&Maker::new(seed, Amount::Some).any_object()).expect("it was made to fit");
        let at = at % bytes.len();
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let _ = from_slice::<Value>(&bytes);
    }
}

#[test]
fn unknown_fields_are_skipped() {
    // Field 1000 in every wire type, around metadata.
    let mut raw = vec![0xc0, 0x3e, 1, 0xc1, 0x3e, 1, 2, 3, 4, 5, 6, 7, 8];
    push_field(&mut raw, 1, b"\x0a\x01a");
    push_field(&mut raw, 1000, b"new");
    raw.extend_from_slice(&[0xc5, 0x3e, 1, 2, 3, 4, 0xc3, 0x3e, 0xc4, 0x3e]);
    assert_eq!(read(&raw).unwrap()["metadata"], json!({"name": "a"}));
}

#[test]
fn fields_that_come_twice_are_errors() {
    let mut raw = Vec::new();
    push_field(&mut raw, 1, b"\x0a\x01a");
    push_field(&mut raw, 3, b"");
    push_field(&mut raw, 1, b"\x0a\x01b");
    assert!(read(&raw).unwrap_err().contains("\"metadata\" is there twice"));
    // A list in two parts.
    let spec = [&[0x12, 0][..], &[0x1a, 0], &[0x12, 0]].concat();
    let mut raw = Vec::new();
    push_field(&mut raw, 2, &spec);
    assert!(read(&raw).unwrap_err().contains("\"containers\" is there twice"));
}

#[test]
fn wrong_wire_types_are_errors() {
    assert!(read(&[0x08, 1]).unwrap_err().contains("\"metadata\" is not written as its type is"));
    // metadata.labels as numbers.
    assert!(read(&[0x0a, 2, 0x58, 1]).unwrap_err().contains("\"labels\""));
    // A name that is no UTF-8.
    assert!(read(&[0x0a, 3, 0x0a, 1, 0xff]).unwrap_err().contains("UTF-8"));
}

#[test]
fn packed_numbers_are_read() {
    let context = part(part(message("v1", "Pod").unwrap(), "spec"), "securityContext");
    let groups = context.field_named("supplementalGroups").unwrap().number();
    let mut packed = Vec::new();
    push_field(&mut packed, groups, &[1, 2, 0x80, 1]);
    push_field(&mut packed, groups, &[]);
    packed.extend_from_slice(&[(groups as u8) << 3, 3]);
    let value: Value = context.decode(&packed).unwrap();
    assert_eq!(value, json!({"supplementalGroups": [1, 2, 128, 3]}));
}

#[test]
fn depth_is_limited() {
    let definition = message("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    let version = part(part(definition, "spec"), "versions");
    let schema = part(part(version, "schema"), "openAPIV3Schema");
    let not = schema.field_named("not").unwrap().number();
    let mut nested = Vec::new();
    for _ in 0..100 {
        let inner = std::mem::take(&mut nested);
        push_field(&mut nested, not, &inner);
    }
    assert!(schema.decode::<Value>(&nested).is_ok());
    for _ in 0..10_000 {
        let inner = std::mem::take(&mut nested);
        push_field(&mut nested, not, &inner);
    }
    let error = schema.decode::<Value>(&nested).unwrap_err();
    assert!(error.to_string().contains("nested more than 128 deep"), "{error}");
    // What is not wanted is not looked into.
    assert!(schema.decode::<IgnoredAny>(&nested).is_ok());
}

#[test]
fn depth_of_objects_in_objects_is_limited() {
    // A List whose item is a List, and so on: each is an envelope within a RawExtension.
    let mut body = Envelope { api_version: "v1", kind: "List", raw: &[] }.to_vec();
    for _ in 0..1000 {
        let (mut extension, mut list) = (Vec::new(), Vec::new());
        push_field(&mut extension, 1, &body);
        push_field(&mut list, 2, &extension);
        body = Envelope { api_version: "v1", kind: "List", raw: &list }.to_vec();
    }
    assert!(from_slice::<Value>(&body).unwrap_err().to_string().contains("deep"));
}

#[test]
fn depth_of_json_is_limited_when_it_is_written() {
    let definition = message("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    let version = part(part(definition, "spec"), "versions");
    let schema = part(part(version, "schema"), "openAPIV3Schema");
    let mut nested = json!({});
    for _ in 0..200 {
        nested = json!({"not": nested});
    }
    assert!(schema.encode(&nested).unwrap_err().to_string().contains("deep"));
}

#[test]
fn json_that_does_not_fit_is_refused_by_field() {
    let refused = |field: &str, value: Value| {
        let mut spec = json!({});
        spec[field] = value;
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
        let error = to_vec(&pod).expect_err(field).to_string();
        assert!(error.contains(&format!("{field:?} is not ")), "{error}");
    };
    refused("nodeName", json!(1));
    refused("hostNetwork", json!("yes"));
    refused("priority", json!(3_000_000_000_i64));
    refused("priority", json!(1.5));
    refused("containers", json!({}));
    refused("nodeSelector", json!([]));
    refused("securityContext", json!("none"));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "not base64!"}});
    assert!(to_vec(&secret).unwrap_err().to_string().contains("\"data\" is not base64"));
    let times =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"creationTimestamp": "yesterday"}});
    assert!(to_vec(&times).unwrap_err().to_string().contains("RFC 3339"));
}
