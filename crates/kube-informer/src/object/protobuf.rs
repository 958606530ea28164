//! Converts protobuf to an object: parses the header, and keeps the body in its envelope as it arrived.
//!
//! No JSON starts like an envelope, so a body identifies its own encoding.

use std::borrow::Cow;
use std::ops::Range;

use kube_schema::{ENVELOPE_CLOSING, Envelope, FieldValue, Fields, field_len, push_field_opening};

use super::header::{Found, FoundOwner, Problem};
use super::pack::unreadable;
use super::training::Scratch;
use super::{Object, Packer, Types};
use crate::Result;

/// The number of `metadata` in every object, and those of the header's fields.
const METADATA: u32 = 1;
const NAME: u32 = 1;
const NAMESPACE: u32 = 3;
const UID: u32 = 5;
const RESOURCE_VERSION: u32 = 6;
const GENERATION: u32 = 7;
const DELETION_TIMESTAMP: u32 = 9;
const LABELS: u32 = 11;
const OWNER_REFERENCES: u32 = 13;
const MANAGED_FIELDS: u32 = 17;

/// Returns whether a body is protobuf in an envelope, rather than JSON.
pub(super) fn is_protobuf(body: &[u8]) -> bool {
    body.starts_with(b"k8s\0")
}

impl Packer {
    /// Returns whether this packer accepts protobuf. Its transforms and decoders read JSON.
    pub(crate) fn takes_protobuf(&self) -> bool {
        !self.changes_objects()
    }

    /// Packs an object from a message without an envelope, otherwise like [`pack`](Self::pack).
    pub(crate) fn pack_protobuf(&self, message: &[u8], types: &Types) -> Result<Object> {
        let (codec, scratch) = self.training.begin();
        let mut read = Read { found: Found::new(scratch.spare), metadata: Part::default() };
        let verdict = read.object(message);
        let found = &read.found;
        let key = match verdict {
            // An object without a key has already been rejected.
            Ok(()) => found.key().ok_or_else(|| unreadable(None, &"its metadata is not there"))?,
            Err(problem) => return Err(unreadable(found.key(), &problem)),
        };
        let (uid, version) = ((*found.uid).into(), found.resource_version());
        let cuts = if self.keeps_managed_fields() { &[][..] } else { &found.managed };
        let text = enveloped(message, &read.metadata, cuts, types, scratch.text);
        let (header, spare) = self.header(key, uid, version, read.found);
        Ok(self.object(header, Scratch { text, spare }, codec))
    }
}

/// An object's header, and the location of its metadata.
struct Read<'a> {
    found: Found<'a>,
    /// The field `metadata`, and its content.
    metadata: Part,
}

#[derive(Default)]
struct Part {
    whole: Range<usize>,
    value: Range<usize>,
}

impl<'a> Read<'a> {
    fn object(&mut self, message: &'a [u8]) -> Result<(), Problem> {
        let mut metadata = None;
        let mut at = 0;
        for field in Fields::of(message) {
            let field = field?;
            let whole = at..at + field.bytes.len();
            at = whole.end;
            let (METADATA, FieldValue::Bytes(value)) = (field.number, field.value) else {
                continue;
            };
            self.metadata = Part { value: whole.end - value.len()..whole.end, whole };
            if metadata.replace(value).is_some() {
                return Err(wrong("metadata", "there once"));
            }
        }
        self.meta(metadata.ok_or(wrong("metadata", "there"))?)?;
        if self.found.name.is_empty() {
            return Err(wrong("metadata.name", "there"));
        }
        Ok(())
    }

    fn meta(&mut self, metadata: &'a [u8]) -> Result<(), Problem> {
        let mut at = self.metadata.value.start;
        self.found.namespace = Some(Cow::default());
        for field in Fields::of(metadata) {
            let field = field?;
            let whole = at..at + field.bytes.len();
            at = whole.end;
            let found = &mut self.found;
            match (field.number, field.value) {
                (NAME, FieldValue::Bytes(name)) => found.name = text(name, "metadata.name")?,
                (NAMESPACE, FieldValue::Bytes(name)) => {
                    found.namespace = Some(text(name, "metadata.namespace")?);
                }
                (UID, FieldValue::Bytes(uid)) => found.uid = text(uid, "metadata.uid")?,
                (RESOURCE_VERSION, FieldValue::Bytes(version)) => {
                    found.version = text(version, "metadata.resourceVersion")?;
                }
                // Go writes zero for none.
                (GENERATION, FieldValue::Number(generation)) => {
                    found.generation =
                        Some(generation as i64).filter(|generation| *generation != 0);
                }
                (DELETION_TIMESTAMP, FieldValue::Bytes(time)) => {
                    found.deletion = Some(at_time(time)?);
                }
                (LABELS, FieldValue::Bytes(entry)) => found.labels.push(label(entry)?),
                (OWNER_REFERENCES, FieldValue::Bytes(owner)) => {
                    let controller = owner_that_controls(owner)?;
                    found.controller = found.controller.take().or(controller);
                }
                // Nearly always adjacent, so that they form one range.
                (MANAGED_FIELDS, _) => match found.managed.last_mut() {
                    Some(last) if last.end == whole.start => last.end = whole.end,
                    _ => found.managed.push(whole),
                },
                (
                    NAME | NAMESPACE | UID | RESOURCE_VERSION | GENERATION | DELETION_TIMESTAMP
                    | LABELS | OWNER_REFERENCES,
                    _,
                ) => return Err(wrong("metadata", "an ObjectMeta")),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reads an entry of a map of strings. A part that is left out is empty.
fn label(entry: &[u8]) -> Result<(Cow<'_, str>, Cow<'_, str>), Problem> {
    let mut label = <(Cow<'_, str>, Cow<'_, str>)>::default();
    for field in Fields::of(entry) {
        let field = field?;
        match (field.number, field.value) {
            (1, FieldValue::Bytes(name)) => label.0 = text(name, "metadata.labels")?,
            (2, FieldValue::Bytes(value)) => label.1 = text(value, "metadata.labels")?,
            _ => {}
        }
    }
    Ok(label)
}

/// Reads an owner reference, if it has `controller: true`.
fn owner_that_controls(reference: &[u8]) -> Result<Option<FoundOwner<'_>>, Problem> {
    const FIELD: &str = "metadata.ownerReferences";
    let (mut owner, mut controls) = (FoundOwner::default(), false);
    for field in Fields::of(reference) {
        let field = field?;
        match (field.number, field.value) {
            (1, FieldValue::Bytes(kind)) => owner.kind = text(kind, FIELD)?,
            (3, FieldValue::Bytes(name)) => owner.name = text(name, FIELD)?,
            (4, FieldValue::Bytes(uid)) => owner.uid = text(uid, FIELD)?,
            (5, FieldValue::Bytes(version)) => owner.api_version = text(version, FIELD)?,
            (6, FieldValue::Number(flag)) => controls = flag != 0,
            _ => {}
        }
    }
    Ok(controls.then_some(owner))
}

/// Reads a time in whole seconds, as in JSON.
fn at_time(time: &[u8]) -> Result<jiff::Timestamp, Problem> {
    let mut seconds = 0;
    for field in Fields::of(time) {
        if let (1, FieldValue::Number(number)) = field.map(|field| (field.number, field.value))? {
            seconds = number as i64;
        }
    }
    jiff::Timestamp::from_second(seconds)
        .map_err(|_| wrong("metadata.deletionTimestamp", "a time as RFC 3339 has it"))
}

fn text<'a>(bytes: &'a [u8], field: &'static str) -> Result<Cow<'a, str>, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|_| wrong(field, "a text in UTF-8"))?;
    Ok(Cow::Borrowed(text))
}

fn wrong(field: &'static str, expected: &'static str) -> Problem {
    Problem::Wrong { field, expected }
}

/// Returns the body to keep: the message in an envelope, without the parts that are cut out of its metadata.
/// If it is not written to reused memory, it takes exactly as much as it needs.
fn enveloped(
    message: &[u8],
    metadata: &Part,
    cuts: &[Range<usize>],
    types: &Types,
    mut body: Vec<u8>,
) -> Vec<u8> {
    let kept = metadata.value.len() - cuts.iter().map(Range::len).sum::<usize>();
    let len = message.len() - metadata.whole.len() + field_len(METADATA, kept);
    let opening_len = Envelope::opening_len(&types.api_version, &types.kind, len);
    body.clear();
    body.reserve_exact(opening_len + len + ENVELOPE_CLOSING.len());
    Envelope::push_opening(&mut body, &types.api_version, &types.kind, len);
    body.extend_from_slice(&message[..metadata.whole.start]);
    push_field_opening(&mut body, METADATA, kept);
    let mut from = metadata.value.start;
    for cut in cuts {
        body.extend_from_slice(&message[from..cut.start]);
        from = cut.end;
    }
    body.extend_from_slice(&message[from..]);
    body.extend_from_slice(ENVELOPE_CLOSING);
    body
}

#[cfg(test)]
mod tests;
