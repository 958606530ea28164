//! Injecting faults with nothing but kubectl, as in `docs/faults.md`.

use std::io::{BufRead as _, BufReader};

use crate::MAP;
use crate::process::{Kubectl, line_with};

const FAULTS: &str = "/embedded/faults";

fn inject(kubectl: &Kubectl, lines: &str) -> String {
    let (success, stdout, stderr) = kubectl.pipe(lines, &["create", "--raw", FAULTS, "-f", "-"]);
    assert!(success, "{lines}: {stdout}{stderr}");
    stdout
}

#[test]
fn rules_are_made_shown_and_removed() {
    let Some(kubectl) = Kubectl::new("faults") else { return };
    let made = inject(&kubectl, "get configmaps status=418\nlist pods html=502 times=2\n");
    assert!(made.contains(r#""rule": "get configmaps status=418""#), "{made}");
    let shown = kubectl.run(&["get", "--raw", FAULTS]);
    assert!(shown.contains("list pods html=502 times=2"), "{shown}");

    let struck = kubectl.fail(&["get", "configmap", "nothing"]);
    assert!(!struck.contains("NotFound"), "{struck}");
    assert!(kubectl.fail(&["get", "configmap", "nothing"]).contains("NotFound"));
    let shown = kubectl.run(&["get", "--raw", FAULTS]);
    assert!(!shown.contains("status=418") && shown.contains(r#""fault": "status""#), "{shown}");

    let removed = kubectl.run(&["delete", "--raw", FAULTS]);
    assert!(removed.contains("html=502"), "{removed}");
    assert_eq!(kubectl.run(&["get", "pods", "-o", "name"]), "");
    assert!(kubectl.run(&["get", "--raw", "/embedded"]).contains("half-open"));
}

#[test]
fn what_is_wrong_is_said() {
    let Some(kubectl) = Kubectl::new("faults-wrong") else { return };
    let arguments = ["create", "--raw", FAULTS, "-f", "-"];
    let (success, _, problem) = kubectl.pipe("watch pods half-opne", &arguments);
    assert!(!success && problem.contains("line 1") && problem.contains("half-open"), "{problem}");
    let (success, _, problem) =
        kubectl.pipe("any reset", &[&arguments[..], &["--token=wrong"]].concat());
    assert!(!success, "{problem}");
    assert!(!kubectl.run(&["get", "--raw", FAULTS]).contains("reset"));
}

#[test]
fn watches_end_and_the_server_comes_back() {
    let Some(kubectl) = Kubectl::new("faults-watch") else { return };
    kubectl.create(MAP);
    let mut watching = kubectl.start(&["get", "configmaps", "-w"]);
    let mut lines = BufReader::new(watching.0.stdout.take().unwrap()).lines();
    line_with(&mut lines, "settings");
    // It prints the listed objects before it watches. Only a new one shows that the watch has
    // started.
    kubectl.create(&MAP.replace("settings", "watched"));
    line_with(&mut lines, "watched");
    kubectl.run(&["delete", "configmap", "watched"]);
    assert!(inject(&kubectl, "drop-watches").contains("drop-watches"));
    assert!(watching.0.wait().unwrap().success());

    inject(&kubectl, "snapshot=before");
    kubectl.create(&MAP.replace("settings", "two"));
    assert!(inject(&kubectl, "rollback=before silent").contains("rollback=before"));
    assert_eq!(kubectl.run(&["get", "configmaps", "-o", "name"]), "configmap/settings\n");
    // The response arrives before the fault takes effect.
    assert!(inject(&kubectl, "restart").contains("restart"));
}
