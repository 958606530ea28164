//! Why no client can be made, without anything secret in it.

use kube_client::Error;
use kube_client::client::AuthError;
use kube_client::config::ExecConfig;

use super::Place;

/// As much of what a program said is repeated.
const SAID_MAX: usize = 2000;

/// What is wrong with a client that cannot be made, and what to do about it.
pub(super) fn unmade(error: &Error, place: &Place, exec: Option<&ExecConfig>) -> String {
    let program = exec.and_then(|exec| exec.command.as_deref()).unwrap_or("a program");
    let origin = &place.origin;
    let hint = exec.and_then(|exec| exec.install_hint.as_deref()).unwrap_or_default().trim();
    match error {
        Error::Auth(AuthError::AuthExecStart(cause)) => {
            let mut text = format!(
                "{program:?} cannot be run: {cause}\n{origin} says that it gives the credentials: \
                 install it, or put it on the PATH"
            );
            if !hint.is_empty() {
                text.push_str(&format!("\n{hint}"));
            }
            text
        }
        // What it has printed may be a token: only what it has said on standard error is shown.
        Error::Auth(AuthError::AuthExecRun { out, .. }) => {
            let said = String::from_utf8_lossy(&out.stderr);
            let said: String = said.trim().chars().take(SAID_MAX).collect();
            let said = if said.is_empty() { String::new() } else { format!(": {said}") };
            format!(
                "{program:?}, which gives the credentials of {origin}, ended with {}{said}",
                out.status
            )
        }
        Error::Auth(AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed) => format!(
            "{program:?}, which gives the credentials of {origin}, printed none\nit should print \
             an ExecCredential with a status: run it to see what it prints instead"
        ),
        Error::ProxyProtocolUnsupported { proxy_url } => format!(
            "{place}: a proxy is reached by http, https or socks5, not by {}",
            proxy_url.scheme_str().unwrap_or("nothing")
        ),
        error => format!("no client for {place} can be made: {error}"),
    }
}
