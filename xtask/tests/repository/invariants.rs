//! Names that some modules must not use, according to ARCHITECTURE.md.

use crate::finding::Finding;
use crate::source::{Source, test_files, tokens};
use crate::tree::Tree;

/// Names that are forbidden in a place, and the reason.
struct Ban {
    /// A prefix of paths.
    place: &'static str,
    /// Prefixes of paths in the place that are exempt.
    but: &'static [&'static str],
    names: &'static [&'static str],
    why: &'static str,
}

const BANS: [Ban; 3] = [
    Ban {
        place: "crates/kube-informer/src/",
        but: &[
            "client.rs",
            "client/",
            "list_watch.rs",
            "list_watch/",
            "requests.rs",
            "wire.rs",
            "wire/",
        ],
        names: &["kube_client", "http", "http_body", "http_body_util", "hyper", "form_urlencoded"],
        why: "only `client`, `list_watch`, `requests` and `wire` know kube-client and HTTP: ask one of them",
    },
    Ban {
        place: "crates/kube-informer/src/reflector/state.rs",
        but: &[],
        names: PURE,
        why: "the protocol is a pure function, without async, clock or I/O: let `reflector/run.rs` do it",
    },
    Ban {
        place: "crates/kube-informer/src/reflector/table.rs",
        but: &[],
        names: PURE,
        why: "the protocol is a pure function, without async, clock or I/O: let `reflector/run.rs` do it",
    },
];

/// Names that bring in async, time and I/O.
const PURE: &[&str] = &[
    "async",
    "await",
    "tokio",
    "futures_core",
    "futures_util",
    "Instant",
    "SystemTime",
    "jiff",
    "sleep",
    "spawn",
    "thread",
    "io",
    "fs",
    "net",
    "env",
    "println",
    "eprintln",
    "dbg",
    "tracing",
    "Mutex",
    "RwLock",
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let mut findings = Vec::new();
    for ban in &BANS {
        for (file, text) in tree.with_end(".rs").filter(|(file, _)| !tests.contains(*file)) {
            let Some(inside) = file.strip_prefix(ban.place) else { continue };
            if ban.but.iter().any(|but| inside.starts_with(but)) {
                continue;
            }
            let code = Source::of(text).without_tests();
            let tokens = tokens(&code);
            for (at, (line, token)) in tokens.iter().enumerate() {
                // A field or method of that name is something else, unless it is `.await`.
                let member = at > 0 && tokens[at - 1].1 == "." && *token != "await";
                if ban.names.contains(token) && !member {
                    findings.push(Finding::new(file, *line, format!("`{token}`: {}", ban.why)));
                }
            }
        }
        if !tree.files().any(|(file, _)| file.starts_with(ban.place)) {
            findings.push(Finding::new(ban.place, 0, "is not there: this check looks at nothing"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let state = ("crates/kube-informer/src/reflector/state.rs", "use std::time::Duration;");
        let table = (
            "crates/kube-informer/src/reflector/table.rs",
            "// no async here\nfn f() { self.net }",
        );
        let tree = Tree::of([state, table].into_iter().chain(files.iter().copied()));
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn those_who_may_know_http_may() {
        let text = "use kube_client::Client;\nuse http::Request;";
        let wire = ("crates/kube-informer/src/wire/request.rs", text);
        let list_watch = ("crates/kube-informer/src/list_watch.rs", text);
        let tests = "#[cfg(test)]\nmod tests { use http::Request; }";
        assert_eq!(
            findings(&[wire, list_watch, ("crates/kube-informer/src/factory.rs", tests)]),
            [""; 0]
        );
    }

    #[test]
    fn those_who_may_not_are_found() {
        let factory =
            ("crates/kube-informer/src/factory.rs", "use std::fmt;\nuse kube_client::Client;");
        let found = findings(&[factory]);
        assert!(
            found[0].starts_with("crates/kube-informer/src/factory.rs:2: `kube_client`: only"),
            "{found:?}"
        );
    }

    #[test]
    fn the_protocol_stays_pure() {
        for text in [
            "async fn f() {}",
            "fn f() { Instant::now() }",
            "use std::io;",
            "x.await",
            "use tokio::x;",
        ] {
            let found = findings(&[("crates/kube-informer/src/reflector/state.rs", text)]);
            assert!(found.len() == 1 && found[0].contains("state.rs:1: `"), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_place_that_is_gone_is_a_finding() {
        assert_eq!(check(&Tree::default()).len(), BANS.len());
    }
}
