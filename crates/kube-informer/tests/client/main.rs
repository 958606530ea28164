//! `kube_informer::client`, on sockets and with TLS. Connections that fill up and fall silent are tested in
//! paused time, in `client::tests`.

mod credentials;
mod front;
mod proxies;
mod relay;

use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Listening, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use kube_informer::list_watch::{ListOptions, WatchOptions};
use kube_informer::{KubeListWatch, ListWatch, SharedInformer};
use serde_json::json;

use front::{Front, HTTP1, HTTP2};
use relay::Relay;

/// Returns the configuration for a server, at the address that leads to it.
pub(crate) async fn config(listening: &Listening, at: &str) -> Config {
    let kubeconfig = Kubeconfig::from_yaml(&listening.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    config.cluster_url = at.parse().unwrap();
    config.proxy_url = None;
    config
}

pub(crate) async fn listen(server: &ApiServer) -> Listening {
    server.listen("127.0.0.1:0").await.unwrap()
}

pub(crate) async fn is_answered(client: &Client) -> bool {
    Api::<Namespace>::all(client.clone()).get("default").await.is_ok()
}

fn add(server: &ApiServer, namespace: &str, name: &str) {
    let metadata = json!({"namespace": namespace, "name": name});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    server.create(map).unwrap();
}

/// Starts an informer for each of this many namespaces, and waits until all have synced and watch.
async fn informers(
    server: &ApiServer,
    client: &Client,
    number: usize,
) -> Vec<SharedInformer<ConfigMap>> {
    let informers: Vec<_> = (0..number)
        .map(|n| {
            let namespace = format!("n{n}");
            let metadata = json!({"name": namespace});
            server
                .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
                .unwrap();
            let source = KubeListWatch::of::<ConfigMap>(client.clone()).namespace(&namespace);
            SharedInformer::from_source(source).build()
        })
        .collect();
    informers.iter().for_each(SharedInformer::start);
    for informer in &informers {
        informer.wait_for_sync().await.unwrap();
    }
    informers
}

#[tokio::test]
async fn thirty_informers_share_a_connection() {
    let server = ApiServer::start();
    let listening = listen(&server).await;
    let relay = Relay::start(listening.addr()).await;
    let client = kube_informer::client(config(&listening, &relay.url()).await).unwrap();
    let informers = informers(&server, &client, 30).await;
    for (n, informer) in informers.iter().enumerate() {
        let mut events = informer.events();
        add(&server, &format!("n{n}"), "a");
        while informer.lister().list().is_empty() {
            events.next().await.unwrap();
        }
    }
    assert_eq!(server.watches(), 30);
    assert_eq!(relay.connections(), 1);
    // For comparison: the connections of kube's own client.
    let kubes = Client::try_from(config(&listening, &relay.url()).await).unwrap();
    let mut watches = Vec::new();
    for n in 0..3 {
        let source = KubeListWatch::of::<ConfigMap>(kubes.clone()).namespace(format!("n{n}"));
        watches.push(source.watch(WatchOptions::default()).await);
    }
    assert_eq!(relay.connections(), 4);
}

/// The connection breaks under all of them at once.
#[tokio::test]
async fn informers_go_on_after_their_connection_has_broken() {
    let server = ApiServer::start();
    let listening = listen(&server).await;
    let relay = Relay::start(listening.addr()).await;
    let client = kube_informer::client(config(&listening, &relay.url()).await).unwrap();
    let informers = informers(&server, &client, 5).await;
    server.faults().on(Verb::Watch).after_events(0).times(1).inject(Fault::Reset);
    for (n, informer) in informers.iter().enumerate() {
        let mut events = informer.events();
        add(&server, &format!("n{n}"), "a");
        while informer.lister().list().is_empty() {
            events.next().await.unwrap();
        }
    }
    assert_eq!(relay.connections(), 2);
}

#[tokio::test]
async fn http1_is_spoken_where_the_server_offers_nothing_else() {
    let server = ApiServer::start();
    let plain = server.listener().plain(true).bind("127.0.0.1:0").await.unwrap();
    for offered in [&[][..], &[HTTP1]] {
        let front = Front::start(plain.addr(), offered, "127.0.0.1").await;
        let client = kube_informer::client(front.config(&plain).await).unwrap();
        assert!(is_answered(&client).await);
        let watch = KubeListWatch::of::<ConfigMap>(client.clone());
        let _watch = watch.watch(WatchOptions::default()).await.unwrap();
        assert!(is_answered(&client).await);
        let agreed = front.agreed();
        assert!(agreed.iter().all(|agreed| agreed.as_deref() != Some(HTTP2)), "{agreed:?}");
        // One to negotiate, one for the watch, and at most two for the other requests.
        assert!((3..=4).contains(&agreed.len()), "{agreed:?}");
    }
}

#[tokio::test]
async fn upgrades_are_asked_for_over_http1() {
    let server = ApiServer::start();
    let plain = server.listener().plain(true).bind("127.0.0.1:0").await.unwrap();
    let front = Front::start(plain.addr(), &[HTTP2, HTTP1], "127.0.0.1").await;
    let client = kube_informer::client(front.config(&plain).await).unwrap();
    assert!(is_answered(&client).await);
    let path = "/api/v1/namespaces/default/pods/a/exec";
    let request = http::Request::get(path).header("connection", "upgrade");
    let request = request.header("upgrade", "websocket").body(kube::client::Body::empty()).unwrap();
    // The server does not support `exec`; only the protocol of the request matters.
    client.send(request).await.unwrap();
    let agreed = front.agreed();
    assert_eq!(agreed[0].as_deref(), Some(HTTP2));
    assert_ne!(agreed[1].as_deref(), Some(HTTP2));
}

#[tokio::test]
async fn without_tls_http1_is_spoken() {
    let server = ApiServer::start();
    let plain = server.listener().plain(true).bind("127.0.0.1:0").await.unwrap();
    let client = kube_informer::client(config(&plain, &plain.url()).await).unwrap();
    assert!(is_answered(&client).await);
}

#[tokio::test]
async fn certificates_are_checked_as_the_configuration_says() {
    let server = ApiServer::start();
    let plain = server.listener().plain(true).bind("127.0.0.1:0").await.unwrap();
    let front = Front::start(plain.addr(), &[HTTP2], "kubernetes.example").await;
    let is_answered_with = async |change: fn(&mut Config)| {
        let mut config = front.config(&plain).await;
        change(&mut config);
        is_answered(&kube_informer::client(config).unwrap()).await
    };
    assert!(!is_answered_with(|_| {}).await, "it is that of another host");
    assert!(
        is_answered_with(|config| config.tls_server_name = Some("kubernetes.example".into())).await
    );
    assert!(is_answered_with(|config| config.accept_invalid_certs = true).await);
    assert!(
        !is_answered_with(|config| {
            config.tls_server_name = Some("kubernetes.example".into());
            config.root_cert = Some(Vec::new());
        })
        .await,
        "nobody vouches for it"
    );
}

/// Nothing else can happen here, so time may be paused despite the sockets.
#[tokio::test(start_paused = true)]
async fn connecting_takes_no_longer_than_it_may() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config =
        Config::new(format!("https://{}", silent.local_addr().unwrap()).parse().unwrap());
    config.connect_timeout = Some(Duration::from_secs(7));
    let source = KubeListWatch::of::<ConfigMap>(kube_informer::client(config).unwrap());
    let began = tokio::time::Instant::now();
    let error = source.list(ListOptions::default()).await.err().unwrap();
    assert!(error.to_string().contains("the connection timed out"), "{error}");
    assert_eq!(began.elapsed().as_secs(), 7);
}

/// Such responses are passed to the informer, which waits as long as the server asks for, and
/// reports them.
#[tokio::test]
async fn what_the_server_refuses_is_not_retried() {
    let server = ApiServer::start();
    let listening = listen(&server).await;
    let mut config = config(&listening, &listening.url()).await;
    config.default_retry = true;
    let source = KubeListWatch::of::<ConfigMap>(kube_informer::client(config).unwrap());
    server
        .faults()
        .on(Verb::List)
        .times(1)
        .inject(Fault::Status { code: http::StatusCode::TOO_MANY_REQUESTS, retry_after: None });
    let error = source.list(ListOptions::default()).await.err().unwrap();
    assert!(error.is_too_many_requests(), "{error}");
}

#[tokio::test]
async fn errors_are_told_as_with_any_client() {
    let server = ApiServer::start();
    let listening = listen(&server).await;
    // Bound, so that no other test gets the port, but not listening.
    let bound = tokio::net::TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = bound.local_addr().unwrap();
    let client = config(&listening, &format!("https://{address}")).await;
    let source = KubeListWatch::of::<ConfigMap>(kube_informer::client(client).unwrap());
    let error = source.list(ListOptions::default()).await.err().unwrap();
    assert!(error.is_connection_refused(), "{error}");
    assert!(error.to_string().contains(&format!("nobody listens at {address}")), "{error}");

    let mut config = config(&listening, &listening.url()).await;
    config.root_cert = Some(Vec::new());
    let source = KubeListWatch::of::<ConfigMap>(kube_informer::client(config).unwrap());
    let error = source.list(ListOptions::default()).await.err().unwrap();
    assert!(error.to_string().contains("cannot connect (invalid peer certificate"), "{error}");
}
