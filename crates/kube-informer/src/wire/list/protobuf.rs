//! Lists in protobuf: `k8s\0`, and an envelope with the list's kind and its message.

use kube_schema::Envelope;

use super::{ListMeta, MESSAGE_CHARS_MAX, PartialList, Payload, Step, TYPE_BYTES_MAX, excerpt};
use crate::wire::protobuf::{Head, ListFields, texts};
use crate::wire::status::{STATUS_BYTES_MAX, of_protobuf};
use crate::{Error, Result};

const MAGIC: &[u8] = b"k8s\0";

/// The numbers of an envelope's fields.
const TYPES: u32 = 1;
const MESSAGE: u32 = 2;
const CONTENT_ENCODING: u32 = 3;
const CONTENT_TYPE: u32 = 4;

/// The limit for the fields of the envelope other than the message.
const ENVELOPE_BYTES_MAX: usize = 4 * TYPE_BYTES_MAX;

/// The progress of reading a list in protobuf.
///
/// Kubernetes writes the kind before the message, and this reader relies on that: without the kind, the
/// fields of the message have no meaning.
#[derive(Default)]
pub(super) struct ProtobufSyntax {
    state: State,
    /// How many bytes of an ignored field are still to come.
    skip: usize,
    /// The fields of the envelope that have arrived, one bit each.
    came: u8,
    has_metadata: bool,
}

#[derive(Clone, Copy, Default)]
enum State {
    /// Before the envelope.
    #[default]
    Start,
    /// Before a field of the envelope.
    Envelope,
    /// Before a field of the list, which ends at this byte of the body.
    List(ListFields, usize),
    /// Before a `Status` of this many bytes.
    Status(usize),
    /// After the message: the envelope may have the rest of its fields.
    AfterList,
}

impl ProtobufSyntax {
    pub(super) fn is_at_end(&self, list: &PartialList) -> bool {
        matches!(self.state, State::AfterList) && self.skip == 0 && list.rest().is_empty()
    }

    pub(super) fn step(&mut self, list: &mut PartialList) -> Result<Step> {
        let skipped = self.skip.min(list.rest().len());
        list.start += skipped;
        self.skip -= skipped;
        match self.state {
            State::List(_, end) if list.position() == end && self.skip == 0 => {
                list.check()?;
                self.state = State::AfterList;
                Ok(Step::Again)
            }
            _ if list.rest().is_empty() => Ok(Step::More),
            State::Start => self.magic(list),
            State::Envelope | State::AfterList => self.envelope_field(list),
            State::List(fields, end) => self.list_field(list, fields, end),
            State::Status(len) => status(list, len),
        }
    }

    fn magic(&mut self, list: &mut PartialList) -> Result<Step> {
        let rest = list.rest();
        if !MAGIC.starts_with(&rest[..rest.len().min(MAGIC.len())]) {
            return Err(list.protocol("no list in protobuf, \"k8s\\0\" expected at byte 0"));
        }
        if rest.len() < MAGIC.len() {
            return Ok(Step::More);
        }
        list.start += MAGIC.len();
        self.state = State::Envelope;
        Ok(Step::Again)
    }

    fn envelope_field(&mut self, list: &mut PartialList) -> Result<Step> {
        let Some(head) = head(list, list.rest())? else { return Ok(Step::More) };
        let after = matches!(self.state, State::AfterList);
        let known = match head.number {
            TYPES | MESSAGE => !after,
            CONTENT_ENCODING | CONTENT_TYPE => true,
            // A newer server may add fields besides the kind. After the message they would rather be a second
            // body.
            _ if !after => return Ok(self.skip(list, head)),
            _ => false,
        };
        let bit = 1 << (head.number & 7);
        let (Some(len), true) = (head.len, known && self.came & bit == 0) else {
            let what = match head.number {
                MESSAGE => "the answer has its message twice".to_owned(),
                _ if after && !known => {
                    format!("no list in protobuf, the end expected at byte {}", list.position())
                }
                _ => malformed(list),
            };
            return Err(list.protocol(&what));
        };
        if head.number == MESSAGE {
            self.came |= bit;
            return self.enter(list, head.bytes, len);
        }
        if len > ENVELOPE_BYTES_MAX {
            return Err(list.protocol(&malformed(list)));
        }
        let Some(value) = list.rest().get(head.bytes..head.bytes + len) else {
            return Ok(Step::More);
        };
        match head.number {
            TYPES => {
                let (kind, api_version) =
                    types(value).ok_or_else(|| list.protocol(&malformed(list)))?;
                (list.seen.kind, list.seen.api_version) = (kind, api_version);
            }
            CONTENT_TYPE if value == kube_schema::MEDIA_TYPE.as_bytes() => {}
            _ if value.is_empty() => {}
            _ => return Err(list.protocol("what the envelope holds is not protobuf")),
        }
        self.came |= bit;
        list.start += head.bytes + len;
        Ok(Step::Again)
    }

    /// Starts the message.
    fn enter(&mut self, list: &mut PartialList, head: usize, len: usize) -> Result<Step> {
        if list.seen.kind.as_deref() == Some("Status") {
            list.start += head;
            self.state = State::Status(len);
            return if len > STATUS_BYTES_MAX { status(list, 0) } else { Ok(Step::Again) };
        }
        let types = list.seen.item_types();
        let fields = types.and_then(|types| ListFields::of(&types.api_version, &types.kind));
        // If there are no items, the check returns the error.
        let Some(fields) = fields else { return list.check().map(|()| Step::Again) };
        list.enter_items()?;
        let end = (list.position() + head).checked_add(len);
        let end = end.ok_or_else(|| list.protocol(&malformed(list)))?;
        list.start += head;
        self.state = State::List(fields, end);
        Ok(Step::Again)
    }

    fn list_field(
        &mut self,
        list: &mut PartialList,
        fields: ListFields,
        end: usize,
    ) -> Result<Step> {
        let (rest, left) = (list.rest(), end - list.position());
        let Some(head) = head(list, &rest[..rest.len().min(left)])? else {
            if rest.len() < left {
                return Ok(Step::More);
            }
            return Err(list.protocol(&malformed(list)));
        };
        let is_metadata = head.number == fields.metadata.number();
        let is_item = head.number == fields.items.number();
        // A field that ends after the message, or has the wrong wire type.
        if head.len.unwrap_or_default() > left - head.bytes
            || (head.len.is_none() && (is_metadata || is_item))
        {
            return Err(list.protocol(&malformed(list)));
        }
        if !is_metadata && !is_item {
            return Ok(self.skip(list, head));
        }
        let len = head.len.unwrap_or_default();
        list.check_len(len)?;
        let Some(value) = rest.get(head.bytes..head.bytes + len) else { return Ok(Step::More) };
        let mut step = Step::Again;
        if is_metadata {
            if std::mem::replace(&mut self.has_metadata, true) {
                return Err(list.protocol("the list has its metadata twice"));
            }
            let read = fields.metadata_type.decode::<ListMeta>(value).ok();
            list.take_metadata(read)?;
        } else {
            let raw = Envelope { api_version: "", kind: "", raw: value };
            step = Step::Item(list.item(&Payload::of_envelope(raw, list.types.as_ref())));
        }
        list.start += head.bytes + len;
        Ok(step)
    }

    fn skip(&mut self, list: &mut PartialList, head: Head) -> Step {
        list.start += head.bytes;
        self.skip = head.len.unwrap_or_default();
        Step::Again
    }
}

/// Returns the kind and `apiVersion` of an envelope. Values that are too long to be valid are left out.
fn types(type_meta: &[u8]) -> Option<(Option<String>, Option<String>)> {
    let (mut kind, mut api_version) = (None, None);
    for text in texts(type_meta) {
        let (number, text) = text?;
        let text = Some(text.to_owned()).filter(|text| !text.is_empty());
        match number {
            1 => api_version = text.filter(|text| text.len() <= TYPE_BYTES_MAX),
            2 => kind = text.filter(|text| text.len() <= TYPE_BYTES_MAX),
            _ => {}
        }
    }
    Some((kind, api_version))
}

/// Reads a `Status` in place of a list, once it has arrived.
fn status(list: &mut PartialList, len: usize) -> Result<Step> {
    let Some(raw) = list.rest().get(..len) else { return Ok(Step::More) };
    let status = of_protobuf(&Envelope { api_version: "v1", kind: "Status", raw });
    if let Some(status) = status {
        list.seen.reason = excerpt(&status.reason, MESSAGE_CHARS_MAX);
        list.seen.message = excerpt(&status.message, MESSAGE_CHARS_MAX);
    }
    list.check().map(|()| Step::Again)
}

fn head(list: &PartialList, bytes: &[u8]) -> Result<Option<Head>, Error> {
    Head::read(bytes).map_err(|_| list.protocol(&malformed(list)))
}

fn malformed(list: &PartialList) -> String {
    format!("no list in protobuf, a field expected at byte {}", list.position())
}
