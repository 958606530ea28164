//! Errors in plain words, with a way out.

use kube_informer::Error;

/// Describes a problem in one sentence.
pub(crate) fn problem(error: &Error) -> String {
    let status = error.status().map_or(0, |status| status.code);
    let known = if error.is_expired() {
        "The server no longer has the version that the watch would continue from (410)"
    } else if error.is_unauthorized() {
        "The server does not accept the credentials (401)"
    } else if error.is_forbidden() {
        "The server forbids listing or watching this resource (403)"
    } else if error.is_not_found() {
        "The server does not serve this resource (404)"
    } else if error.is_too_many_requests() {
        "The server is overloaded and asks to wait (429)"
    } else if (500..600).contains(&status) {
        return format!("The server answered with an error of its own ({status})");
    } else if error.is_connection_refused() {
        "The server refuses connections"
    } else if error.is_silence() {
        "The watch fell silent: not even a bookmark arrived"
    } else if error.is_timeout() {
        "The server did not answer in time"
    } else if error.is_connection_broken() {
        "The connection broke"
    } else if error.is_regressed() {
        "The server's versions went back, as after a restored backup"
    } else if error.is_protocol() {
        "The answer was not one of a Kubernetes API server"
    } else {
        return error.to_string();
    };
    known.to_owned()
}

/// Returns what to do about a problem, if the informer alone cannot solve it.
pub(crate) fn advice(error: &Error) -> Option<&'static str> {
    if error.is_unauthorized() {
        Some("Renew the token or certificate of the client.")
    } else if error.is_forbidden() {
        Some("Grant the verbs list and watch on the resource to the program's account.")
    } else if error.is_not_found() {
        Some("Install the CustomResourceDefinition, or check group and version.")
    } else if error.is_connection_refused() {
        Some("Check that the server runs and that its address is right.")
    } else if error.is_protocol() {
        Some("Check that the address is the API server's and not a proxy's.")
    } else {
        None
    }
}

/// Describes a category of errors, as the counters of an informer name it.
pub(crate) fn reason(category: &str) -> &str {
    match category {
        "expired" => "the version had expired (410)",
        "unauthorized" => "the credentials were not accepted (401)",
        "forbidden" => "it was forbidden (403)",
        "not_found" => "the resource was not found (404)",
        "too_many_requests" => "the server was overloaded (429)",
        "server_error" => "the server failed (5xx)",
        "refused_by_server" => "the server refused the request",
        "connection_refused" => "connections were refused",
        "connection_broken" => "the connection broke",
        "timeout" => "there was no answer in time",
        "silence" => "the watch fell silent",
        "protocol" => "the answer made no sense",
        "version_went_back" => "versions went back",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_without_a_sentence_keep_their_own_text() {
        let error = Error::connection("reset");
        assert_eq!(problem(&error), "The connection broke");
        assert_eq!(advice(&error), None);
        assert_eq!(reason("expired"), "the version had expired (410)");
        assert_eq!(reason("new"), "new");
    }
}
