//! A list, item by item, while it arrives.

use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;

use super::expected::check_list;
use super::peek::{identified, string};
use super::status::excerpt;
use super::{Call, ListItem, OBJECT_BYTES_MAX, Reader, shrink};
use crate::error::Cause;
use crate::json::{ValueEnd, is_key, space};
use crate::object::{Packer, Types};
use crate::{Error, Result};

/// How much is repeated of the `Status` that came instead of a list.
const MESSAGE_CHARS_MAX: usize = 300;

/// Longer than any kind or version that there is.
const TYPE_BYTES_MAX: usize = 1 << 10;

/// Reads a list.
///
/// It holds one item and one chunk. The members of the list may be in any order: custom resources
/// come with `items` before `kind` and `metadata`. So what was taken counts only with the end.
pub(crate) struct ListReader {
    call: Call,
    packer: Arc<Packer>,
    bytes_max: usize,
    /// What came and has not been taken, from `start` on.
    buffer: Vec<u8>,
    start: usize,
    /// How much of the body was before the buffer, to say where a mistake is.
    dropped: usize,
    state: State,
    /// The end of the value at `start`, as far as it has been looked for.
    end: ValueEnd,
    seen: Seen,
    /// What items are that do not say it themselves.
    types: Option<Types>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before everything.
    Start,
    /// Before a member, or (only `first`) where the list ends.
    Member {
        first: bool,
    },
    Colon(Field),
    Value(Field),
    AfterValue,
    /// Before an item, or (only `first`) where there is none.
    Item {
        first: bool,
    },
    AfterItem,
    End,
    Failed,
}

/// The members of a list, and of a `Status` that may have come instead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Kind,
    ApiVersion,
    Metadata,
    Items,
    Reason,
    Message,
    Other,
}

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
    pub(crate) fn new(call: Call, packer: Arc<Packer>) -> Self {
        Self {
            call,
            packer,
            bytes_max: OBJECT_BYTES_MAX,
            buffer: Vec::new(),
            start: 0,
            dropped: 0,
            state: State::Start,
            end: ValueEnd::default(),
            seen: Seen::default(),
            types: None,
        }
    }

    fn step(&mut self) -> Result<Step> {
        self.start = space(&self.buffer, self.start);
        let Some(&byte) = self.buffer.get(self.start) else { return Ok(Step::More) };
        let next = match (self.state, byte) {
            (State::Start, b'{') => State::Member { first: true },
            (State::Member { first: true } | State::AfterValue, b'}') => {
                self.check()?;
                State::End
            }
            (State::Member { .. }, b'"') => return self.key(),
            (State::Colon(field), b':') => State::Value(field),
            (State::Value(Field::Items), b'[') => {
                self.enter_items()?;
                State::Item { first: true }
            }
            (State::Value(field), _) => return self.value(field),
            (State::AfterValue, b',') => State::Member { first: false },
            (State::Item { first: true } | State::AfterItem, b']') => State::AfterValue,
            (State::Item { .. }, _) => return self.item(),
            (State::AfterItem, b',') => State::Item { first: false },
            (State::Failed, _) => return Ok(Step::More),
            (state, _) => return Err(self.unexpected(state)),
        };
        self.start += 1;
        self.state = next;
        Ok(Step::Again)
    }

    /// One past the end of the value at `start`, once it is there.
    fn whole_value(&mut self) -> Result<Option<usize>> {
        let rest = &self.buffer[self.start..];
        let end = self.end.feed(rest).map_err(|syntax| {
            let at = self.dropped + self.start + syntax.at;
            let expected = syntax.expected;
            Error::protocol(format!(
                "cannot {}: no JSON, {expected} expected at byte {at}",
                self.call
            ))
        })?;
        if end.unwrap_or(rest.len()) > self.bytes_max {
            let at = self.dropped + self.start;
            return Err(Error::protocol(format!(
                "cannot {}: what begins at byte {at} of the list is over the limit of {} bytes for \
                 one object",
                self.call, self.bytes_max
            )));
        }
        Ok(end.map(|end| {
            self.end = ValueEnd::default();
            self.start + end
        }))
    }

    fn key(&mut self) -> Result<Step> {
        let Some(end) = self.whole_value()? else { return Ok(Step::More) };
        let key = &self.buffer[self.start + 1..end - 1];
        let is = |name| is_key(key, name);
        let field = match () {
            () if is("items") => Field::Items,
            () if is("metadata") => Field::Metadata,
            () if is("kind") => Field::Kind,
            () if is("apiVersion") => Field::ApiVersion,
            () if is("reason") => Field::Reason,
            () if is("message") => Field::Message,
            () => Field::Other,
        };
        self.start = end;
        self.state = State::Colon(field);
        Ok(Step::Again)
    }

    fn value(&mut self, field: Field) -> Result<Step> {
        let Some(end) = self.whole_value()? else { return Ok(Step::More) };
        let value = &self.buffer[self.start..end];
        let types = || string(value).filter(|text| text.len() <= TYPE_BYTES_MAX).map(String::from);
        let said = || string(value).and_then(|text| excerpt(&text, MESSAGE_CHARS_MAX));
        match field {
            Field::Kind => self.seen.kind = types(),
            Field::ApiVersion => self.seen.api_version = types(),
            Field::Reason => self.seen.reason = said(),
            Field::Message => self.seen.message = said(),
            Field::Metadata => {
                let read = serde_json::from_slice::<Option<ListMeta>>(value);
                let unreadable = "the metadata of the list cannot be read";
                let read = read.map_err(|_| self.protocol(unreadable))?;
                self.seen.metadata = read.unwrap_or_default();
            }
            Field::Items if value == b"null" => self.enter_items()?,
            Field::Items => return Err(self.protocol("the items are no list")),
            Field::Other => {}
        }
        self.start = end;
        self.state = State::AfterValue;
        Ok(Step::Again)
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

    fn item(&mut self) -> Result<Step> {
        let Some(end) = self.whole_value()? else { return Ok(Step::More) };
        let json = &self.buffer[self.start..end];
        let item = match self.packer.pack(json, self.types.as_ref()) {
            Ok(object) => ListItem::Object(object),
            Err(error) => ListItem::Unreadable(identified(error, json).0),
        };
        self.start = end;
        self.state = State::AfterItem;
        Ok(Step::Item(item))
    }

    /// All members have come: are they those of a list?
    fn check(&self) -> Result<()> {
        let Seen { kind, api_version, items, reason, message, .. } = &self.seen;
        let Some(kind) = kind else {
            return Err(self.protocol("the answer is JSON without a kind, not a list"));
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

    fn unexpected(&self, state: State) -> Error {
        let at = self.dropped + self.start;
        let expected = match state {
            State::Start => "'{'",
            State::Member { first: true } => "a key or '}'",
            State::Member { first: false } => "a key",
            State::Colon(_) => "':'",
            State::AfterItem => "',' or ']'",
            State::End => "the end",
            _ => "',' or '}'",
        };
        self.protocol(&format!("no list in JSON, {expected} expected at byte {at}"))
    }

    fn protocol(&self, what: &str) -> Error {
        Error::protocol(format!("cannot {}: {what}", self.call))
    }
}

impl Reader for ListReader {
    type Item = ListItem;

    fn call(&self) -> &Call {
        &self.call
    }

    fn push(&mut self, chunk: Bytes) {
        if self.state == State::Failed {
            return;
        }
        self.buffer.drain(..self.start);
        self.dropped += mem::take(&mut self.start);
        shrink(&mut self.buffer);
        self.buffer.extend_from_slice(&chunk);
    }

    fn next(&mut self) -> Option<Result<ListItem>> {
        loop {
            match self.step() {
                Ok(Step::Again) => {}
                Ok(Step::More) => return None,
                Ok(Step::Item(item)) => return Some(Ok(item)),
                Err(error) => {
                    self.state = State::Failed;
                    self.buffer = Vec::new();
                    self.start = 0;
                    return Some(Err(error));
                }
            }
        }
    }

    /// The end of the list, or that there is none.
    fn finish(&mut self) -> Option<Result<ListItem>> {
        if self.state != State::End {
            let bytes = self.dropped + self.buffer.len();
            let text = format!("cannot {}: the list breaks off after {bytes} bytes", self.call);
            return Some(Err(Error::new(Cause::Broken, text)));
        }
        let ListMeta { resource_version, r#continue } = mem::take(&mut self.seen.metadata);
        Some(Ok(ListItem::End {
            resource_version: resource_version.unwrap_or_default().into(),
            continue_token: r#continue.filter(|token| !token.is_empty()),
        }))
    }
}

impl Seen {
    /// A `PodList` has pods. A kind that comes after the items comes too late to say so.
    fn item_types(&self) -> Option<Types> {
        let kind = self.kind.as_deref()?.strip_suffix("List").filter(|kind| !kind.is_empty())?;
        Some(Types { api_version: self.api_version.clone()?, kind: kind.to_owned() })
    }
}

#[cfg(test)]
mod tests;
