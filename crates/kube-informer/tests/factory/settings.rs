//! Request settings: the factory's, unless an informer overrides them.

use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_informer::{SharedInformer, SharedInformerFactory};
use tokio::time::Instant;

use super::scene::{
    Errors, Maps, asked, gaps, maps_of, parameter, requests, seconds, server, settle,
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn r5_lists_are_not_streamed_if_the_program_says_so() {
    let server = server();
    let factory =
        SharedInformerFactory::builder(server.client()).streaming_lists(false).page_size(3).build();
    let _maps = factory.informer::<ConfigMap>();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    settle().await;
    let watch = format!("watch rv={}", server.version());
    assert_eq!(asked(&server), ["list rv=0 limit=3", &watch]);
    server.clear_record();
    let secrets = factory.builder_for::<Secret>().streaming_lists(true).build();
    secrets.wait_for_sync().await.unwrap();
    assert_eq!(asked(&server), ["stream"]);
    server.clear_record();
    let maps: SharedInformer =
        SharedInformer::from_source(maps_of(&server)).streaming_lists(false).page_size(7).build();
    maps.start();
    maps.wait_for_sync().await.unwrap();
    settle().await;
    assert_eq!(asked(&server), ["list rv=0 limit=7", &watch]);
}

/// Returns the requested watch timeouts, in seconds.
fn timeouts(server: &ApiServer) -> Vec<u64> {
    let timeout = |name| parameter(name, "timeoutSeconds")?.parse().ok();
    requests(server).iter().filter_map(timeout).collect()
}

#[tokio::test(start_paused = true)]
async fn r3_watches_last_as_long_as_the_program_says() {
    let server = server();
    let factory =
        SharedInformerFactory::builder(server.client()).seed(1).watch_timeout(40 * SECOND).build();
    let maps = factory.informer::<ConfigMap>();
    factory.start();
    seconds(400).await;
    let asked = timeouts(&server);
    assert!(asked.len() >= 5, "{asked:?}");
    assert!(asked.iter().all(|timeout| (40..=80).contains(timeout)), "{asked:?}");
    maps.stop();
    server.clear_record();
    let secrets = factory.builder_for::<Secret>().watch_timeout(900 * SECOND).build();
    secrets.wait_for_sync().await.unwrap();
    assert!((900..=1800).contains(&timeouts(&server)[0]));
}

#[tokio::test(start_paused = true)]
async fn r15_pauses_are_as_long_as_the_program_says() {
    let server = server();
    server.faults().any().always().inject(Fault::status(500));
    let factory = SharedInformerFactory::builder(server.client())
        .seed(1)
        .streaming_lists(false)
        .backoff(5 * SECOND, 10 * SECOND)
        .build();
    let _maps = factory.informer::<ConfigMap>();
    factory.start();
    seconds(200).await;
    let gaps = gaps(&server);
    assert!(gaps.len() >= 9, "{gaps:?}");
    assert!((5 * SECOND..=10 * SECOND).contains(&gaps[0]), "{gaps:?}");
    assert!(gaps[1..].iter().all(|gap| (10 * SECOND..=20 * SECOND).contains(gap)), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_is_given_up_after_as_long_as_the_program_says() {
    for fault in [Fault::StalledHeaders, Fault::StalledBody] {
        for limit in [10 * SECOND, 300 * SECOND] {
            let server = server();
            server.add("a", "1");
            server.faults().on(Verb::List).after_bytes(100).inject(fault.clone());
            let errors = Errors::default();
            let factory = SharedInformerFactory::builder(server.client())
                .streaming_lists(false)
                .on_error(errors.recorder())
                .list_timeout(limit)
                .build();
            let maps = factory.informer::<ConfigMap>();
            factory.start();
            let began = Instant::now();
            maps.wait_for_sync().progress_timeout(Duration::MAX).await.unwrap();
            assert_eq!(errors.len(), 1);
            let passed = began.elapsed();
            assert!((limit..limit + 3 * SECOND).contains(&passed), "{fault:?}: {passed:?}");
        }
    }
}
