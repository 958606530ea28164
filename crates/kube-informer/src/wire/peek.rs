//! A look into an object, no further than needed.

use std::borrow::Cow;

use crate::json::{Children, is_key, text};

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
}
