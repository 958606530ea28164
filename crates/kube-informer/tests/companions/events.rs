//! Events: their form on the server, limits, and servers that cannot be reached.

use std::time::Duration;

use embedded_apiserver::{ApiServer, Denial, Fault, Verb};
use k8s_openapi::api::core::v1::{Namespace, ObjectReference};
use kube_informer::{EventCounts, EventType, Object, Recorder};
use serde_json::{Value, json};
use tokio::time::{Instant, advance, sleep};

use crate::scene::{create, object, requests, server};

const NAME: &str = "example.com/controller";

fn recorder(server: &ApiServer) -> Recorder {
    Recorder::with_instance(server.client(), NAME, "here").expect("it can be named so")
}

/// Returns the events as `v1`, which is how the server stores them.
fn events(server: &ApiServer) -> Vec<Value> {
    server.list("events", "")
}

fn counts(server: &ApiServer) -> Vec<u64> {
    let mut all = events(server);
    let version =
        |event: &Value| event["metadata"]["resourceVersion"].as_str()?.parse::<u64>().ok();
    all.sort_by_key(version);
    all.iter().map(|event| event["series"]["count"].as_u64().unwrap_or(1)).collect()
}

fn about(name: &str) -> ObjectReference {
    ObjectReference {
        kind: Some("ConfigMap".to_owned()),
        namespace: Some("default".to_owned()),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

/// Runs everything that can run now; time is paused.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn ev1_event_is_written_in_the_background() {
    let server = server();
    let map = create(&server, "a");
    let recorder = recorder(&server);
    recorder.event(&map, EventType::Warning, "Failed", "Reconcile", "it is broken");
    assert!(events(&server).is_empty(), "nothing waits for it");
    settle().await;
    let [event] = &events(&server)[..] else { panic!("one") };
    let expected = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "a",
        "uid": map.uid(), "resourceVersion": map.resource_version().as_str(),
    });
    assert_eq!(event["involvedObject"], expected);
    assert_eq!((&event["type"], &event["message"]), (&json!("Warning"), &json!("it is broken")));
    assert_eq!(event["reportingComponent"], NAME);
    assert_eq!(event["reportingInstance"], "here");
    assert!(event["metadata"]["name"].as_str().unwrap().starts_with("a."));
}

#[tokio::test(start_paused = true)]
async fn ev2_repetitions_are_one_event_with_a_count() {
    let server = server();
    let map = create(&server, "a");
    let recorder = recorder(&server);
    for _ in 0..10 {
        recorder.event(&map, EventType::Normal, "Up", "Start", "hello");
        sleep(Duration::from_secs(30)).await;
    }
    assert_eq!(requests(&server), ["Create", "Patch"]);
    assert_eq!(counts(&server), [2]);
    sleep(Duration::from_secs(6 * 60)).await;
    assert_eq!(requests(&server), ["Create", "Patch", "Patch"]);
    assert_eq!(counts(&server), [10]);
    let event = &events(&server)[0];
    assert!(event["series"]["lastObservedTime"].as_str() >= event["eventTime"].as_str());
    // After that it is a new event.
    recorder.event(&map, EventType::Normal, "Up", "Start", "hello");
    settle().await;
    assert_eq!(counts(&server), [10, 1]);
}

#[tokio::test(start_paused = true)]
async fn expired_event_is_created_with_its_series() {
    let server = server();
    let recorder = recorder(&server);
    recorder.event(about("a"), EventType::Normal, "Up", "Start", "");
    recorder.flush().await;
    let name = events(&server)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    server.delete("events", "default", &name).unwrap();
    recorder.event(about("a"), EventType::Normal, "Up", "Start", "");
    recorder.flush().await;
    assert_eq!(requests(&server), ["Create", "Patch", "Create"]);
    assert_eq!(counts(&server), [2]);
}

#[tokio::test(start_paused = true)]
async fn ev7_events_about_one_object_are_limited() {
    let server = server();
    let recorder = recorder(&server);
    for nth in 0..40 {
        recorder.event(about("a"), EventType::Normal, &format!("R{nth}"), "Start", "");
    }
    recorder.event(about("b"), EventType::Normal, "Up", "Start", "");
    recorder.flush().await;
    assert_eq!(events(&server).len(), 26);
    assert_eq!((recorder.counts().written, recorder.counts().limited), (26, 15));
    // One more every five minutes.
    sleep(Duration::from_secs(300)).await;
    for nth in 40..50 {
        recorder.event(about("a"), EventType::Normal, &format!("R{nth}"), "Start", "");
    }
    recorder.flush().await;
    assert_eq!(events(&server).len(), 27);
}

#[tokio::test(start_paused = true)]
async fn ev9_queue_is_bounded() {
    let server = server();
    let recorder = recorder(&server);
    let start = Instant::now();
    for nth in 0..1500 {
        recorder.event(about(&format!("o{nth}")), EventType::Normal, "Up", "Start", "");
    }
    assert_eq!(recorder.counts().dropped, 500);
    recorder.flush().await;
    assert_eq!(events(&server).len(), 1000);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn ev10_events_wait_for_a_server_that_comes_back() {
    let server = server();
    let recorder = recorder(&server);
    server.refuse_connections();
    for nth in 0..5 {
        recorder.event(about(&format!("o{nth}")), EventType::Normal, "Up", "Start", "");
    }
    sleep(Duration::from_secs(60)).await;
    assert_eq!(recorder.counts(), EventCounts::default());
    server.accept_connections();
    recorder.flush().await;
    assert_eq!(events(&server).len(), 5);
    assert_eq!((recorder.counts().written, recorder.counts().failed), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn ev10_old_events_are_given_up() {
    let server = server();
    let recorder = recorder(&server);
    server.refuse_connections();
    for nth in 0..1000 {
        recorder.event(about(&format!("o{nth}")), EventType::Normal, "Up", "Start", "");
    }
    let start = Instant::now();
    recorder.flush().await;
    let took = start.elapsed();
    assert!(took > Duration::from_secs(90) && took <= Duration::from_secs(131), "{took:?}");
    assert_eq!(recorder.counts().failed, 1000);
    // A new event is retried, and one of those that were lost is a series with all repetitions.
    server.accept_connections();
    recorder.event(about("new"), EventType::Normal, "Up", "Start", "");
    recorder.event(about("o7"), EventType::Normal, "Up", "Start", "");
    recorder.flush().await;
    assert_eq!(counts(&server), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn ev11_lost_answer_does_not_write_an_event_twice() {
    let server = server();
    let recorder = recorder(&server);
    server.faults().on(Verb::Create).inject(Fault::LostAnswer);
    recorder.event(about("a"), EventType::Normal, "Up", "Start", "");
    recorder.flush().await;
    assert_eq!(counts(&server), [1]);
    assert_eq!(requests(&server), ["Create", "Create"]);
    assert_eq!((recorder.counts().written, recorder.counts().failed), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn busy_server_is_asked_again_after_what_it_says() {
    let server = server();
    let recorder = recorder(&server);
    server.faults().on(Verb::Create).inject(Fault::status_retry_after(429, "40"));
    let start = Instant::now();
    recorder.event(about("a"), EventType::Normal, "Up", "Start", "");
    recorder.flush().await;
    assert!(start.elapsed() >= Duration::from_secs(40), "{:?}", start.elapsed());
    assert_eq!(counts(&server), [1]);
}

#[tokio::test(start_paused = true)]
async fn server_that_wants_to_be_left_alone_is_asked_once() {
    let server = server();
    let recorder = recorder(&server);
    server.faults().on(Verb::Create).always().inject(Fault::status_retry_after(429, "200"));
    for nth in 0..100 {
        recorder.event(about(&format!("o{nth}")), EventType::Normal, "Up", "Start", "");
    }
    recorder.flush().await;
    assert_eq!((requests(&server).len(), recorder.counts().failed), (1, 100));
    // Later events wait until then.
    server.faults().clear();
    sleep(Duration::from_secs(100)).await;
    recorder.event(about("later"), EventType::Normal, "Up", "Start", "");
    let start = Instant::now();
    recorder.flush().await;
    assert_eq!((counts(&server), start.elapsed().as_secs()), (vec![1], 100));
}

#[tokio::test(start_paused = true)]
async fn waiting_can_be_spawned() {
    let server = server();
    let recorder = recorder(&server);
    recorder.event(about("a"), EventType::Normal, "Up", "Start", "");
    let flushed = recorder.clone();
    tokio::spawn(async move { flushed.flush().await }).await.unwrap();
    tokio::spawn(async move { recorder.shutdown().await }).await.unwrap();
    assert_eq!(counts(&server), [1]);
}

#[tokio::test(start_paused = true)]
async fn refused_event_is_not_tried_again() {
    let server = server();
    server.access().deny(Denial::verbs([Verb::Create]).user("jane"));
    let recorder = Recorder::new(server.client_as("jane"), NAME).unwrap();
    recorder.event(about("a"), EventType::Normal, "Up", "Start", "");
    let nowhere = ObjectReference { namespace: Some("nowhere".to_owned()), ..about("a") };
    recorder.event(nowhere, EventType::Normal, "Up", "Start", "");
    let start = Instant::now();
    recorder.flush().await;
    assert_eq!((start.elapsed(), recorder.counts().failed), (Duration::ZERO, 2));
}

#[tokio::test(start_paused = true)]
async fn silent_connection_does_not_hold_events_for_ever() {
    let server = server();
    let recorder = recorder(&server);
    server.faults().on(Verb::Create).inject(Fault::HalfOpen);
    recorder.event(about("a"), EventType::Normal, "Up", "Start", "");
    recorder.flush().await;
    assert_eq!(counts(&server), [1]);
}

#[tokio::test(start_paused = true)]
async fn ev12_shutdown_writes_what_is_left_and_always_ends() {
    let server = server();
    let recorder = recorder(&server);
    for _ in 0..5 {
        recorder.event(about("a"), EventType::Normal, "Up", "Start", "");
    }
    recorder.shutdown().await;
    assert_eq!(counts(&server), [5]);
    recorder.event(about("b"), EventType::Normal, "Up", "Start", "");
    recorder.shutdown().await;
    recorder.flush().await;
    assert_eq!((counts(&server), recorder.counts().dropped), (vec![5], 1));

    let recorder = self::recorder(&server);
    server.refuse_connections();
    for nth in 0..10 {
        recorder.event(about(&format!("o{nth}")), EventType::Normal, "Up", "Start", "");
    }
    let start = Instant::now();
    recorder.shutdown().await;
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    assert_eq!(recorder.counts().dropped, 9, "the first one was being written");
}

#[tokio::test(start_paused = true)]
async fn task_writes_what_is_left_when_the_last_handle_goes() {
    let server = server();
    let recorder = recorder(&server);
    for _ in 0..3 {
        recorder.clone().event(about("a"), EventType::Normal, "Up", "Start", "");
    }
    drop(recorder);
    settle().await;
    assert_eq!(counts(&server), [3]);
    advance(Duration::from_secs(3600)).await;
    assert_eq!(requests(&server).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn ev1_events_about_cluster_scoped_objects_are_in_default() {
    let server = server();
    let recorder = recorder(&server);
    let namespace: Object<Namespace> =
        object(&server.get("namespaces", "", "kube-system").unwrap());
    recorder.event(&namespace, EventType::Normal, "Up", "Start", "");
    recorder.flush().await;
    let event = &events(&server)[0];
    assert_eq!(event["metadata"]["namespace"], "default");
    assert_eq!(event["involvedObject"].get("namespace"), None);
}

#[tokio::test(start_paused = true)]
async fn ev8_event_that_cannot_be_is_counted() {
    let server = server();
    let recorder = recorder(&server);
    recorder.event(about("a"), EventType::Normal, "", "Start", "");
    recorder.event(ObjectReference::default(), EventType::Normal, "Up", "Start", "");
    recorder.flush().await;
    assert_eq!((recorder.counts().refused, requests(&server).len()), (2, 0));
}

#[test]
fn recording_needs_no_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (server, client) = runtime.block_on(async {
        let server = server();
        let client = server.client();
        (server, client)
    });
    // Created and used outside a runtime: events wait until a call within one.
    let recorder = Recorder::new(client, NAME).unwrap();
    recorder.event(about("a"), EventType::Normal, "Up", "Start", "");
    runtime.block_on(recorder.flush());
    assert_eq!(counts(&server), [1]);
    // Once the runtime is gone, they are dropped.
    drop(runtime);
    recorder.event(about("b"), EventType::Normal, "Up", "Start", "");
    assert_eq!(recorder.counts().dropped, 1);
    futures::executor::block_on(recorder.flush());
    futures::executor::block_on(recorder.shutdown());
}
