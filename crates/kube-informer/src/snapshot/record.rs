//! The record of one object in a snapshot: the fields of its header, and its body as it is stored.

use std::borrow::Cow;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use super::file::{Problem, put};
use crate::object::{Codec, KeptBody, KeptHeader, Packer};
use crate::{Object, ObjectKey};

/// Tags of the two forms of a body.
const TEXT: &[u8] = b"text";
const FRAME: &[u8] = b"frame";

/// Writes an object to `out`, replacing its content.
pub(super) fn write(object: &Object, codec: &Arc<Codec>, out: &mut Vec<u8>) -> io::Result<()> {
    out.clear();
    header(object, out)?;
    let mut body = |body: KeptBody<'_>| match body {
        KeptBody::Text(text) => put(out, TEXT).and_then(|()| put(out, text)),
        KeptBody::Frame(frame) => put(out, FRAME).and_then(|()| put(out, frame)),
    };
    object.keep_body(codec, &mut body).map_err(io::Error::other)?
}

fn header(object: &Object, out: &mut Vec<u8>) -> io::Result<()> {
    let mut text = |text: &str| put(out, text.as_bytes());
    text(object.namespace().unwrap_or_default())?;
    text(object.name())?;
    text(object.uid())?;
    text(object.resource_version().as_str())?;
    text(&object.generation().map_or_else(String::new, |generation| generation.to_string()))?;
    text(&object.deletion_timestamp().map_or_else(String::new, |time| time.to_string()))?;
    match object.controller() {
        Some(owner) => {
            let parts = [&owner.api_version, &owner.kind, &owner.name, &owner.uid];
            parts.into_iter().try_for_each(|part| text(part))?;
        }
        None => [""; 4].into_iter().try_for_each(&mut text)?,
    }
    text(&object.labels().len().to_string())?;
    object.labels().iter().try_for_each(|(name, value)| text(name).and_then(|()| text(value)))
}

/// Reads an object that [`write`] has written.
pub(super) fn read(record: &[u8], packer: &Packer, codec: &Arc<Codec>) -> Result<Object, Problem> {
    let mut parts = Parts(record);
    let header = parts.header()?;
    let body = match parts.next()? {
        FRAME => KeptBody::Frame(parts.next()?),
        TEXT => KeptBody::Text(parts.next()?),
        _ => return Err(Problem::Other("has a body of an unknown form")),
    };
    if !parts.0.is_empty() {
        return Err(Problem::Other("has an object with data after its end"));
    }
    packer.restore(header, body, codec).map_err(Problem::Object)
}

/// The unread rest of a record: parts, each with its length in front.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn header(&mut self) -> Result<KeptHeader<'a>, Problem> {
        let key = ObjectKey::namespaced(self.text()?, self.text()?);
        let (uid, version) = (self.text()?.into(), self.text()?.into());
        let (generation, deletion) = (self.value()?, self.value()?);
        let owner = [self.text()?, self.text()?, self.text()?, self.text()?];
        let is_owner = owner.iter().any(|part| !part.is_empty());
        let count: u64 =
            self.value()?.ok_or(Problem::Other("has an object without a number of labels"))?;
        let mut labels = Vec::new();
        for _ in 0..count {
            labels.push((self.text()?.into(), self.text()?.into()));
        }
        let controller = is_owner.then(|| owner.map(Cow::Borrowed));
        Ok(KeptHeader { key, uid, version, generation, deletion, labels, controller })
    }

    /// Reads a value, or `None` if the part is empty.
    fn value<T: FromStr>(&mut self) -> Result<Option<T>, Problem> {
        let parse = |text: &str| text.parse().map_err(|_| Problem::Other("has a damaged header"));
        Some(self.text()?).filter(|text| !text.is_empty()).map(parse).transpose()
    }

    fn text(&mut self) -> Result<&'a str, Problem> {
        std::str::from_utf8(self.next()?)
            .map_err(|_| Problem::Other("has a name that is not UTF-8"))
    }

    fn next(&mut self) -> Result<&'a [u8], Problem> {
        let cut = || Problem::Other("has a truncated object");
        let (length, rest) = self.0.split_first_chunk().ok_or_else(cut)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (part, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        self.0 = rest;
        Ok(part)
    }
}
