//! `FieldsV1`: sets of paths as JSON.
//!
//! An object has a member for each element of a path: `f:` and a field, `k:` and the fields that identify an item, `v:`
//! and a value, `i:` and an index. A member `.` says that the path up to there is in the set.

use serde_json::{Map, Value};

use super::{Element, Scalar, Set, Tree};

/// A member of `FieldsV1` that is not an element of a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidElement(pub(crate) String);

impl Set {
    /// Writes the set as JSON.
    pub(crate) fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    pub(crate) fn write_json(&self, out: &mut String) {
        self.write(false, out);
    }

    fn write(&self, itself: bool, out: &mut String) {
        out.push('{');
        let mut first = true;
        if itself && !self.is_empty() {
            out.push_str("\".\":{}");
            first = false;
        }
        for (element, tree) in self.iter() {
            if !std::mem::replace(&mut first, false) {
                out.push(',');
            }
            write_element(element, out);
            out.push(':');
            tree.below.write(tree.member, out);
        }
        out.push('}');
    }

    /// Reads a set from JSON. Elements of unknown types are ignored, as by Kubernetes.
    pub(crate) fn from_json(fields: &Map<String, Value>) -> Result<Self, InvalidElement> {
        let mut parts = Vec::with_capacity(fields.len());
        for (name, below) in fields.iter().filter(|(name, _)| *name != ".") {
            let Some(element) = parse_element(name)? else { continue };
            let empty = Map::new();
            let fields = match below {
                Value::Object(fields) => fields,
                Value::Null => &empty,
                _ => return Err(InvalidElement(name.clone())),
            };
            let below = Self::from_json(fields)?;
            // A path without any path below it is in the set.
            let member = below.is_empty() || fields.contains_key(".");
            parts.push((element, Tree { member, below }));
        }
        Ok(Self::collect(parts))
    }
}

fn write_element(element: &Element, out: &mut String) {
    let mut name = String::new();
    match element {
        Element::Field(field) => {
            name.push_str("f:");
            name.push_str(field);
        }
        Element::Key(fields) => {
            name.push_str("k:{");
            for (at, (field, value)) in fields.iter().enumerate() {
                if at > 0 {
                    name.push(',');
                }
                push_json(&Value::from(&**field), &mut name);
                name.push(':');
                push_json(&value.0, &mut name);
            }
            name.push('}');
        }
        Element::Value(value) => {
            name.push_str("v:");
            push_json(&value.0, &mut name);
        }
        Element::Index(index) => name.push_str(&format!("i:{index}")),
    }
    push_json(&Value::String(name), out);
}

fn push_json(value: &Value, out: &mut String) {
    out.push_str(&value.to_string());
}

fn parse_element(name: &str) -> Result<Option<Element>, InvalidElement> {
    let invalid = || InvalidElement(name.to_owned());
    let (kind, text) = match (name.as_bytes(), name.get(2..)) {
        ([kind, b':', ..], Some(text)) => (*kind, text),
        _ => return Err(invalid()),
    };
    Ok(Some(match kind {
        b'f' => Element::Field(text.into()),
        b'v' => Element::Value(Scalar(serde_json::from_str(text).map_err(|_| invalid())?)),
        b'k' => {
            let fields: Map<String, Value> = serde_json::from_str(text).map_err(|_| invalid())?;
            let mut fields: Vec<_> =
                fields.into_iter().map(|(name, value)| (name.into(), Scalar(value))).collect();
            fields.sort();
            Element::Key(fields)
        }
        b'i' => Element::Index(text.parse().map_err(|_| invalid())?),
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::tests::set;
    use super::*;

    fn read(fields: &Value) -> Result<Set, InvalidElement> {
        Set::from_json(fields.as_object().expect("an object"))
    }

    proptest! {
        #[test]
        fn sets_survive_the_round_trip(set in set()) {
            let json: Value = serde_json::from_str(&set.to_json()).unwrap();
            prop_assert_eq!(read(&json), Ok(set));
        }
    }

    #[test]
    fn sets_are_written_as_kubernetes_writes_them() {
        let json = json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:finalizers": {".": {}, "v:\"a\"": {}}},
            "f:spec": {
                "f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}}},
                "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {}},
                "f:list": {"i:0": {}},
            },
        });
        let set = read(&json).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&set.to_json()).unwrap(), json);
        let paths: Vec<_> = set.paths().iter().map(|path| super::super::path_text(path)).collect();
        assert_eq!(
            paths,
            [
                ".metadata.finalizers",
                ".metadata.labels",
                r#".metadata.finalizers[="a"]"#,
                ".metadata.labels.app",
                r#".spec.containers[name="web"]"#,
                r#".spec.containers[name="web"].image"#,
                ".spec.list[0]",
                r#".spec.ports[port=80,protocol="TCP"]"#,
            ]
        );
    }

    #[test]
    fn invalid_elements_are_refused_or_ignored() {
        assert!(read(&json!({"q:unknown": {"x": {}}})).unwrap().is_empty());
        assert!(read(&json!({"f:a": null})).unwrap().has(&[Element::field("a")]));
        for invalid in ["", "f", "x", "v:", "k:[]", "k:{", "i:x", "é:"] {
            assert!(read(&json!({invalid: {}})).is_err(), "{invalid}");
        }
        assert!(read(&json!({"f:a": 1})).is_err());
    }
}
