//! Which representation a client wants, and which it sent.

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};

use crate::limits::ACCEPT_BYTES_MAX;
use crate::request::Verb;
use crate::status::Status;

/// How objects are shown. A codec such as protobuf would be another dimension of this: a field
/// beside it, asked for where `application/json` is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Representation {
    /// The object itself.
    Object,
    /// `as=PartialObjectMetadata` and `as=PartialObjectMetadataList`.
    Metadata(MetaVersion),
    /// `as=Table`.
    Table(MetaVersion),
}

/// The version of `meta.k8s.io` that a transformed object is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What this server can answer with; of a collection, the second is a watch.
const AVAILABLE: [&str; 2] = ["application/json", "application/json;stream=watch"];

/// Chooses a representation by the `Accept` header: the first in the client's list that is served.
pub(crate) fn representation(
    headers: &HeaderMap,
    verb: Verb,
    custom: bool,
) -> Result<Representation, Status> {
    let mut accept = String::new();
    for value in headers.get_all(ACCEPT) {
        accept.push_str(value.to_str().unwrap_or_default());
        accept.push(',');
    }
    if accept.len() > ACCEPT_BYTES_MAX {
        let message = format!("the Accept header is longer than {ACCEPT_BYTES_MAX} bytes");
        return Err(Status::bad_request(message));
    }
    let mut clauses =
        accept.split(',').map(str::trim).filter(|clause| !clause.is_empty()).peekable();
    if clauses.peek().is_none() {
        return Ok(Representation::Object);
    }
    let mut json = false;
    let found = clauses.find_map(|clause| {
        json |= is_json(media_type(clause));
        served(clause)
    });
    let is_list = matches!(verb, Verb::List | Verb::DeleteCollection);
    let Some((representation, kind)) = found else {
        let count = if is_list || verb == Verb::Watch { 2 } else { 1 };
        return Err(if json || custom {
            Status::not_transformable(&AVAILABLE[..1])
        } else {
            Status::not_acceptable(&AVAILABLE[..count])
        });
    };
    let wrong = match kind {
        "PartialObjectMetadata" if is_list => "a list",
        "PartialObjectMetadataList" if !is_list && verb != Verb::Watch => "not a list",
        _ => return Ok(representation),
    };
    let message = format!("you requested {kind}, but the requested object is {wrong}");
    Err(Status::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message))
}

/// Whether the first clause that is served asks for a list. A real server begins a watch with that, and ends it
/// at the first event, which is none.
pub(crate) fn asks_for_a_list(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let found = values.flat_map(|value| value.split(',')).map(str::trim).find_map(served);
    found.is_some_and(|(_, kind)| kind == "PartialObjectMetadataList")
}

fn media_type(clause: &str) -> &str {
    clause.split(';').next().unwrap_or_default().trim()
}

fn is_json(media_type: &str) -> bool {
    matches!(media_type, "application/json" | "*/*")
}

/// The representation that a clause asks for, if it is served, and the kind that it asks for it by.
fn served(clause: &str) -> Option<(Representation, &str)> {
    if !is_json(media_type(clause)) {
        return None;
    }
    let parts = clause.split(';').skip(1).map(str::trim);
    let (mut kind, mut group, mut version) = ("", "", "");
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match name.trim() {
            "as" => kind = value.trim(),
            "g" => group = value.trim(),
            "v" => version = value.trim(),
            // A quality is no preference to a real server either: it takes the first that fits.
            _ => {}
        }
    }
    let meta = match (group, version) {
        _ if kind.is_empty() => return Some((Representation::Object, kind)),
        ("meta.k8s.io", "v1") => MetaVersion::V1,
        ("meta.k8s.io", "v1beta1") => MetaVersion::V1Beta1,
        _ => return None,
    };
    let representation = match kind {
        "Table" => Representation::Table(meta),
        "PartialObjectMetadata" | "PartialObjectMetadataList" => Representation::Metadata(meta),
        _ => return None,
    };
    Some((representation, kind))
}

/// Whether the client takes gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    codings.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|part| matches!(part, "q=0" | "q=0.0"))
    })
}

/// The media type of the request's body, without parameters. JSON if the client does not say.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match value.split(';').next().unwrap_or_default().trim() {
        "" => "application/json",
        media_type => media_type,
    }
}
