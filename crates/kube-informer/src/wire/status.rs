//! Error responses of servers, in plain words.

use std::fmt::Write as _;
use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use kube_core::Status;
use kube_core::response::{StatusCause, StatusDetails, StatusSummary};
use kube_schema::{Deserializer, Envelope};
use serde::Deserialize;
use serde_json::Value;

use super::{Call, Verb};
use crate::Error;
use crate::error::Cause;

/// The longest wait that a server can request. Servers under load ask for seconds. A proxy's maintenance page
/// may ask for a day, and an informer that complied would stay blind long after it ended. Five minutes are
/// the length of the shortest watch.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// How much of an error is read, whether as a response or inside a watch. A `Status` is a few hundred bytes.
pub(crate) const STATUS_BYTES_MAX: usize = 64 << 10;

/// How many causes of a `Status` are kept. Servers name one, or one per invalid field.
const CAUSES_MAX: usize = 16;

/// Enough for a server's message, and for the first line of a proxy's.
const MESSAGE_CHARS_MAX: usize = 300;
const EXCERPT_CHARS_MAX: usize = 100;

/// Converts an HTTP status of 400 or more to an error. A body that is not a `Status` is converted to one.
pub(crate) fn answered(code: u16, headers: &HeaderMap, body: &[u8], call: &Call) -> Error {
    let mut status = read(body).unwrap_or_else(|| made_of(code, body));
    if status.code < 400 {
        status.code = code;
    }
    let asked = retry_after(headers).max(retry_details(&status));
    error(status, asked, false, call)
}

/// Converts the `Status` of an ERROR event to an error.
pub(crate) fn in_stream(status: Status, call: &Call) -> Error {
    let asked = retry_details(&status);
    error(status, asked, true, call)
}

/// Returns one line of a server's text, or `None` if there is nothing, or nothing that may be repeated.
pub(crate) fn excerpt(text: &str, chars_max: usize) -> Option<String> {
    let mut line = String::new();
    // Reads more than is shown, to detect text that must not be repeated.
    for c in text.trim_start().chars().take(4 * chars_max) {
        if !c.is_whitespace() && !c.is_control() {
            line.push(c);
        } else if !line.is_empty() && !line.ends_with(' ') {
            line.push(' ');
        }
    }
    line.truncate(line.trim_end().len());
    if line.is_empty() || names_credentials(&line) {
        return None;
    }
    if let Some((cut, _)) = line.char_indices().nth(chars_max) {
        line.truncate(cut);
        line.push('…');
    }
    Some(line)
}

/// Returns whether a text may contain a token: some proxies show a request with its headers.
pub(super) fn names_credentials(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.contains("bearer") || lower.contains("authorization")
}

/// Reads the `Status` in a body of either encoding, or returns `None` if it is not one. No JSON starts like
/// an envelope.
fn read(body: &[u8]) -> Option<Status> {
    match Envelope::parse(body) {
        Ok(envelope) => of_protobuf(&envelope),
        Err(_) => of_json(body),
    }
}

pub(crate) fn of_json(body: &[u8]) -> Option<Status> {
    of_value(&serde_json::from_slice(body).ok()?)
}

pub(crate) fn of_protobuf(envelope: &Envelope<'_>) -> Option<Status> {
    if envelope.kind != "Status" {
        return None;
    }
    let value = Deserializer::from_envelope(envelope).and_then(Value::deserialize);
    of_value(&value.ok()?)
}

/// Reads an untrusted `Status`: a number that is out of range must not hide the rest.
fn of_value(json: &Value) -> Option<Status> {
    if json["kind"] != "Status" {
        return None;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let details = &json["details"];
    let cause = |cause: &Value| StatusCause {
        reason: text(&cause["reason"]),
        message: text(&cause["message"]),
        field: text(&cause["field"]),
    };
    let causes = details["causes"].as_array().into_iter().flatten();
    Some(Status {
        status: match json["status"].as_str() {
            Some("Success") => Some(StatusSummary::Success),
            Some("Failure") => Some(StatusSummary::Failure),
            _ => None,
        },
        code: number(&json["code"]).unwrap_or_default(),
        message: text(&json["message"]),
        metadata: None,
        reason: text(&json["reason"]),
        details: details.is_object().then(|| StatusDetails {
            name: text(&details["name"]),
            group: text(&details["group"]),
            kind: text(&details["kind"]),
            uid: text(&details["uid"]),
            causes: causes.take(CAUSES_MAX).map(cause).collect(),
            retry_after_seconds: number(&details["retryAfterSeconds"]).unwrap_or_default(),
        }),
    })
}

/// Returns a number, or `None` if it is out of range.
fn number<T: TryFrom<u64>>(value: &Value) -> Option<T> {
    T::try_from(value.as_u64()?).ok()
}

/// Creates a `Status` for a response without one, such as the plain text for an unknown group or a proxy's
/// error page.
fn made_of(code: u16, body: &[u8]) -> Status {
    // Protobuf that cannot be decoded is not shown.
    let body = if body.starts_with(b"k8s\0") { &[] } else { body };
    let text = String::from_utf8_lossy(body);
    let looks_like_html = text.trim_start().starts_with('<');
    let shown = if looks_like_html { title(&text) } else { Some(&*text) };
    Status {
        status: Some(StatusSummary::Failure),
        code,
        message: shown.and_then(|text| excerpt(text, EXCERPT_CHARS_MAX)).unwrap_or_default(),
        metadata: None,
        reason: String::new(),
        details: None,
    }
}

/// Returns the title of a page, the only part worth repeating.
fn title(html: &str) -> Option<&str> {
    // Same length: only ASCII letters are changed.
    let lower = html.to_ascii_lowercase();
    let start = lower.find("<title>")? + "<title>".len();
    let end = start + lower[start..].find("</title>")?;
    Some(&html[start..end])
}

/// Returns the wait of `Retry-After` in either form. A time that is not in the future means no wait.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that is too large for `u64` is simply a very long wait.
        return capped(text.parse().unwrap_or(u64::MAX));
    }
    let parser = DateTimeParser::new().relaxed_weekday(true);
    let date = |text: &str| parser.parse_timestamp(text).ok();
    let until = date(text)?;
    // Measured by the server's clock, if it sends the time: the local one may be wrong.
    let now = headers.get(DATE).and_then(|now| date(now.to_str().ok()?));
    let seconds = until.as_second() - now.unwrap_or_else(Timestamp::now).as_second();
    capped(u64::try_from(seconds).ok()?)
}

fn retry_details(status: &Status) -> Option<Duration> {
    capped(status.details.as_ref()?.retry_after_seconds.into())
}

fn capped(seconds: u64) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

fn error(status: Status, retry_after: Option<Duration>, in_stream: bool, call: &Call) -> Error {
    let code = status.code;
    let cause = Cause::Api { status: Box::new(status), retry_after, in_stream };
    // The text is derived from the predicates, so that it never contradicts them.
    let bare = Error::new(cause.clone(), "");
    let longer = if in_stream { " any longer" } else { "" };
    let mut text = format!("cannot {call}{longer} ({code}): {}", advice(&bare, call));
    if let Some(wait) = retry_after {
        let _ = write!(text, "; it asks to wait {} s", wait.as_secs());
    }
    let message = bare.status().and_then(|status| excerpt(&status.message, MESSAGE_CHARS_MAX));
    if let Some(message) = message {
        let _ = write!(text, "; it says: {message}");
    }
    Error::new(cause, text)
}

/// Describes the problem, and how to solve it.
fn advice(error: &Error, call: &Call) -> String {
    let target = &call.target;
    if error.is_unauthorized() {
        "the server does not accept our credentials: is there a token or client certificate, is it \
         right, has it expired?"
            .to_owned()
    } else if error.is_forbidden() {
        format!(
            "the server does not allow it: grant the verb {:?} on the resource {:?} of the API \
             group {:?} {}",
            call.verb.as_str(),
            target.plural,
            target.group,
            match &target.namespace {
                Some(namespace) => format!("with a Role or ClusterRole bound in {namespace:?}"),
                None => "with a ClusterRole and a ClusterRoleBinding".to_owned(),
            }
        )
    } else if error.is_not_found() && call.verb == Verb::Create {
        "the server has no such namespace, or does not serve the resource".to_owned()
    } else if error.is_not_found() && !matches!(call.verb, Verb::List | Verb::Watch) {
        "the server does not have it: is the object or its namespace gone, or is the resource not \
         served?"
            .to_owned()
    } else if error.is_not_found() {
        format!(
            "the server does not serve that: is the CustomResourceDefinition installed, are group \
             {:?}, version {:?} and plural {:?} right{}?",
            target.group,
            target.version,
            target.plural,
            if target.namespace.is_some() { ", do its objects have namespaces" } else { "" }
        )
    } else if error.is_expired() {
        "the server no longer has the version that was asked for".to_owned()
    } else if error.is_too_many_requests() {
        "the server is too busy".to_owned()
    } else if error.is_version_too_large() {
        "the server has not come as far as the version that was asked for".to_owned()
    } else {
        other_advice(error, call)
    }
}

fn other_advice(error: &Error, call: &Call) -> String {
    let (code, reason) = error.status().map_or((0, ""), |status| (status.code, &*status.reason));
    let reason = excerpt(reason, EXCERPT_CHARS_MAX);
    let mut text = match code {
        0 | 500.. => "the server failed",
        406 => "the server cannot answer in JSON",
        _ => "the server does not accept the request",
    }
    .to_owned();
    if let Some(reason) = reason {
        let _ = write!(text, " with {reason}");
    }
    let target = &call.target;
    if code == 400 && !(target.labels.is_empty() && target.fields.is_empty()) {
        let _ = write!(text, ", labels {:?}, fields {:?}", target.labels, target.fields);
    }
    text
}

#[cfg(test)]
mod tests;
