//! A server that goes away and comes back.

use std::fs;

use serde_json::json;

use crate::process::{Cluster, Running, pod};
use crate::support::{Reserved, Serving, directory};

/// The new server has its own history: objects that it lacks are deleted, and those that it has are
/// added.
#[test]
fn a_server_that_comes_back_without_its_objects() {
    let place = Reserved::new();
    let listen = ["--listen", &place.address];
    let mut cluster = Cluster::with("back", &listen);
    cluster.pod("old", &json!({}));
    let watch = cluster.watch(&["pods", "-o", "json"]);
    assert_eq!(watch.json()["key"], "default/old");

    cluster.0.end("KILL");
    watch.says("nobody listens at http://");
    let again = Cluster::with("back-again", &listen);
    again.pod("new", &json!({}));

    sees_new_in_place_of_old(&watch);
}

/// With TLS, a server that is restarted with the same kubeconfig is the same server to its clients.
#[test]
fn a_server_with_tls_that_comes_back() {
    let place = directory("watch-back-tls");
    for name in ["old", "new"] {
        fs::write(place.join(name), pod(name, &json!({})).to_string()).unwrap();
    }
    let reserved = Reserved::new();
    let start = |data: &str| {
        Serving::start_in(place.clone(), &["--data", data, "--listen", &reserved.address])
    };
    let mut cluster = Cluster(start("old"));
    let watch = cluster.watch(&["pods", "-o", "json"]);
    assert_eq!(watch.json()["key"], "default/old");

    cluster.0.end("KILL");
    watch.says("nobody listens at https://");
    let _again = start("new");
    sees_new_in_place_of_old(&watch);
}

/// Checks that the missing object is deleted, without a known final state, and the new one is
/// added.
fn sees_new_in_place_of_old(watch: &Running) {
    let mut events: Vec<_> = [watch.json(), watch.json()]
        .map(|event| {
            let text = |name: &str| event[name].as_str().unwrap().to_owned();
            (text("type"), text("key"), event["finalStateUnknown"] == true)
        })
        .into();
    events.sort();
    let expected = [("ADD", "default/new", false), ("DELETE", "default/old", true)];
    let expected = expected.map(|(what, key, unknown)| (what.to_owned(), key.to_owned(), unknown));
    assert_eq!(events, expected);
    watch.says("pods: watching on");
}
