//! Errors of requests without a response, or with an incomplete one.

use std::error::Error as StdError;
use std::io;
use std::iter::successors;
use std::net::SocketAddr;
use std::time::Duration;

use kube_client::client::AuthError;

use super::Call;
use super::status::{excerpt, names_credentials};
use crate::Error;
use crate::error::Cause;

/// How much of an error from the layers below is shown.
const LEVELS_MAX: usize = 3;
const LEVEL_CHARS_MAX: usize = 120;

/// hyper-util's message if there was no connection yet.
const CONNECTING: &str = "client error (Connect)";

/// Converts an error of the client or of a body.
///
/// Bodies fail with `kube_client::Error::Service`, whatever the reason, so the chain of sources is searched.
pub(crate) fn failed(error: kube_client::Error, call: &Call) -> Error {
    let ours = classified(&error, call);
    if may_be_shown(&error) { ours.caused_by(error) } else { ours }
}

fn classified(error: &kube_client::Error, call: &Call) -> Error {
    if let Some(auth) = find::<AuthError>(error) {
        return Error::new(Cause::Broken, format!("cannot {call}: {}", credentials(auth)));
    }
    let (cause, what) = match find::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => {
            let at = address(error).map_or_else(String::new, |address| format!(" at {address}"));
            let text = format!("cannot {call}: nobody listens{at} (connection refused)");
            return Error::new(Cause::Refused, text);
        }
        Some(io::ErrorKind::TimedOut) => (Cause::Timeout, "the connection timed out"),
        _ if was_connecting(error) => (Cause::Broken, "cannot connect"),
        _ => (Cause::Broken, "the connection broke"),
    };
    let at = address(error).map_or_else(String::new, |address| format!(" at {address}"));
    let details = details(error);
    let details = if details.is_empty() { details } else { format!(" ({details})") };
    Error::new(cause, format!("cannot {call}: {what}{at}{details}"))
}

/// Returns whether an error of the client can be exposed as a source. It must be an error of a connection,
/// which quotes neither bodies nor credentials, and its text must not look as if it did, because layers that
/// the user adds can say anything.
fn may_be_shown(error: &kube_client::Error) -> bool {
    use kube_client::Error::{HyperError, ReadEvents, Service};
    let of_connection = matches!(error, HyperError(_) | ReadEvents(_) | Service(_));
    of_connection
        && find::<AuthError>(error).is_none()
        && find::<serde_json::Error>(error).is_none()
        && !chain(error).any(|level| names_credentials(&format!("{level} {level:?}")))
}

/// Describes a credentials error by its type alone. Its text contains the output of a credentials plugin,
/// which may be a token.
fn credentials(error: &AuthError) -> String {
    match error {
        AuthError::ReadTokenFile(error, path) => {
            format!("the token file {} cannot be read: {}", path.display(), error.kind())
        }
        AuthError::AuthExecStart(error) => {
            format!("the credentials plugin of the kubeconfig cannot be run: {}", error.kind())
        }
        _ => {
            "no credentials could be had: does the plugin, token file or identity provider of the \
              kubeconfig work?"
                .to_owned()
        }
    }
}

/// Returns the error for a response whose head, or the rest of whose body, did not arrive in time.
pub(crate) fn timed_out(call: &Call, wait: Duration, body: bool) -> Error {
    let seconds = wait.as_secs();
    let text = if body {
        format!("cannot {call}: the answer began, and then nothing came for {seconds} s")
    } else {
        // Only such retries make a server that responds look as if it did not.
        format!(
            "cannot {call}: no answer within {seconds} s (kube's client retries 429, 503 and 504 \
             by itself unless its Config has default_retry = false)"
        )
    };
    Error::new(Cause::Timeout, text)
}

fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    successors(Some(error), |&error| error.source())
}

/// Finds the first error of a type in the chain. The error that an `io::Error` wraps is not always its
/// source, so it is checked as well.
fn find<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    chain(error).find_map(|error| {
        error
            .downcast_ref()
            .or_else(|| error.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref())
    })
}

/// Returns the address, which only the `Debug` output of hyper-util's `ConnectError` contains.
fn address(error: &(dyn StdError + 'static)) -> Option<SocketAddr> {
    let shown = connect_error(error)?;
    shown.split([',', ' ', '(']).find_map(|part| part.parse().ok())
}

/// Returns whether there was no connection yet, by hyper-util's message, because not all layers keep its type.
fn was_connecting(error: &(dyn StdError + 'static)) -> bool {
    chain(error).any(|error| error.to_string() == CONNECTING)
}

fn connect_error(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut shown = chain(error).map(|error| format!("{error:?}"));
    shown.find(|shown| shown.starts_with("ConnectError("))
}

/// Removes the link to documentation that rustls appends.
fn without_links(text: &str) -> &str {
    text.split_once(": https://").map_or(text, |(before, _)| before)
}

/// Returns the messages of the innermost layers, without repetition.
fn details(error: &(dyn StdError + 'static)) -> String {
    // kube's own level repeats the one below it.
    let levels: Vec<String> = chain(error)
        .skip(1)
        .map(ToString::to_string)
        .filter(|level| level != CONNECTING)
        .filter_map(|level| excerpt(without_links(&level), LEVEL_CHARS_MAX))
        .collect();
    let mut shown: Vec<&str> = Vec::new();
    for level in levels.iter().rev() {
        if !shown.iter().any(|shown| shown.contains(level.as_str()) || level.contains(shown)) {
            shown.push(level);
        }
    }
    shown.truncate(LEVELS_MAX);
    shown.reverse();
    shown.join(": ")
}

#[cfg(test)]
mod tests;
