//! When there is no answer, or only half of one.

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

/// How much of an error of the layers below is worth repeating.
const LEVELS_MAX: usize = 3;
const LEVEL_CHARS_MAX: usize = 120;

/// What hyper-util says where there was no connection yet.
const CONNECTING: &str = "client error (Connect)";

/// An error of the client or of a body as one of ours.
///
/// Bodies break with `kube_client::Error::Service`, whatever the reason: the chain is asked.
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

/// Whether an error of the client can be given to the program as it is. What it is made of must be
/// an error of a connection, which quotes neither bodies nor credentials, and must not look as if it
/// did: layers of the program's own can say anything.
fn may_be_shown(error: &kube_client::Error) -> bool {
    use kube_client::Error::{HyperError, ReadEvents, Service};
    let of_connection = matches!(error, HyperError(_) | ReadEvents(_) | Service(_));
    of_connection
        && find::<AuthError>(error).is_none()
        && find::<serde_json::Error>(error).is_none()
        && !chain(error).any(|level| names_credentials(&format!("{level} {level:?}")))
}

/// Only what it is: the text of such an error has what a credentials plugin wrote, which may be a
/// token.
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

/// No head of an answer, or none of the body, for so long.
pub(crate) fn timed_out(call: &Call, wait: Duration, body: bool) -> Error {
    let seconds = wait.as_secs();
    let text = if body {
        format!("cannot {call}: the answer began, and then nothing came for {seconds} s")
    } else {
        // Such retries are all that would make a server that answers look like one that does not.
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

/// The first of its type. What an `io::Error` wraps is not always its source: looked for as well.
fn find<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    chain(error).find_map(|error| {
        error
            .downcast_ref()
            .or_else(|| error.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref())
    })
}

/// hyper-util has the address in what its `ConnectError` shows to programmers, and nowhere else.
fn address(error: &(dyn StdError + 'static)) -> Option<SocketAddr> {
    let shown = connect_error(error)?;
    shown.split([',', ' ', '(']).find_map(|part| part.parse().ok())
}

/// hyper-util's own words for it: its type is not kept by all layers.
fn was_connecting(error: &(dyn StdError + 'static)) -> bool {
    chain(error).any(|error| error.to_string() == CONNECTING)
}

fn connect_error(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut shown = chain(error).map(|error| format!("{error:?}"));
    shown.find(|shown| shown.starts_with("ConnectError("))
}

/// Without the pages that rustls sends programmers to.
fn without_links(text: &str) -> &str {
    text.split_once(": https://").map_or(text, |(before, _)| before)
}

/// What the innermost layers say, without repetition.
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
