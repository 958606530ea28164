//! Protobuf read into anything that serde can build, by the tables.
//!
//! A value of protobuf is shown as what it is in JSON. Fields that the type does not want are skipped by their length.
//!
//! # Architecture invariants
//! - Nothing panics, whatever the bytes are, and nothing recurses deeper than `DEPTH_MAX` messages.
//! - What cannot be read without doubt is an error: no value is ever guessed.
//! - Texts are borrowed from the bytes. Only times and base64 are built.

mod many;
mod object;
mod special;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{Deserialize, Visitor};
use serde::forward_to_deserialize_any;

use crate::base64;
use crate::envelope::Envelope;
use crate::error::{DEPTH_MAX, Error, Problem};
use crate::table::{Field, Form, Message, Type, message};
use crate::wire::{Payload, text};
use object::Object;

/// Reads a body in protobuf, `k8s\0` and an envelope, into any type that JSON of the same object could be read into.
///
/// ```
/// #[derive(serde::Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Slim<'a> {
///     kind: &'a str,
///     #[serde(borrow)]
///     spec: Spec<'a>,
/// }
/// #[derive(serde::Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Spec<'a> {
///     node_name: &'a str,
/// }
///
/// let json = serde_json::json!({"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": "n1", "containers": []}});
/// let bytes = kube_schema::to_vec(&json)?;
/// let pod: Slim<'_> = kube_schema::from_slice(&bytes)?;
/// assert_eq!((pod.kind, pod.spec.node_name), ("Pod", "n1"));
/// # Ok::<(), kube_schema::Error>(())
/// ```
///
/// Fields that Go leaves out of JSON because they are zero are left out here, although they are in its protobuf.
pub fn from_slice<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, Error> {
    T::deserialize(Deserializer::from_envelope(&Envelope::parse(bytes)?)?)
}

impl Message {
    /// Reads a bare message: an item of a list, or a part of an object.
    ///
    /// ```
    /// let meta = kube_schema::message("v1", "Pod").unwrap().field_named("metadata").unwrap();
    /// let kube_schema::Type::Message(meta) = meta.kind() else { panic!() };
    /// let value: serde_json::Value = meta.decode(b"\x0a\x03web\x12\x00")?;
    /// assert_eq!(value, serde_json::json!({"name": "web"}));
    /// # Ok::<(), kube_schema::Error>(())
    /// ```
    pub fn decode<'de, T: Deserialize<'de>>(self, bytes: &'de [u8]) -> Result<T, Error> {
        T::deserialize(Deserializer::new(self, bytes))
    }
}

/// A [`serde::Deserializer`] over the bytes of a message.
#[derive(Debug, Clone, Copy)]
pub struct Deserializer<'de> {
    value: Value<'de>,
    /// apiVersion and kind, of objects that are shown with theirs.
    type_meta: Option<(&'de str, &'de str)>,
}

impl<'de> Deserializer<'de> {
    /// Reads a bare message.
    pub fn new(message: Message, bytes: &'de [u8]) -> Self {
        let (kind, payload) = (Type::Message(message), Payload::Bytes(bytes));
        Self { value: Value { kind, payload, name: message.name(), depth: 0 }, type_meta: None }
    }

    /// Reads the message in an envelope, and shows it with the envelope's apiVersion and kind. An error if the tables
    /// do not have that kind.
    pub fn from_envelope(envelope: &Envelope<'de>) -> Result<Self, Error> {
        let Envelope { api_version, kind, raw } = *envelope;
        let message = message(api_version, kind).ok_or_else(|| Problem::Kind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        })?;
        Ok(Self { type_meta: Some((api_version, kind)), ..Self::new(message, raw) })
    }
}

impl<'de> serde::Deserializer<'de> for Deserializer<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match (self.value.kind, self.value.payload) {
            (Type::Message(message), Payload::Bytes(bytes)) if message.form() == Form::Object => {
                let depth = self.value.deeper()?;
                visitor.visit_map(Object::new(message, bytes, depth).with_type_meta(self.type_meta))
            }
            _ => self.value.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null()? { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.value.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// One value: a field's, an item's, or an entry's.
#[derive(Debug, Clone, Copy)]
struct Value<'de> {
    kind: Type,
    payload: Payload<'de>,
    /// The field, for errors.
    name: &'static str,
    /// How many messages it is in.
    depth: u8,
}

impl<'de> Value<'de> {
    /// A value of a field, if it is written as the field's type is.
    #[inline]
    fn of(field: &Field, payload: Payload<'de>, depth: u8) -> Result<Self, Error> {
        let fits = match field.kind() {
            Type::String | Type::Bytes | Type::Message(_) => matches!(payload, Payload::Bytes(_)),
            Type::Bool | Type::Int32 | Type::Int64 => matches!(payload, Payload::Varint(_)),
            Type::Double => matches!(payload, Payload::Fixed64(_)),
        };
        if !fits {
            return Err(Problem::WireType { field: field.name() }.into());
        }
        Ok(Self { kind: field.kind(), payload, name: field.name(), depth })
    }

    /// A key, or a text that is no field's.
    fn text(text: &'de str) -> Self {
        Self { kind: Type::String, payload: Payload::Text(text), name: "key", depth: 0 }
    }

    /// The depth of what is in it.
    fn deeper(&self) -> Result<u8, Error> {
        if self.depth >= DEPTH_MAX {
            return Err(Problem::Depth.into());
        }
        Ok(self.depth + 1)
    }

    /// Whether Go takes it for the zero value of its type.
    fn is_zero(&self) -> Result<bool, Error> {
        Ok(match self.payload {
            Payload::Varint(value) | Payload::Fixed64(value) => value == 0,
            Payload::Bytes(bytes) => bytes.is_empty() || self.is_null()?,
            Payload::Other | Payload::Text(_) => false,
        })
    }

    /// Whether JSON has null for it.
    fn is_null(&self) -> Result<bool, Error> {
        match (self.kind, self.payload) {
            (Type::Message(message), Payload::Bytes(bytes)) => special::is_null(message, bytes),
            _ => Ok(false),
        }
    }
}

impl<'de> serde::Deserializer<'de> for Value<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match (self.kind, self.payload) {
            (Type::String, Payload::Bytes(bytes)) => visitor.visit_borrowed_str(text(bytes)?),
            (Type::String, Payload::Text(text)) => visitor.visit_borrowed_str(text),
            (Type::Bool, Payload::Varint(value)) => visitor.visit_bool(value != 0),
            (Type::Int32, Payload::Varint(value)) => visitor.visit_i64((value as i32).into()),
            (Type::Int64, Payload::Varint(value)) => visitor.visit_i64(value as i64),
            (Type::Double, Payload::Fixed64(bits)) => double(f64::from_bits(bits), visitor),
            (Type::Bytes, Payload::Bytes(bytes)) => visitor.visit_string(base64::encode(bytes)),
            (Type::Message(message), Payload::Bytes(bytes)) => match message.form() {
                Form::Object => visitor.visit_map(Object::new(message, bytes, self.deeper()?)),
                _ => special::show(message, bytes, self.deeper()?, visitor),
            },
            _ => Err(Problem::WireType { field: self.name }.into()),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_null()? { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match (self.kind, self.payload) {
            (Type::String, Payload::Bytes(_) | Payload::Text(_)) => {
                let text = match self.payload {
                    Payload::Bytes(bytes) => text(bytes)?,
                    Payload::Text(text) => text,
                    _ => "",
                };
                let text = BorrowedStrDeserializer::new(text);
                serde::Deserializer::deserialize_enum(text, name, variants, visitor)
            }
            (Type::Message(message), Payload::Bytes(bytes)) if message.form() == Form::Object => {
                let object = Object::new(message, bytes, self.deeper()?);
                let object = MapAccessDeserializer::new(object);
                serde::Deserializer::deserialize_enum(object, name, variants, visitor)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    /// Nothing is looked at: the value has been skipped by its length.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

/// Go's JSON has no decimal point in a whole number.
fn double<'de, V: Visitor<'de>>(value: f64, visitor: V) -> Result<V::Value, Error> {
    // Up to here every whole number is exact, and JSON has it without an exponent.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !value.is_finite() {
        return Err(Problem::Other("JSON has no infinite numbers".to_owned()).into());
    }
    if value.fract() == 0.0 && value.abs() <= EXACT && !(value == 0.0 && value.is_sign_negative()) {
        return visitor.visit_i64(value as i64);
    }
    visitor.visit_f64(value)
}
