//! I-40 to I-45: resyncs, which belong to each handler here.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{Event, SharedInformer, SharedInformerFactory};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::scene::{Maps, asked, seconds, server, settle};

/// Counts the resyncs of a handler.
fn count(builder: kube_informer::HandlerBuilder<ConfigMap>) -> Arc<AtomicUsize> {
    let resyncs = Arc::new(AtomicUsize::new(0));
    let counted = resyncs.clone();
    builder.for_each(move |event| {
        counted.fetch_add(usize::from(matches!(event, Event::Resynced(_))), Ordering::Relaxed);
    });
    resyncs
}

fn of(informer: &SharedInformer<ConfigMap>) -> Arc<AtomicUsize> {
    count(informer.handler())
}

fn counts<const N: usize>(all: &[Arc<AtomicUsize>; N]) -> [usize; N] {
    std::array::from_fn(|at| all[at].load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn i40_i45_without_a_period_only_explicit_resyncs_happen() {
    // client-go allows no handler a resync if the informer has none.
    let server = server();
    server.add("a", "1");
    let factory = SharedInformerFactory::new(server.client());
    let maps = factory.informer::<ConfigMap>();
    let all = [of(&maps), count(maps.handler().resync(Duration::from_secs(5)))];
    factory.start();
    seconds(60).await;
    settle().await;
    assert_eq!(counts(&all), [0, 12]);
}

#[tokio::test(start_paused = true)]
async fn i43_i45_the_resync_period_can_be_set_at_three_levels() {
    let server = server();
    server.add("a", "1");
    let factory =
        SharedInformerFactory::builder(server.client()).resync(Duration::from_secs(10)).build();
    let default = factory.informer::<ConfigMap>();
    let own = factory.builder_for::<ConfigMap>().resync(Duration::from_secs(20)).build();
    let all = [
        of(&default),
        // The same informer, asked for with another period.
        of(&own),
        count(own.handler().resync(Duration::from_secs(4))),
        // Never, whatever the other handlers do.
        count(default.handler().resync(Duration::ZERO)),
        count(default.handler().only_changes()),
    ];
    factory.start();
    seconds(60).await;
    settle().await;
    assert_eq!(counts(&all), [6, 3, 15, 0, 0]);
    assert_eq!(asked(&server), ["stream"], "I17: and the server is asked for nothing");
}

#[tokio::test(start_paused = true)]
async fn i41_periods_below_a_second_are_a_second() {
    let server = server();
    server.add("a", "1");
    let factory =
        SharedInformerFactory::builder(server.client()).resync(Duration::from_millis(1)).build();
    let all = [of(&factory.informer())];
    factory.start();
    tokio::time::sleep(Duration::from_millis(10_500)).await;
    assert_eq!(counts(&all), [10]);
}

#[tokio::test(start_paused = true)]
async fn i42_i44_a_late_handler_has_its_own_resync_period() {
    // client-go raises it to the informer's period, and rounds it up to multiples of that.
    let server = server();
    server.add("a", "1");
    let factory =
        SharedInformerFactory::builder(server.client()).resync(Duration::from_secs(60)).build();
    let maps = factory.informer::<ConfigMap>();
    let slow = of(&maps);
    factory.start();
    seconds(30).await;
    let quick = count(maps.handler().resync(Duration::from_secs(7)));
    seconds(29).await;
    settle().await;
    assert_eq!(counts(&[slow.clone(), quick.clone()]), [0, 4]);
    seconds(2).await;
    assert_eq!(counts(&[slow, quick]), [1, 4]);
}

#[tokio::test(start_paused = true)]
async fn i40_nothing_is_resynced_before_the_first_list() {
    let server = server();
    server.add("a", "1");
    server.refuse_connections();
    let factory =
        SharedInformerFactory::builder(server.client()).resync(Duration::from_secs(1)).build();
    let maps = factory.informer::<ConfigMap>();
    let all = [of(&maps)];
    factory.start();
    seconds(100).await;
    assert_eq!(counts(&all), [0]);
    server.accept_connections();
    factory.wait_for_sync().await.unwrap();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(counts(&all), [2]);
    assert_eq!(maps.lister().len(), 1);
}
