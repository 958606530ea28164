//! FA-2 to FA-5: factories and their informers start, wait and stop.

use std::time::Duration;

use embedded_apiserver::{Denial, Fault, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube_informer::{NotSyncedReason, SharedInformerFactory};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::scene::{Maps, asked, requests, seconds, server, settle};

#[tokio::test(start_paused = true)]
async fn fa2_no_request_is_sent_before_the_start() {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let informer = factory.informer::<ConfigMap>();
    seconds(100).await;
    assert_eq!(requests(&server).len(), 0);
    let began = Instant::now();
    let error = factory.wait_for_sync().await.unwrap_err();
    assert_eq!(error.reason, NotSyncedReason::NotStarted);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(informer.state().as_str(), "idle");
}

#[tokio::test(start_paused = true)]
async fn fa3_b23_what_is_asked_for_after_the_start_starts_by_itself() {
    // In client-go a forgotten second Start is a silent bug.
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    factory.start();
    factory.wait_for_sync().await.expect("there is nothing to wait for");
    let maps = factory.informer::<ConfigMap>();
    maps.wait_for_sync().await.unwrap();
    let secrets = factory.informer::<Secret>();
    factory.wait_for_sync().await.unwrap();
    assert!(secrets.has_synced());
    factory.start();
    settle().await;
    assert_eq!(asked(&server), ["stream"; 2]);
}

#[tokio::test(start_paused = true)]
async fn fa3_informers_of_a_factory_can_be_started_one_by_one() {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let maps = factory.informer::<ConfigMap>();
    let secrets = factory.informer::<Secret>();
    maps.start();
    maps.wait_for_sync().await.unwrap();
    assert!(!secrets.has_synced());
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(server.watches(), 2);
}

#[tokio::test(start_paused = true)]
async fn fa4_l5_a_shutdown_ends_everything_at_once_and_for_good() {
    let server = server();
    // One of them watches, one hangs, one backs off.
    server.faults().on(Verb::Watch).resource("secrets").always().inject(Fault::StalledHeaders);
    server.access().deny(Denial::all().resource("pods"));
    let tasks = Handle::current().metrics().num_alive_tasks();
    let factory = SharedInformerFactory::new(server.client());
    let maps = factory.informer::<ConfigMap>();
    let others = (factory.informer::<Secret>(), factory.informer::<Pod>());
    let mut events = maps.events();
    factory.start();
    seconds(5).await;
    let began = Instant::now();
    tokio::join!(factory.shutdown(), factory.shutdown());
    factory.shutdown().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(server.watches(), 0);
    while events.next().await.is_some() {}
    let states: Vec<_> = factory.status().iter().map(|status| status.state.as_str()).collect();
    assert_eq!(states, ["stopped"; 3]);

    server.clear_record();
    factory.start();
    let late = factory.informer::<ConfigMap>();
    seconds(5).await;
    assert!(late.is_stopped());
    assert_eq!(late.wait_for_sync().await.unwrap_err().reason, NotSyncedReason::Stopped);
    assert_eq!(requests(&server).len(), 0);
    drop((factory, maps, late, others, events));
    settle().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
}

#[tokio::test(start_paused = true)]
async fn fa4_a_stop_before_the_start_is_one() {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let maps = factory.informer::<ConfigMap>();
    factory.stop();
    factory.start();
    seconds(5).await;
    assert!(maps.is_stopped());
    assert!(maps.events().next().await.is_none());
    assert_eq!(requests(&server).len(), 0);
    tokio::time::timeout(Duration::from_secs(1), factory.shutdown()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn fa5_waiting_tells_of_each_informer_what_it_hangs_on() {
    let server = server();
    server.access().deny(Denial::all().resource("secrets"));
    server.faults().on(Verb::Watch).resource("pods").always().inject(Fault::StalledHeaders);
    let factory = SharedInformerFactory::new(server.client());
    let _all =
        (factory.informer::<ConfigMap>(), factory.informer::<Secret>(), factory.informer::<Pod>());
    factory.start();
    let error = factory.wait_for_sync().timeout(Duration::from_secs(10)).await.unwrap_err();
    assert_eq!(error.reason, NotSyncedReason::TimedOut(Duration::from_secs(10)));
    let synced: Vec<_> =
        error.informers.iter().map(|status| (&*status.name, status.synced)).collect();
    assert_eq!(synced, [("configmaps", true), ("secrets", false), ("pods", false)]);
    // I-62: sorted, only those that are missing, each with its reason.
    let text = error.to_string();
    let (pods, secrets) = (text.find("pods is streaming"), text.find("secrets is backing off"));
    assert!(pods.is_some() && pods < secrets && text.contains("\"secrets\""), "{text}");
    assert!(!text.contains("configmaps"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn fa5_waiting_for_none_ends_at_once() {
    let factory = SharedInformerFactory::new(server().client());
    factory.wait_for_sync().await.unwrap();
    factory.start();
    factory.wait_for_sync().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn fa12_all_informers_are_waited_for_at_once() {
    let server = server();
    server.faults().on(Verb::Watch).times(3).inject(Fault::Latency(Duration::from_secs(20)));
    let factory = SharedInformerFactory::new(server.client());
    let _all =
        (factory.informer::<ConfigMap>(), factory.informer::<Secret>(), factory.informer::<Pod>());
    factory.start();
    let began = Instant::now();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn stop_on_stops_everything() {
    let server = server();
    let (stop, stopped) = oneshot::channel::<()>();
    let factory = SharedInformerFactory::builder(server.client()).stop_on(stopped).build();
    let maps = factory.informer::<ConfigMap>();
    factory.start();
    seconds(100).await;
    assert_eq!(server.watches(), 1);
    stop.send(()).unwrap();
    settle().await;
    assert!(maps.is_stopped());
    assert_eq!(server.watches(), 0);
    assert!(factory.informer::<Secret>().is_stopped());
}

#[tokio::test(start_paused = true)]
async fn stop_on_leaves_no_task_where_the_factory_goes_first() {
    let server = server();
    let tasks = Handle::current().metrics().num_alive_tasks();
    let factory = SharedInformerFactory::builder(server.client())
        .stop_on(std::future::pending::<()>())
        .build();
    factory.informer::<ConfigMap>();
    factory.start();
    settle().await;
    assert_eq!(server.watches(), 1, "a factory is somebody who could notice");
    drop(factory);
    settle().await;
    assert_eq!(server.watches(), 0);
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
}

#[tokio::test(start_paused = true)]
async fn what_was_stopped_is_made_anew_when_it_is_asked_for_again() {
    let server = server();
    server.add("a", "1");
    let factory = SharedInformerFactory::new(server.client());
    let first = factory.informer::<ConfigMap>();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    first.shutdown().await;
    server.add("b", "1");
    let second = factory.informer::<ConfigMap>();
    second.wait_for_sync().await.unwrap();
    assert_eq!((first.lister().len(), second.lister().len()), (1, 2));
    assert!(first.is_stopped() && !second.is_stopped());
    assert_eq!(asked(&server), ["stream"; 2]);
    factory.wait_for_sync().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_if_an_informer_stops_before_its_sync() {
    let server = server();
    server.faults().on(Verb::Watch).resource("secrets").always().inject(Fault::StalledHeaders);
    let factory = SharedInformerFactory::new(server.client());
    let (_maps, secrets) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
    factory.start();
    settle().await;
    secrets.stop();
    let error = factory.wait_for_sync().await.unwrap_err();
    assert_eq!(error.reason, NotSyncedReason::Stopped);
    assert!(error.to_string().contains("secrets"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_lister_keeps_its_informer_where_the_factory_goes() {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let lister = factory.informer::<ConfigMap>().lister();
    drop(factory.informer::<Secret>());
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(server.watches(), 2);
    drop(factory);
    seconds(100).await;
    assert_eq!(server.watches(), 1, "only what somebody reads");
    server.add("a", "1");
    settle().await;
    assert_eq!(lister.len(), 1);
    drop(lister);
    settle().await;
    assert_eq!(server.watches(), 0);
}
