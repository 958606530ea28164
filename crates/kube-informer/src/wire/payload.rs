//! An object as received, in either encoding, of which no more is decoded than needed.

use std::borrow::Cow;
use std::fmt;

use kube_core::Status;
use kube_schema::Envelope;
use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::status;
use crate::error::Cause;
use crate::json::{Children, is_key, text};
use crate::object::{Packer, Types};
use crate::{Error, Object, ObjectKey, ResourceVersion, Result};

/// An object as received.
#[derive(Clone, Copy)]
pub(crate) enum Payload<'a> {
    Json(&'a [u8]),
    /// A message, with the kind from its envelope or its list.
    Protobuf(Envelope<'a>),
}

/// The types that an object declares.
#[derive(Default, Debug)]
pub(crate) struct SaidTypes<'a> {
    pub(crate) kind: Option<Cow<'a, str>>,
    pub(crate) api_version: Option<Cow<'a, str>>,
}

/// The contents of a bookmark.
#[derive(Default)]
pub(crate) struct Bookmark {
    pub(crate) resource_version: String,
    pub(crate) initial_events_end: bool,
}

impl<'a> Payload<'a> {
    /// Returns an object from an envelope, with these types if the envelope declares none.
    pub(crate) fn of_envelope(mut envelope: Envelope<'a>, types: Option<&'a Types>) -> Self {
        if let Some(Types { api_version, kind }) = types
            && envelope.kind.is_empty()
        {
            (envelope.api_version, envelope.kind) = (api_version, kind);
        }
        Self::Protobuf(envelope)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(json) => json.len(),
            Self::Protobuf(envelope) => envelope.raw.len(),
        }
    }

    /// Returns the types of an object. Servers write both first, so little has to be read.
    pub(crate) fn types(&self) -> SaidTypes<'a> {
        match *self {
            Self::Json(json) => types_in_json(json),
            Self::Protobuf(Envelope { api_version, kind, .. }) => {
                let said = |text: &'a str| Some(text).filter(|text| !text.is_empty());
                SaidTypes {
                    kind: said(kind).map(Cow::from),
                    api_version: said(api_version).map(Cow::from),
                }
            }
        }
    }

    /// Packs the object. `types` are those of objects that declare none.
    pub(crate) fn pack(&self, packer: &Packer, types: Option<&Types>) -> Result<Object> {
        match *self {
            Self::Json(json) => packer.pack(json, types),
            Self::Protobuf(Envelope { api_version, kind, raw }) => {
                let are = |types: &Types| types.kind == kind && types.api_version == api_version;
                if let Some(types) = types.filter(|types| are(types)) {
                    return packer.pack_protobuf(raw, types);
                }
                let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
                packer.pack_protobuf(raw, &Types { api_version, kind })
            }
        }
    }

    /// Adds the identity of an object that cannot be packed to the error, if it can be read: the packer may
    /// have stopped before it reached the name.
    pub(crate) fn identified(&self, error: Error) -> (Error, ResourceVersion) {
        let Identity { namespace, name, resource_version } =
            self.metadata::<Identity<'_>>().unwrap_or_default();
        let version = match (self, &*resource_version) {
            (Self::Json(json), "") => Packer::unreadable_version(json),
            (_, version) => version.into(),
        };
        if error.key().is_some() || name.is_empty() {
            return (error, version);
        }
        let key = ObjectKey::namespaced(&namespace, &name);
        let text = format!("{key}: {error}");
        (Error::new(Cause::Unreadable { key: Some(key) }, text), version)
    }

    /// Reads a bookmark. Fields that cannot be read are left out.
    pub(crate) fn bookmark(&self) -> Bookmark {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Metadata {
            resource_version: Option<Value>,
            annotations: Option<Annotations>,
        }
        #[derive(Deserialize)]
        struct Annotations {
            #[serde(rename = "k8s.io/initial-events-end")]
            initial_events_end: Option<Value>,
        }
        let Metadata { resource_version, annotations } =
            self.metadata::<Metadata>().unwrap_or_default();
        let version = resource_version.as_ref().and_then(Value::as_str).unwrap_or_default();
        let end = annotations.and_then(|annotations| annotations.initial_events_end);
        Bookmark {
            resource_version: version.to_owned(),
            initial_events_end: end.is_some_and(|end| end == "true"),
        }
    }

    /// Returns the object as a `Status`, or `None` if it is not one.
    pub(crate) fn status(&self) -> Option<Status> {
        match self {
            Self::Json(json) => status::of_json(json),
            Self::Protobuf(envelope) => status::of_protobuf(envelope),
        }
    }

    /// Returns the metadata, even of an object that is broken after it.
    fn metadata<T: Deserialize<'a>>(&self) -> Option<T> {
        let mut found = None;
        let seed = MetadataOnly(&mut found);
        // It does not matter whether all of it could be read.
        match self {
            Self::Json(json) => {
                drop(seed.deserialize(&mut serde_json::Deserializer::from_slice(json)));
            }
            Self::Protobuf(envelope) => {
                let reader = kube_schema::Deserializer::from_envelope(envelope).ok()?;
                drop(seed.deserialize(reader));
            }
        }
        found
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity<'a> {
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
}

/// A seed that keeps the metadata of an object as soon as it has been read.
struct MetadataOnly<'m, T>(&'m mut Option<T>);

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for MetadataOnly<'_, T> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for MetadataOnly<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(key) = members.next_key::<Cow<'de, str>>()? {
            if key == "metadata" {
                *self.0 = Some(members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

fn types_in_json(object: &[u8]) -> SaidTypes<'_> {
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

/// Returns the text of a JSON value that is a string.
pub(crate) fn string(value: &[u8]) -> Option<Cow<'_, str>> {
    text(value.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn types(object: &str) -> SaidTypes<'_> {
        Payload::Json(object.as_bytes()).types()
    }

    #[test]
    fn types_are_found_wherever_they_are() {
        for object in [
            r#"{"kind":"Pod","apiVersion":"v1","spec":}"#,
            r#"{"apiVersion":"v1","metadata":{"kind":"X"},"kind":"Pod"}"#,
            r#" { "k\u0069nd" : "Pod" , "apiVersion" : "v1" } "#,
        ] {
            let said = types(object);
            assert_eq!(said.kind.as_deref(), Some("Pod"), "{object}");
            assert_eq!(said.api_version.as_deref(), Some("v1"), "{object}");
        }
        for object in ["", "[]", "7", r#"{"kind":7}"#, r#"{"spec":{"kind":"Pod"}}"#, r#"{"kin"#] {
            assert!(types(object).kind.is_none(), "{object}");
        }
    }

    fn why() -> Error {
        Error::new(Cause::Unreadable { key: None }, "why")
    }

    #[test]
    fn an_object_that_cannot_be_packed_is_named_if_it_says_its_name() {
        let metadata = r#""metadata":{"x":[],"namespace":"n","name":"a","resourceVersion":"7"}"#;
        for object in [format!("{{{metadata}}}"), format!(r#"{{{metadata},"spec":tru"#)] {
            let (named, version) = Payload::Json(object.as_bytes()).identified(why());
            assert_eq!((named.to_string(), version.as_str()), ("n/a: why".into(), "7"));
            assert_eq!(named.key().unwrap().as_str(), "n/a");
        }
        for object in ["", "7", "{}", r#"{"metadata":7}"#, r#"{"metadata":{"name":7}}"#] {
            let (unnamed, version) = Payload::Json(object.as_bytes()).identified(why());
            assert_eq!((unnamed.key(), version.as_str()), (None, ""), "{object}");
        }
    }

    #[test]
    fn a_broken_message_is_named_if_it_says_its_name() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
            "namespace": "n", "name": "a", "resourceVersion": "7"}});
        let bytes = kube_schema::to_vec(&pod).unwrap();
        let whole = Envelope::parse(&bytes).unwrap();
        let broken = [whole.raw, b"\x12\x05x"].concat();
        for raw in [whole.raw, &broken] {
            let (named, version) = Payload::Protobuf(Envelope { raw, ..whole }).identified(why());
            assert_eq!((named.to_string(), version.as_str()), ("n/a: why".into(), "7"));
        }
        for (kind, raw) in [("Pod", &b""[..]), ("Pod", b"\xff"), ("Widget", whole.raw)] {
            let payload = Payload::Protobuf(Envelope { api_version: "v1", kind, raw });
            let (unnamed, version) = payload.identified(why());
            assert_eq!((unnamed.key(), version.as_str()), (None, ""), "{kind}");
        }
    }
}
