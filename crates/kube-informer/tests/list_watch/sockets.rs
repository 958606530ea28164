//! Tests that need a socket.

use std::error::Error as _;
use std::io;
use std::iter::successors;

use embedded_apiserver::{ApiServer, Fault, Listening, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kube_informer::{KubeListWatch, ListWatch};

use crate::support::{add, event, list_all, list_error, server, watch_error, watch_from};

/// Returns a default configuration, without the retries that would hide errors.
async fn config(listening: &Listening) -> Config {
    let kubeconfig = Kubeconfig::from_yaml(&listening.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    config.default_retry = false;
    config
}

async fn source(listening: &Listening) -> KubeListWatch {
    let client = Client::try_from(config(listening).await).unwrap();
    KubeListWatch::of::<ConfigMap>(client).namespace("default")
}

async fn listen(server: &ApiServer) -> Listening {
    server.listen("127.0.0.1:0").await.unwrap()
}

#[tokio::test]
async fn lists_and_watches_go_over_tls() {
    let server = server();
    add(&server, "default", "a");
    let listening = listen(&server).await;
    let source = source(&listening).await;
    let page = list_all(&source).await;
    assert_eq!(page.keys(), ["default/a"]);
    let mut watch = watch_from(&source, &page.version).await.unwrap();
    for n in 0..100 {
        add(&server, "default", &format!("b{n}"));
    }
    for n in 0..100 {
        assert_eq!(event(&mut watch).await.unwrap(), format!("added default/b{n}"));
    }
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Reset);
    let error = watch_error(&mut watch).await;
    assert!(error.to_string().contains("the connection broke"), "{error}");
}

#[tokio::test]
async fn refused_names_the_address() {
    let server = server();
    let listening = listen(&server).await;
    let source = source(&listening).await;
    let address = listening.addr();
    // Closes the socket, and keeps the port.
    server.refuse_connections();
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    for error in [list_error(&source).await, watch_from(&source, "1").await.err().unwrap()] {
        assert!(error.is_connection_refused(), "{error}");
        assert_eq!(
            error.to_string().split(": ").nth(1),
            Some(&*format!("nobody listens at {address} (connection refused)"))
        );
        // The source is the client's own error, whose sources include the socket's.
        let client = error.source().and_then(|source| source.downcast_ref::<kube::Error>());
        assert!(client.is_some(), "{error}");
        let mut sources = successors(error.source(), |&source| source.source());
        let io = sources.find_map(|source| source.downcast_ref::<io::Error>()).unwrap();
        assert_eq!(io.kind(), io::ErrorKind::ConnectionRefused);
    }
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_told() {
    let server = server();
    let listening = listen(&server).await;
    let mut config = config(&listening).await;
    config.root_cert = Some(Vec::new());
    let source = KubeListWatch::of::<ConfigMap>(Client::try_from(config).unwrap());
    let error = list_error(&source).await.to_string();
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_host_that_cannot_be_found_is_told() {
    // Too long for a host name, so that no resolver is asked.
    let name = "a".repeat(64);
    let config = Config::new(format!("http://{name}.invalid:6443").parse().unwrap());
    let source = KubeListWatch::of::<ConfigMap>(Client::try_from(config).unwrap());
    let error = list_error(&source).await;
    assert!(!error.is_connection_refused());
    assert!(error.to_string().contains("cannot connect (dns error"), "{error}");
}

#[tokio::test]
async fn i20_a_token_that_is_not_accepted_is_not_repeated() {
    let server = server();
    let listening = listen(&server).await;
    let source = source(&listening).await;
    assert!(list_all(&source).await.objects.is_empty());
    let token = server.token().to_owned();
    server.access().revoke_token(&token);
    for error in [list_error(&source).await, watch_from(&source, "1").await.err().unwrap()] {
        assert!(error.is_unauthorized(), "{error}");
        assert!(error.to_string().contains("does not accept our credentials"), "{error}");
        assert!(error.source().is_none());
        let shown = format!("{error} {error:?} {:?} {source:?} {}", error.status(), source.name());
        assert!(!shown.contains(&token), "{shown}");
    }
}
