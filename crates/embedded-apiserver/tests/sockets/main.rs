//! The server on sockets, as independent clients see it.

mod client;
mod ends;
mod faults;
mod files;
mod identity;
mod websockets;

use embedded_apiserver::{ApiServer, Listening, limits};
use http::{Method, StatusCode, Version};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::net::TcpStream;

use client::{Client, encrypted};

const VERSIONS: [Version; 2] = [Version::HTTP_11, Version::HTTP_2];

/// Listens with and without TLS.
async fn both(server: &ApiServer) -> [Listening; 2] {
    [
        server.listen("127.0.0.1:0").await.unwrap(),
        server.listener().plain(true).bind("127.0.0.1:0").await.unwrap(),
    ]
}

async fn kube_client(listening: &Listening) -> kube::Client {
    let config = Kubeconfig::from_yaml(&listening.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

#[tokio::test]
async fn both_versions_of_http_with_tls_and_without() {
    let server = ApiServer::start();
    for listening in both(&server).await {
        for version in VERSIONS {
            let mut client = Client::new(&server, &listening, version).await;
            let response = client.get("/version").await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.version(), version);
            let (status, body) = client.get_whole("/healthz").await;
            assert_eq!((status, body.as_str()), (StatusCode::OK, "ok"));
        }
    }
}

#[tokio::test]
async fn kube_takes_the_kubeconfig() {
    let server = ApiServer::start();
    for (listening, name) in both(&server).await.into_iter().zip(["tls", "plain"]) {
        let client = kube_client(&listening).await;
        assert_eq!(client.default_namespace(), "default");
        let namespaces: Api<Namespace> = Api::all(client.clone());
        assert_eq!(namespaces.list(&ListParams::default()).await.unwrap().items.len(), 4);
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let map = ConfigMap { metadata: named(name), ..ConfigMap::default() };
        maps.create(&PostParams::default(), &map).await.unwrap();
        assert!(server.get("configmaps", "default", name).is_some());
    }
}

fn named(name: &str) -> kube::api::ObjectMeta {
    kube::api::ObjectMeta { name: Some(name.to_owned()), ..kube::api::ObjectMeta::default() }
}

#[tokio::test]
async fn ipv6_and_names_are_addresses_too() {
    let server = ApiServer::start();
    let listening = server.listen("localhost:0").await.unwrap();
    assert!(listening.addr().ip().is_loopback());
    // Not every machine has IPv6.
    if let Ok(listening) = server.listen("[::1]:0").await {
        assert_eq!(listening.url(), format!("https://[::1]:{}", listening.addr().port()));
        let namespaces: Api<Namespace> = Api::all(kube_client(&listening).await);
        assert_eq!(namespaces.list(&ListParams::default()).await.unwrap().items.len(), 4);
    }
}

#[tokio::test]
async fn a_token_is_asked_for() {
    let server = ApiServer::start();
    let listening = server.listen("127.0.0.1:0").await.unwrap();
    let mut client = Client::new(&server, &listening, Version::HTTP_11).await;
    for token in [None, Some("wrong".to_owned()), Some(String::new())] {
        client.token = token;
        for path in ["/api/v1/pods", "/api/v1/pods?watch=1", "/version"] {
            let (status, body) = client.get_whole(path).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
            assert!(body.contains("Unauthorized"), "{body}");
        }
    }
}

#[tokio::test]
async fn other_machines_are_let_in_only_on_request() {
    let server = ApiServer::start();
    for addr in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let error = server.listen(addr).await.unwrap_err();
        assert!(error.to_string().contains("allow_remote(true)"), "{error}");
    }
    let listening = server.listener().allow_remote(true).bind("0.0.0.0:0").await.unwrap();
    assert!(listening.url().starts_with("https://127.0.0.1:"));
    let namespaces: Api<Namespace> = Api::all(kube_client(&listening).await);
    assert_eq!(namespaces.list(&ListParams::default()).await.unwrap().items.len(), 4);
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let server = ApiServer::start();
    let listening = server.listen("127.0.0.1:0").await.unwrap();
    let error = server.listen(listening.addr()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&listening.addr().to_string()), "{error}");
}

#[tokio::test]
async fn only_clients_of_the_same_authority_connect() {
    let server = ApiServer::start();
    let [ours, other] =
        [server.listen("127.0.0.1:0").await.unwrap(), server.listen("127.0.0.1:0").await.unwrap()];
    let tcp = TcpStream::connect(ours.addr()).await.unwrap();
    assert!(encrypted(tcp, other.ca_pem().unwrap(), Version::HTTP_11).await.is_err());
    let tcp = TcpStream::connect(ours.addr()).await.unwrap();
    assert!(encrypted(tcp, ours.ca_pem().unwrap(), Version::HTTP_11).await.is_ok());
}

/// DNS rebinding and a form on another page can neither read a Secret nor create an object.
#[tokio::test]
async fn web_pages_of_other_hosts_are_refused_on_plain_http() {
    let server = ApiServer::builder().anonymous(true).build();
    let plain = server.listener().plain(true).bind("127.0.0.1:0").await.unwrap();
    let map = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"forged"}}"#;
    let path = "/api/v1/namespaces/default/configmaps";
    for (name, value) in [("host", "rebound.example"), ("origin", "http://page.example")] {
        for version in VERSIONS {
            let mut client = Client::new(&server, &plain, version).await;
            client.token = None;
            // Without a Content-Type, as `fetch` sends an untyped body.
            for (method, path, body) in
                [(Method::GET, "/api/v1/secrets", ""), (Method::POST, path, map)]
            {
                let mut request = client.request(method, path, body);
                request.headers_mut().insert(name, value.parse().unwrap());
                let response = client.send(request).await.unwrap();
                assert_eq!(response.status(), StatusCode::FORBIDDEN, "{name} {version:?}");
            }
            assert_eq!(client.get_whole(path).await.0, StatusCode::OK);
        }
    }
    assert!(server.get("configmaps", "default", "forged").is_none());
    // A browser does not trust the certificate, and has no token.
    let tls = server.listen("127.0.0.1:0").await.unwrap();
    let mut client = Client::new(&server, &tls, Version::HTTP_11).await;
    let mut request = client.request(Method::GET, "/version", "");
    request.headers_mut().insert("host", "tunnel.example".parse().unwrap());
    assert_eq!(client.send(request).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn headers_have_a_limit() {
    let server = ApiServer::start();
    let listening = server.listener().plain(true).bind("127.0.0.1:0").await.unwrap();
    let large = "x".repeat(limits::HEADER_BYTES_MAX);
    for version in VERSIONS {
        let mut client = Client::new(&server, &listening, version).await;
        let mut request = client.request(Method::GET, "/version", "");
        request.headers_mut().insert("x-large", large.parse().unwrap());
        // HTTP/2 may fail instead, because the client knows the limit.
        if let Ok(response) = client.send(request).await {
            assert_eq!(response.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        } else {
            assert_eq!(version, Version::HTTP_2);
        }
        let mut client = Client::new(&server, &listening, version).await;
        assert_eq!(client.get_whole("/healthz").await.0, StatusCode::OK);
    }
}

#[tokio::test]
async fn bodies_have_a_limit() {
    let server = ApiServer::start();
    for listening in both(&server).await {
        for version in VERSIONS {
            for more in [1, limits::BODY_BYTES_MAX] {
                let mut client = Client::new(&server, &listening, version).await;
                let body = vec![b' '; limits::BODY_BYTES_MAX + more];
                let path = "/api/v1/namespaces/default/configmaps";
                let request = client.request(Method::POST, path, body);
                let response = client.send(request).await.unwrap();
                assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
                let body = response.into_body().collect().await.unwrap().to_bytes();
                assert!(std::str::from_utf8(&body).unwrap().contains("RequestEntityTooLarge"));
            }
        }
    }
}
