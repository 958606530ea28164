use std::sync::Arc;

use http::HeaderValue;
use serde_json::json;

use super::*;
use crate::wire::{Target, Verb};

fn call(verb: Verb, path: &str, namespace: Option<&str>) -> Call {
    Call { verb, target: Arc::new(Target::from_path(path, namespace).unwrap()) }
}

fn deployments() -> Call {
    call(Verb::Watch, "/apis/apps/v1/namespaces/web/deployments", Some("web"))
}

fn body(code: u16, reason: &str, message: &str) -> Vec<u8> {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
           "message": message, "reason": reason, "code": code})
    .to_string()
    .into_bytes()
}

fn said(code: u16, reason: &str, message: &str) -> Error {
    answered(code, &HeaderMap::new(), &body(code, reason, message), &deployments())
}

#[test]
fn status_in_protobuf_is_read_as_in_json() {
    let json = body(403, "Forbidden", "deployments.apps is forbidden");
    let value: Value = serde_json::from_slice(&json).unwrap();
    let protobuf = kube_schema::to_vec(&value).unwrap();
    let [json, read] =
        [&json, &protobuf].map(|body| answered(403, &HeaderMap::new(), body, &deployments()));
    assert!(read.is_forbidden());
    assert_eq!(read.to_string(), json.to_string());
    // A truncated message is not shown.
    for cut in 4..protobuf.len() {
        let error = answered(403, &HeaderMap::new(), &protobuf[..cut], &deployments());
        assert!(error.is_forbidden());
        assert!(!error.to_string().contains("k8s"), "{error}");
    }
}

#[test]
fn forbidden_says_what_to_grant() {
    let error = said(403, "Forbidden", "deployments.apps is forbidden: User \"bob\" cannot watch");
    assert!(error.is_forbidden());
    assert_eq!(
        error.to_string(),
        "cannot watch deployments.apps in namespace \"web\" (403): the server does not allow it: \
         grant the verb \"watch\" on the resource \"deployments\" of the API group \"apps\" with a \
         Role or ClusterRole bound in \"web\"; it says: deployments.apps is forbidden: User \"bob\" \
         cannot watch"
    );
    let pods = call(Verb::List, "/api/v1/pods", None);
    let error = answered(403, &HeaderMap::new(), b"", &pods).to_string();
    assert!(
        error.contains("grant the verb \"list\" on the resource \"pods\" of the API group \"\"")
    );
    assert!(error.contains("with a ClusterRole and a ClusterRoleBinding"), "{error}");
}

#[test]
fn not_found_says_what_is_not_served() {
    // The plain text for an unknown group.
    let wires = call(Verb::List, "/apis/test.example/v1/wires", None);
    let error = answered(404, &HeaderMap::new(), b"404 page not found\n", &wires);
    assert!(error.is_not_found());
    assert_eq!(
        error.to_string(),
        "cannot list wires.test.example cluster-wide (404): the server does not serve that: is the \
         CustomResourceDefinition installed, are group \"test.example\", version \"v1\" and plural \
         \"wires\" right?; it says: 404 page not found"
    );
    let error = said(404, "NotFound", "the server could not find the requested resource");
    assert!(error.to_string().contains("do its objects have namespaces?"), "{error}");
}

#[test]
fn every_code_says_what_it_means() {
    for (code, reason, message, means) in [
        (401, "Unauthorized", "Unauthorized", "does not accept our credentials"),
        (410, "Expired", "too old resource version: 1 (9)", "no longer has the version"),
        (410, "Gone", "", "no longer has the version"),
        (429, "TooManyRequests", "wait", "too busy"),
        (504, "Timeout", "Timeout: Too large resource version: 9, current: 1", "not come as far"),
        (504, "Timeout", "Timeout: etcd", "the server failed with Timeout; it says: Timeout: etcd"),
        (500, "InternalError", "boom", "the server failed with InternalError; it says: boom"),
        (503, "ServiceUnavailable", "", "the server failed with ServiceUnavailable"),
        (400, "BadRequest", "found 'b'", "does not accept the request with BadRequest"),
        (422, "Invalid", "sendInitialEvents", "does not accept the request with Invalid"),
        (406, "NotAcceptable", "", "cannot answer in JSON"),
    ] {
        let error = said(code, reason, message);
        let text = error.to_string();
        let start = format!("cannot watch deployments.apps in namespace \"web\" ({code}): ");
        assert!(text.starts_with(&start) && text.contains(means), "{text}");
        let status = error.status().unwrap();
        assert_eq!((status.code, &*status.reason, &*status.message), (code, reason, message));
    }
    assert!(said(504, "Timeout", "Timeout: Too large resource version: 9").is_version_too_large());
}

#[test]
fn a_selector_that_the_server_does_not_understand_is_repeated() {
    let mut target = Target::from_path("/api/v1/pods", None).unwrap();
    target.labels = "a b".into();
    let call = Call { verb: Verb::List, target: Arc::new(target) };
    let error = answered(400, &HeaderMap::new(), &body(400, "BadRequest", "found 'b'"), &call);
    assert!(
        error.to_string().contains("labels \"a b\", fields \"\"; it says: found 'b'"),
        "{error}"
    );
}

#[test]
fn a_page_of_a_proxy_is_its_title() {
    let page =
        b"<!DOCTYPE html>\n<HTML><head><Title>502 Bad\n Gateway</title></head><body>x-secret";
    let error = answered(502, &HeaderMap::new(), page, &deployments());
    assert!(error.to_string().ends_with("the server failed; it says: 502 Bad Gateway"), "{error}");
    assert_eq!(error.status().unwrap().code, 502);
    for page in ["<html>", "<html><title>", "<title></title>", "<\u{130}<title>\u{130}</title>"] {
        let error = answered(502, &HeaderMap::new(), page.as_bytes(), &deployments());
        assert_eq!(error.status().unwrap().code, 502);
    }
}

#[test]
fn i20_what_shows_a_token_is_not_repeated() {
    for text in ["Authorization: xyzzy", "got header bearer xyzzy", "<title>Bearer xyzzy</title>"] {
        let error = answered(500, &HeaderMap::new(), text.as_bytes(), &deployments());
        assert!(!error.to_string().contains("xyzzy"), "{error}");
        assert!(!error.status().unwrap().message.contains("xyzzy"));
    }
    let error = said(500, "InternalError", "bad Authorization: Bearer xyzzy");
    assert!(!error.to_string().contains("xyzzy"), "{error}");
}

#[test]
fn what_is_repeated_is_one_short_line() {
    let long = "ü\u{7}\r\n".repeat(1000);
    let error = said(500, "InternalError", &long).to_string();
    assert!(error.chars().count() < 500 && error.ends_with('…'), "{error}");
    assert!(!error.contains(|c: char| c.is_control()), "{error:?}");
    let error = answered(500, &HeaderMap::new(), &[0xFF; 1000], &deployments()).to_string();
    assert!(error.chars().count() < 300, "{error}");
}

#[test]
fn i19_of_many_causes_some_are_kept() {
    let causes = vec![json!({}); 20_000];
    let status = json!({"kind": "Status", "code": 422, "details": {"causes": causes}}).to_string();
    assert!(status.len() < STATUS_BYTES_MAX);
    let error = answered(422, &HeaderMap::new(), status.as_bytes(), &deployments());
    let details = error.status().unwrap().details.as_ref().unwrap();
    assert_eq!(details.causes.len(), CAUSES_MAX);
}

#[test]
fn a_status_with_strange_numbers_is_still_one() {
    for (field, value) in [
        ("code", json!(-1)),
        ("code", json!(1e300)),
        ("code", json!("410")),
        ("details", json!({"retryAfterSeconds": -5, "causes": 7})),
        ("details", json!({"retryAfterSeconds": 1_u64 << 60})),
        ("details", json!([])),
        ("status", json!({})),
    ] {
        let mut status: Value = serde_json::from_slice(&body(410, "Expired", "old")).unwrap();
        status[field] = value.clone();
        let text = status.to_string();
        let error = answered(410, &HeaderMap::new(), text.as_bytes(), &deployments());
        assert!(error.is_expired(), "{field} {value}");
        assert_eq!(error.status().unwrap().code, 410, "{field} {value}");
    }
}

#[test]
fn the_code_of_the_answer_stands_in_for_one_that_is_missing() {
    let error = answered(429, &HeaderMap::new(), &body(0, "", ""), &deployments());
    assert!(error.is_too_many_requests());
    let success = br#"{"kind":"Status","status":"Success","code":200}"#;
    let error = answered(503, &HeaderMap::new(), success, &deployments());
    assert_eq!(error.status().unwrap().code, 503);
}

fn waits(header: &str) -> Option<u64> {
    let mut headers = HeaderMap::new();
    headers.insert(RETRY_AFTER, HeaderValue::from_str(header).unwrap());
    headers.insert(DATE, HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT"));
    let error = answered(429, &headers, &body(429, "TooManyRequests", ""), &deployments());
    assert_eq!(error.retry_after().is_some(), error.to_string().contains("it asks to wait"));
    error.retry_after().map(|wait| wait.as_secs())
}

#[test]
fn l3_retry_after_is_read_in_all_its_forms() {
    // Fault 42: seconds, dates; huge, negative, past and nonsense.
    assert_eq!(waits("5"), Some(5));
    assert_eq!(waits(" 7 "), Some(7));
    assert_eq!(waits("Sun, 06 Nov 1994 08:49:47 GMT"), Some(10));
    let max = Some(RETRY_AFTER_MAX.as_secs());
    assert_eq!(waits("999999999"), max);
    assert_eq!(waits(&"9".repeat(100)), max);
    assert_eq!(waits("Sun, 06 Nov 2094 08:49:37 GMT"), max);
    for nothing in ["0", "-5", "", "1.5", "soon", "0x10", "Sun, 06 Nov 1994 08:49:37 GMT"] {
        assert_eq!(waits(nothing), None, "{nothing:?}");
    }
    assert_eq!(waits("Fri, 31 Dec 1993 23:59:59 GMT"), None);
}

#[test]
fn l3_the_wait_in_the_status_counts_too() {
    let status = |seconds: u64| {
        json!({"kind": "Status", "code": 429, "details": {"retryAfterSeconds": seconds}})
            .to_string()
            .into_bytes()
    };
    let mut headers = HeaderMap::new();
    let wait = |headers: &HeaderMap, seconds| {
        let error = answered(429, headers, &status(seconds), &deployments());
        error.retry_after().map(|wait| wait.as_secs())
    };
    assert_eq!(wait(&headers, 3), Some(3));
    assert_eq!(wait(&headers, 4_000_000_000), Some(RETRY_AFTER_MAX.as_secs()));
    headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
    assert_eq!(wait(&headers, 3), Some(5));
    assert_eq!(wait(&headers, 8), Some(8));
    let error = in_stream(read(&status(9)).unwrap(), &deployments());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(9)));
    assert!(matches!(error.cause(), Cause::Api { in_stream: true, .. }));
}
