//! A message field by field, as it is written: for programs that copy messages and look at little of them.

use crate::error::Error;
use crate::wire::{Payload, Reader};

/// The fields of a message, in the order in which they are written. After an error there is nothing more.
///
/// ```
/// use kube_schema::{Fields, FieldValue};
///
/// let fields: Vec<_> = Fields::of(b"\x0a\x03web\x38\x07").collect::<Result<_, _>>()?;
/// assert_eq!((fields[0].number, fields[0].value), (1, FieldValue::Bytes(b"web")));
/// assert_eq!((fields[1].number, fields[1].value), (7, FieldValue::Number(7)));
/// assert_eq!(fields[1].bytes, b"\x38\x07");
/// # Ok::<(), kube_schema::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

/// A field of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawField<'a> {
    /// Its number.
    pub number: u32,
    /// All of it, its number included.
    pub bytes: &'a [u8],
    /// Its value.
    pub value: FieldValue<'a>,
}

/// The value of a field, as far as it is known without its type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// A number or a truth value.
    Number(u64),
    /// A text, bytes, or a message.
    Bytes(&'a [u8]),
    /// Written in a way that Kubernetes uses for floating point only, or not at all.
    Other,
}

impl<'a> Fields<'a> {
    /// Those of this message.
    pub fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn read(&mut self) -> Result<Option<RawField<'a>>, Error> {
        let mut reader = Reader::new(self.rest);
        let Some(tag) = reader.tag()? else { return Ok(None) };
        let value = match reader.payload(tag.wire)? {
            Payload::Varint(number) => FieldValue::Number(number),
            Payload::Bytes(bytes) => FieldValue::Bytes(bytes),
            Payload::Text(text) => FieldValue::Bytes(text.as_bytes()),
            Payload::Fixed64(_) | Payload::Other => FieldValue::Other,
        };
        let (bytes, rest) = self.rest.split_at(self.rest.len() - reader.remaining());
        self.rest = rest;
        Ok(Some(RawField { number: tag.number, bytes, value }))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<RawField<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.read().transpose();
        if matches!(field, Some(Err(_))) {
            self.rest = &[];
        }
        field
    }
}

/// Does not print the content, which is a user's object.
impl std::fmt::Debug for RawField<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RawField({}, {} bytes)", self.number, self.bytes.len())
    }
}

/// Its kind alone.
impl std::fmt::Debug for FieldValue<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Number(_) => "Number",
            Self::Bytes(_) => "Bytes",
            Self::Other => "Other",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_all_that_there_is() {
        let message = b"\x0a\x03web\x38\x07\x11\0\0\0\0\0\0\0\0\x12\0";
        let fields: Vec<_> = Fields::of(message).map(Result::unwrap).collect();
        let numbers: Vec<_> = fields.iter().map(|field| field.number).collect();
        assert_eq!(numbers, [1, 7, 2, 2]);
        assert_eq!(fields.iter().flat_map(|field| field.bytes).count(), message.len());
    }

    #[test]
    fn a_message_that_breaks_off_is_one_error() {
        let mut fields = Fields::of(b"\x38\x07\x0a\x03we");
        assert!(fields.next().unwrap().is_ok());
        assert!(fields.next().unwrap().is_err() && fields.next().is_none());
    }

    #[test]
    fn values_are_not_printed() {
        let field = Fields::of(b"\x0a\x06hidden").next().unwrap().unwrap();
        assert_eq!(format!("{field:?} {:?}", field.value), "RawField(1, 8 bytes) Bytes");
    }
}
