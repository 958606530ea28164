//! Which cluster.

use std::fs;

use crate::errors::kubeconfig;
use crate::process::{Running, ended, tool};
use crate::support::directory;

#[test]
fn without_a_kubeconfig_it_shows_an_embedded_cluster() {
    let home = directory("watch-embedded");
    let watch = Running::start(tool(&home, &["watch", "pods"], None));
    watch.says("no kubeconfig");
    assert!(watch.line().contains("TIME"));
    watch.line_with("ADD");
    // It lives.
    watch.line_with("UPDATE");
}

/// Who relies on the answer wants no cluster that was made up.
#[test]
fn conditions_are_not_met_by_an_embedded_cluster_unless_it_was_asked_for() {
    let home = directory("watch-embedded-until");
    let arguments = ["watch", "pods", "--until", "status.phase=Running"];
    let run = ended(tool(&home, &arguments, None));
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("there is no kubeconfig"), "{run:?}");
    let run = ended(tool(&home, &[&arguments[..], &["--embedded"]].concat(), None));
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn embedded_on_request_needs_no_word() {
    let home = directory("watch-embedded-asked");
    let run = ended(tool(&home, &["watch", "pods", "--embedded", "--count", "1"], None));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let run = ended(tool(&home, &["watch", "pods", "--embedded", "--context", "x"], None));
    assert_eq!(run.code, Some(2), "{run:?}");
}

#[test]
fn a_kubeconfig_that_is_named_and_fails_is_an_error() {
    let home = directory("watch-broken");
    let file = home.join("config");
    let missing = home.join("missing");
    let run = ended(tool(&home, &["watch", "pods"], Some(&missing)));
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("missing, which KUBECONFIG names"), "{run:?}");
    let run = ended(tool(&home, &["watch", "pods", "--kubeconfig", "nowhere"], None));
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("nowhere, which --kubeconfig names"), "{run:?}");

    for broken in ["a: [", "apiVersion: v1\nkind: Config\n"] {
        fs::write(&file, broken).unwrap();
        let run = ended(tool(&home, &["watch", "pods"], Some(&file)));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{broken}");
        assert!(run.stderr.contains(file.to_str().unwrap()), "{run:?}");
    }
}

#[test]
fn a_kubeconfig_at_its_place_is_used_and_may_fail() {
    let home = directory("watch-home");
    fs::create_dir(home.join(".kube")).unwrap();
    fs::write(home.join(".kube/config"), "apiVersion: v1\nkind: Config\n").unwrap();
    let run = ended(tool(&home, &["watch", "pods"], None));
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains(".kube/config"), "{run:?}");
}

#[test]
fn a_context_that_is_not_there_names_those_that_are() {
    let home = directory("watch-context");
    let file = home.join("config");
    fs::write(&file, kubeconfig("http://127.0.0.1:1")).unwrap();
    let run = ended(tool(&home, &["watch", "pods", "--context", "here"], Some(&file)));
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("here"), "{run:?}");
    assert!(run.stderr.contains("its contexts are: there"), "{run:?}");
    for (flag, known) in [("--user", "its users are: me"), ("--cluster", "its clusters are: there")]
    {
        let run = ended(tool(&home, &["watch", "pods", flag, "here"], Some(&file)));
        assert_eq!(run.code, Some(2));
        assert!(run.stderr.contains(known), "{run:?}");
    }
    let run = ended(tool(&home, &["watch", "pods", "--context", "here"], None));
    assert!(run.stderr.contains("there is no kubeconfig to find it in"), "{run:?}");
}
