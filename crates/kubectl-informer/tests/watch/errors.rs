//! Error messages.

use std::fs;

use serde_json::json;

use crate::process::{Cluster, ended, tool};
use crate::support::{Reserved, directory};

#[test]
fn an_unknown_type_names_the_nearest() {
    let cluster = Cluster::start("unknown");
    let run = cluster.run(&["pdos"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains(r#"no type "pdos"; did you mean "pods"?"#), "{run:?}");
}

#[test]
fn a_refused_connection_names_address_and_kubeconfig() {
    let free = Reserved::new();
    let address = &free.address;
    let home = directory("watch-refused");
    let file = home.join("config");
    fs::write(&file, kubeconfig(&format!("http://{address}"))).unwrap();
    let run = ended(tool(&home, &["watch", "pods"], Some(&file)));
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains(&format!("nobody listens at http://{address}")), "{run:?}");
    assert!(run.stderr.contains("context there of"), "{run:?}");
    assert!(run.stderr.contains(file.to_str().unwrap()), "{run:?}");
}

/// Retrying cannot fix this error.
#[test]
fn a_403_says_what_to_grant() {
    let cluster = Cluster::with("forbidden", &["--fault", "watch pods status=403 always"]);
    let run = cluster.run(&["pods"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("you may not watch pods in namespace default"), "{run:?}");
    assert!(run.stderr.contains("grant the verbs list and watch on pods"), "{run:?}");
    let role = "kubectl create role informer -n default --verb=get,list,watch --resource=pods";
    assert!(run.stderr.contains(role), "{run:?}");
}

/// If the watch has worked before, it is retried: the permission may be granted again.
#[test]
fn a_403_later_is_told_and_waited_for() {
    let cluster = Cluster::start("forbidden-later");
    let mut watch = cluster.watch(&["pods", "-o", "json"]);
    watch.says("no pods");
    cluster.fault("watch pods status=403 always");
    cluster.fault("drop-watches");
    watch.says("pods: you may not watch pods in namespace default; ");
    // The next retry is about a minute later, too long to wait for in a test.
    watch.signal("INT");
    assert_eq!(watch.wait().code(), Some(0));
}

#[test]
fn a_selector_that_is_none_is_an_error() {
    let cluster = Cluster::start("selector");
    for arguments in [["pods", "-l", "=="], ["pods", "--field-selector", "spec.nonsense=1"]] {
        let run = cluster.run(&arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        assert!(run.stderr.starts_with("error: "), "{run:?}");
    }
}

#[test]
fn unreadable_answers_do_not_end_it() {
    let cluster = Cluster::with("html", &["--fault", "watch pods html=502 times=1"]);
    cluster.pod("nginx", &json!({}));
    let watch = cluster.watch(&["pods", "-o", "name"]);
    assert_eq!(watch.line(), "pod/nginx");
}

pub(crate) fn kubeconfig(server: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: there\n\
         clusters: [{{name: there, cluster: {{server: '{server}'}}}}]\n\
         contexts: [{{name: there, context: {{cluster: there, user: me}}}}]\n\
         users: [{{name: me, user: {{}}}}]\n"
    )
}
