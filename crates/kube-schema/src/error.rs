//! Errors of reading and writing.

use std::fmt;

use serde::de;

/// Why something could not be read or written.
///
/// An error of the format names fields, never values. A message of the type that is read into is passed on as it is,
/// and may quote the value that the type does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Problem>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The bytes end within a value.
    Truncated,
    /// A number that no encoder writes.
    Varint,
    /// A field that is written in a way that its type is not.
    WireType { field: &'static str },
    /// A field that is there twice with other fields between: which of the two counts is not for us to say.
    Twice { field: &'static str },
    /// A text that is not UTF-8.
    Utf8,
    /// Messages within messages, more than anybody writes.
    Depth,
    /// A time outside of the years 0 to 9999.
    Time,
    /// Not `k8s\0` and an envelope.
    NoEnvelope,
    /// The envelope's content is encoded, or is no protobuf.
    Content,
    /// A kind that the tables do not have.
    Kind { api_version: String, kind: String },
    /// JSON that does not fit its field.
    Mismatch { field: &'static str, wanted: &'static str },
    /// A message of the type that is read into.
    Other(String),
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl Error {
    #[cfg(test)]
    pub(crate) fn problem(&self) -> &Problem {
        &self.0
    }

    /// Whether the kind is none of the built-in ones, or no kind is named. Such objects exist in JSON only.
    pub fn is_unknown_kind(&self) -> bool {
        matches!(*self.0, Problem::Kind { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Problem::Truncated => f.write_str("protobuf: the message ends within a value"),
            Problem::Varint => f.write_str("protobuf: a number is too long"),
            Problem::WireType { field } => {
                write!(f, "protobuf: the field {field:?} is not written as its type is")
            }
            Problem::Twice { field } => write!(f, "protobuf: the field {field:?} is there twice"),
            Problem::Utf8 => f.write_str("protobuf: a text is not UTF-8"),
            Problem::Depth => write!(f, "an object is nested more than {DEPTH_MAX} deep"),
            Problem::Time => f.write_str("a time is outside of the years 0 to 9999"),
            Problem::NoEnvelope => {
                f.write_str("protobuf: the body does not begin as Kubernetes' bodies do")
            }
            Problem::Content => f.write_str("protobuf: the envelope's content is not protobuf"),
            Problem::Kind { api_version, kind } => {
                write!(f, "there is no protobuf for kind {kind:?} in {api_version:?}")
            }
            Problem::Mismatch { field, wanted } => write!(f, "the field {field:?} is not {wanted}"),
            Problem::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Problem::Other(message.to_string()).into()
    }
}

/// Messages within messages: as many as `serde_json` has objects within objects.
pub(crate) const DEPTH_MAX: u8 = 128;
