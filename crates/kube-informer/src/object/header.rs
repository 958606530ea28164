//! The fields of an object's header, found in one pass over its JSON.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::{self, Children, Syntax};
use crate::{ObjectKey, ResourceVersion};

/// Labels as they are written, in any order.
pub(super) type FoundLabels<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// The header as it is written, and the facts about the rest that the packer needs.
#[derive(Default)]
pub(super) struct Found<'a> {
    pub(super) name: Cow<'a, str>,
    /// `None` until it is known whether there is one: a truncated object must not get an incomplete key.
    pub(super) namespace: Option<Cow<'a, str>>,
    pub(super) uid: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    pub(super) generation: Option<i64>,
    pub(super) deletion: Option<jiff::Timestamp>,
    pub(super) labels: FoundLabels<'a>,
    pub(super) controller: Option<FoundOwner<'a>>,
    pub(super) has_api_version: bool,
    pub(super) has_kind: bool,
    /// The object itself, without surrounding white space.
    pub(super) extent: Range<usize>,
    /// The ranges of `metadata.managedFields`, each with its comma in JSON.
    pub(super) managed: Vec<Range<usize>>,
}

#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct FoundOwner<'a> {
    pub(super) api_version: Cow<'a, str>,
    pub(super) kind: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) uid: Cow<'a, str>,
}

/// Why an object cannot be kept. Contains nothing of the object's content.
pub(super) enum Problem {
    Syntax(Syntax),
    NotUtf8(usize),
    Wrong { field: &'static str, expected: &'static str },
    Protobuf(kube_schema::Error),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Syntax(syntax) => write!(f, "it is not JSON: {syntax}"),
            Self::NotUtf8(at) => write!(f, "it is not UTF-8 at byte {at}"),
            Self::Protobuf(error) => write!(f, "it is not protobuf: {error}"),
            Self::Wrong { field, expected } => write!(f, "its {field} is not {expected}"),
        }
    }
}

impl From<Syntax> for Problem {
    fn from(syntax: Syntax) -> Self {
        Self::Syntax(syntax)
    }
}

impl From<kube_schema::Error> for Problem {
    fn from(error: kube_schema::Error) -> Self {
        Self::Protobuf(error)
    }
}

/// Reusable memory for reading headers.
#[derive(Default)]
pub(super) struct Spare {
    labels: FoundLabels<'static>,
    managed: Vec<Range<usize>>,
}

/// Reads a header. Returns what was found even if there is a problem.
pub(super) fn read(json: &[u8], spare: Spare) -> (Found<'_>, Result<(), Problem>) {
    let mut reader = Reader { json, found: Found::new(spare), wrong: None };
    let read = reader.object().map_err(Problem::from);
    let utf8 = || {
        std::str::from_utf8(json).map(drop).map_err(|error| Problem::NotUtf8(error.valid_up_to()))
    };
    let Reader { found, wrong, .. } = reader;
    let verdict = read.and_then(|()| utf8()).and_then(|()| wrong.map_or(Ok(()), Err));
    (found, verdict)
}

impl Found<'_> {
    pub(super) fn new(Spare { labels, managed }: Spare) -> Self {
        Self { labels: emptied(labels), managed, ..Self::default() }
    }

    /// Returns the memory for reuse.
    pub(super) fn into_spare(self) -> Spare {
        let Self { labels, mut managed, .. } = self;
        managed.clear();
        Spare { labels: emptied(labels), managed }
    }

    /// Returns the key, if it is known in full.
    pub(super) fn key(&self) -> Option<ObjectKey> {
        let namespace = self.namespace.as_deref()?;
        (!self.name.is_empty()).then(|| ObjectKey::namespaced(namespace, &self.name))
    }

    /// Forgets the fields of `metadata` when it occurs again: the last occurrence counts, as in other decoders.
    fn forget_metadata(&mut self) {
        self.labels.clear();
        *self = Self {
            has_api_version: self.has_api_version,
            has_kind: self.has_kind,
            labels: std::mem::take(&mut self.labels),
            managed: std::mem::take(&mut self.managed),
            ..Self::default()
        };
    }

    pub(super) fn resource_version(&self) -> ResourceVersion {
        (*self.version).into()
    }
}

/// Reuses the memory for labels of another text. Collecting a vector's items into one of the same item size
/// happens in place.
fn emptied<'a>(mut labels: FoundLabels<'_>) -> FoundLabels<'a> {
    labels.clear();
    labels.into_iter().map(|_| Default::default()).collect()
}

struct Reader<'a> {
    json: &'a [u8],
    found: Found<'a>,
    /// The first field of a wrong type. The rest is read nevertheless, to find the key.
    wrong: Option<Problem>,
}

impl<'a> Reader<'a> {
    fn object(&mut self) -> Result<(), Syntax> {
        let json = self.json;
        let Some(mut members) = Children::of_object(json, 0) else {
            self.wrong("JSON", "an object");
            return json::whole(json).map(drop);
        };
        let mut has_metadata = false;
        while let Some(head) = members.head()? {
            let key = json::text(&json[head.key.clone()]);
            let end = match key.as_deref() {
                Some("metadata") => {
                    has_metadata = true;
                    self.found.forget_metadata();
                    self.metadata(head.value)?
                }
                key => {
                    self.found.has_api_version |= key == Some("apiVersion");
                    self.found.has_kind |= key == Some("kind");
                    json::skip(json, head.value)?
                }
            };
            members.close(head, end)?;
        }
        if !has_metadata {
            self.wrong("metadata", "there");
        }
        let end = members.end()?;
        self.found.extent = json::space(json, 0)..end;
        json::at_end(json, end)
    }

    /// Reads `metadata`, and returns its end.
    fn metadata(&mut self, at: usize) -> Result<usize, Syntax> {
        let json = self.json;
        let Some(mut members) = Children::of_object(json, at) else {
            self.wrong("metadata", "an object");
            return json::skip(json, at);
        };
        let mut kept = false;
        while let Some(head) = members.head()? {
            let key = json::text(&json[head.key.clone()]);
            let managed = key.as_deref() == Some("managedFields");
            let end = match key.as_deref() {
                Some("labels") => self.labels(head.value)?,
                Some("ownerReferences") => self.owners(head.value)?,
                Some(key) => {
                    let end = json::skip(json, head.value)?;
                    self.field(key, &json[head.value..end]);
                    end
                }
                None => json::skip(json, head.value)?,
            };
            let member = members.close(head, end)?;
            if managed {
                self.found.managed.push(member.extent(!kept));
            }
            kept |= !managed;
        }
        self.found.namespace.get_or_insert_default();
        if self.found.name.is_empty() {
            self.wrong("metadata.name", "there");
        }
        members.end()
    }

    /// Reads one of the simple fields of `metadata`.
    fn field(&mut self, key: &str, value: &'a [u8]) {
        const STRING: &str = "a string";
        if value == b"null" {
            return;
        }
        let (text, found) = (string(value), &mut self.found);
        let set = match key {
            "name" => text.map(|name| found.name = name).ok_or(("metadata.name", STRING)),
            "namespace" => text
                .map(|namespace| found.namespace = Some(namespace))
                .ok_or(("metadata.namespace", STRING)),
            "uid" => text.map(|uid| found.uid = uid).ok_or(("metadata.uid", STRING)),
            "resourceVersion" => text
                .map(|version| found.version = version)
                .ok_or(("metadata.resourceVersion", STRING)),
            "generation" => integer(value)
                .map(|generation| found.generation = Some(generation))
                .ok_or(("metadata.generation", "an integer of 64 bits")),
            "deletionTimestamp" => text
                .and_then(|text| text.parse().ok())
                .map(|deletion| found.deletion = Some(deletion))
                .ok_or(("metadata.deletionTimestamp", "a time as RFC 3339 has it")),
            _ => return,
        };
        if let Err((field, expected)) = set {
            self.wrong(field, expected);
        }
    }

    fn labels(&mut self, at: usize) -> Result<usize, Syntax> {
        let json = self.json;
        self.found.labels.clear();
        let Some(mut members) = Children::of_object(json, at) else {
            return self.null_or_wrong(at, "metadata.labels", "a map of strings");
        };
        for member in &mut members {
            let member = member?;
            let name = json::text(&json[member.key]);
            // As in Kubernetes, a label that is null is empty.
            match (name, string(&json[member.value])) {
                (Some(name), Some(value)) => self.found.labels.push((name, value)),
                _ => self.wrong("metadata.labels", "a map of strings"),
            }
        }
        members.end()
    }

    /// Finds the owner with `controller: true`; if there are several, the first.
    fn owners(&mut self, at: usize) -> Result<usize, Syntax> {
        let json = self.json;
        self.found.controller = None;
        let Some(mut owners) = Children::of_array(json, at) else {
            return self.null_or_wrong(at, "metadata.ownerReferences", "a list");
        };
        while let Some(head) = owners.head()? {
            let end = self.owner(head.value)?;
            owners.close(head, end)?;
        }
        owners.end()
    }

    fn owner(&mut self, at: usize) -> Result<usize, Syntax> {
        const FIELD: &str = "metadata.ownerReferences";
        let json = self.json;
        let Some(mut members) = Children::of_object(json, at) else {
            self.wrong(FIELD, "a list of owners");
            return json::skip(json, at);
        };
        let (mut owner, mut controls) = (FoundOwner::default(), false);
        for member in &mut members {
            let member = member?;
            let value = &json[member.value];
            let key = json::text(&json[member.key]);
            let field = match key.as_deref() {
                Some("apiVersion") => &mut owner.api_version,
                Some("kind") => &mut owner.kind,
                Some("name") => &mut owner.name,
                Some("uid") => &mut owner.uid,
                Some("controller") => {
                    controls = value == b"true";
                    continue;
                }
                _ => continue,
            };
            match string(value) {
                Some(text) => *field = text,
                None => self.wrong(FIELD, "a list of owners"),
            }
        }
        if controls && self.found.controller.is_none() {
            self.found.controller = Some(owner);
        }
        members.end()
    }

    fn null_or_wrong(
        &mut self,
        at: usize,
        field: &'static str,
        expected: &'static str,
    ) -> Result<usize, Syntax> {
        let end = json::skip(self.json, at)?;
        if &self.json[at..end] != b"null" {
            self.wrong(field, expected);
        }
        Ok(end)
    }

    fn wrong(&mut self, field: &'static str, expected: &'static str) {
        self.wrong.get_or_insert(Problem::Wrong { field, expected });
    }
}

/// Returns a string. As in Kubernetes, null is empty.
fn string(value: &[u8]) -> Option<Cow<'_, str>> {
    match value {
        [b'"', text @ .., b'"'] => json::text(text),
        b"null" => Some(Cow::default()),
        _ => None,
    }
}

fn integer(value: &[u8]) -> Option<i64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
