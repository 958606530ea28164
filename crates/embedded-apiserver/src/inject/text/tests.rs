//! Valid and invalid lines, and their error messages.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// Returns the text of the only rule that a line creates.
fn shown(line: &str) -> String {
    let server = ApiServer::start();
    let ids =
        server.faults().inject_text(line).unwrap_or_else(|problem| panic!("{line}: {problem}"));
    let rules = server.faults().rules();
    assert_eq!(ids, rules.iter().map(|(id, _)| *id).collect::<Vec<_>>());
    assert_eq!(rules.len(), 1, "{line}");
    rules.into_iter().next().unwrap().1
}

fn problem(line: &str) -> String {
    let server = ApiServer::start();
    let problem = server.faults().inject_text(line).unwrap_err().to_string();
    assert_eq!(server.faults().pending(), 0);
    problem
}

#[tokio::test]
async fn lines_say_which_when_how_often_and_what() {
    for (line, expected) in [
        ("watch pods after-events=10 half-open", "watch pods after-events=10 half-open"),
        ("  list\tstatus=429  retry-after=5 times=3 ", "list status=429 retry-after=5 times=3"),
        ("any always latency=0.2s", "any latency=200ms always"),
        ("get po reset", "get pods reset"),
        ("get deployment.apps/status gone", "get deployments.apps/status gone"),
        ("patch widgets.example.com nth=2 compact", "patch widgets.example.com nth=2 compact"),
        ("list group= namespace= reset", "list group= namespace= reset"),
        (
            "list secrets namespace=a user=jane probability=0.25 after-bytes=9 reset times=1",
            "list secrets namespace=a user=jane after-bytes=9 reset probability=0.25",
        ),
        ("any slow-bytes=1Ki/1500ms", "any slow-bytes=1024/1500ms"),
        ("any slow-bytes=0/1m", "any slow-bytes=1/60s"),
        ("any oversized=64Mi", "any oversized=67108864"),
        ("any content-type=text/html;charset=utf-8", "any content-type=text/html;charset=utf-8"),
    ] {
        assert_eq!(shown(line), expected, "{line}");
        assert_eq!(shown(expected), expected);
    }
}

/// Returns one line for each fault.
fn lines() -> Vec<String> {
    let value = |name: &str| match name {
        "down" | "latency" => "=2s",
        "slow-bytes" => "=3/2s",
        "status" | "html" => "=503",
        "content-type" => "=text/plain",
        "stale-list" | "oversized" | "too-deep" => "=7",
        _ => "",
    };
    let names = Fault::all_names().iter().filter(|name| **name != "rollback");
    names.map(|name| format!("any {name}{}", value(name))).collect()
}

#[tokio::test]
async fn every_fault_can_be_written_and_is_listed() {
    for line in lines() {
        assert_eq!(shown(&line), line);
    }
    for name in Fault::all_names() {
        for list in [words::REST, Faults::TEXT_FORMS] {
            assert!(list.split([' ', ',', ';', '=', '\n']).any(|word| word == *name), "{name}");
        }
    }
}

#[tokio::test]
async fn what_is_wrong_is_named_with_what_there_is() {
    for (line, parts) in [
        ("", &["empty", "any, get"][..]),
        ("wach pods reset", &["\"wach\"", "watch", "restart"]),
        ("watch pods half-opne", &["\"half-opne\"", "half-open", "options"]),
        ("watch half-opne", &["\"half-opne\"", "half-open", "resource"]),
        ("watch pods", &["no fault", "half-open"]),
        ("watch pods reset gone", &["reset and gone"]),
        ("watch widgets.example.com", &["no fault", "widgets.example.com", "resource"]),
        ("list status=42", &["status=42", "429"]),
        ("list status", &["status needs a value"]),
        ("list reset=1", &["reset=1", "no value"]),
        ("list gone retry-after=5", &["retry-after", "gone"]),
        ("list gone silent", &["silent", "rollback"]),
        ("list latency=5", &["latency=5", "200ms"]),
        ("list latency=-5s", &["latency=-5s"]),
        ("list latency=25h", &["latency=25h", "24h"]),
        ("list latency=NaNs", &["latency=NaNs"]),
        ("list slow-bytes=5", &["slow-bytes", "1/100ms"]),
        ("list oversized=99Gi", &["oversized=99Gi", "Mi"]),
        ("list too-deep=99999999", &["too-deep", "number"]),
        ("list times=0 reset", &["times=0", "from 1"]),
        ("list nth=+1 reset", &["nth=+1"]),
        ("list times=2 times=3 reset", &["times", "twice"]),
        ("list times=2 always reset", &["times and always"]),
        ("list after-bytes=1 after-events=2 reset", &["after-bytes and after-events"]),
        ("list probability=2 reset", &["probability=2", "between"]),
        ("list rollback=x", &["rollback=x", "none", "snapshot=NAME"]),
        ("list content-type=é", &["content-type"]),
        ("restart now", &["\"now\"", "restart"]),
        ("down", &["down needs a value"]),
        ("snapshot=a/b", &["snapshot=a/b", "name"]),
        ("flaky-network=lots", &["flaky-network=lots"]),
    ] {
        let problem = problem(line);
        for part in parts {
            assert!(problem.contains(part), "{line:?}: {part:?} in {problem:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn some_things_happen_at_once() {
    let server = ApiServer::start();
    let faults = server.faults();
    let now = server.store().revision();
    assert_eq!(faults.inject_text("compact"), Ok(vec![]));
    assert_eq!(server.store().compacted_revision(), now);

    let (watches, connections) =
        (server.shared.watches.current(), server.shared.connections.current());
    faults.inject_text("drop-watches").unwrap();
    assert!(watches.is_cancelled() && !connections.is_cancelled());
    faults.inject_text("restart").unwrap();
    assert!(connections.is_cancelled());

    faults.inject_text("down=30s").unwrap();
    assert!(!*server.shared.accepting.borrow());
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert!(*server.shared.accepting.borrow());

    assert_eq!(faults.inject_text("flaky-network=0.5").unwrap().len(), 5);
    assert_eq!(faults.inject_text("control-plane-upgrade").unwrap().len(), 2);
    assert_eq!(faults.pending(), 7);
}

#[tokio::test]
async fn snapshots_have_names_and_can_be_gone_back_to() {
    let server = ApiServer::start();
    let faults = server.faults();
    let map = |name: &str| {
        server.create(serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        }))
    };
    faults.inject_text("snapshot=before").unwrap();
    map("a").unwrap();
    assert!(faults.inject_text("rollback=befor").unwrap_err().to_string().contains("before"));
    faults.inject_text("list rollback=before silent").unwrap();
    assert_eq!(faults.rules()[0].1, "list rollback silent");
    let connections = server.shared.connections.current();
    faults.inject_text("rollback=before silent").unwrap();
    assert_eq!(server.count("configmaps", ""), 0);
    assert!(!connections.is_cancelled());
    map("b").unwrap();
    faults.inject_text("rollback=before").unwrap();
    assert!(connections.is_cancelled());
    for at in 1..SNAPSHOTS_MAX {
        faults.inject_text(&format!("snapshot=s{at}")).unwrap();
    }
    faults.inject_text("snapshot=before").unwrap();
    assert!(faults.inject_text("snapshot=more").is_err());
}

#[tokio::test]
async fn there_is_an_end_to_rules() {
    let server = ApiServer::start();
    for _ in 0..FAULT_RULES_MAX {
        server.faults().inject_text("any reset").unwrap();
    }
    assert!(server.faults().inject_text("any reset").is_err());
    assert_eq!(server.faults().pending(), FAULT_RULES_MAX);
}

/// `widgets.` names no group, so that nothing says where the resource would be defined.
#[test]
fn an_unknown_resource_needs_a_group() {
    let server = ApiServer::start();
    for word in ["widgets", "widgets."] {
        let error = server.faults().inject_text(&format!("any {word} reset")).unwrap_err();
        assert!(error.to_string().contains("neither a resource"), "{error}");
    }
    server.faults().inject_text("any widgets.example.com reset").unwrap();
}

/// Generates words, some of which occur in faults.
fn word() -> impl Strategy<Value = String> {
    let known: Vec<String> = words::REST
        .split([' ', ',', ';'])
        .chain(words::BEGINNINGS.split([' ', ',', ';']))
        .chain(Faults::TEXT_FORMS.split_whitespace())
        .map(ToOwned::to_owned)
        .collect();
    let key = prop::sample::select(
        ["times", "nth", "latency", "slow-bytes", "status", "oversized", "user", "probability"]
            .as_slice(),
    );
    prop_oneof![
        6 => prop::sample::select(known),
        3 => (key, "[0-9a-zA-Z./-]{0,8}").prop_map(|(key, value)| format!("{key}={value}")),
        1 => ".{0,6}",
    ]
}

proptest! {
    /// Any text is either parsed or rejected, and the displayed form of a parsed rule means the
    /// same.
    #[test]
    fn a_rule_is_shown_as_it_is_written(
        first in prop::sample::select(["any", "list", "watch pods", "get deploy"].as_slice()),
        words in prop::collection::vec(word(), 0..5),
    ) {
        let line = format!("{first} {}", words.join(" "));
        let server = ApiServer::start();
        if server.faults().inject_text(&line).is_ok() {
            let text = server.faults().rules()[0].1.clone();
            server.faults().clear();
            server.faults().inject_text(&text).unwrap();
            prop_assert_eq!(&server.faults().rules()[0].1, &text);
        }
    }

    #[test]
    fn no_text_is_too_strange(line in ".{0,40}") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async { drop(ApiServer::start().faults().inject_text(&line)) });
    }
}
