//! A look into an object, no further than needed.

use std::borrow::Cow;

use crate::json::{Children, is_key, skip, text};

/// What an object says it is.
#[derive(Default, Debug)]
pub(crate) struct SaidTypes<'a> {
    pub(crate) kind: Option<Cow<'a, str>>,
    pub(crate) api_version: Option<Cow<'a, str>>,
}

/// The types of an object. Servers write both before all else, so that little is looked at.
pub(crate) fn types(object: &[u8]) -> SaidTypes<'_> {
    let mut said = SaidTypes::default();
    let Some(mut members) = Children::of_object(object, 0) else { return said };
    while let Ok(Some(head)) = members.head() {
        let Ok(end) = skip(object, head.value) else { break };
        let key = &object[head.key.clone()];
        if is_key(key, "kind") {
            said.kind = string(&object[head.value..end]);
        } else if is_key(key, "apiVersion") {
            said.api_version = string(&object[head.value..end]);
        }
        if said.kind.is_some() && said.api_version.is_some() || members.close(end).is_err() {
            break;
        }
    }
    said
}

/// The text of a value that is a string.
pub(crate) fn string(value: &[u8]) -> Option<Cow<'_, str>> {
    text(value.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

/// The version of an object that is no good otherwise; empty if it has none.
pub(crate) fn version(object: &[u8]) -> Cow<'_, str> {
    member(object, "metadata")
        .and_then(|metadata| member(metadata, "resourceVersion"))
        .and_then(string)
        .unwrap_or_default()
}

fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut members = Children::of_object(object, 0)?.map_while(Result::ok);
    let found = members.find(|member| is_key(&object[member.key.clone()], name))?;
    Some(&object[found.value])
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
    fn the_version_is_found_or_empty() {
        assert_eq!(version(br#"{"spec":1,"metadata":{"a":1,"resourceVersion":"7"}}"#), "7");
        for object in ["", "{}", r#"{"metadata":7}"#, r#"{"metadata":{"resourceVersion":7}}"#] {
            assert_eq!(version(object.as_bytes()), "", "{object}");
        }
    }
}
