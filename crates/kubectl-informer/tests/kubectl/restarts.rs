//! A server that is stopped and restarted.

use std::fs;

use crate::MAP;
use crate::process::Kubectl;
use crate::support::{Reserved, Serving};

#[test]
fn an_old_kubeconfig_is_good_after_a_restart() {
    let place = Reserved::new();
    let there = ["--listen", &place.address];
    let Some(mut kubectl) = Kubectl::with("restart", &there) else { return };
    assert!(kubectl.run(&["get", "namespaces", "-o", "name"]).contains("namespace/default\n"));
    let (kubeconfig, old) = (kubectl.0.kubeconfig(), kubectl.0.directory.join("old"));
    fs::copy(&kubeconfig, &old).unwrap();

    kubectl.0.end("KILL");
    let directory = kubectl.0.directory.clone();
    kubectl.0 = Serving::start_in(directory, &there);
    assert_eq!(kubectl.create(MAP), "configmap/settings created\n");
    let listed = kubectl.run(&["get", "cm", "-o", "name", "--kubeconfig", old.to_str().unwrap()]);
    assert!(listed.contains("configmap/settings\n"), "{listed}");
    // kubectl preserves the extension when it rewrites the file.
    let named = ["config", "rename-context", "embedded-apiserver", "mine"];
    kubectl.run(&[&named[..], &["--kubeconfig", old.to_str().unwrap()]].concat());
    let rewritten = fs::read_to_string(&old).unwrap();
    assert!(rewritten.contains("name: embedded-apiserver-identity"), "{rewritten}");
    let listed = kubectl.run(&["get", "cm", "-o", "name", "--kubeconfig", old.to_str().unwrap()]);
    assert!(listed.contains("configmap/settings\n"), "{listed}");
}
