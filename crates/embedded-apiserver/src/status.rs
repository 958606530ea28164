//! The server's only error: a Kubernetes `Status`, with Kubernetes' own wording.
//!
//! Clients act on `reason`, `code` and `details`, and people read `message`. All are therefore
//! identical to what a real API server sends, including the quoting.

use std::collections::HashSet;
use std::fmt;

use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use crate::limits::{FIELD_ERRORS_MAX, FIELD_TEXT_BYTES_MAX};
use crate::quote::quoted;

/// The error of a failed request: the `Status` object that the client receives.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The HTTP status code.
    pub code: StatusCode,
    /// The machine-readable reason, such as `NotFound` or `Expired`. Empty if a real server sends
    /// none.
    pub reason: &'static str,
    /// The human-readable message.
    pub message: String,
    /// The subject of the error. It is boxed because it is most of a `Status`, which every `Result`
    /// carries.
    pub details: Option<Box<Details>>,
    /// `metadata.continue`: on an expired page, the token that continues the list inconsistently.
    pub continue_token: Option<String>,
}

/// `Status.details`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// The name of the object, or of the operation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group of the resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource, or the kind for validation errors, as in Kubernetes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The individual errors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// The seconds after which the client should retry.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// An item of `Status.details.causes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The machine-readable reason, such as `FieldValueInvalid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The human-readable message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The path of the field, such as `metadata.name`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A resource, as error messages name it: `pods`, `deployments.apps`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupResource<'a> {
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
}

impl fmt::Display for GroupResource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group {
            "" => f.write_str(self.resource),
            group => write!(f, "{}.{group}", self.resource),
        }
    }
}

impl Status {
    pub(crate) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, continue_token: None }
    }

    fn about(mut self, what: GroupResource<'_>, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        what.group.clone_into(&mut details.group);
        what.resource.clone_into(&mut details.kind);
        name.clone_into(&mut details.name);
        self
    }

    pub(crate) fn retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn forbidden(what: GroupResource<'_>, name: &str, why: impl fmt::Display) -> Self {
        let message = match name {
            "" => format!("{what} is forbidden: {why}"),
            name => format!("{what} {name:?} is forbidden: {why}"),
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(what, name)
    }

    pub(crate) fn not_found(what: GroupResource<'_>, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("{what} {name:?} not found"))
            .about(what, name)
    }

    pub(crate) fn already_exists(what: GroupResource<'_>, name: &str) -> Self {
        let message = format!("{what} {name:?} already exists");
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(what, name)
    }

    pub(crate) fn conflict(what: GroupResource<'_>, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {what} {name:?}: {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(what, name)
    }

    /// Returns a 410 with reason `Expired`: the requested version has been compacted.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// Returns the error of a watch that starts before the retained history.
    pub(crate) fn too_old(asked: u64, oldest: u64) -> Self {
        Self::expired(format!("too old resource version: {asked} ({oldest})"))
    }

    /// Returns a 504 with the cause by which clients recognise a version from the future.
    pub(crate) fn too_large_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut status = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).retry_after(1);
        status.details.get_or_insert_default().causes.push(Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        });
        status
    }

    pub(crate) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let what = GroupResource { group, resource: kind };
        let errors = &errors[..errors.len().min(FIELD_ERRORS_MAX)];
        // The message does not repeat causes that are identical.
        let mut said = HashSet::new();
        let errors_once = errors.iter().map(ToString::to_string);
        let errors_once: Vec<_> = errors_once.filter(|error| said.insert(error.clone())).collect();
        let all = match &*errors_once {
            [] => String::new(),
            [one] => format!(": {one}"),
            many => format!(": [{}]", many.join(", ")),
        };
        let message = format!("{what} {name:?} is invalid{all}");
        let mut status =
            Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(what, name);
        status.details.get_or_insert_default().causes =
            errors.iter().map(FieldError::cause).collect();
        status
    }

    /// Returns the generic error for a code, with the empty `details` that a real server adds.
    fn generic(code: StatusCode) -> Self {
        let mut status = Self::of_code(code);
        status.details = Some(Box::default());
        status
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::generic(StatusCode::METHOD_NOT_ALLOWED)
    }

    /// Returns the error for an unknown path: the resource itself does not exist (yet).
    pub(crate) fn no_such_resource() -> Self {
        Self::generic(StatusCode::NOT_FOUND)
    }

    /// Returns the error for a patch that does not apply.
    pub(crate) fn unprocessable() -> Self {
        Self::generic(StatusCode::UNPROCESSABLE_ENTITY)
    }

    pub(crate) fn not_acceptable(available: &[&str]) -> Self {
        let message =
            format!("406: Not Acceptable\n\nAvailable representations: {}", available.join(", "));
        let mut status = Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message);
        status.details = Some(Box::default());
        status
    }

    /// Returns the error for a supported media type with an unsupported `as`.
    pub(crate) fn not_transformable(available: &[&str]) -> Self {
        let message =
            format!("only the following media types are accepted: {}", available.join(", "));
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// Returns the error for an unknown type of patch.
    pub(crate) fn unsupported_patch_type() -> Self {
        let code = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        let mut status = Self::new(code, "UnsupportedMediaType", "415: Unsupported Media Type");
        status.details = Some(Box::default());
        status
    }

    pub(crate) fn too_large_entity(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    pub(crate) fn too_many_requests(message: impl Into<String>, retry_after: u32) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message)
            .retry_after(retry_after)
    }

    pub(crate) fn internal(why: impl fmt::Display) -> Self {
        let message = format!("Internal error occurred: {why}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// Returns the generic error of Kubernetes for a status code.
    pub(crate) fn of_code(code: StatusCode) -> Self {
        let (reason, message) = match code.as_u16() {
            400 => ("BadRequest", "the server rejected our request for an unknown reason"),
            401 => ("Unauthorized", "Unauthorized"),
            403 => ("Forbidden", "forbidden"),
            404 => ("NotFound", "the server could not find the requested resource"),
            405 => (
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
            ),
            409 => ("Conflict", "the server reported a conflict"),
            410 => ("Expired", "too old resource version"),
            422 => ("Invalid", "the server rejected our request due to an error in our request"),
            429 => (
                "TooManyRequests",
                "the server has received too many requests and has asked us to try again later",
            ),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => (
                "Timeout",
                "the server was unable to return a response in the time allotted, but may still be \
                 processing the request",
            ),
            code if code >= 500 => ("InternalError", "Internal error occurred"),
            _ => ("Unknown", "unknown"),
        };
        Self::new(code, reason, message)
    }

    /// Returns the `Status` object as it is sent.
    pub fn to_json(&self) -> Value {
        let mut metadata = json!({});
        if let Some(token) = &self.continue_token {
            metadata["continue"] = json!(token);
        }
        let mut out = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            out["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            out["details"] = json!(details);
        }
        out
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.code.as_u16(), self.reason, self.message)
    }
}

impl std::error::Error for Status {}

/// An invalid field, with the wording of Kubernetes' field errors.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldError {
    kind: FieldErrorKind,
    field: String,
    /// The invalid value, as it is printed.
    value: Option<String>,
    detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldErrorKind {
    Required,
    Invalid,
    Forbidden,
    NotSupported,
    TooLong,
}

impl FieldError {
    pub(crate) fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::of(FieldErrorKind::Required, field, None, detail)
    }

    pub(crate) fn invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::of(FieldErrorKind::Invalid, field, Some(printed(&value.into())), detail)
    }

    /// Creates an error for a value whose JSON has its fields in an order that a map would not
    /// preserve.
    pub(crate) fn invalid_json(
        field: impl Into<String>,
        json: String,
        detail: impl Into<String>,
    ) -> Self {
        Self::of(FieldErrorKind::Invalid, field, Some(json), detail)
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::of(FieldErrorKind::Forbidden, field, None, detail)
    }

    pub(crate) fn not_supported(
        field: impl Into<String>,
        value: impl Into<Value>,
        supported: &[&str],
    ) -> Self {
        let supported: Vec<_> = supported.iter().map(|s| quoted(s)).collect();
        let detail = match &*supported {
            [] => String::new(),
            _ => format!("supported values: {}", supported.join(", ")),
        };
        Self::of(FieldErrorKind::NotSupported, field, Some(printed(&value.into())), detail)
    }

    pub(crate) fn too_long(field: impl Into<String>, bytes_max: usize) -> Self {
        let plural = if bytes_max == 1 { "" } else { "s" };
        let detail = format!("may not be more than {bytes_max} byte{plural}");
        Self::of(FieldErrorKind::TooLong, field, None, detail)
    }

    fn of(
        kind: FieldErrorKind,
        field: impl Into<String>,
        value: Option<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            field: field.into(),
            value: value.map(clipped),
            detail: clipped(detail.into()),
        }
    }

    /// Returns the error without the field: the `message` of a cause.
    fn body(&self) -> String {
        let title = match self.kind {
            FieldErrorKind::Required => "Required value",
            FieldErrorKind::Invalid => "Invalid value",
            FieldErrorKind::Forbidden => "Forbidden",
            FieldErrorKind::NotSupported => "Unsupported value",
            FieldErrorKind::TooLong => "Too long",
        };
        let mut out = title.to_owned();
        if let Some(value) = &self.value {
            out.push_str(": ");
            out.push_str(value);
        }
        if !self.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }

    fn cause(&self) -> Cause {
        let reason = match self.kind {
            FieldErrorKind::Required => "FieldValueRequired",
            FieldErrorKind::Invalid => "FieldValueInvalid",
            FieldErrorKind::Forbidden => "FieldValueForbidden",
            FieldErrorKind::NotSupported => "FieldValueNotSupported",
            FieldErrorKind::TooLong => "FieldValueTooLong",
        };
        Cause { reason: reason.to_owned(), message: self.body(), field: self.field.clone() }
    }
}

/// Truncates a text, which limits how much of a request a response repeats.
pub(crate) fn clipped(mut text: String) -> String {
    if text.len() > FIELD_TEXT_BYTES_MAX {
        let end = (0..=FIELD_TEXT_BYTES_MAX).rev().find(|&at| text.is_char_boundary(at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}
