//! The choice of the cluster.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::errors::kubeconfig;
use crate::process::{Cluster, TOKEN, ended, tool};
use crate::support::{Serving, directory};
use crate::terminal::Terminal;

#[test]
fn without_a_kubeconfig_a_terminal_shows_an_embedded_cluster() {
    let home = directory("watch-embedded");
    let mut terminal = Terminal::start(tool(&home, &["watch", "pods"], None), 120);
    terminal.shows("no kubeconfig");
    terminal.shows("TIME");
    terminal.shows("ADD");
    // The cluster is alive.
    terminal.shows("UPDATE");
}

/// A program that reads the output must not take a simulated cluster for a real one.
#[test]
fn without_a_kubeconfig_a_pipe_gets_an_error() {
    let home = directory("watch-embedded-pipe");
    for arguments in [&["watch", "pods", "-o", "json", "--count", "1"][..], &["top", "pods"]] {
        let run = ended(tool(&home, arguments, None));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        assert!(run.stderr.contains("there is no kubeconfig"), "{run:?}");
        assert!(run.stderr.contains("--embedded"), "{run:?}");
    }
}

/// `--until` never falls back to the demo cluster.
#[test]
fn conditions_are_not_met_by_an_embedded_cluster_unless_it_was_asked_for() {
    let home = directory("watch-embedded-until");
    let arguments = ["watch", "pods", "--until", "status.phase=Running", "--any"];
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

/// In a pod, the pod's cluster is used. If that fails, it is an error.
#[test]
fn a_pod_is_no_place_for_an_embedded_cluster() {
    let home = directory("watch-pod");
    let mut command = tool(&home, &["watch", "pods"], None);
    command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env("KUBERNETES_SERVICE_PORT", "1");
    let run = ended(command);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    assert!(run.stderr.contains("service account"), "{run:?}");
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

/// As in kubectl: one file, several files that are merged, and any of their contexts.
#[test]
fn kubeconfigs_and_contexts_are_chosen() {
    let cluster = Cluster::start("places");
    cluster.pod("nginx", &json!({}));
    let home = directory("watch-places-home");
    let elsewhere = home.join("elsewhere");
    fs::write(&elsewhere, kubeconfig("http://127.0.0.1:1")).unwrap();
    let here = cluster.0.kubeconfig();
    let both = std::env::join_paths([&elsewhere, &here, &home.join("missing")]).unwrap();
    let flag = here.to_str().unwrap();
    let context = ["--context", "embedded-apiserver"];
    for (kubeconfig, arguments) in [
        (Some(here.as_path()), &[][..]),
        (None, &["--kubeconfig", flag]),
        (Some(elsewhere.as_path()), &["--kubeconfig", flag]),
        (Some(Path::new(&both)), &context),
        (
            Some(Path::new(&both)),
            &["--cluster", "embedded-apiserver", "--user", "embedded-apiserver"],
        ),
    ] {
        let all = [&["watch", "pods", "-o", "name", "--count", "1"], arguments].concat();
        let run = ended(tool(&home, &all, kubeconfig));
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "pod/nginx\n"), "{all:?} {run:?}");
    }
    // The current context is that of the first file.
    let run = ended(tool(&home, &["watch", "pods"], Some(Path::new(&both))));
    assert!(run.stderr.contains("nobody listens at http://127.0.0.1:1"), "{run:?}");
}

/// Like kubectl, the tool accepts an address without `https://`.
#[test]
fn an_address_without_a_scheme_is_one() {
    let plain = Cluster::start("scheme-plain");
    let tls = Cluster(Serving::start("watch-scheme-tls", &[]));
    for (cluster, scheme) in [(&plain, "http://"), (&tls, "https://")] {
        let file = cluster.0.directory.join("bare");
        let text = fs::read_to_string(cluster.0.kubeconfig()).unwrap();
        fs::write(&file, text.replace(scheme, "")).unwrap();
        let command = ["watch", "ns", "-o", "name", "--count", "1"];
        let run = ended(tool(&cluster.0.directory, &command, Some(&file)));
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "namespace/default\n"), "{run:?}");
    }
    let file = tls.0.directory.join("wrong");
    let text = fs::read_to_string(tls.0.kubeconfig()).unwrap();
    fs::write(&file, text.replace("https://", "http://")).unwrap();
    let run = ended(tool(&tls.0.directory, &["watch", "ns"], Some(&file)));
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    assert!(run.stderr.contains("should begin with https"), "{run:?}");
}

#[test]
fn one_may_act_as_somebody_else() {
    let rule = "any pods user=jane status=403 always";
    let cluster = Cluster::with("as", &["--fault", rule]);
    cluster.pod("nginx", &json!({}));
    let run = cluster.run(&["pods", "-o", "name", "--count", "1"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "pod/nginx\n"), "{run:?}");
    let run =
        cluster.run(&["pods", "--as", "jim", "--as-group", "g", "-o", "name", "--count", "1"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "pod/nginx\n"), "{run:?}");
    let run = cluster.run(&["pods", "--as", "jane"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("User \"jane\" cannot watch resource \"pods\""), "{run:?}");
    assert!(run.stderr.contains("--role=informer --user='jane'"), "{run:?}");
}

/// Credential plugins such as `aws eks get-token`.
#[test]
fn programs_give_credentials_or_are_named() {
    let cluster = Cluster::start("exec");
    cluster.pod("nginx", &json!({}));
    let home = directory("watch-exec-home");
    let file = home.join("config");
    let token = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": {"token": TOKEN},
    });
    let run = |script: &str| {
        let exec = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
            "interactiveMode": "Never", "installHint": "buy one",
        });
        let exec = if script.is_empty() {
            exec.to_string().replace("sh", "no-such")
        } else {
            exec.to_string()
        };
        let user = format!("user: {{exec: {exec}}}");
        let text = kubeconfig(&format!("http://{}", cluster.address())).replace("user: {}", &user);
        fs::write(&file, text).unwrap();
        ended(tool(&home, &["watch", "pods", "-o", "name", "--count", "1"], Some(&file)))
    };
    let well = run(&format!("echo '{token}'"));
    assert_eq!((well.code, well.stdout.as_str()), (Some(0), "pod/nginx\n"), "{well:?}");
    for (script, expected) in [
        ("", "\"no-such\" cannot be run: "),
        ("", "install it, or put it on the PATH\nbuy one\n"),
        ("echo s3cret; echo log in first >&2; exit 3", "exit status: 3: log in first\n"),
        ("echo 's3cret: {'", "printed none"),
        ("echo '{\"kind\": \"s3cret\"}'", "printed none"),
    ] {
        let run = run(script);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{script}");
        assert!(run.stderr.contains(expected), "{script}: {}", run.stderr);
        assert!(!run.stderr.contains("s3cret"), "{script}: {}", run.stderr);
    }
}

/// A token that expires within a minute is used until then: cloud providers issue such tokens.
#[test]
fn a_credential_plugin_runs_once_per_command() {
    let cluster = Cluster::start("exec-once");
    cluster.pod("nginx", &json!({}));
    let home = directory("watch-exec-once-home");
    let (file, runs) = (home.join("config"), home.join("runs"));
    let script = format!(
        "echo >>'{}'; echo '{{\"kind\": \"ExecCredential\", \"status\": {{\"token\": \"{TOKEN}\", \
         \"expirationTimestamp\": \"'$(date -u -d '+50 seconds' +%FT%TZ)'\"}}}}'",
        runs.display()
    );
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
    });
    let text = kubeconfig(&format!("http://{}", cluster.address()))
        .replace("user: {}", &format!("user: {{exec: {exec}}}"));
    fs::write(&file, text).unwrap();
    for arguments in [
        &["watch", "pods", "-o", "name", "--count", "1"][..],
        &["get", "pods,deploy", "-o", "name"],
        &["doctor", "pods"],
    ] {
        let _ = fs::remove_file(&runs);
        let run = ended(tool(&home, arguments, Some(&file)));
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(fs::read_to_string(&runs).unwrap(), "\n", "{arguments:?}");
    }
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
