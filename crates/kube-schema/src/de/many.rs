//! Fields with any number of values: lists and maps, which are one tag again and again.

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::Value;
use crate::error::{Error, Problem};
use crate::table::{Field, Shape, Type};
use crate::wire::{Payload, Reader, Tag, Wire, text};

/// The values of a field, one after the other. They end where another field begins.
pub(super) struct Many<'a, 'de> {
    reader: &'a mut Reader<'de>,
    field: &'static Field,
    /// How the next value is written, if its tag has been read.
    next: Option<Wire>,
    /// Numbers that were written together.
    packed: Option<Reader<'de>>,
    /// The value of the key that was given last.
    entry: Option<Value<'de>>,
    depth: u8,
}

impl<'a, 'de> Many<'a, 'de> {
    /// Begins with a tag that has been read.
    pub(super) fn new(
        reader: &'a mut Reader<'de>,
        field: &'static Field,
        tag: Tag,
        depth: u8,
    ) -> Self {
        Self { reader, field, next: Some(tag.wire), packed: None, entry: None, depth }
    }

    /// Skips the values that were not asked for.
    pub(super) fn drain(&mut self) -> Result<(), Error> {
        while self.payload()?.is_some() {}
        Ok(())
    }

    fn payload(&mut self) -> Result<Option<Payload<'de>>, Error> {
        loop {
            if let Some(packed) = self.packed.as_mut().filter(|packed| !packed.is_empty()) {
                let wire =
                    if self.field.kind() == Type::Double { Wire::Fixed64 } else { Wire::Varint };
                return packed.payload(wire).map(Some);
            }
            let Some(wire) = self.wire()? else { return Ok(None) };
            let payload = self.reader.payload(wire)?;
            let is_number =
                matches!(self.field.kind(), Type::Bool | Type::Int32 | Type::Int64 | Type::Double);
            match payload {
                Payload::Bytes(bytes) if is_number => self.packed = Some(Reader::new(bytes)),
                payload => return Ok(Some(payload)),
            }
        }
    }

    /// How the next value is written, if the next tag is the field's.
    fn wire(&mut self) -> Result<Option<Wire>, Error> {
        if let Some(wire) = self.next.take() {
            return Ok(Some(wire));
        }
        let mut ahead = *self.reader;
        let tag = ahead.tag()?.filter(|tag| tag.number == self.field.number());
        if tag.is_some() {
            *self.reader = ahead;
        }
        Ok(tag.map(|tag| tag.wire))
    }

    /// Key and value of an entry. What is missing is zero.
    fn entry(&self, bytes: &'de [u8]) -> Result<(&'de str, Value<'de>), Error> {
        let zero = match self.field.kind() {
            Type::String | Type::Bytes | Type::Message(_) => Payload::Bytes(&[]),
            Type::Bool | Type::Int32 | Type::Int64 => Payload::Varint(0),
            Type::Double => Payload::Fixed64(0),
        };
        let (mut key, mut value) = ("", Value::of(self.field, zero, self.depth)?);
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            match (tag.number, reader.payload(tag.wire)?) {
                (1, Payload::Bytes(bytes)) => key = text(bytes)?,
                (1, _) => return Err(Problem::WireType { field: self.field.name() }.into()),
                (2, payload) => value = Value::of(self.field, payload, self.depth)?,
                _ => {}
            }
        }
        Ok((key, value))
    }
}

impl<'de> SeqAccess<'de> for &mut Many<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        match self.payload()? {
            Some(payload) => {
                seed.deserialize(Value::of(self.field, payload, self.depth)?).map(Some)
            }
            None => Ok(None),
        }
    }
}

impl<'de> MapAccess<'de> for &mut Many<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let (key, value) = match self.payload()? {
            Some(Payload::Bytes(bytes)) => self.entry(bytes)?,
            Some(_) => return Err(Problem::WireType { field: self.field.name() }.into()),
            None => return Ok(None),
        };
        self.entry = Some(value);
        seed.deserialize(Value::text(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let value = self.entry.take();
        seed.deserialize(
            value.ok_or_else(|| Problem::Other("a value was read before its key".to_owned()))?,
        )
    }
}

impl<'de> serde::Deserializer<'de> for &mut Many<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.field.shape() {
            Shape::Map => visitor.visit_map(self),
            _ => visitor.visit_seq(self),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// The values are drained afterwards.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier
    }
}
