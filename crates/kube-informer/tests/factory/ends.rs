//! Lifetimes of a factory's informers, and shutdown.

use std::pin::pin;
use std::sync::{Arc, mpsc};

use embedded_apiserver::Fault;
use futures::poll;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_informer::{SharedInformer, SharedInformerFactory, Storage, Transform};
use tokio::runtime::Handle;
use tokio::sync::{mpsc as asynchronous, oneshot};
use tokio::task::yield_now;

use super::scene::{Errors, Maps, seconds, server, settle};

#[tokio::test(start_paused = true)]
async fn stop_on_stops_informers_that_outlive_the_factory() {
    let server = server();
    let tasks = Handle::current().metrics().num_alive_tasks();
    let (stop, stopped) = oneshot::channel::<()>();
    let factory = SharedInformerFactory::builder(server.client()).stop_on(stopped).build();
    let maps = factory.informer::<ConfigMap>();
    let secrets = factory.informer::<Secret>().lister();
    let own = factory.builder_for::<ConfigMap>().map(|_| {}).build();
    factory.start();
    drop(factory);
    seconds(100).await;
    assert_eq!(server.watches(), 3, "what is held goes on");
    stop.send(()).expect("it is still waited for");
    settle().await;
    assert!(maps.is_stopped() && own.is_stopped());
    assert_eq!(server.watches(), 0);
    assert!(secrets.has_synced(), "what was read can be read");
    drop((maps, secrets, own));
    settle().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
}

#[tokio::test(start_paused = true)]
async fn stop_on_keeps_no_informer_and_ends_with_the_last() {
    let server = server();
    let tasks = Handle::current().metrics().num_alive_tasks();
    let (stop, stopped) = oneshot::channel::<()>();
    let factory = SharedInformerFactory::builder(server.client()).stop_on(stopped).build();
    let (maps, secrets) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
    factory.start();
    drop(factory);
    settle().await;
    drop(maps);
    settle().await;
    assert_eq!(server.watches(), 1);
    assert!(!stop.is_closed(), "one is left to be stopped");
    secrets.stop();
    settle().await;
    assert!(stop.is_closed());
    drop(secrets);
    settle().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
}

/// A callback that runs until the sender is dropped; the receiver learns when it has started.
fn blocked(maps: &SharedInformer<ConfigMap>) -> (mpsc::Sender<()>, asynchronous::Receiver<()>) {
    let (go_on, blocked) = mpsc::channel::<()>();
    let (entered, enters) = asynchronous::channel(1);
    maps.handler().blocking().for_each(move |_| {
        let _ = entered.try_send(());
        let _ = blocked.recv();
    });
    (go_on, enters)
}

#[tokio::test(start_paused = true)]
async fn fa4_shutdown_waits_for_informers_that_were_replaced() {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let replaced = factory.informer::<ConfigMap>();
    let own = factory.builder_for::<ConfigMap>().map(|_| {}).build();
    let callbacks = [blocked(&replaced), blocked(&own)];
    factory.start();
    let mut go_on = Vec::new();
    for (sender, mut enters) in callbacks {
        enters.recv().await.expect("the callback begins");
        go_on.push(sender);
    }
    replaced.stop();
    own.stop();
    drop((replaced, own));
    let replacement = factory.informer::<ConfigMap>();
    replacement.wait_for_sync().await.unwrap();
    let mut shutdown = pin!(factory.shutdown());
    for sender in go_on {
        for _ in 0..100 {
            assert!(poll!(shutdown.as_mut()).is_pending(), "a callback still runs");
            yield_now().await;
        }
        drop(sender);
    }
    shutdown.await;
    assert!(replacement.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn what_was_replaced_is_not_remembered() {
    let server = server();
    server.add("a", "1");
    let factory = SharedInformerFactory::builder(server.client()).storage(Storage::Decoded).build();
    factory.start();
    let maps = factory.informer::<ConfigMap>();
    maps.wait_for_sync().await.unwrap();
    let object = maps.lister().get(("default", "a")).unwrap().decode().unwrap();
    let cached = Arc::downgrade(&object);
    drop(object);
    assert!(cached.upgrade().is_some());
    maps.shutdown().await;
    drop(maps);
    let _secrets = factory.informer::<Secret>();
    settle().await;
    assert!(cached.upgrade().is_none(), "the cache of an informer that has ended");
}

#[tokio::test(start_paused = true)]
async fn an_informer_with_a_closure_ends_with_its_handles() {
    let server = server();
    server.add("a", "1");
    let factory = SharedInformerFactory::new(server.client());
    factory.start();
    let tasks = Handle::current().metrics().num_alive_tasks();
    let mark = Arc::new(());
    for _ in 0..3 {
        let kept = mark.clone();
        let change = move |_: &mut ConfigMap| drop(kept.clone());
        let maps = factory.builder_for::<ConfigMap>().map(change).build();
        maps.wait_for_sync().await.unwrap();
        assert_eq!(factory.status().len(), 1);
        let lister = maps.lister();
        drop(maps);
        settle().await;
        assert_eq!((server.watches(), lister.len()), (1, 1), "somebody reads it");
        drop(lister);
        assert_eq!(factory.status().len(), 0);
        factory.wait_for_sync().await.expect("it is not waited for");
        settle().await;
        assert_eq!(server.watches(), 0);
    }
    assert_eq!(Arc::strong_count(&mark), 1, "nothing of it is left");
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
}

#[tokio::test(start_paused = true)]
async fn an_informer_with_a_closure_runs_while_it_is_held() {
    let server = server();
    server.add("a", "1");
    let factory = SharedInformerFactory::new(server.client());
    let transform = Transform::map(|_: &mut ConfigMap| {});
    let builder = || factory.builder_for::<ConfigMap>().transform(transform.clone());
    let errors = Errors::default();
    let lister = builder().on_error(errors.recorder()).build().lister();
    let mut events = builder().build().events();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!((lister.len(), server.watches(), factory.status().len()), (1, 1, 1));
    factory.shutdown().await;
    assert_eq!(server.watches(), 0);
    while events.next().await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn closures_of_the_factory_are_asked_for_again() {
    let server = server();
    let factory = SharedInformerFactory::builder(server.client())
        .transform(Transform::map(|_: &mut ConfigMap| {}))
        .build();
    factory.start();
    factory.informer::<ConfigMap>().wait_for_sync().await.unwrap();
    settle().await;
    assert!(factory.informer::<ConfigMap>().has_synced(), "it ran on");
    assert_eq!(server.watches(), 1);
}

#[tokio::test(start_paused = true)]
async fn e3_an_observer_lasts_as_long_as_its_handle() {
    let server = server();
    let of_factory = Errors::default();
    let factory =
        SharedInformerFactory::builder(server.client()).on_error(of_factory.recorder()).build();
    let mark = Arc::new(());
    let observed = |errors: &Errors| {
        let (report, mark) = (errors.recorder(), mark.clone());
        let observer = move |error: &kube_informer::ErrorReport| {
            let _ = &mark;
            report(error);
        };
        factory.builder_for::<ConfigMap>().on_error(observer).build()
    };
    let (gone, kept, read, handled) =
        (Errors::default(), Errors::default(), Errors::default(), Errors::default());
    for _ in 0..100 {
        observed(&gone);
    }
    assert_eq!(Arc::strong_count(&mark), 1, "they are gone with their handles");
    let handle = observed(&kept).clone();
    let lister = observed(&read).lister();
    observed(&handled).handler().for_each(drop);
    server.faults().any().inject(Fault::status(503));
    factory.start();
    settle().await;
    let counts = [&of_factory, &gone, &kept, &read, &handled].map(Errors::len);
    assert_eq!(counts, [1, 0, 1, 1, 1]);

    // The handler stays with the informer, the others are dropped; the factory's observers outlive
    // it.
    drop((lister, factory));
    seconds(10).await;
    server.drop_watches();
    server.faults().any().inject(Fault::status(503));
    seconds(10).await;
    let counts = [&of_factory, &gone, &kept, &read, &handled].map(Errors::len);
    assert!(counts[0] > 1, "{counts:?}");
    assert_eq!(counts, [counts[0], 0, counts[0], 1, counts[0]]);
    handle.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn run_is_start_wait_and_shutdown() {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let maps = factory.informer::<ConfigMap>();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = factory.clone();
    let run = tokio::spawn(async move { running.run(stopped).await });
    maps.wait_for_sync().await.expect_err("it is not started before the task runs");
    seconds(100).await;
    assert!(maps.has_synced() && !run.is_finished());
    stop.send(()).expect("it is waited for");
    run.await.unwrap();
    assert!(maps.is_stopped());
    assert_eq!(server.watches(), 0);
    // A stopped factory does not run.
    factory.run(std::future::pending::<()>()).await;
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_the_factory_is_stopped_otherwise() {
    let server = server();
    let (stop, stopped) = oneshot::channel::<()>();
    let factory = SharedInformerFactory::builder(server.client()).stop_on(stopped).build();
    let maps = factory.informer::<ConfigMap>();
    let running = factory.clone();
    let run = tokio::spawn(async move { running.run(std::future::pending::<()>()).await });
    seconds(100).await;
    assert!(maps.has_synced() && !run.is_finished());
    stop.send(()).expect("it is waited for");
    run.await.unwrap();
    assert_eq!(server.watches(), 0);
}
