//! Protobuf's wire format: tags, numbers, lengths.

use crate::error::{Error, Problem};

/// Reads fields one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'de> {
    rest: &'de [u8],
}

/// A field's number and how its value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) number: u32,
    pub(crate) wire: Wire,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Varint,
    Fixed64,
    Bytes,
    GroupStart,
    GroupEnd,
    Fixed32,
}

/// A value, not yet known to be of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payload<'de> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'de [u8]),
    /// Of wire types that Kubernetes does not use.
    Other,
    /// Not from the wire: a name that is known to be UTF-8.
    Text(&'de str),
}

impl<'de> Reader<'de> {
    pub(crate) fn new(bytes: &'de [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes have not been read.
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next tag; None at the end.
    #[inline]
    pub(crate) fn tag(&mut self) -> Result<Option<Tag>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = u32::try_from(self.varint()?).map_err(|_| Problem::Varint)?;
        let wire = match key & 7 {
            0 => Wire::Varint,
            1 => Wire::Fixed64,
            2 => Wire::Bytes,
            3 => Wire::GroupStart,
            4 => Wire::GroupEnd,
            5 => Wire::Fixed32,
            _ => return Err(Problem::Varint.into()),
        };
        match key >> 3 {
            0 => Err(Problem::Varint.into()),
            number => Ok(Some(Tag { number, wire })),
        }
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Error> {
        match self.rest {
            // Nearly all of them.
            [byte @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Ok((*byte).into())
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Error> {
        let mut value = 0;
        for (at, byte) in self.rest.iter().take(10).enumerate() {
            // Bits beyond the 64th are lost, as they are in Go.
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() < 10 { Problem::Truncated } else { Problem::Varint }.into())
    }

    #[inline]
    pub(crate) fn bytes(&mut self) -> Result<&'de [u8], Error> {
        let len = usize::try_from(self.varint()?).map_err(|_| Problem::Truncated)?;
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(Problem::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    #[inline]
    pub(crate) fn payload(&mut self, wire: Wire) -> Result<Payload<'de>, Error> {
        Ok(match wire {
            Wire::Varint => Payload::Varint(self.varint()?),
            Wire::Fixed64 => Payload::Fixed64(u64::from_le_bytes(self.fixed()?)),
            Wire::Bytes => Payload::Bytes(self.bytes()?),
            _ => {
                self.skip(wire)?;
                Payload::Other
            }
        })
    }

    /// Skips a value. Groups, a form that protobuf has given up, are skipped without recursion.
    pub(crate) fn skip(&mut self, wire: Wire) -> Result<(), Error> {
        let (mut wire, mut groups) = (wire, 0_usize);
        loop {
            match wire {
                Wire::Varint => drop(self.varint()?),
                Wire::Fixed64 => drop(self.fixed::<8>()?),
                Wire::Bytes => drop(self.bytes()?),
                Wire::Fixed32 => drop(self.fixed::<4>()?),
                Wire::GroupStart => groups += 1,
                Wire::GroupEnd => groups = groups.checked_sub(1).ok_or(Problem::Truncated)?,
            }
            if groups == 0 {
                return Ok(());
            }
            wire = self.tag()?.ok_or(Problem::Truncated)?.wire;
        }
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Problem::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

pub(crate) fn text(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|_| Problem::Utf8.into())
}

/// The bytes of a message's first field, which are all that some messages have.
pub(crate) fn first(message: &[u8]) -> Result<Option<&[u8]>, Error> {
    let mut found = None;
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag()? {
        if let (1, Payload::Bytes(bytes)) = (tag.number, reader.payload(tag.wire)?) {
            found = Some(bytes);
        }
    }
    Ok(found)
}

/// Writes a message from its end to its start: a length comes before what it counts, so that it is known when it is
/// written, and nothing has to be moved.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    reversed: Vec<u8>,
}

impl Writer {
    pub(crate) fn len(&self) -> usize {
        self.reversed.len()
    }

    /// The message, the right way round.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.reversed.reverse();
        self.reversed
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    pub(crate) fn varint(&mut self, value: u64) {
        let (bytes, len) = varint(value);
        self.raw(&bytes[..len]);
    }

    pub(crate) fn tag(&mut self, number: u32, wire: Wire) {
        self.varint(key(number, wire));
    }

    /// A field of bytes, as a whole.
    pub(crate) fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.raw(bytes);
        self.close(number, self.len() - bytes.len());
    }

    /// Puts tag and length before everything that was written since the writer was `from` long.
    pub(crate) fn close(&mut self, number: u32, from: usize) {
        self.varint((self.len() - from) as u64);
        self.tag(number, Wire::Bytes);
    }

    pub(crate) fn number(&mut self, number: u32, value: u64) {
        self.varint(value);
        self.tag(number, Wire::Varint);
    }

    pub(crate) fn double(&mut self, number: u32, value: f64) {
        self.raw(&value.to_le_bytes());
        self.tag(number, Wire::Fixed64);
    }
}

pub(crate) fn key(number: u32, wire: Wire) -> u64 {
    let wire = match wire {
        Wire::Varint => 0,
        Wire::Fixed64 => 1,
        Wire::Bytes => 2,
        Wire::GroupStart => 3,
        Wire::GroupEnd => 4,
        Wire::Fixed32 => 5,
    };
    u64::from(number) << 3 | wire
}

/// A number as bytes, and how many they are.
pub(crate) fn varint(mut value: u64) -> ([u8; 10], usize) {
    let mut bytes = [0; 10];
    let mut len = 0;
    loop {
        bytes[len] = value as u8 & 0x7f;
        value >>= 7;
        len += 1;
        if value == 0 {
            return (bytes, len);
        }
        bytes[len - 1] |= 0x80;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_the_round_trip() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let (bytes, len) = varint(value);
            let mut reader = Reader::new(&bytes[..len]);
            assert_eq!((reader.varint(), reader.is_empty()), (Ok(value), true));
        }
    }

    #[test]
    fn endless_and_cut_numbers_are_errors() {
        let problem = |bytes: &[u8]| Reader::new(bytes).varint().unwrap_err().problem().clone();
        assert_eq!(problem(&[0xff; 11]), Problem::Varint);
        assert_eq!(problem(&[0xff; 3]), Problem::Truncated);
    }

    #[test]
    fn groups_are_skipped() {
        // A group in a group, then field 1.
        let mut reader = Reader::new(&[0x13, 0x1b, 0x08, 0x05, 0x1c, 0x14, 0x08, 0x07]);
        let tag = reader.tag().unwrap().unwrap();
        reader.skip(tag.wire).unwrap();
        assert_eq!(reader.tag(), Ok(Some(Tag { number: 1, wire: Wire::Varint })));
        let mut open = Reader::new(&[0x1b, 0x1b]);
        assert!(open.skip(Wire::GroupStart).is_err());
    }

    #[test]
    fn lengths_beyond_the_end_are_errors() {
        assert!(Reader::new(&[5, 1, 2]).bytes().is_err());
        assert!(
            Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1])
                .bytes()
                .is_err()
        );
    }

    #[test]
    fn a_message_is_written_from_its_end() {
        let mut writer = Writer::default();
        let from = writer.len();
        writer.number(2, 300);
        writer.bytes(1, b"ab");
        writer.close(3, from);
        assert_eq!(writer.finish(), [0x1a, 7, 0x0a, 2, b'a', b'b', 0x10, 0xac, 0x02]);
    }
}
