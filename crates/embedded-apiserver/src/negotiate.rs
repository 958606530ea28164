//! Content negotiation: the representation that a client accepts, and the one that it sent.

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};

use crate::codec::Codec;
use crate::limits::ACCEPT_BYTES_MAX;
use crate::request::Verb;
use crate::status::Status;

/// The negotiated form of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) representation: Representation,
    pub(crate) codec: Codec,
}

/// The representation of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Representation {
    /// The object itself.
    Object,
    /// `as=PartialObjectMetadata` and `as=PartialObjectMetadataList`.
    Metadata(MetaVersion),
    /// `as=Table`.
    Table(MetaVersion),
}

/// The version of `meta.k8s.io` of a transformed object.
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

/// The supported media types of responses. For collections, the second half applies to watches.
const AVAILABLE: [&str; 4] = [
    "application/json",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

/// Chooses a representation by the `Accept` header: the first supported clause.
pub(crate) fn representation(
    headers: &HeaderMap,
    verb: Verb,
    custom: bool,
) -> Result<Accepted, Status> {
    let accept = accept(headers);
    if accept.len() > ACCEPT_BYTES_MAX {
        let message = format!("the Accept header is longer than {ACCEPT_BYTES_MAX} bytes");
        return Err(Status::bad_request(message));
    }
    let mut clauses = clauses(&accept).peekable();
    if clauses.peek().is_none() {
        return Ok(Accepted { representation: Representation::Object, codec: Codec::Json });
    }
    let mut known = false;
    let found = clauses.find_map(|clause| {
        known |= codec(clause).is_some();
        served(clause, custom)
    });
    let is_list = matches!(verb, Verb::List | Verb::DeleteCollection);
    let Some((accepted, kind)) = found else {
        let count = if is_list || verb == Verb::Watch { 4 } else { 2 };
        return Err(match custom {
            true => Status::not_transformable(&AVAILABLE[..1]),
            false if known => Status::not_transformable(&AVAILABLE[..2]),
            false => Status::not_acceptable(&AVAILABLE[..count]),
        });
    };
    let wrong = match kind {
        "PartialObjectMetadata" if is_list => "a list",
        "PartialObjectMetadataList" if !is_list && verb != Verb::Watch => "not a list",
        _ => return Ok(accepted),
    };
    let message = format!("you requested {kind}, but the requested object is {wrong}");
    Err(Status::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message))
}

/// Returns whether the first supported clause asks for a list. A real server starts such a watch,
/// and ends it at the first event without sending it.
pub(crate) fn asks_for_a_list(headers: &HeaderMap, custom: bool) -> bool {
    let accept = accept(headers);
    let found = clauses(&accept).find_map(|clause| served(clause, custom));
    found.is_some_and(|(_, kind)| kind == "PartialObjectMetadataList")
}

/// Returns the codec for a `Status`: that of the first clause that is only a supported media type.
pub(crate) fn status_codec(headers: &HeaderMap) -> Codec {
    let accept = accept(headers);
    let mut plain = clauses(&accept).filter(|clause| !clause.contains("as="));
    plain.find_map(codec).unwrap_or(Codec::Json)
}

/// Restricts a client that accepts both JSON and protobuf to JSON.
pub(crate) fn prefer_json(headers: &mut HeaderMap) {
    let accept = accept(headers);
    let json: Vec<&str> =
        clauses(&accept).filter(|clause| codec(clause) != Some(Codec::Protobuf)).collect();
    if json.iter().any(|clause| codec(clause).is_some())
        && let Ok(value) = http::HeaderValue::from_str(&json.join(","))
    {
        headers.insert(ACCEPT, value);
    }
}

fn accept(headers: &HeaderMap) -> String {
    let mut accept = String::new();
    for value in headers.get_all(ACCEPT) {
        accept.push_str(value.to_str().unwrap_or_default());
        accept.push(',');
    }
    accept
}

/// Returns the clauses in the order in which they are tried: by quality, those with a `*` last.
fn clauses(accept: &str) -> impl Iterator<Item = &str> {
    let clauses = accept.split(',').map(str::trim).filter(|clause| !clause.is_empty());
    let mut ranked: Vec<_> = clauses.map(|clause| (Rank::of(clause), clause)).collect();
    // Reproduces Go's sort for few elements exactly. Its comparison is not a valid order, so
    // another sort would give other results.
    for start in 1..ranked.len() {
        let mut at = start;
        while at > 0 && ranked[at].0.comes_before(&ranked[at - 1].0) {
            ranked.swap(at, at - 1);
            at -= 1;
        }
    }
    ranked.into_iter().map(|(_, clause)| clause)
}

/// The rank of a clause: by quality, then by specificity.
struct Rank {
    quality: f64,
    any_type: bool,
    any_subtype: bool,
}

impl Rank {
    fn of(clause: &str) -> Self {
        let (media_type, parameters) = clause.split_once(';').unwrap_or((clause, ""));
        let (main, sub) = media_type.split_once('/').unwrap_or((media_type, "*"));
        let mut quality = 1.0;
        for (name, value) in parameters.split(';').filter_map(|part| part.split_once('=')) {
            if name.trim() == "q" {
                // An invalid number is 0, as in Go.
                quality = value.parse().unwrap_or(0.0);
            }
        }
        Self { quality, any_type: main.trim() == "*", any_subtype: sub.trim() == "*" }
    }

    fn comes_before(&self, other: &Self) -> bool {
        self.quality > other.quality
            || (!self.any_type && other.any_type)
            || (!self.any_subtype && other.any_subtype)
    }
}

/// Returns the codec of a clause.
fn codec(clause: &str) -> Option<Codec> {
    match clause.split(';').next().unwrap_or_default().trim() {
        "*/*" => Some(Codec::Json),
        media_type => Codec::of(media_type),
    }
}

/// Returns the form that a clause asks for, if it is supported, and the kind that it names. Custom
/// objects have no protobuf, but their metadata does; tables have none.
fn served(clause: &str, custom: bool) -> Option<(Accepted, &str)> {
    let codec = codec(clause)?;
    let (representation, kind) = asked(clause)?;
    let exists = match (codec, representation) {
        (Codec::Json, _) | (_, Representation::Metadata(_)) => true,
        (_, Representation::Object) => !custom,
        (_, Representation::Table(_)) => false,
    };
    exists.then_some((Accepted { representation, codec }, kind))
}

fn asked(clause: &str) -> Option<(Representation, &str)> {
    let parts = clause.split(';').skip(1).map(str::trim);
    let (mut kind, mut group, mut version) = ("", "", "");
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match name.trim() {
            "as" => kind = value.trim(),
            "g" => group = value.trim(),
            "v" => version = value.trim(),
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

/// Returns whether the client accepts gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    codings.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|part| matches!(part, "q=0" | "q=0.0"))
    })
}

/// Returns the media type of the request's body, without parameters. The default is JSON.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match value.split(';').next().unwrap_or_default().trim() {
        "" => "application/json",
        media_type => media_type,
    }
}
