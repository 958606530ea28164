//! Protobuf that the write encodes from its value, instead of the first read from JSON.
//!
//! Writes encode only kinds that a client has read as protobuf, so servers with JSON clients do no
//! extra work.

use std::sync::atomic::{AtomicBool, Ordering};

use kube_schema::{Error, FieldValue, Fields, Message, field_len, push_field, push_field_opening};
use parking_lot::RwLock;
use serde_json::{Map, Value};

use crate::kinds::Resource;

/// The field numbers of `metadata` in every kind, and of `resourceVersion` in every metadata.
const METADATA: u32 = 1;
const RESOURCE_VERSION: u32 = 6;

/// The kinds that clients have read as protobuf. It is only a hint, so all servers of a process can
/// share it.
static WANTED: RwLock<Vec<Message>> = RwLock::new(Vec::new());
static ANY_WANTED: AtomicBool = AtomicBool::new(false);

/// A message that is complete except for the resourceVersion, which the store assigns.
pub(super) struct Prepared {
    message: Message,
    raw: Vec<u8>,
}

impl Prepared {
    /// Notes that a client reads objects of this kind as protobuf.
    pub(super) fn want(message: Message) {
        if !WANTED.read().contains(&message) {
            WANTED.write().push(message);
            ANY_WANTED.store(true, Ordering::Relaxed);
        }
    }

    /// Encodes an object of a kind that clients read as protobuf. An object that cannot be encoded
    /// fails when a client reads it.
    pub(super) fn if_wanted(resource: &Resource, object: &Map<String, Value>) -> Option<Box<Self>> {
        if !ANY_WANTED.load(Ordering::Relaxed) || resource.custom {
            return None;
        }
        let message = kube_schema::message(&resource.api_version(), &resource.kind)?;
        let is_wanted = WANTED.read().contains(&message);
        let raw = is_wanted.then(|| message.encode_object(object).ok()).flatten()?;
        Some(Box::new(Self { message, raw }))
    }

    /// Returns the message with this version, if it is of that type.
    pub(super) fn seal(&self, message: Message, version: u64) -> Option<Vec<u8>> {
        if message != self.message {
            return None;
        }
        with_version(&self.raw, version).ok().flatten()
    }
}

/// Replaces the resourceVersion of a message. The encoder writes it even if it is empty.
fn with_version(raw: &[u8], version: u64) -> Result<Option<Vec<u8>>, Error> {
    let version = version.to_string();
    let Some((before, FieldValue::Bytes(metadata), after)) = find(raw, METADATA)? else {
        return Ok(None);
    };
    let Some((first, _, last)) = find(metadata, RESOURCE_VERSION)? else { return Ok(None) };
    let len = first.len() + field_len(RESOURCE_VERSION, version.len()) + last.len();
    let mut out = Vec::with_capacity(before.len() + field_len(METADATA, len) + after.len());
    out.extend_from_slice(before);
    push_field_opening(&mut out, METADATA, len);
    out.extend_from_slice(first);
    push_field(&mut out, RESOURCE_VERSION, version.as_bytes());
    out.extend_from_slice(last);
    out.extend_from_slice(after);
    Ok(Some(out))
}

/// A field, with the bytes before and after it.
type Found<'a> = (&'a [u8], FieldValue<'a>, &'a [u8]);

fn find(message: &[u8], number: u32) -> Result<Option<Found<'_>>, Error> {
    let mut at = 0;
    for field in Fields::of(message) {
        let field = field?;
        let end = at + field.bytes.len();
        if field.number == number {
            return Ok(Some((&message[..at], field.value, &message[end..])));
        }
        at = end;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_prepared_message_is_the_one_that_would_be_encoded() {
        let labels: Map<String, Value> =
            (0..40).map(|n| (format!("label-{n}"), "x".into())).collect();
        for mut object in [
            json!({"metadata": {"name": "a"}}),
            json!({"metadata": {"name": "a", "resourceVersion": "99999999999", "generation": 7, "uid": "u"},
                "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}),
            json!({"metadata": {"name": "a", "labels": labels}, "status": {"phase": "Running"}}),
            json!({}),
        ] {
            let message = kube_schema::message("v1", "Pod").unwrap();
            let raw = message.encode_object(object.as_object().unwrap()).unwrap();
            let prepared = Prepared { message, raw };
            for version in [0, 9, 10, 123_456, u64::MAX] {
                object["metadata"]["resourceVersion"] = version.to_string().into();
                let expected = message.encode(&object).unwrap();
                assert_eq!(prepared.seal(message, version), Some(expected), "{version}");
            }
            let other = kube_schema::message("v1", "Service").unwrap();
            assert_eq!(prepared.seal(other, 1), None, "of another kind");
        }
    }
}
