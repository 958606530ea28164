//! A look into an object, no further than needed.

use std::borrow::Cow;

use serde::Deserialize;

use crate::error::Cause;
use crate::json::{Children, is_key, text};
use crate::object::Packer;
use crate::{Error, ObjectKey, ResourceVersion};

/// What an object says it is.
#[derive(Default, Debug)]
pub(crate) struct SaidTypes<'a> {
    pub(crate) kind: Option<Cow<'a, str>>,
    pub(crate) api_version: Option<Cow<'a, str>>,
}

/// The types of an object. Servers write both before all else, so that little is looked at.
pub(crate) fn types(object: &[u8]) -> SaidTypes<'_> {
    let mut said = SaidTypes::default();
    let Some(members) = Children::of_object(object, 0) else { return said };
    for member in members.map_while(Result::ok) {
        let (key, value) = (&object[member.key], &object[member.value]);
        if is_key(key, "kind") {
            said.kind = string(value);
        } else if is_key(key, "apiVersion") {
            said.api_version = string(value);
        }
        if said.kind.is_some() && said.api_version.is_some() {
            break;
        }
    }
    said
}

/// The text of a value that is a string.
pub(crate) fn string(value: &[u8]) -> Option<Cow<'_, str>> {
    text(value.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

/// Which object it is that cannot be packed, as far as that can be read: the packer may have stopped
/// before it came to the name.
pub(crate) fn identified(error: Error, object: &[u8]) -> (Error, ResourceVersion) {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        #[serde(borrow, default)]
        namespace: Cow<'a, str>,
        #[serde(borrow, default)]
        name: Cow<'a, str>,
        #[serde(borrow, default)]
        resource_version: Cow<'a, str>,
    }
    #[derive(Deserialize)]
    struct Identity<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    let found = serde_json::from_slice(object).map(|Identity { metadata }| metadata);
    let Metadata { namespace, name, resource_version } = found.unwrap_or_default();
    let version = match &*resource_version {
        "" => Packer::unreadable_version(object),
        version => version.into(),
    };
    if error.key().is_some() || name.is_empty() {
        return (error, version);
    }
    let key = ObjectKey::namespaced(&namespace, &name);
    let text = format!("{key}: {error}");
    (Error::new(Cause::Unreadable { key: Some(key) }, text), version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_wherever_they_are() {
        for object in [
            r#"{"kind":"Pod","apiVersion":"v1","spec":}"#,
            r#"{"apiVersion":"v1","metadata":{"kind":"X"},"kind":"Pod"}"#,
            r#" { "k\u0069nd" : "Pod" , "apiVersion" : "v1" } "#,
        ] {
            let said = types(object.as_bytes());
            assert_eq!(said.kind.as_deref(), Some("Pod"), "{object}");
            assert_eq!(said.api_version.as_deref(), Some("v1"), "{object}");
        }
        for object in ["", "[]", "7", r#"{"kind":7}"#, r#"{"spec":{"kind":"Pod"}}"#, r#"{"kin"#] {
            assert!(types(object.as_bytes()).kind.is_none(), "{object}");
        }
    }
    #[test]
    fn an_object_that_cannot_be_packed_is_named_if_it_says_its_name() {
        let error = || Error::new(Cause::Unreadable { key: None }, "why");
        let (named, version) = identified(
            error(),
            br#"{"metadata":{"x":[],"namespace":"n","name":"a","resourceVersion":"7"}}"#,
        );
        assert_eq!((named.to_string(), version.as_str()), ("n/a: why".into(), "7"));
        assert_eq!(named.key().unwrap().as_str(), "n/a");
        for object in ["", "7", "{}", r#"{"metadata":7}"#, r#"{"metadata":{"name":7}}"#] {
            let (unnamed, version) = identified(error(), object.as_bytes());
            assert_eq!((unnamed.key(), version.as_str()), (None, ""), "{object}");
        }
    }
}
