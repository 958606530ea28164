//! Fault injection over HTTP, which the administrator can use whatever else is broken.

use std::time::Duration;

use bytes::Bytes;
use embedded_apiserver::{ApiServer, ApiService, Builder};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower_service::Service;

use crate::support::{MAPS, broken_get, get};

const FAULTS: &str = "/embedded/faults";

fn builder() -> Builder {
    ApiServer::builder().control_path(true).token("secret")
}

/// Sends a request with a token, or without if it is empty. Returns the code and the body.
async fn ask(
    server: &ApiServer,
    token: &str,
    method: &str,
    path: &str,
    body: &str,
) -> (u16, String) {
    let mut request = Request::builder().method(method).uri(path);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
    let response = ApiService::call(&mut server.service(), request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(bytes.to_vec()).unwrap())
}

async fn admin(server: &ApiServer, method: &str, path: &str, body: &str) -> (u16, String) {
    ask(server, "secret", method, path, body).await
}

async fn shown(server: &ApiServer) -> Value {
    let (code, body) = admin(server, "GET", FAULTS, "").await;
    assert_eq!(code, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn rules_are_injected_shown_and_removed() {
    let server = builder().build();
    let lines = "# to begin with\n\nlist configmaps status=503\n  watch pods half-open always\n";
    let (code, body) = admin(&server, "POST", FAULTS, lines).await;
    assert_eq!(code, 200, "{body}");
    let rules = json!([
        {"id": 1, "rule": "list configmaps status=503"},
        {"id": 2, "rule": "watch pods half-open always"},
    ]);
    let made: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(made, json!({"injected": rules, "atOnce": []}));
    assert_eq!(shown(&server).await, json!({"rules": rules, "fired": []}));

    assert_eq!(get(&server, MAPS).await.code, StatusCode::SERVICE_UNAVAILABLE);
    let after = shown(&server).await;
    assert_eq!(after["rules"], json!([rules[1]]));
    assert_eq!(
        (&after["fired"][0]["id"], &after["fired"][0]["fault"]),
        (&json!(1), &json!("status"))
    );

    let (code, body) = admin(&server, "DELETE", "/embedded/faults/2", "").await;
    assert!(code == 200 && body.contains("half-open"), "{body}");
    assert_eq!(admin(&server, "DELETE", "/embedded/faults/2", "").await.0, 404);
    admin(&server, "POST", FAULTS, "any reset\nany gone").await;
    assert_eq!(server.faults().pending(), 2);
    assert_eq!(admin(&server, "DELETE", FAULTS, "").await.0, 200);
    assert_eq!(server.faults().pending(), 0);
}

#[tokio::test(start_paused = true)]
async fn all_lines_hold_or_none() {
    let server = builder().build();
    let (code, body) = admin(&server, "POST", FAULTS, "any reset\nany nonsense\n").await;
    assert_eq!(code, 400);
    assert!(body.contains("line 2") && body.contains("nonsense"), "{body}");
    assert_eq!(server.faults().pending(), 0);
    assert_eq!(admin(&server, "POST", FAULTS, " \n# nothing\n").await.0, 400);
    assert!(admin(&server, "GET", "/embedded", "").await.1.contains("half-open"));
    assert_eq!(admin(&server, "PUT", FAULTS, "any reset").await.0, 405);
    assert_eq!(admin(&server, "GET", "/embedded/nothing", "").await.0, 404);
    // This path does not belong to it.
    assert_eq!(admin(&server, "GET", "/embeddedfaults", "").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn it_is_for_the_administrator_only() {
    for anonymous in [false, true] {
        let server = builder().anonymous(anonymous).build();
        server.access().add_token("other", "jane");
        let nobody = if anonymous { 403 } else { 401 };
        for (token, expected) in [("", nobody), ("wrong", 401), ("other", 403), ("secret", 200)] {
            for (method, body) in [("GET", ""), ("POST", "any reset"), ("DELETE", "")] {
                let (code, body) = ask(&server, token, method, FAULTS, body).await;
                assert_eq!(code, expected, "{method} as {token:?}: {body}");
                assert!(!body.contains("secret"));
            }
        }
        assert_eq!(server.faults().pending(), 0);
    }
}

/// Anonymous clients may impersonate users, but not the administrator, whose token is required.
#[tokio::test(start_paused = true)]
async fn impersonation_does_not_stand_in_for_the_token() {
    let server = builder().anonymous(true).build();
    let request = http::Request::get(FAULTS).header("impersonate-user", "kubernetes-admin");
    let request = request.body(Full::new(bytes::Bytes::new())).unwrap();
    assert_eq!(server.service().call(request).await.unwrap().status(), 403);
}

#[tokio::test(start_paused = true)]
async fn it_is_not_there_unless_it_was_asked_for() {
    let server = ApiServer::builder().token("secret").build();
    for (method, body) in [("GET", ""), ("POST", "any reset"), ("DELETE", "")] {
        assert_eq!(admin(&server, method, FAULTS, body).await.0, 404);
    }
    assert_eq!(server.faults().pending(), 0);
}

/// Every fault can be removed.
#[tokio::test(start_paused = true)]
async fn no_fault_strikes_it_and_it_is_in_no_record() {
    let server = builder().build();
    admin(&server, "POST", FAULTS, "any refused always").await;
    assert_eq!(broken_get(&server, MAPS).await, std::io::ErrorKind::ConnectionRefused);
    assert_eq!(shown(&server).await["rules"].as_array().unwrap().len(), 1);
    admin(&server, "DELETE", FAULTS, "").await;
    assert_eq!(get(&server, MAPS).await.code, 200);
    assert!(server.requests().iter().all(|request| !request.uri.starts_with("/embedded")));
}

/// The response is sent before the connections break.
#[tokio::test(start_paused = true)]
async fn what_breaks_connections_waits_for_its_answer() {
    let server = builder().build();
    let (code, body) = admin(&server, "POST", FAULTS, "snapshot=a\ndown=10s").await;
    assert_eq!(code, 200);
    assert!(body.contains("down=10s") && body.contains("snapshot=a"), "{body}");
    assert_eq!(get(&server, MAPS).await.code, 200);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(broken_get(&server, MAPS).await, std::io::ErrorKind::ConnectionRefused);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(get(&server, MAPS).await.code, 200);
}
