//! `--metrics`.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::json;

use super::process::{Cluster, Running};

/// Sends a request, and returns the head and the body of the response.
fn get(address: &str, path: &str, host: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// Returns the address that the tool prints.
fn address(watch: &Running) -> String {
    let line = watch.says("metrics: ");
    let address = line.strip_prefix("metrics: http://").unwrap();
    address.strip_suffix("/metrics").unwrap().to_owned()
}

#[test]
fn metrics_of_informers_and_requests_are_served() {
    let cluster = Cluster::start("metrics");
    cluster.pod("web", &json!({}));
    let watch = cluster.watch(&["pods", "--metrics", ":0"]);
    let address = address(&watch);
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    watch.line_with("web");

    let (head, body) = get(&address, "/metrics", &address);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n";
    assert!(head.contains(kind), "{head}");
    let server = cluster.address();
    for series in [
        "kube_informer_synced{name=\"pods in default\"} 1".to_owned(),
        "kube_informer_objects{name=\"pods in default\"} 1".to_owned(),
        format!("rest_client_requests_total{{code=\"200\",method=\"GET\",host=\"{server}\"}} "),
        format!("rest_client_request_duration_seconds_count{{verb=\"GET\",host=\"{server}\"}} "),
    ] {
        assert!(body.contains(&series), "no {series} in {body}");
    }
    assert!(body.ends_with("# EOF\n"), "{body}");
    assert!(get(&address, "/", &address).0.starts_with("HTTP/1.1 404 "));
    assert!(get(&address, "/metrics", "evil.example").0.starts_with("HTTP/1.1 403 "));
}

#[test]
fn an_address_that_cannot_be_used_is_an_error() {
    let cluster = Cluster::start("metrics-taken");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let held = listener.local_addr().unwrap().to_string();
    let ended = cluster.run(&["pods", "--metrics", &held]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    let message = format!("error: --metrics {held}: cannot listen there: ");
    assert!(ended.stderr.starts_with(&message), "{}", ended.stderr);
    assert!(ended.stderr.contains("port 0 picks one"), "{}", ended.stderr);

    let ended = cluster.run(&["pods", "--metrics", "here"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("such as 127.0.0.1:9090"), "{}", ended.stderr);
}

#[test]
fn an_open_socket_does_not_keep_the_tool_running() {
    let cluster = Cluster::start("metrics-ends");
    cluster.pod("web", &json!({}));
    let ended = cluster.run(&["pods", "--count", "1", "--metrics", "127.0.0.1:0"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}
