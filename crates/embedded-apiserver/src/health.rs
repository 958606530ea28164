//! Health checks and the server's version.

use std::env::consts;
use std::fmt::Write as _;

use serde_json::json;

use crate::quote::quoted;
use crate::status::clipped;

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// The checks that monitoring looks for by name. A real server has more: one for each of its tasks.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];
/// The checks of `/readyz` alone.
const READY_CHECKS: [&str; 3] = ["etcd-readiness", "informer-sync", "shutdown"];

fn checks(endpoint: &str) -> impl Iterator<Item = &'static str> {
    let ready = READY_CHECKS.into_iter().filter(move |_| endpoint == "readyz");
    CHECKS.into_iter().chain(ready)
}

/// Handles `/version` and the health checks. Returns a content type and a body.
pub(crate) fn respond(path: &str, query: Option<&str>) -> Option<(&'static str, String)> {
    let mut segments = path.strip_suffix('/').unwrap_or(path).strip_prefix('/')?.split('/');
    let endpoint = segments.next()?;
    let rest = (segments.next(), segments.next());
    match (endpoint, rest) {
        ("version", (None, _)) => Some((JSON, version())),
        ("healthz" | "livez" | "readyz", (None, _)) => {
            Some((TEXT, health(endpoint, query.unwrap_or_default())))
        }
        ("healthz" | "livez" | "readyz", (Some(check), None))
            if checks(endpoint).any(|known| known == check) =>
        {
            Some((TEXT, "ok".to_owned()))
        }
        _ => None,
    }
}

fn health(endpoint: &str, query: &str) -> String {
    let parameters = || form_urlencoded::parse(query.as_bytes());
    if !parameters().any(|(key, _)| key == "verbose") {
        return "ok".to_owned();
    }
    let mut out = String::new();
    for check in checks(endpoint) {
        let excluded = parameters().any(|(key, value)| key == "exclude" && value == check);
        let outcome = if excluded { "excluded: ok" } else { "ok" };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "[+]{check} {outcome}");
    }
    let unknown = parameters()
        .filter(|(key, value)| key == "exclude" && !checks(endpoint).any(|c| c == value));
    let unknown: Vec<_> = unknown.map(|(_, value)| quoted(&value)).collect();
    if !unknown.is_empty() {
        let unknown = clipped(unknown.join(", "));
        let _ =
            writeln!(out, "warn: some health checks cannot be excluded: no matches for {unknown}");
    }
    let _ = writeln!(out, "{endpoint} check passed");
    out
}

/// Returns the version of Kubernetes whose behaviour is implemented. Clients use it to detect
/// features.
fn version() -> String {
    let arch = match consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let os = if consts::OS == "macos" { "darwin" } else { consts::OS };
    let document = json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": "v1.36.3+embedded",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{os}/{arch}"),
    });
    document.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn body(path: &str, query: Option<&str>) -> String {
        let (content_type, body) = respond(path, query).expect("found");
        assert_eq!(content_type, TEXT);
        body
    }

    #[test]
    fn a_server_that_answers_is_well() {
        for path in ["/healthz", "/livez", "/readyz", "/readyz/", "/livez/ping", "/readyz/shutdown"]
        {
            assert_eq!(body(path, None), "ok");
        }
        assert_eq!(body("/healthz", Some("timeout=1s")), "ok");
    }

    #[test]
    fn the_checks_are_listed_on_request() {
        assert_eq!(
            body("/livez", Some("verbose&exclude=etcd&exclude=none")),
            "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n\
             warn: some health checks cannot be excluded: no matches for \"none\"\n\
             livez check passed\n"
        );
        let ready = body("/readyz", Some("verbose"));
        assert!(ready.contains("[+]shutdown ok\nreadyz check passed\n"), "{ready}");
    }

    #[test]
    fn the_version_is_that_of_the_behaviour() {
        let (content_type, body) = respond("/version", None).expect("found");
        assert_eq!(content_type, JSON);
        let version: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("36")));
        assert!(version["platform"].as_str().is_some_and(|platform| platform.contains('/')));
    }

    #[test]
    fn other_paths_are_not_answered() {
        for path in [
            "",
            "/",
            "/healthy",
            "/healthz/nope",
            "/livez/shutdown",
            "/version/x",
            "/livez/ping/x",
            "healthz",
        ] {
            assert!(respond(path, None).is_none(), "{path}");
        }
    }
}
