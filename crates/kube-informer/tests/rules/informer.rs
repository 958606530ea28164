//! C-, H- and I-: the life of an informer, and the events of its handlers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{Event, Object, SharedInformer, State, Transform, Untyped};
use tokio::time::timeout;

use crate::scene::{
    Maps, Notes, Own, add, builder, change, lists, names, remove, seconds, server, settle, short,
    synced,
};

const LONG: Duration = Duration::from_secs(3600);

/// Makes changes while the watch has lost its position: only the next list finds them.
async fn miss(server: &ApiServer, happens: impl FnOnce()) {
    server.refuse_connections();
    server.drop_watches();
    settle().await;
    happens();
    server.faults().on(Verb::Watch).inject(Fault::Gone);
    server.accept_connections();
    seconds(60).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c1_i1_an_informer_that_is_started_by_many_runs_once() {
    let server = server();
    let maps = builder(&server).build();
    let starts = [(); 16].map(|()| {
        let maps = maps.clone();
        tokio::spawn(async move { maps.start() })
    });
    for start in starts {
        start.await.unwrap();
    }
    maps.wait_for_sync().await.unwrap();
    maps.start();
    assert_eq!(lists(&server), 1);
    maps.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn c2_i5_i7_before_it_runs_there_is_no_version_and_no_sync() {
    let server = server();
    add(&server, "a");
    let maps = builder(&server).build();
    let lister = maps.lister();
    assert!(!maps.has_synced() && !lister.has_synced() && !maps.is_stopped());
    assert!(maps.resource_version().is_empty() && matches!(maps.state(), State::Idle));
    maps.start();
    assert!(!maps.has_synced());
    // A synced informer has the whole list in its cache.
    maps.wait_for_sync().await.unwrap();
    assert!(maps.has_synced() && lister.has_synced());
    assert_eq!(names(&maps), ["a"]);
    // It stays synced; `is_live` has the current state.
    server.refuse_connections();
    server.drop_watches();
    seconds(100).await;
    assert!(maps.has_synced() && !maps.is_live());
    maps.shutdown().await;
    assert!(maps.has_synced());
    assert_eq!(names(&maps), ["a"], "and the cache can be read");
}

/// The transform runs in the reading task: the object that it blocks on at `stop` comes after `queued`, which
/// has not been applied by then.
#[tokio::test(start_paused = true)]
async fn c3_what_is_queued_when_it_is_stopped_is_dropped() {
    let server = server();
    let informer: Arc<OnceLock<Maps>> = Arc::default();
    let (stopping, read) = (informer.clone(), Notes::default());
    let noted = read.clone();
    let maps = builder(&server).transform(Transform::json(move |map| {
        let name = map["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if name == "stop" {
            stopping.get().unwrap().stop();
        }
        noted.push(name);
    }));
    let (maps, seen) = (maps.build(), Notes::default());
    informer.set(maps.clone()).unwrap();
    maps.handler().for_each(seen.handler());
    maps.start();
    maps.wait_for_sync().await.unwrap();
    settle().await;
    add(&server, "queued");
    add(&server, "stop");
    settle().await;
    assert!(maps.is_stopped());
    maps.shutdown().await;
    assert_eq!(read.take(), ["queued", "stop"]);
    assert_eq!(seen.take(), ["synced"]);
    assert!(maps.lister().is_empty());
}

/// The cached state that each callback finds, beside its event.
fn watchful(maps: &Maps, seen: &Notes<String>) {
    let (seen, lister) = (seen.clone(), maps.lister());
    maps.handler().for_each(move |event| {
        let mut keys: Vec<_> = lister.list().iter().map(|one| one.name().to_owned()).collect();
        keys.sort();
        seen.push(format!("{} of {}", short(&event), keys.join("")));
    });
}

#[tokio::test(start_paused = true)]
async fn c13_c22_i53_a_relist_delivers_deletes_first() {
    let server = server();
    for name in ["a", "b", "c", "d"] {
        add(&server, name);
    }
    let maps = builder(&server).build();
    let seen = Notes::default();
    watchful(&maps, &seen);
    maps.start();
    maps.wait_for_sync().await.unwrap();
    settle().await;
    let first = ["*a of abcd", "*b of abcd", "*c of abcd", "*d of abcd", "synced of abcd"];
    assert_eq!(seen.take(), first);
    miss(&server, || {
        remove(&server, "c");
        remove(&server, "a");
        add(&server, "e");
        change(&server, "b", "second");
    })
    .await;
    // Then changes, new objects (not as initial), and unchanged ones.
    assert_eq!(seen.take(), ["?a of bde", "?c of bde", "~b of bde", "+e of bde", "=d of bde"]);
}

#[tokio::test(start_paused = true)]
async fn f2_c11_deletes_of_unseen_objects_are_not_delivered() {
    let server = server();
    let seen = Notes::default();
    let maps = builder(&server).build();
    maps.handler().for_each(seen.handler());
    maps.start();
    maps.wait_for_sync().await.unwrap();
    // Its start is lost on the way.
    server.faults().on(Verb::Watch).inject(Fault::DropEvent);
    add(&server, "a");
    remove(&server, "a");
    add(&server, "b");
    settle().await;
    assert_eq!(server.faults().fired().len(), 1);
    assert_eq!(seen.take(), ["synced", "+b"]);
}

#[tokio::test(start_paused = true)]
async fn k7_an_object_recreated_unseen_is_one_update() {
    let server = server();
    add(&server, "a");
    let maps = synced(builder(&server)).await;
    let mut events = maps.events();
    events.next().await;
    events.next().await;
    miss(&server, || {
        remove(&server, "a");
        add(&server, "a");
    })
    .await;
    let Some(Event::Updated { old, new }) = events.next().await else { panic!("an update") };
    assert_ne!(old.uid(), new.uid());
}

#[tokio::test(start_paused = true)]
async fn i2_i3_i4_stopped_is_stopped_at_once_and_for_good() {
    let server = server();
    let maps = builder(&server).build();
    assert!(!maps.is_stopped());
    maps.start();
    maps.wait_for_sync().await.unwrap();
    assert!(!maps.is_stopped());
    maps.stop();
    assert!(maps.is_stopped());
    maps.shutdown().await;
    assert!(matches!(maps.state(), State::Stopped));
    settle().await;
    assert_eq!(server.watches(), 0);
    let asked = server.requests().len();
    maps.start();
    seconds(100).await;
    assert!(maps.is_stopped());
    assert_eq!(server.requests().len(), asked);
    maps.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn i11_indexes_can_be_added_at_any_time() {
    let server = server();
    add(&server, "a");
    let maps = builder(&server).build();
    let value = |map: &Object<ConfigMap>| map.field::<String>("data.value").ok().flatten();
    let by_value = |name| maps.index_by(name, value).unwrap();
    let before = by_value("before");
    maps.start();
    maps.wait_for_sync().await.unwrap();
    let running = by_value("running");
    add(&server, "b");
    settle().await;
    maps.shutdown().await;
    let stopped = by_value("stopped");
    for index in [before, running, stopped] {
        assert_eq!(index.get("first").len(), 2, "{index:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn i24_waiting_for_a_handler_after_the_stop_fails() {
    let server = server();
    let maps = synced(builder(&server)).await;
    maps.shutdown().await;
    let seen = Notes::default();
    let registration = maps.handler().for_each(seen.handler());
    let error = registration.wait_for_sync().await.unwrap_err().to_string();
    assert!(error.contains("stopped"), "{error}");
    assert!(timeout(LONG, maps.events().next()).await.unwrap().is_none());
    assert!(seen.take().is_empty());
}

/// The same if it never ran: no wait hangs.
#[tokio::test(start_paused = true)]
async fn l4_stopping_before_the_start_ends_all_waits() {
    let informer = SharedInformer::<Untyped>::from_source(Own::default()).build();
    let mut events = informer.events();
    let registration = informer.handler().for_each(drop);
    let waiting = informer.clone();
    let version = tokio::spawn(async move { waiting.wait_for_version(1).await });
    settle().await;
    informer.stop();
    assert!(timeout(LONG, informer.wait_for_sync()).await.unwrap().is_err());
    assert!(timeout(LONG, registration.wait_for_sync()).await.unwrap().is_err());
    assert!(timeout(LONG, version).await.expect("wait_for_version ends").unwrap().is_err());
    assert!(timeout(LONG, events.next()).await.expect("the stream ends").is_none());
    assert!(timeout(LONG, informer.events().next()).await.expect("a new one too").is_none());
}

#[tokio::test(start_paused = true)]
async fn i50_i51_i52_a_handler_sees_states_in_order() {
    let server = server();
    add(&server, "a");
    let maps = builder(&server).build();
    let versions = Notes::default();
    let (noted, lister) = (versions.clone(), maps.lister());
    maps.handler().for_each(move |event| {
        let Some(object) = event.object() else { return };
        let cached = lister.get(object.key()).map(|cached| cached.resource_version().clone());
        assert!(cached.is_some_and(|cached| cached >= *object.resource_version()));
        noted.push(object.resource_version().as_str().parse::<u64>().unwrap());
    });
    maps.start();
    maps.wait_for_sync().await.unwrap();
    for round in 0..30 {
        change(&server, "a", &round.to_string());
        match round % 10 {
            3 => server.drop_watches(),
            6 => _ = server.faults().on(Verb::Watch).after_events(1).inject(Fault::Reset),
            9 => _ = server.faults().on(Verb::Watch).after_events(1).inject(Fault::Gone),
            _ => {}
        }
        seconds(1).await;
    }
    server.faults().clear();
    seconds(120).await;
    let versions = versions.take();
    assert!(versions.windows(2).all(|pair| pair[0] <= pair[1]), "{versions:?}");
    assert_eq!(versions.last(), Some(&server.store().revision()));
}

/// Versions are handed out again. A watch from a version that the server has not reached yet gets
/// no error: the informer has to notice when it ends.
#[tokio::test(start_paused = true)]
async fn i21_a_restored_server_is_relisted() {
    let server = server();
    add(&server, "a");
    let backup = server.store().snapshot();
    let maps = builder(&server).build();
    let seen = Notes::default();
    maps.handler().only_changes().for_each(seen.handler());
    maps.start();
    maps.wait_for_sync().await.unwrap();
    for name in ["b", "c", "d"] {
        add(&server, name);
    }
    settle().await;
    assert_eq!(seen.take(), ["*a", "synced", "+b", "+c", "+d"]);
    server.restore(&backup);
    add(&server, "e");
    server.faults().on(Verb::Watch).inject(Fault::Gone);
    seconds(60).await;
    assert_eq!(names(&maps), ["a", "e"]);
    assert_eq!(seen.take(), ["?b", "?c", "?d", "+e"]);
    assert_eq!(maps.resource_version().as_str(), server.store().revision().to_string());
}

#[tokio::test(start_paused = true)]
async fn l1_l2_a_silent_watch_is_detected_and_resumed() {
    let server = server();
    let maps = synced(builder(&server)).await;
    // A bookmark: this server sends some.
    seconds(11).await;
    assert!(maps.is_live() && maps.staleness().unwrap() < Duration::from_secs(10));
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::HalfOpen);
    add(&server, "a");
    seconds(60).await;
    assert!(maps.lister().is_empty() && maps.staleness().unwrap() > Duration::from_secs(55));
    seconds(20).await;
    assert_eq!(names(&maps), ["a"]);
    assert!(maps.is_live() && maps.staleness().unwrap() < Duration::from_secs(20));
    assert_eq!(lists(&server), 1);
}
