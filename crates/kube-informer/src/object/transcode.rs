//! Conversion of protobuf to JSON: the whole body, or only the part that a path leads to.

use std::fmt;

use kube_schema::{Deserializer, Envelope, Error};
use serde::Serialize;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{FieldPath, Step};

/// Returns the JSON text of a protobuf body.
pub(super) fn json(body: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(body.len() * 2);
    Transcode { steps: &[], out: &mut out }.deserialize(of(body)?)?;
    Ok(out)
}

/// Returns the JSON text with only the fields that the path names, and the value there. The path finds the
/// same value in it as in the whole text.
pub(super) fn json_along(body: &[u8], path: &FieldPath) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let steps = path.steps().unwrap_or_default();
    Transcode { steps, out: &mut out }.deserialize(of(body)?)?;
    Ok(out)
}

fn of(body: &[u8]) -> Result<Deserializer<'_>, Error> {
    Deserializer::from_envelope(&Envelope::parse(body)?)
}

/// A visitor that writes a value as JSON.
struct Transcode<'a> {
    /// The path to follow first.
    steps: &'a [Step],
    out: &'a mut Vec<u8>,
}

impl Transcode<'_> {
    fn write<E: serde::de::Error>(self, value: &impl Serialize) -> Result<(), E> {
        serde_json::to_writer(self.out, value).map_err(E::custom)
    }

    /// Writes only the member of this name.
    fn member<'de, A: MapAccess<'de>>(self, name: &str, mut map: A) -> Result<(), A::Error> {
        self.out.push(b'{');
        while let Some(is_it) = map.next_key_seed(Is(name))? {
            if !is_it {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            serde_json::to_writer(&mut *self.out, name).map_err(serde::de::Error::custom)?;
            self.out.push(b':');
            map.next_value_seed(Transcode { steps: &self.steps[1..], out: self.out })?;
            break;
        }
        self.out.push(b'}');
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Transcode<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Transcode<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.write(&value)
    }
    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.write(&value)
    }
    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.write(&value)
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.write(&value)
    }
    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.write(&value)
    }
    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.write(&())
    }
    fn visit_none<E: serde::de::Error>(self) -> Result<(), E> {
        self.write(&())
    }
    fn visit_some<D: serde::Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        self.deserialize(value)
    }
    fn visit_newtype_struct<D: serde::Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        self.deserialize(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.out.push(b'[');
        let from = self.out.len();
        loop {
            let before = self.out.len();
            if before > from {
                self.out.push(b',');
            }
            let item = Transcode { steps: &[], out: &mut *self.out };
            if items.next_element_seed(item)?.is_none() {
                self.out.truncate(before);
                break;
            }
        }
        self.out.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if let Some(Step::Key(name)) = self.steps.first() {
            return self.member(name, map);
        }
        self.out.push(b'{');
        let from = self.out.len();
        loop {
            let before = self.out.len();
            if before > from {
                self.out.push(b',');
            }
            let key = Transcode { steps: &[], out: &mut *self.out };
            if map.next_key_seed(key)?.is_none() {
                self.out.truncate(before);
                break;
            }
            self.out.push(b':');
            map.next_value_seed(Transcode { steps: &[], out: &mut *self.out })?;
        }
        self.out.push(b'}');
        Ok(())
    }
}

/// A seed that tests whether a key is this one.
struct Is<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}
