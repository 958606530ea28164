use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube_core::DynamicObject;
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::{FieldPath, Object, Transform};

const SECRET: &str = "s3cr3t, expected s3cr3t";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code, reason = "only decoded, never read")]
struct Order {
    #[serde(default)]
    metadata: Value,
    #[serde(default)]
    items: Vec<Item>,
    #[serde(default)]
    notes: BTreeMap<String, u8>,
    raw: Option<Box<RawValue>>,
    state: Option<State>,
    strict: Option<Strict>,
    either: Option<Either>,
    pair: Option<(u8, u8)>,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code, reason = "only decoded, never read")]
struct Item {
    sku: String,
    amount: u16,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code, reason = "only decoded, never read")]
enum State {
    Open,
    Closed { by: u8 },
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
#[allow(dead_code, reason = "only decoded, never read")]
enum Either {
    Number(u8),
    Truth(bool),
}

/// A type whose errors quote the value.
#[derive(Debug)]
struct Strict;
impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: serde::Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        let text = String::deserialize(decoder)?;
        Err(D::Error::custom(format!("{text} is not strict")))
    }
}

/// Returns the error for an object with these fields besides its name.
fn said<T: DeserializeOwned>(mut fields: Value) -> String {
    fields["metadata"]["name"] = "a".into();
    let object: Object = Object::from_json(fields.to_string()).unwrap();
    let error = object.decode_as::<T>().err().expect("it should not decode");
    assert!(error.is_decode() && error.key() == Some(object.key()));
    assert!(std::error::Error::source(&error).is_none(), "serde's error quotes values");
    let text = error.to_string();
    assert!(!text.contains("s3cr3t") && !format!("{error:?}").contains("s3cr3t"), "i20: {error}");
    text.strip_prefix("a cannot be decoded: ").expect("the key comes first").to_owned()
}

#[test]
fn a_decode_error_names_the_field_and_what_was_expected() {
    let item = |amount: Value| json!({"items": [{"sku": "x", "amount": 1}, {"sku": "y", "amount": amount}]});
    for (fields, expected) in [
        (item(json!(SECRET)), "items[1].amount: invalid type: string, expected u16"),
        (item(json!(70_000)), "items[1].amount: invalid value: integer, expected u16"),
        (item(json!(1.5)), "items[1].amount: invalid type: floating point, expected u16"),
        (item(json!(null)), "items[1].amount: invalid type: null, expected u16"),
        (item(json!({SECRET: 1})), "items[1].amount: invalid type: map, expected u16"),
        (json!({"items": [{"sku": "x"}]}), "items[0]: missing field `amount`"),
        (json!({"items": SECRET}), "items: invalid type: string, expected a sequence"),
        (json!({"notes": {"a.b/c": SECRET}}), "notes['a.b/c']: invalid type: string, expected u8"),
        (
            json!({"state": {"Closed": {"by": true}}}),
            "state.Closed.by: invalid type: boolean, expected u8",
        ),
        (
            json!({"raw": {"any": SECRET}, "pair": [1, SECRET]}),
            "pair[1]: invalid type: string, expected u8",
        ),
        (json!({"pair": [1]}), "pair: invalid length, expected a tuple of size 2"),
    ] {
        assert_eq!(said::<Order>(fields), expected);
    }
}

#[test]
fn i20_whatever_a_type_says_no_value_is_repeated() {
    for (fields, expected) in [
        (json!({"state": SECRET}), "state: unknown variant, expected `Open` or `Closed`"),
        (json!({"strict": SECRET}), "strict: the value is not one that its type accepts"),
        (json!({"either": SECRET}), "either: the value is not one that its type accepts"),
    ] {
        assert_eq!(said::<Order>(fields), expected);
    }
    let unknown = said::<Order>(json!({"nots": {"a": SECRET}}));
    assert!(unknown.contains("unknown field, expected one of `metadata`, `items`"), "{unknown}");
}

#[test]
fn built_in_and_dynamic_types_name_their_fields_too() {
    let port = |port: Value| {
        let container = |ports: Value| json!({"name": "c", "ports": ports});
        let ports = json!([{"containerPort": port}]);
        json!({"apiVersion": "v1", "kind": "Pod",
               "spec": {"containers": [container(json!([])), container(json!([])), container(ports)]}})
    };
    assert_eq!(
        said::<Pod>(port(json!(SECRET))),
        "spec.containers[2].ports[0].containerPort: invalid type: string, expected i32"
    );
    let time = json!({"metadata": {"creationTimestamp": SECRET}});
    let expected = "metadata.creationTimestamp: the value is not one that its type accepts";
    assert_eq!(said::<Pod>(time.clone()), expected);
    assert_eq!(said::<DynamicObject>(time), expected);
}

#[test]
fn fields_are_named_with_the_path_that_was_asked_for() {
    let object: Object = Object::from_json(
        json!({"metadata": {"name": "a"}, "items": [{"sku": SECRET, "amount": SECRET}]})
            .to_string(),
    )
    .unwrap();
    let said = |error: crate::Error| {
        assert!(error.is_decode() && error.key() == Some(object.key()), "{error}");
        assert!(!error.to_string().contains("s3cr3t"), "i20: {error}");
        error.to_string()
    };
    assert_eq!(
        said(object.field::<u8>("items[0].sku").unwrap_err()),
        "a cannot be decoded: items[0].sku: invalid type: string, expected u8"
    );
    let whole = said(object.field::<Vec<Item>>("items").unwrap_err());
    assert_eq!(whole, "a cannot be decoded: items[0].amount: invalid type: string, expected u16");
    // The path in an error leads to the field.
    let path = whole.split(": ").nth(1).unwrap();
    assert_eq!(object.field::<String>(path).unwrap().as_deref(), Some(SECRET));
    assert_eq!(
        said(object.field::<Vec<u8>>("items[*].sku").unwrap_err()),
        "a cannot be decoded: items[*].sku[0]: invalid type: string, expected u8"
    );
}

#[test]
fn names_that_are_odd_or_long_are_quoted_and_cut() {
    let odd = |key: &str| said::<Order>(json!({"notes": {key: SECRET}}));
    assert!(odd("a'b\n\u{1b}[31m").starts_with(r"notes['a\'b\n\u{1b}[31m']: invalid type"));
    let long = odd(&"k".repeat(100_000));
    assert!(long.chars().count() < PATH_CHARS_MAX + 60 && long.contains("k…: invalid type"));
    let path = FieldPath::parse(r"notes['a\'b']").unwrap();
    let object: Object =
        Object::from_json(json!({"metadata": {"name": "a"}, "notes": {"a'b": 1}}).to_string())
            .unwrap();
    assert_eq!(object.field::<u8>(path).unwrap(), Some(1));
}

#[test]
fn what_is_too_deep_to_decode_is_told_by_its_position() {
    let json =
        format!(r#"{{"metadata":{{"name":"a"}},"x":{}1{}}}"#, "[".repeat(200), "]".repeat(200));
    let object: Object = Object::from_json(json).unwrap();
    let error = object.decode_as::<Value>().unwrap_err().to_string();
    assert!(error.starts_with("a cannot be decoded: not JSON at line 1, column"), "{error}");
}

#[test]
fn a_transform_that_cannot_decode_says_which_field() {
    let transform = Transform::map(|_: &mut Pod| {});
    let packer = super::super::Packer::new(transform, None, false);
    let json =
        json!({"metadata": {"name": "a"}, "spec": {"containers": [], "hostNetwork": SECRET}});
    let error = packer.pack(json.to_string().as_bytes(), None).unwrap_err().to_string();
    assert!(
        error.ends_with("spec.hostNetwork: invalid type: string, expected a boolean"),
        "{error}"
    );
}
