//! The probes of the Deployment on the running operator, and their responses.

#[allow(dead_code, reason = "`start` is for programs")]
#[path = "../../examples/shared/probes.rs"]
mod endpoints;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::manifests::typed;
use super::{NAME, deployed, site, start};

/// Returns the status of a response.
async fn get(address: &str, path: &str) -> u16 {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response.split(' ').nth(1).expect("a status line").parse().unwrap()
}

#[tokio::test]
async fn probes_of_the_deployment_succeed() {
    let deployment: Deployment = typed("deployments.apps", NAME);
    let [container] = &*deployment.spec.template.spec.unwrap().containers else {
        panic!("one container");
    };
    let port = container.ports.as_ref().unwrap()[0].clone();
    let listens = &container.env.as_ref().unwrap()[0];
    assert_eq!(listens.name, "PROBES");
    assert_eq!(listens.value, Some(format!("0.0.0.0:{}", port.container_port)));

    let server = deployed();
    server.create(site(80)).unwrap();
    let mut operator = start(&server).await;
    let line = operator.error_line().await;
    let address = line.strip_prefix("probes on http://").expect(&line).to_owned();
    // A site that is published has been seen by all caches.
    while !operator.line().await.contains("is ready") {}
    for probe in [&container.liveness_probe, &container.readiness_probe] {
        let probe = probe.as_ref().unwrap().http_get.as_ref().unwrap();
        assert_eq!(Some(&probe.port), port.name.clone().map(IntOrString::String).as_ref());
        assert_eq!(get(&address, probe.path.as_ref().unwrap()).await, 200);
    }
    assert_eq!(get(&address, "/metrics").await, 404);
    operator.end(Signal::TERM).await;
}

#[tokio::test]
async fn probes_respond_with_the_current_state() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let state = Arc::new(AtomicBool::new(false));
    let read = state.clone();
    let healthy = move |path: &str| (path == "/readyz").then(|| read.load(Ordering::SeqCst));
    tokio::spawn(endpoints::serve(listener, healthy));
    assert_eq!(get(&address, "/readyz").await, 503);
    state.store(true, Ordering::SeqCst);
    assert_eq!(get(&address, "/readyz").await, 200);
    assert_eq!(get(&address, "/readyz/").await, 404);
    // A prober that leaves early, and one that is no HTTP client, affect no other.
    drop(TcpStream::connect(&address).await.unwrap());
    let mut other = TcpStream::connect(&address).await.unwrap();
    other.write_all(&[0xff; 5000]).await.unwrap();
    assert_eq!(get(&address, "/readyz").await, 200);
}
