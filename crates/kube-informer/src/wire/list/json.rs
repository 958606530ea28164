//! Lists in JSON.

use super::{ListMeta, MESSAGE_CHARS_MAX, PartialList, Payload, Step, TYPE_BYTES_MAX, excerpt};
use crate::json::{ValueEnd, is_key, space};
use crate::wire::payload::string;
use crate::{Error, Result};

/// The progress of reading a list in JSON.
pub(super) struct JsonSyntax {
    state: State,
    /// The search for the end of the value that starts the rest.
    end: ValueEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the list.
    Start,
    /// Before a member or, only if `first`, the end of the list.
    Member {
        first: bool,
    },
    Colon(Field),
    Value(Field),
    AfterValue,
    /// Before an item or, only if `first`, the end of the items.
    Item {
        first: bool,
    },
    AfterItem,
    End,
}

/// The members of a list, and of a `Status` in place of one.
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

impl Default for JsonSyntax {
    fn default() -> Self {
        Self { state: State::Start, end: ValueEnd::default() }
    }
}

impl JsonSyntax {
    pub(super) fn is_at_end(&self) -> bool {
        self.state == State::End
    }

    pub(super) fn step(&mut self, list: &mut PartialList) -> Result<Step> {
        list.start = space(&list.buffer, list.start);
        let Some(&byte) = list.buffer.get(list.start) else { return Ok(Step::More) };
        let next = match (self.state, byte) {
            (State::Start, b'{') => State::Member { first: true },
            (State::Member { first: true } | State::AfterValue, b'}') => {
                list.check()?;
                State::End
            }
            (State::Member { .. }, b'"') => return self.key(list),
            (State::Colon(field), b':') => State::Value(field),
            (State::Value(Field::Items), b'[') => {
                list.enter_items()?;
                State::Item { first: true }
            }
            (State::Value(field), _) => return self.value(list, field),
            (State::AfterValue, b',') => State::Member { first: false },
            (State::Item { first: true } | State::AfterItem, b']') => State::AfterValue,
            (State::Item { .. }, _) => return self.item(list),
            (State::AfterItem, b',') => State::Item { first: false },
            (state, _) => return Err(unexpected(state, list)),
        };
        list.start += 1;
        self.state = next;
        Ok(Step::Again)
    }

    /// Returns the position after the value that starts the rest, once it has arrived in full.
    fn whole_value(&mut self, list: &PartialList) -> Result<Option<usize>> {
        let rest = list.rest();
        let end = self.end.feed(rest).map_err(|syntax| {
            let at = list.position() + syntax.at;
            list.protocol(&format!("no JSON, {} expected at byte {at}", syntax.expected))
        })?;
        list.check_len(end.unwrap_or(rest.len()))?;
        Ok(end.map(|end| {
            self.end = ValueEnd::default();
            list.start + end
        }))
    }

    fn key(&mut self, list: &mut PartialList) -> Result<Step> {
        let Some(end) = self.whole_value(list)? else { return Ok(Step::More) };
        let key = &list.buffer[list.start + 1..end - 1];
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
        list.start = end;
        self.state = State::Colon(field);
        Ok(Step::Again)
    }

    fn value(&mut self, list: &mut PartialList, field: Field) -> Result<Step> {
        let Some(end) = self.whole_value(list)? else { return Ok(Step::More) };
        let value = &list.buffer[list.start..end];
        let types = || string(value).filter(|text| text.len() <= TYPE_BYTES_MAX).map(String::from);
        let said = || string(value).and_then(|text| excerpt(&text, MESSAGE_CHARS_MAX));
        match field {
            Field::Kind => list.seen.kind = types(),
            Field::ApiVersion => list.seen.api_version = types(),
            Field::Reason => list.seen.reason = said(),
            Field::Message => list.seen.message = said(),
            Field::Metadata => {
                let read = serde_json::from_slice::<Option<ListMeta>>(value);
                list.take_metadata(read.ok().map(Option::unwrap_or_default))?;
            }
            Field::Items if value == b"null" => list.enter_items()?,
            Field::Items => return Err(list.protocol("the items are no list")),
            Field::Other => {}
        }
        list.start = end;
        self.state = State::AfterValue;
        Ok(Step::Again)
    }

    fn item(&mut self, list: &mut PartialList) -> Result<Step> {
        let Some(end) = self.whole_value(list)? else { return Ok(Step::More) };
        let item = list.item(&Payload::Json(&list.buffer[list.start..end]));
        list.start = end;
        self.state = State::AfterItem;
        Ok(Step::Item(item))
    }
}

fn unexpected(state: State, list: &PartialList) -> Error {
    let expected = match state {
        State::Start => "'{'",
        State::Member { first: true } => "a key or '}'",
        State::Member { first: false } => "a key",
        State::Colon(_) => "':'",
        State::AfterItem => "',' or ']'",
        State::End => "the end",
        _ => "',' or '}'",
    };
    list.protocol(&format!("no list in JSON, {expected} expected at byte {}", list.position()))
}
