//! The fields of a message as the members of an object.

use serde::de::{DeserializeSeed, MapAccess};

use super::Value;
use super::many::Many;
use crate::error::{Error, Problem};
use crate::table::{Field, Message, Shape, Type};
use crate::wire::{Payload, Reader, Tag};

/// A message, read field by field.
pub(super) struct Object<'de> {
    frame: Frame<'de>,
    /// The messages that the current one is inlined in.
    around: Vec<Frame<'de>>,
    type_meta: TypeMeta<'de>,
    pending: Pending<'de>,
    depth: u8,
}

/// A message of which fields are read: the object's own, or one that is inlined in it.
struct Frame<'de> {
    message: Message,
    reader: Reader<'de>,
    /// A bit for each field that has come.
    seen: u64,
}

/// Members that come before the fields.
#[derive(Clone, Copy)]
enum TypeMeta<'de> {
    Both { api_version: &'de str, kind: &'de str },
    Kind { kind: &'de str },
    Nothing,
}

/// The value of the key that was given last.
enum Pending<'de> {
    Nothing,
    Text(&'de str),
    One(Value<'de>),
    /// The first tag has been read.
    Many(&'static Field, Tag),
}

impl<'de> Object<'de> {
    pub(super) fn new(message: Message, bytes: &'de [u8], depth: u8) -> Self {
        Self {
            frame: Frame { message, reader: Reader::new(bytes), seen: 0 },
            around: Vec::new(),
            type_meta: TypeMeta::Nothing,
            pending: Pending::Nothing,
            depth,
        }
    }

    pub(super) fn with_type_meta(mut self, type_meta: Option<(&'de str, &'de str)>) -> Self {
        if let Some((api_version, kind)) = type_meta {
            self.type_meta = TypeMeta::Both { api_version, kind };
        }
        self
    }

    /// The name of the next member, its value being put into `pending`.
    fn advance(&mut self) -> Result<Option<&'static str>, Error> {
        match self.type_meta {
            TypeMeta::Both { api_version, kind } => {
                self.type_meta = TypeMeta::Kind { kind };
                self.pending = Pending::Text(api_version);
                return Ok(Some("apiVersion"));
            }
            TypeMeta::Kind { kind } => {
                self.type_meta = TypeMeta::Nothing;
                self.pending = Pending::Text(kind);
                return Ok(Some("kind"));
            }
            TypeMeta::Nothing => {}
        }
        loop {
            let Some(tag) = self.frame.reader.tag()? else {
                match self.around.pop() {
                    Some(frame) => self.frame = frame,
                    None => return Ok(None),
                }
                continue;
            };
            let Some(field) = self.frame.field(tag)? else { continue };
            if matches!(field.shape(), Shape::List | Shape::Map) {
                self.pending = Pending::Many(field, tag);
                return Ok(Some(field.name()));
            }
            let payload = self.frame.reader.payload(tag.wire)?;
            // Go writes every zero, so that most fields of most objects end here.
            let is_empty = matches!(payload, Payload::Varint(0) | Payload::Bytes(&[]));
            if is_empty && is_left_out(field) {
                continue;
            }
            let value = Value::of(field, payload, self.depth)?;
            match (field.kind(), payload) {
                (Type::Message(message), Payload::Bytes(bytes)) if field.is_inline() => {
                    let inlined = Frame { message, reader: Reader::new(bytes), seen: 0 };
                    self.around.push(std::mem::replace(&mut self.frame, inlined));
                }
                _ if is_left_out(field) && value.is_zero()? => {}
                _ => {
                    self.pending = Pending::One(value);
                    return Ok(Some(field.name()));
                }
            }
        }
    }
}

/// Whether JSON leaves the field out where it is zero. A pointer's zero is a value; bytes, which are no pointer, count by
/// their length.
fn is_left_out(field: &Field) -> bool {
    field.omits_zero() && (field.shape() == Shape::Always || field.kind() == Type::Bytes)
}

impl Frame<'_> {
    /// The field of a tag. One that is not known is skipped.
    fn field(&mut self, tag: Tag) -> Result<Option<&'static Field>, Error> {
        let Some(at) = self.message.position(tag.number) else {
            self.reader.skip(tag.wire)?;
            return Ok(None);
        };
        let field = &self.message.fields()[at];
        let bit = 1 << at;
        if self.seen & bit != 0 {
            return Err(Problem::Twice { field: field.name() }.into());
        }
        self.seen |= bit;
        Ok(Some(field))
    }
}

impl<'de> MapAccess<'de> for Object<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        match self.advance()? {
            Some(name) => seed.deserialize(Value::text(name)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Text(text) => seed.deserialize(Value::text(text)),
            Pending::One(value) => seed.deserialize(value),
            Pending::Many(field, tag) => {
                let mut many = Many::new(&mut self.frame.reader, field, tag, self.depth);
                let value = seed.deserialize(&mut many)?;
                many.drain()?;
                Ok(value)
            }
            Pending::Nothing => {
                Err(Problem::Other("a value was read before its key".to_owned()).into())
            }
        }
    }
}
