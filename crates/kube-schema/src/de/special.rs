//! Messages whose JSON is not an object of their fields.

use serde::de::Visitor;
use serde::de::value::SeqDeserializer;

use super::many::Many;
use super::{Deserializer, Value};
use crate::envelope::{Envelope, MAGIC};
use crate::error::{Error, Problem};
use crate::table::{Form, Message};
use crate::time::Timestamp;
use crate::wire::{Payload, Reader, first, text};

/// Whether JSON has null for it.
pub(super) fn is_null(message: Message, bytes: &[u8]) -> Result<bool, Error> {
    Ok(match message.form() {
        Form::Time | Form::MicroTime => timestamp(bytes)?.is_none(),
        Form::Raw => matches!(first(bytes)?.unwrap_or_default(), b"" | b"null"),
        Form::OrArray => {
            let mut reader = Reader::new(bytes);
            let mut is_null = true;
            while let Some(tag) = reader.tag()? {
                is_null &= !matches!(tag.number, 1 | 2);
                reader.skip(tag.wire)?;
            }
            is_null
        }
        _ => false,
    })
}

/// Shows a message as what it is in JSON. `depth` is that of what is in it.
pub(super) fn show<'de, V: Visitor<'de>>(
    message: Message,
    bytes: &'de [u8],
    depth: u8,
    visitor: V,
) -> Result<V::Value, Error> {
    match message.form() {
        Form::Time => time(bytes, false, visitor),
        Form::MicroTime => time(bytes, true, visitor),
        Form::Quantity => match text(first(bytes)?.unwrap_or_default())? {
            // Go writes this for a quantity that was never set.
            "" => visitor.visit_borrowed_str("0"),
            quantity => visitor.visit_borrowed_str(quantity),
        },
        Form::IntOrString => int_or_string(bytes, visitor),
        Form::Raw => raw(first(bytes)?.unwrap_or_default(), depth, visitor),
        Form::OrBool => or_bool(message, bytes, depth, visitor),
        Form::List | Form::OrArray => array(message, bytes, depth, visitor),
        Form::Object => Err(Problem::Other("an object has no special form".to_owned()).into()),
    }
}

fn time<'de, V: Visitor<'de>>(bytes: &[u8], micros: bool, visitor: V) -> Result<V::Value, Error> {
    match timestamp(bytes)? {
        Some(time) => {
            let (text, len) = time.format(micros).ok_or(Problem::Time)?;
            visitor.visit_str(crate::wire::text(&text[..len])?)
        }
        None => visitor.visit_unit(),
    }
}

/// None for Go's zero time, which it writes as nothing.
fn timestamp(bytes: &[u8]) -> Result<Option<Timestamp>, Error> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut time = Timestamp { seconds: 0, nanos: 0 };
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag()? {
        match (tag.number, reader.payload(tag.wire)?) {
            (1, Payload::Varint(seconds)) => time.seconds = seconds as i64,
            (2, Payload::Varint(nanos)) => {
                time.nanos = u32::try_from(nanos).map_err(|_| Problem::Time)?;
            }
            (1 | 2, _) => return Err(Problem::WireType { field: "time" }.into()),
            _ => {}
        }
    }
    Ok((!time.is_go_zero()).then_some(time))
}

fn int_or_string<'de, V: Visitor<'de>>(bytes: &'de [u8], visitor: V) -> Result<V::Value, Error> {
    let (mut is_text, mut number, mut string) = (0, 0, "");
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag()? {
        match (tag.number, reader.payload(tag.wire)?) {
            (1, Payload::Varint(value)) => is_text = value,
            (2, Payload::Varint(value)) => number = value as i32,
            (3, Payload::Bytes(bytes)) => string = text(bytes)?,
            (1..=3, _) => return Err(Problem::WireType { field: "IntOrString" }.into()),
            _ => {}
        }
    }
    match is_text {
        0 => visitor.visit_i64(number.into()),
        1 => visitor.visit_borrowed_str(string),
        _ => Err(Problem::Other("an IntOrString is neither".to_owned()).into()),
    }
}

/// JSON as it is, or another object in its envelope.
fn raw<'de, V: Visitor<'de>>(raw: &'de [u8], depth: u8, visitor: V) -> Result<V::Value, Error> {
    if raw.is_empty() {
        return visitor.visit_unit();
    }
    if raw.starts_with(MAGIC) {
        let mut object = Deserializer::from_envelope(&Envelope::parse(raw)?)?;
        object.value.depth = depth;
        return serde::Deserializer::deserialize_any(object, visitor);
    }
    let mut json = serde_json::Deserializer::from_slice(raw);
    let other = |error: serde_json::Error| Error::from(Problem::Other(error.to_string()));
    let value = serde::Deserializer::deserialize_any(&mut json, visitor).map_err(other)?;
    json.end().map_err(other)?;
    Ok(value)
}

/// A schema, or whether anything is allowed.
fn or_bool<'de, V: Visitor<'de>>(
    message: Message,
    bytes: &'de [u8],
    depth: u8,
    visitor: V,
) -> Result<V::Value, Error> {
    let (mut allows, mut schema) = (false, None);
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag()? {
        let payload = reader.payload(tag.wire)?;
        let Some(field) = message.field(tag.number) else { continue };
        let value = Value::of(field, payload, depth)?;
        match payload {
            Payload::Varint(bit) => allows = bit != 0,
            _ => schema = Some(value),
        }
    }
    match schema {
        Some(schema) => serde::Deserializer::deserialize_any(schema, visitor),
        None => visitor.visit_bool(allows),
    }
}

/// The values of the last field. Where there are none, the object of the first, if it has another.
fn array<'de, V: Visitor<'de>>(
    message: Message,
    bytes: &'de [u8],
    depth: u8,
    visitor: V,
) -> Result<V::Value, Error> {
    let is_list = message.form() == Form::List;
    let items = if is_list { 1 } else { 2 };
    let mut schema = None;
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag()? {
        match message.field(tag.number) {
            Some(field) if tag.number == items => {
                let mut many = Many::new(&mut reader, field, tag, depth);
                let value = visitor.visit_seq(&mut many)?;
                many.drain()?;
                return match reader.tag()?.and_then(|tag| message.field(tag.number)) {
                    Some(field) => Err(Problem::Twice { field: field.name() }.into()),
                    None => Ok(value),
                };
            }
            Some(field) => schema = Some(Value::of(field, reader.payload(tag.wire)?, depth)?),
            None => reader.skip(tag.wire)?,
        }
    }
    match schema {
        Some(schema) => serde::Deserializer::deserialize_any(schema, visitor),
        None if is_list => {
            visitor.visit_seq(SeqDeserializer::<_, Error>::new(std::iter::empty::<&str>()))
        }
        None => visitor.visit_unit(),
    }
}
