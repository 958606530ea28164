//! The examples do what they say, on the embedded server, in paused time.

use std::path::PathBuf;
use std::process::Command;

/// Returns the output of an example.
fn run(example: &str) -> Vec<String> {
    // Cargo builds the examples beside the tests.
    let tests = std::env::current_exe().expect("a test is a file");
    let built: PathBuf = tests.ancestors().nth(2).expect("target/debug").join("examples");
    let program = built.join(example);
    assert!(program.exists(), "{} is not built: cargo build --examples", program.display());
    let output = Command::new(program)
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("HOME", "/nonexistent")
        .env("KUBE_INFORMER_TIME", "paused")
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("it can be run");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example}: {stderr}");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn pods_prints_what_the_articles_print() {
    let lines = run("pods");
    assert_eq!(lines[0], "Add: nginx");
    // The label, then a resync each second: the same version twice.
    let versions = |line: &str| {
        let line = line.strip_prefix("Update: nginx, old RV: ").expect("an update").to_owned();
        let (old, new) = line.split_once(", new RV: ").expect("two versions");
        (old.parse::<u64>().unwrap(), new.parse::<u64>().unwrap())
    };
    let (old, new) = versions(&lines[1]);
    assert!(old < new, "{lines:?}");
    let updates: Vec<_> = lines[2..lines.len() - 1].iter().map(|line| versions(line)).collect();
    let (mark, resyncs) = updates.split_last().expect("resyncs, and the mark of the deletion");
    assert!(!resyncs.is_empty() && resyncs.iter().all(|pair| *pair == (new, new)), "{lines:?}");
    assert!(mark.0 == new && mark.1 > new, "{lines:?}");
    assert_eq!(lines.last().unwrap(), "Delete: nginx");
}

#[test]
fn selectors_sees_one_namespace_and_one_label() {
    assert_eq!(
        run("selectors"),
        ["shop/web-0 is a web pod", "shop/web-1 is a web pod", "1 of 2 are canaries", "0 services",]
    );
}

#[test]
fn crd_reads_orders_and_gets_over_one_that_is_none() {
    let lines = run("crd");
    assert_eq!(lines[0], "Ada paid 1200, turnover 1200");
    assert_eq!(lines[1], "Grace paid 800, turnover 2000");
    let wrong =
        "default/o-4 cannot be decoded: spec: invalid type: string, expected struct OrderSpec";
    assert_eq!(lines[2], format!("not an Order: {wrong}"));
    assert!(!lines[2].contains("whatever"), "bodies are in no error: {lines:?}");
    assert_eq!(lines[3], "that was the past, this is now");
}

#[test]
fn dynamic_reads_a_kind_known_at_run_time_and_metadata() {
    assert_eq!(
        run("dynamic"),
        [
            r#"default/mail for Some(["mail.example.com"]) issued: false"#,
            r#"default/shop for Some(["shop.example.com"]) issued: true"#,
        ]
    );
}

#[test]
fn index_asks_by_label_field_and_function() {
    assert_eq!(
        run("index"),
        [
            "node-a runs 1 pods",
            "node-b runs 2 pods",
            "default/web-0 is on track Some(\"stable\")",
            "default/web-1 is on track Some(\"canary\")",
            "nginx 1.29 runs in [default/db-0, default/web-0, default/web-1]",
            "1 pods restart all the time",
            "web-0: true",
            "few restarts: 2 pods",
            "web: 2 pods",
            "1 canaries, read at one version: true",
        ]
    );
}

#[test]
fn stream_knows_the_addresses_once_it_is_synced() {
    assert_eq!(run("stream"), [r#"complete: {default/web-0: Some("10.244.0.7")}"#]);
}

#[test]
fn nodes_alerts_for_those_that_are_not_ready() {
    assert_eq!(run("nodes"), ["POST /api/v2/alerts ill firing: true"]);
}

#[test]
fn errors_are_in_plain_words_with_what_is_done_about_them() {
    let lines = run("errors");
    let has =
        |parts: &[&str]| lines.iter().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(has(&["nobody listens", "attempt 2", "resuming the watch in"]), "{lines:#?}");
    assert!(has(&["(410)", "while watching", "listing again in"]), "{lines:#?}");
    assert!(
        has(&["(403)", r#"grant the verb "watch" on the resource "configmaps""#]),
        "{lines:#?}"
    );
    assert!(has(&["default/doomed is gone, final state Unknown"]), "{lines:#?}");
    assert!(has(&["2 objects, live: true"]), "{lines:#?}");
}

#[test]
fn parts_work_alone() {
    assert_eq!(
        run("parts"),
        [
            "default/web-0 is pod number 1",
            "default/web-0 went while nobody looked",
            "default/web-0 is pod number 1",
            "1 of 1 run nginx, at 1",
            "default/settings is there, initial: true",
            "default/nginx is pod number 1",
            "0 pods are left",
        ]
    );
}

#[test]
fn workqueue_retries_gives_up_and_sees_changes_and_the_end() {
    let lines = run("workqueue");
    let (tries, rest) = lines.split_at(5);
    assert_eq!(tries[..3], ["default/nginx: no label foo, once more"; 3]);
    assert_eq!(tries[3..], ["default/nginx: no label foo, giving up", "default/nginx is well"]);
    // The mark for deletion and the deletion itself may be one reconcile or two.
    assert_eq!(rest.last().map(String::as_str), Some("default/nginx is gone"), "{rest:?}");
    assert!(rest.len() <= 2, "{rest:?}");
}

#[test]
fn leader_election_has_one_leader_after_the_other() {
    let lines = run("leader_election");
    let (first, second) = if lines[0].starts_with("replica-0") { (0, 1) } else { (1, 0) };
    let of = |replica: usize, before: usize| {
        let work = (1..=3).map(move |step| format!("replica-{replica} works, step {step}"));
        let done = format!("replica-{replica} is done, {before} led before");
        [format!("replica-{replica} leads")].into_iter().chain(work).chain([done])
    };
    let expected: Vec<_> = of(first, 0).chain(of(second, 1)).collect();
    assert_eq!(lines, expected);
}

#[test]
fn controller_keeps_a_deployment_for_each_foo() {
    assert_eq!(
        run("controller"),
        [
            "default/web gets a Deployment of 1",
            "default/web is scaled to 3",
            "default/web gets a Deployment of 3",
            "default/web is gone",
        ]
    );
}

#[test]
fn operator_publishes_repairs_refuses_and_cleans_up() {
    assert_eq!(
        run("operator"),
        [
            "ConfigMap is written: default/hello",
            "Service is written: default/hello",
            r#"default/hello is ready: Some(("True", "Published"))"#,
            "ConfigMap is written: default/hello", // what was damaged
            r#"default/hello is ready: Some(("False", "BadPort"))"#,
            "default/hello leaves the search engines",
        ]
    );
}
