//! Plain-language errors: what is wrong, where, and what to do about it.

use kube_informer::{Error, State};

use crate::cells::one_line;
use crate::connect::Place;
use crate::discovery::Type;

/// rustls' message for a certificate that it does not accept.
const UNTRUSTED: &str = "invalid peer certificate";

/// The request that failed.
pub(crate) struct Asked<'a> {
    pub(crate) of: &'a Type,
    pub(crate) namespaces: &'a [String],
    pub(crate) place: &'a Place,
    /// The informer's state at the time.
    pub(crate) during: Option<&'a State>,
}

/// Describes the problem in one line.
pub(crate) fn problem(error: &Error, asked: &Asked<'_>) -> String {
    let (what, place) = (asked.of.name(), asked.place);
    if error.is_forbidden() {
        return format!("you may not {} {what}{}", verb(error, asked), within(asked));
    }
    if error.is_unauthorized() {
        return format!("{} does not know these credentials (401)", place.address);
    }
    if error.is_not_found() {
        return format!("{} does not serve {what}", place.address);
    }
    if error.is_connection_refused() {
        return format!("nobody listens at {}", place.address);
    }
    if error.is_silence() {
        return format!("nothing was heard from {} for too long", place.address);
    }
    if error.is_expired() {
        return format!("{} has forgotten the version that was being watched (410)", place.address);
    }
    if error.is_too_many_requests() {
        return format!("{} asks for patience (429)", place.address);
    }
    let text = error.to_string();
    let address = &place.address;
    if let Some(status) = error.status().filter(|status| matches!(status.code, 400 | 422)) {
        let said = one_line(&status.message);
        return format!(
            "{address} refuses to {} {what} ({}): {said}",
            verb(error, asked),
            status.code
        );
    }
    for (part, plain) in [
        (UNTRUSTED, format!("the certificate of {address} is not trusted here")),
        ("the connection broke", format!("the connection to {address} broke")),
        ("the connection timed out", format!("the connection to {address} timed out")),
        ("no answer within", format!("no answer from {address}")),
    ] {
        if text.contains(part) {
            return plain;
        }
    }
    text
}

/// Returns whether retrying cannot fix the error: if the server rejects a selector, the user's
/// permissions or a type, it will do so again.
pub(crate) fn is_final(error: &Error) -> bool {
    let code = error.status().map_or(0, |status| status.code);
    matches!(code, 400..500) && !matches!(code, 408 | 409 | 410 | 429)
}

/// Returns what to do about the error, if there is any advice.
pub(crate) fn advice(error: &Error, asked: &Asked<'_>) -> Option<String> {
    if error.is_forbidden() {
        return Some(grant(error, asked));
    }
    if error.is_unauthorized() {
        let origin = &asked.place.origin;
        return Some(format!("log in again, or look at the user in {origin}"));
    }
    if error.is_connection_refused() {
        let origin = &asked.place.origin;
        return Some(format!(
            "the address comes from {origin}: start the cluster, or choose another with --context; \
             --embedded needs none"
        ));
    }
    None
}

/// Returns an error message with the problem and the advice.
pub(crate) fn message(error: &Error, asked: &Asked<'_>) -> String {
    let mut text = problem(error, asked);
    let said = error.status().map(|status| status.message.as_str()).unwrap_or_default();
    if error.is_forbidden() && !said.is_empty() {
        text = format!("{text}: {said}");
    }
    if let Some(advice) = advice(error, asked) {
        text = format!("{text}\n{advice}");
    }
    text
}

/// Describes why the server cannot be reached.
pub(crate) fn unreachable(error: &kube_client::Error, place: &Place) -> String {
    let io = sources(error).find_map(|source| source.downcast_ref::<std::io::Error>());
    let refused = io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused);
    if refused {
        let address = &place.address;
        return format!(
            "nobody listens at {address}, which is the server of {}\nstart it, or choose another \
             with --context; --embedded needs none",
            place.origin
        );
    }
    match error {
        kube_client::Error::Api(status) if status.code == 401 => format!(
            "{} does not know these credentials (401)\nlog in again, or look at the user of {}",
            place.address, place.origin
        ),
        kube_client::Error::Api(status) if status.code == 403 => format!(
            "{} lets nobody in as whom {} says: {}\nlog in again, or look at its user",
            place.address, place.origin, status.message
        ),
        error if error_text(error).contains(UNTRUSTED) => format!(
            "the certificate of {} is not trusted here: {}\nlook at the cluster's \
             certificate-authority-data in {}",
            place.address,
            error_text(error).replace(UNTRUSTED, "").trim_start_matches(": "),
            place.origin
        ),
        error if error_text(error).contains("invalid HTTP version") => format!(
            "{place} does not speak HTTP\nif its address should begin with https, change it in {}",
            place.origin
        ),
        error => {
            // The cause is at the end of the chain; the errors before it only say that something
            // failed.
            format!("{place} cannot be asked: {}", error_text(error))
        }
    }
}

/// Returns the message of the last error in the chain.
fn error_text(error: &kube_client::Error) -> String {
    sources(error).last().map(ToString::to_string).unwrap_or_default()
}

fn sources<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    // Chains are not longer than this. The limit guards against an error that is its own source.
    std::iter::successors(Some(error), |error| error.source()).take(16)
}

/// Returns the verb that was denied. A streamed list is a watch, and needs that verb.
fn verb(error: &Error, asked: &Asked<'_>) -> &'static str {
    let said = error.status().map(|status| status.message.as_str()).unwrap_or_default();
    if said.contains("cannot watch resource") {
        return "watch";
    }
    if said.contains("cannot list resource") {
        return "list";
    }
    match asked.during {
        Some(State::Streaming | State::Watching) => "watch",
        _ => "list",
    }
}

fn within(asked: &Asked<'_>) -> String {
    if asked.of.namespaced { within_namespaces(asked.namespaces) } else { String::new() }
}

/// Formats a size for people: `980 B`, `1.2 kB`, `35 MB`.
pub(crate) fn bytes(number: u64) -> String {
    let mut value = number as f64;
    for (place, unit) in ["B", "kB", "MB", "GB", "TB"].iter().enumerate() {
        let last = place == 4;
        // A value that would round to four digits is shown in the next unit.
        if value < 999.5 || last {
            let digits = usize::from(place > 0 && value < 9.95);
            return format!("{value:.digits$} {unit}");
        }
        value /= 1000.0;
    }
    String::new()
}

/// Returns a suffix such as ` in namespace web`.
pub(crate) fn within_namespaces(namespaces: &[String]) -> String {
    match namespaces {
        [] => " in all namespaces".to_owned(),
        [one] => format!(" in namespace {one}"),
        several => format!(" in namespaces {}", several.join(", ")),
    }
}

fn grant(error: &Error, asked: &Asked<'_>) -> String {
    let said = error.status().map(|status| status.message.as_str()).unwrap_or_default();
    let namespace = match asked.namespaces {
        [one] if asked.of.namespaced => Some(one.as_str()),
        _ => None,
    };
    granting(&asked.of.name(), said, namespace)
}

/// Explains how to grant list and watch on `types`, which are separated by commas. `said` is the
/// server's message, which names the user. Without a namespace, the grant is for the whole cluster.
pub(crate) fn granting(types: &str, said: &str, namespace: Option<&str>) -> String {
    let to = quoted_user(said).unwrap_or("YOU");
    let (role, binding, place) = match namespace {
        Some(one) => ("role", "rolebinding", format!(" -n {one}")),
        None => ("clusterrole", "clusterrolebinding", String::new()),
    };
    format!(
        "grant the verbs list and watch on {types}, as somebody who may:\n  \
         kubectl create {role} informer{place} --verb=get,list,watch --resource={types}\n  \
         kubectl create {binding} informer{place} --{role}=informer --user='{to}'"
    )
}

/// Finds the user in `User "jane" cannot list …`, if the name is safe to paste into a shell.
fn quoted_user(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("User \"")?;
    let (user, _) = rest.split_once('"')?;
    let safe = |letter: char| letter.is_ascii_alphanumeric() || "-_.:@".contains(letter);
    (!user.is_empty() && user.chars().all(safe)).then_some(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_for_people() {
        for (number, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (9_949, "9.9 kB"),
            (9_950, "10 kB"),
            (999_499, "999 kB"),
            (999_500, "1.0 MB"),
            (35_000_000, "35 MB"),
            (u64::MAX, "18446744 TB"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }

    /// Text that users paste into a shell must be no more than a name.
    #[test]
    fn users_are_named_only_if_they_are_safe_to_paste() {
        let said = |user: &str| format!("pods is forbidden: User \"{user}\" cannot list resource");
        assert_eq!(quoted_user(&said("jane@example.com")), Some("jane@example.com"));
        assert_eq!(
            quoted_user(&said("system:serviceaccount:a:b")),
            Some("system:serviceaccount:a:b")
        );
        for user in ["", "a'; rm -rf ~; '", "$(x)", "a b"] {
            assert_eq!(quoted_user(&said(user)), None, "{user}");
        }
    }
}
