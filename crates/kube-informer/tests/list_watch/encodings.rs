//! The encodings that are requested, and the results of each.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use embedded_apiserver::{ApiServer, ApiService};
use http::{HeaderMap, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::client::Body;
use kube_informer::{
    BoxError, KubeListWatch, SharedInformerFactory, StaticKind, Storage, Transform,
};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower_service::Service;

use crate::support::{add, create, event, list_all, list_error, server, watch_error, watch_from};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Records the encodings of requests and responses, and can refuse requests for protobuf.
#[derive(Clone, Default)]
struct Observer(Arc<Mutex<Observed>>);

#[derive(Default)]
struct Observed {
    refuses_protobuf: bool,
    asked: Vec<String>,
    sent: Vec<String>,
}

impl Observer {
    fn client(&self, server: &ApiServer) -> Client {
        let service = server.service_as("kubernetes-admin");
        Client::new(Between { observer: self.clone(), service }, "default")
    }

    /// Returns the requests and responses since the last call.
    fn take(&self) -> (Vec<String>, Vec<String>) {
        let mut observed = self.0.lock();
        (std::mem::take(&mut observed.asked), std::mem::take(&mut observed.sent))
    }

    /// Returns the media types of responses since the last call, without parameters.
    fn sent(&self) -> Vec<String> {
        let bare = |sent: &String| sent.split(';').next().unwrap().to_owned();
        self.take().1.iter().map(bare).collect()
    }
}

#[derive(Clone)]
struct Between {
    observer: Observer,
    service: ApiService,
}

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

impl Service<Request<Body>> for Between {
    type Response = Answer;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Answer>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let header = |headers: &HeaderMap, name| {
            headers.get(name).map(|value: &http::HeaderValue| value.to_str().unwrap().to_owned())
        };
        let accept = header(request.headers(), "accept").unwrap();
        let mut observed = self.observer.0.lock();
        let refused = observed.refuses_protobuf && accept.contains(PROTOBUF);
        observed.asked.push(accept);
        drop(observed);
        let between = self.clone();
        let real = self.service.call(request);
        Box::pin(async move {
            if refused {
                let body = Full::default().map_err(Into::into).boxed_unsync();
                return Ok(Response::builder().status(406).body(body).expect("a response"));
            }
            let real = real.await?;
            let sent = header(real.headers(), "content-type").unwrap();
            between.observer.0.lock().sent.push(sent);
            Ok(real.map(|body| body.map_err(Into::into).boxed_unsync()))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn built_in_kinds_come_in_protobuf() {
    let (server, observer) = (server(), Observer::default());
    add(&server, "default", "a");
    let source = KubeListWatch::of::<ConfigMap>(observer.client(&server));
    assert_eq!(list_all(&source).await.keys(), ["default/a"]);
    let mut watch = watch_from(&source, "1").await.unwrap();
    assert_eq!(event(&mut watch).await.unwrap(), "added default/a");
    let (asked, sent) = observer.take();
    let both = format!("{PROTOBUF},application/json");
    assert_eq!(asked, [&*both, &both]);
    assert_eq!(sent, [PROTOBUF.to_owned(), format!("{PROTOBUF};stream=watch")]);
}

#[tokio::test(start_paused = true)]
async fn json_is_asked_for_where_protobuf_is_turned_off_or_unknown() {
    let (server, observer) = (server(), Observer::default());
    add(&server, "default", "a");
    let client = || observer.client(&server);
    let resource = ApiResource::erase::<ConfigMap>(&());
    for source in [
        KubeListWatch::of::<ConfigMap>(client()).protobuf(false),
        // An `Api` of a dynamic type does not reveal its kind.
        Api::<DynamicObject>::all_with(client(), &resource).into(),
    ] {
        assert_eq!(list_all(&source).await.keys(), ["default/a"]);
        let mut watch = watch_from(&source, "1").await.unwrap();
        assert_eq!(event(&mut watch).await.unwrap(), "added default/a");
        assert_eq!(observer.take().0, ["application/json"; 2]);
    }
    let kind = GroupVersionKind::gvk("test.example", "v1", "Wire");
    let wires = ApiResource::from_gvk_with_plural(&kind, "wires");
    assert!(list_error(&KubeListWatch::new(client(), &wires)).await.is_not_found());
    assert_eq!(observer.take().0, ["application/json"]);
}

#[tokio::test(start_paused = true)]
async fn metadata_of_every_kind_comes_in_protobuf() {
    let (server, observer) = (server(), Observer::default());
    let definition = json!({"spec": {
        "group": "test.example", "scope": "Namespaced",
        "names": {"plural": "wires", "singular": "wire", "kind": "Wire", "listKind": "WireList"},
        "versions": [{"name": "v1", "served": true, "storage": true,
                      "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let metadata = json!({"name": "wires.test.example"});
    create(&server, "apiextensions.k8s.io/v1", "CustomResourceDefinition", &metadata, &definition);
    let metadata = json!({"namespace": "default", "name": "a", "labels": {"l": "m"}});
    create(&server, "test.example/v1", "Wire", &metadata, &json!({"spec": {"x": 1}}));
    let kind = GroupVersionKind::gvk("test.example", "v1", "Wire");
    let wires = ApiResource::from_gvk_with_plural(&kind, "wires");
    let source = KubeListWatch::new(observer.client(&server), &wires).metadata_only();
    let page = list_all(&source).await;
    let json = list_all(&source.clone().protobuf(false)).await;
    assert_eq!(page.objects[0].labels().get("l"), Some("m"));
    let value = |page: &crate::support::Page| {
        serde_json::from_slice::<Value>(&page.objects[0].to_json().unwrap()).unwrap()
    };
    assert_eq!(value(&page), value(&json));
    let mut watch = watch_from(&source, "1").await.unwrap();
    assert_eq!(event(&mut watch).await.unwrap(), "added default/a");
    assert_eq!(observer.sent(), [PROTOBUF, "application/json", PROTOBUF]);
}

#[tokio::test(start_paused = true)]
async fn refused_protobuf_is_not_offered_again() {
    let (server, observer) = (server(), Observer::default());
    add(&server, "default", "a");
    observer.0.lock().refuses_protobuf = true;
    let source = KubeListWatch::of::<ConfigMap>(observer.client(&server));
    let clone = source.clone().namespace("default");
    assert_eq!(list_all(&source).await.keys(), ["default/a"]);
    let both = format!("{PROTOBUF},application/json");
    assert_eq!(observer.take().0, [&both, "application/json"]);
    // The refusal is remembered, by clones too.
    assert_eq!(list_all(&clone).await.keys(), ["default/a"]);
    let mut watch = watch_from(&source, "1").await.unwrap();
    assert_eq!(event(&mut watch).await.unwrap(), "added default/a");
    assert_eq!(observer.take().0, ["application/json"; 2]);
    // Another source makes its own attempt.
    let another = KubeListWatch::of::<ConfigMap>(observer.client(&server));
    let mut watch = watch_from(&another, "1").await.unwrap();
    assert_eq!(event(&mut watch).await.unwrap(), "added default/a");
    assert_eq!(observer.take().0, [&both, "application/json"]);
}

#[tokio::test(start_paused = true)]
async fn refusals_in_protobuf_are_as_plain_as_in_json() {
    let server = server();
    add(&server, "default", "a");
    server.store().compact(u64::MAX);
    let mut errors = Vec::new();
    for protobuf in [true, false] {
        let source = KubeListWatch::of::<ConfigMap>(server.client()).protobuf(protobuf);
        let mut watch = watch_from(&source, "1").await.unwrap();
        let expired = watch_error(&mut watch).await;
        assert!(expired.is_expired(), "{expired}");
        let missing = list_error(&KubeListWatch::of::<Node>(server.client()).namespace("x")).await;
        assert!(missing.is_not_found(), "{missing}");
        errors.push((expired.to_string(), missing.to_string()));
    }
    assert_eq!(errors[0], errors[1]);
}

#[tokio::test(start_paused = true)]
async fn informers_that_work_on_json_ask_for_it() {
    let (server, observer) = (server(), Observer::default());
    add(&server, "default", "a");
    let builder = || {
        let factory = SharedInformerFactory::builder(observer.client(&server));
        factory.streaming_lists(false)
    };
    for (factory, expected) in [
        (builder(), PROTOBUF),
        (builder().storage(Storage::Plain), PROTOBUF),
        (builder().keep_managed_fields(), PROTOBUF),
        (builder().protobuf(false), "application/json"),
        (builder().storage(Storage::Decoded), "application/json"),
        (builder().transform(Transform::drop_fields(["data"])), "application/json"),
    ] {
        let factory = factory.build();
        let maps = factory.informer::<ConfigMap>();
        factory.start();
        maps.wait_for_sync().await.unwrap();
        assert_eq!(
            maps.lister().get("default/a").unwrap().decode().unwrap().metadata.name,
            Some("a".into())
        );
        factory.shutdown().await;
        assert_eq!(observer.sent()[0], expected);
    }
    let factory = builder().build();
    let maps = factory.builder_for::<ConfigMap>().protobuf(false).build();
    factory.start();
    maps.wait_for_sync().await.unwrap();
    assert_eq!(observer.sent()[0], "application/json");
}

/// Lists and watches objects in both encodings, and compares them.
async fn compare<K>(server: &ApiServer)
where
    K: StaticKind + DeserializeOwned + PartialEq + std::fmt::Debug + Clone + Send + Sync + 'static,
{
    let source = || KubeListWatch::of::<K>(server.client());
    let (protobuf, json) = (list_all(&source()).await, list_all(&source().protobuf(false)).await);
    assert!(!json.objects.is_empty());
    assert_eq!((protobuf.keys(), &protobuf.version), (json.keys(), &json.version));
    for (one, other) in protobuf.objects.iter().zip(&json.objects) {
        let [one_typed, other_typed] =
            [one, other].map(|object| object.clone().cast::<K>().decode().unwrap());
        assert_eq!(*one_typed, *other_typed);
        assert_eq!(one.uid(), other.uid());
        assert_eq!(one.resource_version(), other.resource_version());
        assert_eq!(one.field::<Value>("metadata").unwrap(), other.field("metadata").unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn both_encodings_decode_to_the_same_objects() {
    let server = server();
    let metadata = json!({"namespace": "default", "name": "a", "labels": {"app": "shop"},
                          "annotations": {"note": "Größe"}, "finalizers": ["test.example/x"]});
    let container = json!({
        "name": "c", "image": "nginx", "ports": [{"containerPort": 80}],
        "resources": {"limits": {"cpu": "100m", "memory": "1Gi"}},
        "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
        "env": [{"name": "A", "value": "b"}, {"name": "E"}],
    });
    let pod = json!({"containers": [container], "nodeName": "n", "terminationGracePeriodSeconds": 0,
                     "volumes": [{"name": "v", "emptyDir": {}}]});
    create(
        &server,
        "v1",
        "ConfigMap",
        &metadata,
        &json!({"data": {"k": "v"}, "binaryData": {"b": "AP8="}}),
    );
    create(&server, "v1", "Secret", &metadata, &json!({"data": {"password": "eHl6enk="}}));
    create(&server, "v1", "Pod", &metadata, &json!({"spec": pod}));
    let deployment = json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "shop"}},
        "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
        "template": {"metadata": {"labels": {"app": "shop"}}, "spec": pod}}});
    create(&server, "apps/v1", "Deployment", &metadata, &deployment);
    compare::<ConfigMap>(&server).await;
    compare::<Secret>(&server).await;
    compare::<Pod>(&server).await;
    compare::<Deployment>(&server).await;
}
