//! The server answers any request: it does not panic, it reports errors in a form that clients
//! understand, and its objects stay readable.
//!
//! `RANDOM_SEED=7` runs one seed, `RANDOM_SEEDS=1000` that many. A failure names its seed and
//! request.

mod grammar;
mod objects;
#[path = "../shared/wire.rs"]
mod wire;

use bytes::Bytes;
use embedded_apiserver::ApiServer;
use fastrand::Rng;
use futures::FutureExt;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use wire::{Wire, version_of};

const REQUESTS: usize = 400;
const BATCH: usize = 40;

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

/// Reports the request when a test fails.
struct Culprit {
    seed: u64,
    request: String,
}

impl Drop for Culprit {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("RANDOM_SEED={} shows this again: {}", self.seed, self.request);
        }
    }
}

#[test]
fn every_request_is_answered_and_the_store_stays_readable() {
    let seeds = match setting("RANDOM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..setting("RANDOM_SEEDS").unwrap_or(20),
    };
    let mut codes = std::collections::BTreeSet::new();
    let many = seeds.end - seeds.start >= 20;
    for seed in seeds {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime can be built");
        codes.extend(runtime.block_on(one_seed(seed)));
    }
    // Requests that all fail in the same way would test little.
    let expected = [200, 201, 400, 404, 405, 406, 409, 413, 415, 422, 504];
    let unseen: Vec<_> = expected.into_iter().filter(|code| !codes.contains(code)).collect();
    assert!(!many || unseen.is_empty(), "{unseen:?} never happened");
}

async fn one_seed(seed: u64) -> Vec<u16> {
    let mut rng = Rng::with_seed(seed);
    let server = ApiServer::builder().seed(seed).history_bytes_max(2_000_000).build();
    let wire = Wire::new(&server, "anybody");
    let mut culprit = Culprit { seed, request: String::new() };
    let mut codes = Vec::new();
    let mut revision = server.store().revision();
    for n in 0..REQUESTS {
        let Some((request, shown)) = grammar::request(&mut rng) else { continue };
        culprit.request = shown;
        let response = wire.raw(request).await.expect("nobody breaks the connection");
        codes.push(response.status().as_u16());
        check(response);
        let now = server.store().revision();
        assert!(now >= revision, "versions do not go back");
        revision = now;
        if n % BATCH == BATCH - 1 {
            "reading everything".clone_into(&mut culprit.request);
            check_store(&wire).await;
        }
    }
    codes
}

/// Checks that a response is complete and in a form that clients understand.
fn check(response: Response<embedded_apiserver::Body>) {
    let code = response.status().as_u16();
    let content_type = response.headers().get("content-type").expect("it has a type").clone();
    let packed = response.headers().contains_key("content-encoding");
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    // A watch continues; what is available now suffices.
    while let Some(Some(frame)) = tokio::task::unconstrained(body.frame()).now_or_never() {
        bytes.extend(frame.expect("nobody breaks the connection").into_data().expect("it is data"));
    }
    if packed {
        return;
    }
    if content_type.as_bytes().starts_with(b"text/plain") {
        assert!(code < 400 || bytes == b"404 page not found\n");
        return;
    }
    let values = values(content_type.to_str().expect("it is a text"), &bytes);
    if code < 400 {
        return;
    }
    let [status] = &values[..] else { panic!("{code} with {} values", values.len()) };
    check_status(code, status);
}

/// Returns the objects of a body: a single one, or the events of a watch.
fn values(content_type: &str, bytes: &[u8]) -> Vec<Value> {
    let protobuf = |bytes: &[u8]| kube_schema::from_slice(bytes).expect("it is protobuf");
    if content_type == kube_schema::MEDIA_TYPE {
        return vec![protobuf(bytes)];
    }
    if content_type.starts_with(kube_schema::MEDIA_TYPE) {
        let (mut rest, mut found) = (bytes, Vec::new());
        while let Some((len, after)) = rest.split_first_chunk() {
            let (frame, after) = after.split_at(u32::from_be_bytes(*len) as usize);
            let frame = kube_schema::WatchFrame::parse(frame).expect("it is a frame");
            found.push(protobuf(frame.object));
            rest = after;
        }
        return found;
    }
    let values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    values.collect::<Result<_, _>>().expect("it is JSON")
}

fn check_status(code: u16, status: &Value) {
    let text = |name: &str| status[name].as_str().unwrap_or_default();
    assert_eq!((text("kind"), text("apiVersion")), ("Status", "v1"), "{status}");
    assert_eq!((text("status"), status["code"].as_u64()), ("Failure", Some(code.into())));
    assert!(!text("message").is_empty() && !text("reason").is_empty(), "{status}");
    // Stored JSON may not be representable in protobuf.
    if code >= 500 && !text("message").contains(" cannot be written as protobuf: ") {
        assert_eq!((code, text("reason")), (504, "Timeout"), "{status}");
        let cause = &status["details"]["causes"][0]["reason"];
        assert_eq!(cause, "ResourceVersionTooLarge", "{status}");
    }
}

/// Checks that everything that is stored can be listed, read and printed, with the same result each
/// time.
async fn check_store(wire: &Wire) {
    for (collection, ..) in grammar::COLLECTIONS {
        let reply = read(wire, collection, "application/json").await;
        let Some(list) = reply else { continue };
        let items = list["items"].as_array().expect("it is a list");
        for item in items {
            let name = item["metadata"]["name"].as_str().expect("it has a name");
            let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
            let uri = format!("{collection}/{}", name.replace('+', "%20"));
            let got = read(wire, &uri, "application/json").await.expect("it is listed");
            let mut expected = item.clone();
            expected["kind"] = got["kind"].clone();
            expected["apiVersion"] = got["apiVersion"].clone();
            assert_eq!(got, expected, "{uri}");
            assert!(version_of(&got) <= version_of(&list), "{uri}");
        }
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let all = format!("{collection}?includeObject=Object");
        let table = read(wire, &all, table).await.expect("it was listed");
        let columns = table["columnDefinitions"].as_array().expect("it has columns").len();
        let rows = table["rows"].as_array().expect("it has rows");
        assert_eq!(rows.len(), items.len());
        for row in rows {
            assert_eq!(row["cells"].as_array().map(Vec::len), Some(columns), "{row}");
        }
    }
}

async fn read(wire: &Wire, uri: &str, accept: &str) -> Option<Value> {
    let request = Request::get(uri).header("accept", accept).body(Full::<Bytes>::default());
    let response = wire.raw(request.expect("it is a request")).await.expect("it is answered");
    if response.status() == 404 {
        return None;
    }
    assert_eq!(response.status(), 200, "{uri}");
    let bytes = response.into_body().collect().await.expect("it is whole").to_bytes();
    Some(serde_json::from_slice(&bytes).expect("it is JSON"))
}
