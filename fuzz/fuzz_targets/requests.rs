//! Any bytes make a few requests; each is answered, failures as a `Status` of their code, and what is
//! stored in the end can be listed.
//!
//! The input is requests, one after the other: a byte for the method, one for the headers, the URI up
//! to the end of the line, and the body up to a NUL.

#![no_main]

use bytes::Bytes;
use embedded_apiserver::ApiServer;
use futures_util::FutureExt;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tower_service::Service;

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];
const CONTENT_TYPES: [&str; 4] =
    ["application/json", "application/merge-patch+json", "application/json-patch+json", "text/plain"];
const ACCEPTS: [&str; 4] = [
    "application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,*/*",
];
const REQUESTS_MAX: usize = 8;

fuzz_target!(|data: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async {
        let server = ApiServer::builder().seed(1).token("t").build();
        let mut revision = server.store().revision();
        for request in data.split(|&byte| byte == 0).take(REQUESTS_MAX).filter_map(parse) {
            let answer = server.service_as("anybody").call(request).await;
            check(answer.expect("nobody breaks the connection"));
            let now = server.store().revision();
            assert!(now >= revision, "versions do not go back");
            revision = now;
        }
        for collection in ["namespaces", "pods", "configmaps", "nodes"] {
            let request = Request::get(format!("/api/v1/{collection}")).body(Full::default());
            let answer = server.service_as("anybody").call(request.expect("it is valid")).await;
            let answer = answer.expect("nobody breaks the connection");
            assert_eq!(answer.status(), StatusCode::OK);
            check(answer);
        }
    });
});

fn parse(data: &[u8]) -> Option<Request<Full<Bytes>>> {
    let (&[method, headers], rest) = data.split_first_chunk()?;
    let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    let (uri, body) = rest.split_at(end);
    let body = body.get(1..).unwrap_or_default().to_vec();
    Request::builder()
        .method(METHODS[usize::from(method) % METHODS.len()])
        .uri(uri)
        .header("content-type", CONTENT_TYPES[usize::from(headers) % CONTENT_TYPES.len()])
        .header("accept", ACCEPTS[usize::from(headers / 16) % ACCEPTS.len()])
        .body(Full::new(body.into()))
        .ok()
}

fn check(response: Response<embedded_apiserver::Body>) {
    let code = response.status();
    let json = response.headers()["content-type"] == "application/json";
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    // A watch goes on; what it has at once is enough.
    while let Some(Some(frame)) = tokio::task::unconstrained(body.frame()).now_or_never() {
        let frame = frame.expect("nobody breaks the connection");
        bytes.extend_from_slice(frame.data_ref().expect("it is data"));
    }
    if !json {
        return;
    }
    let values = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
    let values: Vec<Value> = values.collect::<Result<_, _>>().expect("it is JSON");
    if code.as_u16() >= 400 {
        assert!(!code.is_server_error() || code == StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(values[0]["kind"], "Status");
        assert_eq!(values[0]["code"], code.as_u16());
    }
}
