//! Resources that are not served, and addresses that refuse connections.

use std::time::Duration;

use embedded_apiserver::{ApiServer, Verb};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube_informer::list_watch::KubeListWatch;
use kube_informer::{Event, SharedInformer, State};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::scene::{Errors, count, pause, seconds, server, settle, within};

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "orders.shop.example.com"},
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced",
            "names": {"plural": "orders", "singular": "order", "kind": "Order", "listKind": "OrderList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

fn order(name: &str) -> Value {
    json!({
        "apiVersion": "shop.example.com/v1", "kind": "Order",
        "metadata": {"name": name, "namespace": "default"},
    })
}

fn orders(server: &ApiServer) -> (SharedInformer<DynamicObject>, Errors) {
    let kind = GroupVersionKind::gvk("shop.example.com", "v1", "Order");
    let resource = ApiResource::from_gvk_with_plural(&kind, "orders");
    let errors = Errors::default();
    let source = KubeListWatch::new(server.client(), &resource);
    let informer = SharedInformer::from_source(source).seed(1).on_error(errors.recorder()).build();
    (informer, errors)
}

#[tokio::test(start_paused = true)]
async fn error_table_404_is_retried_until_the_resource_exists() {
    let server = server();
    let (informer, errors) = orders(&server);
    informer.start();
    seconds(300).await;
    let report = errors.last();
    assert!(report.error.is_not_found());
    let text = report.error.to_string();
    for part in ["does not serve", "CustomResourceDefinition", "orders", "shop.example.com"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(matches!(informer.state(), State::BackingOff { .. }));
    // L3: short pauses at first, because definitions are often created together with their users,
    // then every half a minute at most.
    let pauses: Vec<_> = errors.all().iter().map(pause).collect();
    assert!(pauses[0] <= Duration::from_millis(1600), "{pauses:?}");
    assert!(pauses[6..].iter().all(|pause| *pause >= Duration::from_secs(30)), "{pauses:?}");

    server.create(definition()).unwrap();
    server.create(order("o-1")).unwrap();
    within(Duration::from_secs(60), "found", || informer.has_synced()).await;
    assert_eq!(informer.lister().len(), 1);
    assert!(informer.is_live());
}

#[tokio::test(start_paused = true)]
async fn error_table_404_a_resource_that_returns_is_relisted() {
    let server = server();
    server.create(definition()).unwrap();
    server.create(order("o-1")).unwrap();
    server.create(order("o-2")).unwrap();
    let (informer, errors) = orders(&server);
    let (tell, mut told) = mpsc::unbounded_channel();
    informer.handler().for_each(move |event: Event<DynamicObject>| tell.send(event).unwrap());
    informer.start();
    informer.wait_for_sync().await.unwrap();
    settle().await;
    server
        .delete("customresourcedefinitions.apiextensions.k8s.io", "", "orders.shop.example.com")
        .unwrap();
    seconds(300).await;
    assert!(errors.last().error.is_not_found());
    assert!(!informer.is_live());
    server.create(definition()).unwrap();
    server.create(order("o-2")).unwrap();
    let back = || informer.is_live() && informer.lister().len() == 1;
    within(Duration::from_secs(61), "back", back).await;
    // I16: whenever the events were delivered, they add up to the server's order.
    let mut there = std::collections::BTreeSet::new();
    settle().await;
    while let Ok(event) = told.try_recv() {
        match event {
            Event::Added { object, .. } => assert!(there.insert(object.name().to_owned())),
            Event::Deleted(deleted) => assert!(there.remove(deleted.name())),
            Event::Updated { new, .. } => assert!(there.contains(new.name())),
            Event::Resynced(_) | Event::Synced => {}
        }
    }
    assert_eq!(there.into_iter().collect::<Vec<_>>(), ["o-2"]);
    assert_eq!(count(&server, Verb::List), 0);
}

/// Uses real sockets, because only they have addresses.
#[tokio::test]
async fn error_table_refused_names_the_address() {
    // Bound, so that the port stays reserved, but not listening.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let url: http::Uri = format!("http://127.0.0.1:{port}").parse().unwrap();
    let client = kube::Client::try_from(kube::Config::new(url)).unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let source = KubeListWatch::of::<k8s_openapi::api::core::v1::ConfigMap>(client);
    let informer = SharedInformer::<k8s_openapi::api::core::v1::ConfigMap>::from_source(source)
        .on_error(move |report| tell.send(report.clone()).unwrap())
        .build();
    informer.start();
    let report = told.recv().await.expect("nobody listens");
    assert!(report.error.is_connection_refused(), "{report}");
    assert!(report.to_string().contains(&format!("127.0.0.1:{port}")), "{report}");
    informer.shutdown().await;
}
