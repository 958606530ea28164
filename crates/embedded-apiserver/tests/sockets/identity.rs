//! A server that is restarted with its identity.

use embedded_apiserver::{ApiServer, Identity, Listening};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::net::TcpSocket;

use super::client::Client;
use super::kube_client;

/// Returns the kubeconfig of a server that is gone now.
async fn written(plain: bool) -> String {
    let server = ApiServer::start();
    let listening = server.listener().plain(plain).bind("127.0.0.1:0").await.unwrap();
    let text = listening.kubeconfig();
    listening.shutdown().await;
    text
}

async fn again(text: &str, plain: bool, addr: &str) -> (ApiServer, Listening) {
    let identity = Identity::from_kubeconfig(text).unwrap();
    let server = ApiServer::builder().token(identity.token()).build();
    let listener = server.listener().plain(plain).identity(identity);
    let listening = listener.bind(addr).await.unwrap();
    (server, listening)
}

async fn works(client: &kube::Client) -> bool {
    Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await.is_ok()
}

#[tokio::test]
async fn clients_go_on() {
    let server = ApiServer::start();
    // Held during the whole test, so that no other process takes the port while the server is down.
    let port = TcpSocket::new_v4().unwrap();
    port.set_reuseaddr(true).unwrap();
    port.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = port.local_addr().unwrap().to_string();
    // Only Linux lets a server listen on a port that is held like this.
    let _port = Some(port).filter(|_| cfg!(target_os = "linux"));
    let listening = server.listen(&addr).await.unwrap();
    let client = kube_client(&listening).await;
    assert!(works(&client).await);
    let text = listening.kubeconfig();
    listening.shutdown().await;
    assert!(!works(&client).await);

    for _ in 0..2 {
        let (server, listening) = again(&text, false, &addr).await;
        assert!(works(&client).await);
        assert!(text.contains(server.token()));
        assert_eq!(listening.kubeconfig(), text);
        listening.shutdown().await;
    }
}

/// The kubeconfig is written before the writes, because the server is then killed.
#[tokio::test]
async fn no_version_is_given_out_twice() {
    let mut text = written(false).await;
    let mut before = 0;
    for _ in 0..3 {
        let identity = Identity::from_kubeconfig(&text).unwrap();
        let server = ApiServer::builder().first_version(identity.first_version()).build();
        assert!(server.store().revision() > before);
        let old = format!("/api/v1/configmaps?watch=1&resourceVersion={}", before.max(1));
        let listening = server.listen("127.0.0.1:0").await.unwrap();
        let mut client = Client::new(&server, &listening, http::Version::HTTP_11).await;
        assert!(client.get_whole(&old).await.1.contains(r#""code":410"#), "{old}");
        text = listening.kubeconfig();
        for at in 0..2_000 {
            let name = format!("map-{at}");
            let metadata = serde_json::json!({"name": name, "namespace": "default"});
            let map = serde_json::json!(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            );
            server.create(map).unwrap();
        }
        before = server.store().revision();
    }
}

#[tokio::test]
async fn kube_reads_over_the_identity() {
    let text = written(false).await;
    let config = Kubeconfig::from_yaml(&text).unwrap();
    let cluster = config.clusters[0].cluster.as_ref().unwrap();
    assert_eq!(cluster.extensions.as_ref().unwrap().len(), 1);
    let options = KubeConfigOptions::default();
    kube::Config::from_custom_kubeconfig(config, &options).await.unwrap();
}

#[tokio::test]
async fn without_tls_the_token_is_kept() {
    let text = written(true).await;
    assert!(!text.contains("extension"), "{text}");
    let (server, plain) = again(&text, true, "127.0.0.1:0").await;
    assert!(text.contains(server.token()));
    assert!(plain.ca_pem().is_none());
    let (_, encrypted) = again(&text, false, "127.0.0.1:0").await;
    assert!(works(&kube_client(&encrypted).await).await);
}

#[cfg(target_os = "linux")] // Other systems have only one loopback address.
#[tokio::test]
async fn on_another_address_certificates_are_new() {
    let text = written(false).await;
    let (_, listening) = again(&text, false, "127.0.0.2:0").await;
    let authority = |text: &str| {
        let line = text.lines().find(|line| line.contains("certificate-authority-data"));
        line.unwrap().to_owned()
    };
    assert_ne!(authority(&listening.kubeconfig()), authority(&text));
    assert!(works(&kube_client(&listening).await).await);
}

#[tokio::test]
async fn a_socket_that_others_can_reach_gives_no_key_away() {
    let server = ApiServer::start();
    let listening = server.listener().allow_remote(true).bind("0.0.0.0:0").await.unwrap();
    let text = listening.kubeconfig();
    assert!(!text.contains("extension"), "{text}");
    assert!(Identity::from_kubeconfig(&text).is_none());
}

/// Returns the rest of the line that starts with `name`.
fn value<'a>(text: &'a str, name: &str) -> &'a str {
    let mut lines = text.lines().map(str::trim_start);
    lines.find_map(|line| line.strip_prefix(name)).unwrap()
}

#[tokio::test]
async fn a_text_that_is_damaged_has_no_identity() {
    let [text, other] = [written(false).await, written(false).await];
    let of = |text: &str| Identity::from_kubeconfig(text).is_some();
    assert!(of(&text));
    let [certificate, key] = ["certificate: ", "key: "].map(|name| value(&text, name));
    let token = value(&text, "token: ");
    let of_others = value(&other, "key: ");
    for (part, instead) in [
        (Listening::KUBECONFIG_MARK, "# Written by somebody."),
        (key, of_others),
        (key, &key[4..]),
        (key, "??"),
        (key, "[]"),
        (certificate, &certificate[4..]),
        ("key: ", "keys: "),
        ("embedded-apiserver-identity", "another"),
        ("    extensions:\n", "    others:\n"),
        ("certificate-authority-data: ", "certificate-authority-data: ?"),
        (token, r#""""#),
        (token, r#""a b""#),
        ("users:\n", "users: []\nothers:\n"),
        ("clusters:\n", "clusters: [\n"),
    ] {
        let damaged = text.replacen(part, instead, 1);
        assert_ne!(damaged, text);
        assert!(!of(&damaged), "{part} {instead}");
    }
    // Truncated text never panics, and no part of it is accepted.
    let end = text.find(token).unwrap();
    assert!((0..end).all(|length| !of(&text[..length])));
    assert!(!of(""));
}

#[tokio::test]
async fn no_key_is_shown_by_accident() {
    let text = written(false).await;
    let identity = Identity::from_kubeconfig(&text).unwrap();
    let server = ApiServer::builder().token(identity.token()).build();
    let listener = server.listener().identity(identity.clone());
    let listening = listener.clone().bind("127.0.0.1:0").await.unwrap();
    let shown = format!("{identity:?} {listener:?} {listening:?} {server:?}");
    let key = value(&text, "key: ");
    assert!(!shown.contains(identity.token()) && !shown.contains(&key[40..60]), "{shown}");
    // Nor as a list of bytes.
    assert!(!shown.contains("certificate") && !shown.contains('['), "{shown}");
}
