//! Benchmarks of speed and memory: `cargo bench -p embedded-apiserver`.
//!
//! Prints a line for each number in BENCHMARKS.md, with its target. Takes about a minute; `cargo
//! bench -- watch` runs only the benchmarks with `watch` in their name.

mod pods;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use embedded_apiserver::{ApiServer, ApiService};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use tokio::runtime::{Builder, Runtime};
use tower_service::Service;

const PODS: usize = 100_000;
const POD_BYTES: usize = 5 * 1024;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let run = |name: &str, bench: fn()| {
        if wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str())) {
            bench();
        }
    };
    println!("{:<44}{:>16}   target", "what", "measured");
    run("start", start);
    run("create", create);
    run("update", update);
    run("memory", memory);
    run("page", page);
    run("watch replay", watch_replay);
    run("watch live", watch_live);
    run("fan-out", fan_out);
}

fn report(what: &str, measured: &str, target: &str) {
    println!("{what:<44}{measured:>16}   {target}");
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn start() {
    let runtime = runtime();
    let _guard = runtime.enter();
    let mut times: Vec<Duration> = (0..200)
        .map(|_| {
            let began = Instant::now();
            let server = ApiServer::start();
            let took = began.elapsed();
            drop(server);
            took
        })
        .collect();
    times.sort_unstable();
    report("start, median of 200", &format!("{:.2} ms", millis(times[100])), "< 10 ms");
}

fn create() {
    let server = ApiServer::start();
    let bodies = pods::bodies(20_000, POD_BYTES);
    let mut service = server.service_as("bench");
    let seconds = runtime().block_on(async {
        let began = Instant::now();
        for body in bodies {
            post(&mut service, body).await;
        }
        began.elapsed().as_secs_f64()
    });
    report("create 5 KB pods, in process, one core", &per_second(20_000, seconds), "> 20,000/s");
}

/// Measures patches of the status, the most frequent write of a cluster, and what they leave behind.
fn update() {
    const OBJECTS: usize = 5_000;
    const ROUNDS: usize = 4;
    let server = with_pods(OBJECTS);
    let mut service = server.service_as("bench");
    let before = resident_bytes();
    let seconds = runtime().block_on(async {
        let began = Instant::now();
        for round in 0..ROUNDS {
            for at in 0..OBJECTS {
                let uri = format!("/api/v1/namespaces/default/pods/{}/status", pods::name(at));
                let body = format!(r#"{{"status":{{"phase":"Running","message":"{round}"}}}}"#);
                patch(&mut service, &uri, Bytes::from(body)).await;
            }
            server.store().compact(server.store().revision());
        }
        began.elapsed().as_secs_f64()
    });
    let per_object = resident_bytes().saturating_sub(before) / OBJECTS;
    let what = "patch the status of 5 KB pods, one core";
    report(what, &per_second(OBJECTS * ROUNDS, seconds), "");
    report("memory that the patches leave, each pod", &format!("{per_object} bytes"), "");
}

fn memory() {
    let before = resident_bytes();
    let server = filled();
    let used = resident_bytes().saturating_sub(before) as f64;
    let ratio = used / (PODS * POD_BYTES) as f64;
    report("100,000 pods of 5 KB, resident / JSON", &format!("{ratio:.2}"), "< 1.5");
    drop(server);
}

/// Measures a page of 500 in a small and in a large store.
fn page() {
    let small = with_pods(1_000);
    let large = filled();
    let runtime = runtime();
    let cost = |server: &ApiServer| {
        let mut service = server.service_as("bench");
        runtime.block_on(async {
            let began = Instant::now();
            for _ in 0..200 {
                get(&mut service, "/api/v1/pods?limit=500").await;
            }
            began.elapsed() / 200
        })
    };
    let (small, large) = (cost(&small), cost(&large));
    report("page of 500 of 1,000 pods", &format!("{:.3} ms", millis(small)), "");
    report("page of 500 of 100,000 pods", &format!("{:.3} ms", millis(large)), "about the same");
}

/// Measures a watch that catches up with 100,000 events.
fn watch_replay() {
    let server = filled();
    let url = listen(&server);
    let mut watch = Watch::open(&url, &server, server.store().revision() - PODS as u64);
    let began = Instant::now();
    watch.read(PODS);
    let seconds = began.elapsed().as_secs_f64();
    report("watch 5 KB events, replayed over loopback", &per_second(PODS, seconds), "> 100,000/s");
}

/// Measures a watch that follows a writer in another thread, which is the bottleneck.
fn watch_live() {
    const EVENTS: usize = 40_000;
    let server = ApiServer::start();
    let url = listen(&server);
    let mut watch = Watch::open(&url, &server, server.store().revision());
    let bodies = pods::bodies(EVENTS, POD_BYTES);
    let writer = server.clone();
    let began = Instant::now();
    let thread = std::thread::spawn(move || {
        let mut service = writer.service_as("bench");
        runtime().block_on(async {
            for body in bodies {
                post(&mut service, body).await;
            }
        });
    });
    watch.read(EVENTS);
    let seconds = began.elapsed().as_secs_f64();
    thread.join().expect("the writer ends");
    report("watch 5 KB events, live behind one writer", &per_second(EVENTS, seconds), "");
}

/// Measures 1,000 watchers of a resource: how often an event is encoded, and the cost of a
/// delivery.
fn fan_out() {
    const WATCHERS: usize = 1_000;
    const EVENTS: usize = 200;
    let server = ApiServer::start();
    let runtime = runtime();
    let (encodings, per_delivery) = runtime.block_on(async {
        let mut service = server.service_as("bench");
        let mut watches = Vec::new();
        for _ in 0..WATCHERS {
            let uri = format!("/api/v1/pods?watch=1&resourceVersion={}", server.store().revision());
            watches.push(call(&mut service, Method::GET, &uri, Bytes::new()).await.into_body());
        }
        for body in pods::bodies(EVENTS, POD_BYTES) {
            post(&mut service, body).await;
        }
        let mut encodings = std::collections::HashSet::new();
        let began = Instant::now();
        for watch in &mut watches {
            for _ in 0..EVENTS {
                let frame = watch.frame().await.expect("an event").expect("no error");
                encodings.insert(frame.data_ref().expect("data").as_ptr());
            }
        }
        (encodings.len(), began.elapsed() / (WATCHERS * EVENTS) as u32)
    });
    let times = encodings as f64 / EVENTS as f64;
    report("encodings of an event for 1,000 watchers", &format!("{times}"), "1");
    report("delivery to one of 1,000 watchers", &format!("{} ns", per_delivery.as_nanos()), "");
}

fn filled() -> ApiServer {
    with_pods(PODS)
}

fn with_pods(count: usize) -> ApiServer {
    let server = ApiServer::start();
    let mut service = server.service_as("bench");
    runtime().block_on(async {
        for at in 0..count {
            post(&mut service, pods::body(at, POD_BYTES)).await;
        }
    });
    server
}

/// Serves plain HTTP on its own thread. Returns the address.
fn listen(server: &ApiServer) -> String {
    let server = server.clone();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        runtime().block_on(async move {
            let listening =
                server.listener().plain(true).bind("127.0.0.1:0").await.expect("a port");
            sender.send(listening.addr().to_string()).expect("somebody waits for it");
            std::future::pending::<()>().await;
        });
    });
    receiver.recv().expect("an address")
}

/// A client that only counts events, so that the server is measured.
struct Watch {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Watch {
    fn open(addr: &str, server: &ApiServer, version: u64) -> Self {
        let mut socket = TcpStream::connect(addr).expect("a connection");
        let token = server.token();
        write!(
            socket,
            "GET /api/v1/pods?watch=1&resourceVersion={version} HTTP/1.1\r\nHost: localhost\r\n\
             Authorization: Bearer {token}\r\n\r\n"
        )
        .expect("a request");
        let mut watch = Self { socket, buffer: vec![0; 1024 * 1024] };
        let mut byte = [0];
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            watch.socket.read_exact(&mut byte).expect("a head");
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
        watch
    }

    /// Reads this many events. Events end in a line feed, and the chunks around them in a carriage
    /// return and a line feed. JSON contains neither.
    fn read(&mut self, events: usize) {
        let (mut feeds, mut returns) = (0, 0);
        while feeds - returns < events || feeds < returns {
            let read = self.socket.read(&mut self.buffer).expect("more");
            assert!(read > 0, "the watch ended");
            feeds += count(&self.buffer[..read], b'\n');
            returns += count(&self.buffer[..read], b'\r');
        }
    }
}

fn count(bytes: &[u8], wanted: u8) -> usize {
    // Chunks of 255 fit a byte counter, which the compiler vectorizes.
    bytes
        .chunks(255)
        .map(|chunk| usize::from(chunk.iter().map(|&byte| u8::from(byte == wanted)).sum::<u8>()))
        .sum()
}

async fn post(service: &mut ApiService, body: Bytes) {
    let response = call(service, Method::POST, "/api/v1/namespaces/default/pods", body).await;
    assert_eq!(response.status(), 201);
}

async fn patch(service: &mut ApiService, uri: &str, body: Bytes) {
    let request = Request::builder()
        .method(Method::PATCH)
        .uri(uri)
        .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
        .body(Full::new(body));
    let response = service.call(request.expect("a request")).await.expect("an answer");
    assert_eq!(response.status(), 200);
}

async fn get(service: &mut ApiService, uri: &str) {
    let response = call(service, Method::GET, uri, Bytes::new()).await;
    assert_eq!(response.status(), 200);
    response.into_body().collect().await.expect("a body");
}

async fn call(
    service: &mut ApiService,
    method: Method,
    uri: &str,
    body: Bytes,
) -> http::Response<embedded_apiserver::Body> {
    let request = Request::builder().method(method).uri(uri).body(Full::new(body));
    service.call(request.expect("a request")).await.expect("an answer")
}

fn per_second(count: usize, seconds: f64) -> String {
    format!("{:.0}/s", count as f64 / seconds)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Returns the resident memory of the process, on Linux.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0_usize);
    pages * 4096
}
