//! A server that goes away, and comes back.

use serde_json::json;

use crate::process::Cluster;

/// The new server has a history of its own: what it does not have is deleted, what it has is added.
#[test]
fn a_server_that_comes_back_without_its_objects() {
    let mut cluster = Cluster::start("back");
    let address = cluster.address();
    cluster.pod("old", &json!({}));
    let watch = cluster.watch(&["pods", "-o", "json"]);
    assert_eq!(watch.json()["key"], "default/old");

    cluster.0.end("KILL");
    watch.says("nobody listens at http://");
    let again = Cluster::with("back-again", &["--listen", &address]);
    again.pod("new", &json!({}));

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
