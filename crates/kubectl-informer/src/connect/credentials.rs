//! Messages on clients that cannot be made, without anything secret in them.

use std::io;
use std::process::ExitStatus;

use kube_client::Error;
use kube_client::client::AuthError;
use kube_client::config::ExecConfig;

use super::Place;

/// The part of a plugin's standard error that a message repeats, in characters.
const STDERR_MAX: usize = 2000;

/// Describes a credential plugin that cannot be started, and how to get it.
pub(super) fn not_started(cause: &io::Error, exec: &ExecConfig, place: &Place) -> String {
    let (program, origin) = (program(exec), &place.origin);
    let mut text = format!(
        "{program:?} cannot be run: {cause}\n{origin} says that it gives the credentials: install \
         it, or put it on the PATH"
    );
    let hint = exec.install_hint.as_deref().unwrap_or_default().trim();
    if !hint.is_empty() {
        text.push_str(&format!("\n{hint}"));
    }
    text
}

/// Describes a credential plugin that has failed. Its standard output may hold a token: only its
/// standard error is repeated.
pub(super) fn ended_with(
    status: ExitStatus,
    stderr: &[u8],
    exec: &ExecConfig,
    place: &Place,
) -> String {
    let (program, origin) = (program(exec), &place.origin);
    let said = String::from_utf8_lossy(stderr);
    let said: String = said.trim().chars().take(STDERR_MAX).collect();
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    format!("{program:?}, which gives the credentials of {origin}, ended with {status}{said}")
}

/// Describes a credential plugin whose output holds no credentials.
pub(super) fn printed_none(exec: &ExecConfig, place: &Place) -> String {
    let (program, origin) = (program(exec), &place.origin);
    format!(
        "{program:?}, which gives the credentials of {origin}, printed none\nit should print an \
         ExecCredential with a status: run it to see what it prints instead"
    )
}

/// Describes a client that cannot be made.
pub(super) fn unmade(error: &Error, place: &Place) -> String {
    match error {
        // kube repeats all that the program has printed, a token among it.
        Error::Auth(AuthError::AuthExecRun { out, .. }) => format!(
            "the program that gives the credentials of {} ended with {}",
            place.origin, out.status
        ),
        Error::ProxyProtocolUnsupported { proxy_url } => format!(
            "{place}: a proxy is reached by http, https or socks5, not by {}",
            proxy_url.scheme_str().unwrap_or("nothing")
        ),
        error => format!("no client for {place} can be made: {error}"),
    }
}

fn program(exec: &ExecConfig) -> &str {
    exec.command.as_deref().unwrap_or("a program")
}
