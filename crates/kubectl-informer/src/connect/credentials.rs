//! Error messages for clients that cannot be created. They contain no secrets.

use std::io;
use std::process::ExitStatus;

use kube_client::Error;
use kube_client::client::AuthError;
use kube_client::config::ExecConfig;

use super::Place;

/// The number of characters of a plugin's standard error that a message includes.
const STDERR_MAX: usize = 2000;

/// Describes a credential plugin that cannot be started, and how to install it.
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

/// Describes a credential plugin that has failed. Its standard output may contain a token, so only
/// its standard error is included.
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

/// Describes a credential plugin whose output contains no credentials.
pub(super) fn printed_none(exec: &ExecConfig, place: &Place) -> String {
    let (program, origin) = (program(exec), &place.origin);
    format!(
        "{program:?}, which gives the credentials of {origin}, printed none\nit should print an \
         ExecCredential with a status: run it to see what it prints instead"
    )
}

/// Describes a client that cannot be created.
pub(super) fn unmade(error: &Error, place: &Place) -> String {
    match error {
        // kube's message includes all of the plugin's output, which may contain a token.
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
