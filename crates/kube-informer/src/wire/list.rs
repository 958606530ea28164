//! A list, read item by item while it arrives.

mod json;
mod protobuf;

use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;

use super::expected::check_list;
use super::payload::Payload;
use super::status::excerpt;
use super::{Call, Encoding, ListItem, OBJECT_BYTES_MAX, Reader, shrink};
use crate::error::Cause;
use crate::object::{Packer, Types};
use crate::{Error, Result};
use json::JsonSyntax;
use protobuf::ProtobufSyntax;

/// How much of a `Status` in place of a list is shown in errors.
const MESSAGE_CHARS_MAX: usize = 300;

/// Longer than any existing kind or version.
const TYPE_BYTES_MAX: usize = 1 << 10;

/// A reader of a list.
///
/// It holds one item and one chunk. The parts of the list may be in any order: custom resources have `items`
/// before `kind` and `metadata`. The items that were taken therefore count only once the end has been
/// reached.
pub(crate) struct ListReader {
    list: PartialList,
    syntax: Syntax,
    failed: bool,
}

enum Syntax {
    Json(JsonSyntax),
    Protobuf(ProtobufSyntax),
}

/// The part of a list that has arrived, in either encoding.
struct PartialList {
    call: Call,
    packer: Arc<Packer>,
    bytes_max: usize,
    /// Bytes that have arrived; those from `start` on have not been consumed.
    buffer: Vec<u8>,
    start: usize,
    /// The number of bytes of the body before the buffer, for positions in errors.
    dropped: usize,
    seen: Seen,
    /// The types of items that do not have their own.
    types: Option<Types>,
}

/// The parts of a list, and of a `Status` in place of one.
#[derive(Default)]
struct Seen {
    kind: Option<String>,
    api_version: Option<String>,
    metadata: ListMeta,
    items: bool,
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: Option<String>,
    r#continue: Option<String>,
}

enum Step {
    Again,
    More,
    Item(ListItem),
}

impl ListReader {
    pub(crate) fn new(call: Call, packer: Arc<Packer>, encoding: Encoding) -> Self {
        let list = PartialList {
            call,
            packer,
            bytes_max: OBJECT_BYTES_MAX,
            buffer: Vec::new(),
            start: 0,
            dropped: 0,
            seen: Seen::default(),
            types: None,
        };
        let syntax = match encoding {
            Encoding::Json => Syntax::Json(JsonSyntax::default()),
            Encoding::Protobuf => Syntax::Protobuf(ProtobufSyntax::default()),
        };
        Self { list, syntax, failed: false }
    }
}

impl Reader for ListReader {
    type Item = ListItem;

    fn call(&self) -> &Call {
        &self.list.call
    }

    fn push(&mut self, chunk: Bytes) {
        if !self.failed {
            self.list.push(&chunk);
        }
    }

    fn next(&mut self) -> Option<Result<ListItem>> {
        while !self.failed {
            let step = match &mut self.syntax {
                Syntax::Json(json) => json.step(&mut self.list),
                Syntax::Protobuf(protobuf) => protobuf.step(&mut self.list),
            };
            match step {
                Ok(Step::Again) => {}
                Ok(Step::More) => return None,
                Ok(Step::Item(item)) => return Some(Ok(item)),
                Err(error) => {
                    self.failed = true;
                    self.list.buffer = Vec::new();
                    self.list.start = 0;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// Returns the end of the list, or an error if it is incomplete.
    fn finish(&mut self) -> Option<Result<ListItem>> {
        let is_whole = match &self.syntax {
            Syntax::Json(json) => json.is_at_end(),
            Syntax::Protobuf(protobuf) => protobuf.is_at_end(&self.list),
        };
        if self.failed || !is_whole {
            let bytes = self.list.dropped + self.list.buffer.len();
            let text =
                format!("cannot {}: the list breaks off after {bytes} bytes", self.list.call);
            return Some(Err(Error::new(Cause::Broken, text)));
        }
        let ListMeta { resource_version, r#continue } = mem::take(&mut self.list.seen.metadata);
        Some(Ok(ListItem::End {
            resource_version: resource_version.unwrap_or_default().into(),
            continue_token: r#continue.filter(|token| !token.is_empty()),
        }))
    }
}

impl PartialList {
    fn push(&mut self, chunk: &[u8]) {
        self.buffer.drain(..self.start);
        self.dropped += mem::take(&mut self.start);
        shrink(&mut self.buffer);
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the bytes that have arrived and have not been consumed.
    fn rest(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Returns the position of the rest in the body.
    fn position(&self) -> usize {
        self.dropped + self.start
    }

    /// Fails if a value of `len` bytes is longer than an object may be.
    fn check_len(&self, len: usize) -> Result<()> {
        if len <= self.bytes_max {
            return Ok(());
        }
        Err(self.protocol(&format!(
            "what begins at byte {} of the list is over the limit of {} bytes for one object",
            self.position(),
            self.bytes_max
        )))
    }

    fn enter_items(&mut self) -> Result<()> {
        if mem::replace(&mut self.seen.items, true) {
            return Err(self.protocol("the list has its items twice"));
        }
        if let Some(kind) = &self.seen.kind {
            let version = self.seen.api_version.as_deref().unwrap_or_default();
            check_list(kind, version, &self.call)?;
        }
        self.types = self.seen.item_types().or_else(|| self.call.target.types());
        Ok(())
    }

    fn item(&self, payload: &Payload<'_>) -> ListItem {
        match payload.pack(&self.packer, self.types.as_ref()) {
            Ok(object) => ListItem::Object(object),
            Err(error) => ListItem::Unreadable(payload.identified(error).0),
        }
    }

    /// Records the metadata of the list, or fails if it is `None` and could not be read.
    fn take_metadata(&mut self, metadata: Option<ListMeta>) -> Result<()> {
        let unreadable = || self.protocol("the metadata of the list cannot be read");
        self.seen.metadata = metadata.ok_or_else(unreadable)?;
        Ok(())
    }

    /// Checks that all parts together form a list of the requested kind.
    fn check(&self) -> Result<()> {
        let Seen { kind, api_version, items, reason, message, .. } = &self.seen;
        let Some(kind) = kind else {
            return Err(self.protocol("the answer is without a kind, not a list"));
        };
        if kind == "Status" {
            let said = [reason, message].map(|text| text.as_deref().unwrap_or_default()).join(" ");
            let said = excerpt(&said, MESSAGE_CHARS_MAX).unwrap_or_default();
            return Err(self.protocol(&format!("a Status came instead of a list: {said}")));
        }
        check_list(kind, api_version.as_deref().unwrap_or_default(), &self.call)?;
        if *items {
            return Ok(());
        }
        let kind = excerpt(kind, MESSAGE_CHARS_MAX).unwrap_or_default();
        Err(self.protocol(&format!("the answer is of kind {kind:?} and has no items, not a list")))
    }

    fn protocol(&self, what: &str) -> Error {
        Error::protocol(format!("cannot {}: {what}", self.call))
    }
}

impl Seen {
    /// Returns the types of items: a `PodList` has pods. A kind that arrives after the items is too late.
    fn item_types(&self) -> Option<Types> {
        let kind = self.kind.as_deref()?.strip_suffix("List").filter(|kind| !kind.is_empty())?;
        Some(Types { api_version: self.api_version.clone()?, kind: kind.to_owned() })
    }
}

#[cfg(test)]
mod tests;
