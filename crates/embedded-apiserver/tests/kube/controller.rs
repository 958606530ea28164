//! A complete controller: it creates a config map for each document, reports that in the status and
//! in an event, and cleans up.

use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::ApiServer;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use k8s_openapi::api::events::v1::Event as KubeEvent;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{self, finalizer};
use kube::runtime::watcher;
use kube::{Client, CustomResourceExt, Resource, ResourceExt};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::document::{Document, DocumentSpec};
use crate::harness::{until, with_data};

const FINALIZER: &str = "tests.example.com/cleanup";

struct Context {
    client: Client,
    recorder: Recorder,
}

async fn reconcile(
    document: Arc<Document>,
    context: Arc<Context>,
) -> Result<Action, finalizer::Error<kube::Error>> {
    let namespace = document.namespace().expect("documents have one");
    let documents: Api<Document> = Api::namespaced(context.client.clone(), &namespace);
    finalizer(&documents, FINALIZER, document, |event| async {
        match event {
            finalizer::Event::Apply(document) => show(&document, &context).await,
            finalizer::Event::Cleanup(document) => clean_up(&document, &context).await,
        }
    })
    .await
}

async fn show(document: &Document, context: &Context) -> kube::Result<Action> {
    let (namespace, name) = (document.namespace().unwrap_or_default(), document.name_any());
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &namespace);
    let text = &document.spec.text;
    let mut map = with_data(&name, text);
    map.metadata.owner_references = document.controller_owner_ref(&()).map(|owner| vec![owner]);
    match maps.get_opt(&name).await? {
        None => drop(maps.create(&PostParams::default(), &map).await?),
        Some(there) if there.data == map.data => {}
        Some(_) => drop(maps.replace(&name, &PostParams::default(), &map).await?),
    }
    if document.status.as_ref().is_none_or(|status| status.shown != *text) {
        let documents: Api<Document> = Api::namespaced(context.client.clone(), &namespace);
        let patch = Patch::Merge(json!({"status": {"shown": text}}));
        documents.patch_status(&name, &PatchParams::default(), &patch).await?;
        context.recorder.publish(&shown(), &document.object_ref(&())).await?;
    }
    Ok(Action::await_change())
}

async fn clean_up(document: &Document, context: &Context) -> kube::Result<Action> {
    let namespace = document.namespace().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &namespace);
    match maps.delete(&document.name_any(), &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        outcome => drop(outcome?),
    }
    Ok(Action::await_change())
}

fn shown() -> Event {
    Event {
        type_: EventType::Normal,
        reason: "Shown".to_owned(),
        note: Some("The document is shown".to_owned()),
        action: "Show".to_owned(),
        secondary: None,
    }
}

fn reporter() -> Reporter {
    Reporter { controller: "documents".to_owned(), instance: None }
}

fn run(server: &ApiServer, config: &watcher::Config) -> JoinHandle<()> {
    let client = server.client();
    let documents: Api<Document> = Api::all(client.clone());
    let maps: Api<ConfigMap> = Api::all(client.clone());
    let recorder = Recorder::new(client.clone(), reporter());
    let context = Arc::new(Context { client, recorder });
    let retry = |_: Arc<Document>, _: &_, _| Action::requeue(Duration::from_secs(1));
    let controller = Controller::new(documents, config.clone()).owns(maps, config.clone());
    tokio::spawn(controller.run(reconcile, retry, context).for_each(|_| async {}))
}

fn install(server: &ApiServer) -> Api<Document> {
    server.create(serde_json::to_value(Document::crd()).unwrap()).unwrap();
    Api::default_namespaced(server.client())
}

fn text(server: &ApiServer, name: &str) -> Option<String> {
    let map = server.get("configmaps", "default", name)?;
    map["data"]["value"].as_str().map(str::to_owned)
}

fn status(server: &ApiServer, name: &str) -> Option<String> {
    let document = server.get("documents.tests.example.com", "default", name)?;
    document["status"]["shown"].as_str().map(str::to_owned)
}

async fn is_shown(server: &ApiServer, name: &str, want: &str) {
    let want = Some(want.to_owned());
    until("it is shown", || text(server, name) == want && status(server, name) == want).await;
}

#[tokio::test(start_paused = true)]
async fn a_controller_brings_the_world_to_what_is_desired_and_cleans_up() {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let server = ApiServer::start();
        let documents = install(&server);
        let controller = run(&server, &config);
        let document = Document::new("d", DocumentSpec { text: "one".to_owned() });
        documents.create(&PostParams::default(), &document).await.unwrap();
        is_shown(&server, "d", "one").await;

        let patch = Patch::Merge(json!({"spec": {"text": "two"}}));
        let patched = documents.patch("d", &PatchParams::default(), &patch).await.unwrap();
        assert_eq!(patched.metadata.generation, Some(2));
        is_shown(&server, "d", "two").await;
        // An owned object is recreated when it is deleted.
        server.delete("configmaps", "default", "d").unwrap();
        is_shown(&server, "d", "two").await;

        let deleted = documents.delete("d", &DeleteParams::default()).await.unwrap();
        let marked = deleted.left().expect("it has a finalizer");
        assert!(marked.metadata.deletion_timestamp.is_some());
        let gone = || server.get("documents.tests.example.com", "default", "d").is_none();
        until("the document goes", gone).await;
        assert_eq!(text(&server, "d"), None);
        controller.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_gets_over_dropped_watches_restarts_and_compaction() {
    let server = ApiServer::start();
    let documents = install(&server);
    let controller = run(&server, &watcher::Config::default());
    let document = Document::new("d", DocumentSpec { text: "0".to_owned() });
    documents.create(&PostParams::default(), &document).await.unwrap();
    for round in 1..=9 {
        match round % 3 {
            0 => server.drop_watches(),
            1 => server.restart(),
            _ => {
                server.restart();
                server.store().compact(u64::MAX);
            }
        }
        let patch = Patch::Merge(json!({"spec": {"text": round.to_string()}}));
        documents.patch("d", &PatchParams::default(), &patch).await.unwrap();
        is_shown(&server, "d", &round.to_string()).await;
    }
    controller.abort();
}

/// Once the desired state is reached, a controller is idle: its own writes do not wake it forever.
#[tokio::test(start_paused = true)]
async fn a_controller_that_is_done_asks_for_nothing() {
    let server = ApiServer::start();
    let documents = install(&server);
    let controller = run(&server, &watcher::Config::default().timeout(290));
    let document = Document::new("d", DocumentSpec { text: "one".to_owned() });
    documents.create(&PostParams::default(), &document).await.unwrap();
    is_shown(&server, "d", "one").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let revision = server.store().revision();
    server.clear_record();
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(server.requests(), []);
    assert_eq!(server.store().revision(), revision);
    controller.abort();
}

/// Events are written through `events.k8s.io` and read through either group. A repeated event is
/// counted in the first one.
#[tokio::test(start_paused = true)]
async fn published_events_are_found_and_counted() {
    let server = ApiServer::start();
    let client = server.client();
    let recorder = Recorder::new(client.clone(), reporter());
    let about = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("ConfigMap".to_owned()),
        name: Some("a".to_owned()),
        namespace: Some("default".to_owned()),
        uid: Some("u".to_owned()),
        ..ObjectReference::default()
    };
    for _ in 0..3 {
        recorder.publish(&shown(), &about).await.unwrap();
    }
    let events: Api<KubeEvent> = Api::default_namespaced(client.clone());
    let of_a = ListParams::default().fields("regarding.name=a");
    let found = events.list(&of_a).await.unwrap().items;
    assert_eq!((found.len(), found[0].reason.as_deref()), (1, Some("Shown")));
    assert_eq!(found[0].series.as_ref().unwrap().count, 3);
    let core: Api<k8s_openapi::api::core::v1::Event> = Api::default_namespaced(client);
    let of_a = ListParams::default().fields("involvedObject.name=a");
    let found = core.list(&of_a).await.unwrap().items;
    assert_eq!(found[0].message.as_deref(), Some("The document is shown"));
}
