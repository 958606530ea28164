//! Validation of the JSON types in `metadata`, with the errors of Go's JSON decoder.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::quote::{json_type, quoted};

/// The type of a field in Kubernetes' metadata.
#[derive(Debug, Clone, Copy)]
enum Type {
    /// A string, with the name of its type in Go.
    Text(&'static str),
    Bool,
    Integer,
    Time,
    /// A map of strings to strings.
    Map,
    Texts,
    /// A list of structs: the name of the struct in Go, with and without its package, and its
    /// fields.
    Structs(&'static str, &'static str, &'static [(&'static str, Type)]),
}

const STRING: Type = Type::Text("string");
const UID: Type = Type::Text("types.UID");

const METADATA: &[(&str, Type)] = &[
    ("name", STRING),
    ("generateName", STRING),
    ("namespace", STRING),
    ("selfLink", STRING),
    ("uid", UID),
    ("resourceVersion", STRING),
    ("generation", Type::Integer),
    ("creationTimestamp", Type::Time),
    ("deletionTimestamp", Type::Time),
    ("deletionGracePeriodSeconds", Type::Integer),
    ("labels", Type::Map),
    ("annotations", Type::Map),
    ("ownerReferences", Type::Structs("v1.OwnerReference", "OwnerReference", OWNER_REFERENCE)),
    ("finalizers", Type::Texts),
    ("managedFields", Type::Structs("v1.ManagedFieldsEntry", "ManagedFieldsEntry", MANAGED_FIELDS)),
];

const OWNER_REFERENCE: &[(&str, Type)] = &[
    ("apiVersion", STRING),
    ("kind", STRING),
    ("name", STRING),
    ("uid", UID),
    ("controller", Type::Bool),
    ("blockOwnerDeletion", Type::Bool),
];

const MANAGED_FIELDS: &[(&str, Type)] = &[
    ("manager", STRING),
    ("operation", Type::Text("v1.ManagedFieldsOperationType")),
    ("apiVersion", STRING),
    ("time", Type::Time),
    ("fieldsType", STRING),
    ("subresource", STRING),
];

/// Checks that the `metadata` of an object can be decoded. The error has Go's wording.
///
/// Null is accepted everywhere, and is the same as absent. Unknown fields are ignored.
pub(crate) fn shape(kind: &str, object: &Map<String, Value>) -> Result<(), String> {
    match object.get("metadata") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(metadata)) => fields(metadata, METADATA, "ObjectMeta", "metadata"),
        Some(other) => Err(mismatch(other, kind, "metadata", "v1.ObjectMeta")),
    }
}

/// Returns whether Kubernetes' metadata has this field.
pub(crate) fn is_known(field: &str) -> bool {
    METADATA.iter().any(|(name, _)| *name == field)
}

/// Checks the fields of a struct. `path` is that of the struct, and `place` that of a field.
fn fields(
    object: &Map<String, Value>,
    known: &[(&str, Type)],
    of: &str,
    path: &str,
) -> Result<(), String> {
    for (name, value) in object {
        if let Some((_, want)) = known.iter().find(|(known, _)| known == name) {
            field(value, *want, of, &format!("{path}.{name}"))?;
        }
    }
    Ok(())
}

fn field(value: &Value, want: Type, of: &str, place: &str) -> Result<(), String> {
    let wrong = |go_type: &str| Err(mismatch(value, of, place, go_type));
    match (want, value) {
        (_, Value::Null) | (Type::Text(_), Value::String(_)) | (Type::Bool, Value::Bool(_)) => {
            Ok(())
        }
        (Type::Text(go_type), _) => wrong(go_type),
        (Type::Bool, _) => wrong("bool"),
        (Type::Integer, Value::Number(number)) => match number.as_i64() {
            Some(_) => Ok(()),
            // Go prints the value only for a number that does not fit.
            None => Err(unmarshal(&format!("number {number}"), of, place, "int64")),
        },
        (Type::Integer, _) => wrong("int64"),
        (Type::Time, Value::String(text)) => time(text),
        (Type::Time, _) => wrong("string"),
        (Type::Map, Value::Object(map)) => {
            map.values().try_for_each(|value| field(value, STRING, of, place))
        }
        (Type::Map, _) => wrong("map[string]string"),
        (Type::Texts, Value::Array(list)) => {
            list.iter().try_for_each(|value| field(value, STRING, of, place))
        }
        (Type::Texts, _) => wrong("[]string"),
        (Type::Structs(go_type, name, known), Value::Array(list)) => {
            list.iter().try_for_each(|item| match item {
                Value::Null => Ok(()),
                Value::Object(item) => fields(item, known, name, place),
                other => Err(mismatch(other, of, place, go_type)),
            })
        }
        (Type::Structs(go_type, ..), _) => wrong(&format!("[]{go_type}")),
    }
}

/// Checks a time. Go reports the part of the layout at which parsing failed. Here that is always
/// the first, which is correct for text that does not resemble a time.
fn time(text: &str) -> Result<(), String> {
    match text.parse::<Timestamp>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!(
            "parsing time {text} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text} as \"2006\"",
            text = quoted(text)
        )),
    }
}

pub(super) fn mismatch(value: &Value, of: &str, place: &str, go_type: &str) -> String {
    unmarshal(json_type(value), of, place, go_type)
}

fn unmarshal(found: &str, of: &str, place: &str, go_type: &str) -> String {
    format!("json: cannot unmarshal {found} into Go struct field {of}.{place} of type {go_type}")
}

#[cfg(test)]
pub(super) use tests::any_json;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn of_metadata(metadata: Value) -> Result<(), String> {
        let object = [("kind", json!("ConfigMap")), ("metadata", metadata)];
        let object = object.map(|(name, value)| (name.to_owned(), value));
        shape("ConfigMap", &object.into_iter().collect())
    }

    #[test]
    fn well_typed_metadata_passes() {
        assert_eq!(shape("ConfigMap", &Map::new()), Ok(()));
        for metadata in [
            json!(null),
            json!({}),
            json!({"name": null, "labels": null, "finalizers": null, "unknown": [1]}),
            json!({"labels": {"a": "b", "c": null}, "finalizers": ["a", null]}),
            json!({"ownerReferences": [{"name": "a", "controller": true, "x": 1}, null]}),
            json!({"deletionGracePeriodSeconds": 30, "generation": -1}),
            json!({"creationTimestamp": "2024-01-01T00:00:00.5+01:00", "deletionTimestamp": null}),
            json!({"managedFields": [{"manager": "a", "fieldsV1": {"f:a": {}}}]}),
        ] {
            assert_eq!(of_metadata(metadata.clone()), Ok(()), "{metadata}");
        }
    }

    #[test]
    fn wrong_types_are_refused_in_the_words_of_go() {
        for (metadata, found, place, go_type) in [
            (json!(1), "number", "ConfigMap.metadata", "v1.ObjectMeta"),
            (json!([]), "array", "ConfigMap.metadata", "v1.ObjectMeta"),
            (json!({"name": 1}), "number", "ObjectMeta.metadata.name", "string"),
            (json!({"namespace": true}), "bool", "ObjectMeta.metadata.namespace", "string"),
            (json!({"generateName": {}}), "object", "ObjectMeta.metadata.generateName", "string"),
            (json!({"uid": 1}), "number", "ObjectMeta.metadata.uid", "types.UID"),
            (
                json!({"resourceVersion": 1}),
                "number",
                "ObjectMeta.metadata.resourceVersion",
                "string",
            ),
            (json!({"labels": "x"}), "string", "ObjectMeta.metadata.labels", "map[string]string"),
            (json!({"labels": {"a": 1}}), "number", "ObjectMeta.metadata.labels", "string"),
            (
                json!({"annotations": {"a": true}}),
                "bool",
                "ObjectMeta.metadata.annotations",
                "string",
            ),
            (json!({"finalizers": {}}), "object", "ObjectMeta.metadata.finalizers", "[]string"),
            (json!({"finalizers": [1]}), "number", "ObjectMeta.metadata.finalizers", "string"),
            (
                json!({"ownerReferences": {}}),
                "object",
                "ObjectMeta.metadata.ownerReferences",
                "[]v1.OwnerReference",
            ),
            (
                json!({"ownerReferences": [[]]}),
                "array",
                "ObjectMeta.metadata.ownerReferences",
                "v1.OwnerReference",
            ),
            (
                json!({"ownerReferences": [{"name": 1}]}),
                "number",
                "OwnerReference.metadata.ownerReferences.name",
                "string",
            ),
            (
                json!({"ownerReferences": [{"controller": "x"}]}),
                "string",
                "OwnerReference.metadata.ownerReferences.controller",
                "bool",
            ),
            (json!({"generation": "x"}), "string", "ObjectMeta.metadata.generation", "int64"),
            (json!({"generation": 1.5}), "number 1.5", "ObjectMeta.metadata.generation", "int64"),
            (
                json!({"deletionGracePeriodSeconds": "x"}),
                "string",
                "ObjectMeta.metadata.deletionGracePeriodSeconds",
                "int64",
            ),
            (
                json!({"creationTimestamp": 1}),
                "number",
                "ObjectMeta.metadata.creationTimestamp",
                "string",
            ),
            (
                json!({"managedFields": [{"manager": 1}]}),
                "number",
                "ManagedFieldsEntry.metadata.managedFields.manager",
                "string",
            ),
        ] {
            let want = format!(
                "json: cannot unmarshal {found} into Go struct field {place} of type {go_type}"
            );
            assert_eq!(of_metadata(metadata.clone()), Err(want), "{metadata}");
        }
    }

    #[test]
    fn times_must_read_as_times() {
        let want =
            "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"";
        assert_eq!(of_metadata(json!({"creationTimestamp": "x"})), Err(want.to_owned()));
    }

    /// Generates nested JSON of every type, with known field names.
    pub(in super::super) fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[a-z/.-]{0,4}".prop_map(Value::from),
        ];
        let key = "name|kind|apiVersion|uid|controller|manager|time|[a-zA-Z/]{0,4}";
        leaf.prop_recursive(3, 24, 4, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(key, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_json_panics(name in "metadata|kind|x", value in any_json(), field in 0..METADATA.len(), inner in any_json()) {
            let _ = shape("ConfigMap", &[(name, value)].into_iter().collect());
            let _ = of_metadata(json!({METADATA[field].0: inner}));
        }
    }
}
