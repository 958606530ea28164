//! What it says when something is wrong.

use std::fs;
use std::net::TcpListener;

use crate::process::{Cluster, ended, tool};
use crate::support::directory;

#[test]
fn an_unknown_type_names_the_nearest() {
    let cluster = Cluster::start("unknown");
    let run = cluster.run(&["pdos"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains(r#"no type "pdos"; did you mean "pods"?"#), "{run:?}");
}

#[test]
fn a_refused_connection_names_address_and_kubeconfig() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let home = directory("watch-refused");
    let file = home.join("config");
    fs::write(&file, kubeconfig(&format!("http://{address}"))).unwrap();
    let run = ended(tool(&home, &["watch", "pods"], Some(&file)));
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains(&format!("nobody listens at http://{address}")), "{run:?}");
    assert!(run.stderr.contains("context there of"), "{run:?}");
    assert!(run.stderr.contains(file.to_str().unwrap()), "{run:?}");
}

pub(crate) fn kubeconfig(server: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: there\n\
         clusters: [{{name: there, cluster: {{server: '{server}'}}}}]\n\
         contexts: [{{name: there, context: {{cluster: there, user: me}}}}]\n\
         users: [{{name: me, user: {{}}}}]\n"
    )
}
