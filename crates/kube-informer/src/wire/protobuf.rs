//! The subset of protobuf that the readers need: the extent of fields, and the fields of a list.

use kube_schema::{Field, Message, Shape, Type, message};

/// The length of the longest number: ten bytes of seven bits each.
const VARINT_BYTES_MAX: usize = 10;

/// The start of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) number: u32,
    /// The number of bytes of the tag, and of the length or number that follows it.
    pub(crate) bytes: usize,
    /// The length of the content after the head; `None` if the field is a number, which is part of the head.
    pub(crate) len: Option<usize>,
}

/// Bytes that no Kubernetes encoder writes.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Malformed;

impl Head {
    /// Reads the head at the start of the bytes. Returns `None` while a part of it is missing.
    ///
    /// Groups, which protobuf has long deprecated, count as malformed.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let Some((tag, tag_bytes)) = varint(bytes)? else { return Ok(None) };
        let tag = u32::try_from(tag).map_err(|_| Malformed)?;
        let number = tag >> 3;
        if number == 0 {
            return Err(Malformed);
        }
        let rest = &bytes[tag_bytes..];
        let (value_bytes, len) = match tag & 7 {
            0 => (varint(rest)?.map(|(_, bytes)| bytes), None),
            1 => (fixed(rest, 8), None),
            2 => match varint(rest)? {
                Some((len, bytes)) => {
                    (Some(bytes), Some(usize::try_from(len).map_err(|_| Malformed)?))
                }
                None => (None, None),
            },
            5 => (fixed(rest, 4), None),
            _ => return Err(Malformed),
        };
        Ok(value_bytes.map(|value_bytes| Self { number, bytes: tag_bytes + value_bytes, len }))
    }
}

fn fixed(bytes: &[u8], len: usize) -> Option<usize> {
    (bytes.len() >= len).then_some(len)
}

/// Returns a number, and how many bytes it takes.
fn varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, Malformed> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        if at + 1 == VARINT_BYTES_MAX && *byte > 1 {
            return Err(Malformed);
        }
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(Some((value, at + 1)));
        }
    }
    Ok(None)
}

/// Returns the string fields of a complete message, in order. `None` stands for malformed bytes, and is the
/// last item.
pub(crate) fn texts(mut message: &[u8]) -> impl Iterator<Item = Option<(u32, &str)>> {
    std::iter::from_fn(move || {
        loop {
            if message.is_empty() {
                return None;
            }
            let Ok(Some(Head { number, bytes, len })) = Head::read(message) else {
                message = &[];
                return Some(None);
            };
            let Some((value, rest)) = message[bytes..].split_at_checked(len.unwrap_or_default())
            else {
                message = &[];
                return Some(None);
            };
            message = rest;
            if len.is_some() {
                return Some(std::str::from_utf8(value).ok().map(|text| (number, text)));
            }
        }
    })
}

/// The fields of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListFields {
    pub(crate) metadata: &'static Field,
    pub(crate) metadata_type: Message,
    pub(crate) items: &'static Field,
}

impl ListFields {
    /// Finds the fields of a kind's list. Returns `None` if the tables do not have the kind or its list.
    pub(crate) fn of(api_version: &str, kind: &str) -> Option<Self> {
        let object = message(api_version, kind)?;
        let list = message(api_version, &format!("{kind}List"))?;
        let metadata = list.field_named("metadata")?;
        let items = list.field_named("items")?;
        let Type::Message(metadata_type) = metadata.kind() else { return None };
        let fits = items.kind() == Type::Message(object) && items.shape() == Shape::List;
        fits.then_some(Self { metadata, metadata_type, items })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_once_they_are_whole() {
        for (bytes, number, len) in [
            (&b"\x0a\x05"[..], 1, Some(5)),
            (b"\x12\xac\x02", 2, Some(300)),
            (b"\x08\x96\x01", 1, None),
            (b"\x09\0\0\0\0\0\0\0\0", 1, None),
            (b"\x0d\0\0\0\0", 1, None),
            (b"\xfa\x01\x00", 31, Some(0)),
            (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 1, None),
        ] {
            let head = Head { number, bytes: bytes.len(), len };
            let longer = [bytes, b"\xff\xff"].concat();
            assert_eq!(Head::read(&longer), Ok(Some(head)), "{bytes:?}");
            for cut in 0..bytes.len() {
                assert_eq!(Head::read(&bytes[..cut]), Ok(None), "{bytes:?} to {cut}");
            }
        }
    }

    #[test]
    fn what_no_encoder_writes_is_malformed() {
        for bytes in [
            &b"\0"[..],
            b"\x02\0",
            b"\x0b",
            b"\x0c",
            b"\x0e",
            b"\x0f",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
            b"\x82\x80\x80\x80\x80\x01",
        ] {
            assert_eq!(Head::read(bytes), Err(Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn built_in_kinds_have_lists() {
        for (api_version, kind) in [
            ("v1", "Pod"),
            ("v1", "Endpoints"),
            ("apps/v1", "Deployment"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            ("meta.k8s.io/v1", "PartialObjectMetadata"),
        ] {
            let fields = ListFields::of(api_version, kind).unwrap();
            assert_eq!((fields.metadata.number(), fields.items.number()), (1, 2), "{kind}");
        }
        let older = ListFields::of("meta.k8s.io/v1beta1", "PartialObjectMetadata").unwrap();
        assert_eq!((older.metadata.number(), older.items.number()), (2, 1));
        // A custom resource may have the name of a kind that every group has.
        for (api_version, kind) in [
            ("example.com/v1", "Status"),
            ("example.com/v1", "Widget"),
            ("v1", ""),
            ("v1", "PodSpec"),
        ] {
            assert!(ListFields::of(api_version, kind).is_none(), "{kind}");
        }
    }
}
