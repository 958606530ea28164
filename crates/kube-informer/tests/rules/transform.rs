//! T-: transforms.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use kube_informer::{Lister, ResourceVersion, Transform};
use parking_lot::Mutex;
use serde_json::Value;

use crate::scene::{Notes, add, builder, change, names, remove, seconds, server, settle, synced};

#[tokio::test(start_paused = true)]
async fn t2_t3_t5_d19_every_state_is_transformed_exactly_once() {
    let server = server();
    add(&server, "a");
    add(&server, "b");
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let transform = Transform::json(move |map| {
        let call = count.fetch_add(1, Ordering::Relaxed) + 1;
        map["data"]["call"] = Value::from(call.to_string());
    });
    let calls = || calls.load(Ordering::Relaxed);
    let maps = builder(&server).transform(transform).build();
    let (seen, gone) = (Notes::default(), Notes::default());
    maps.handler().resync(Duration::from_secs(5)).for_each(seen.handler());
    let noted = gone.clone();
    maps.handler()
        .on_delete(move |gone| noted.push(gone.field::<String>("data.call").unwrap().unwrap()))
        .register();
    maps.start();
    maps.wait_for_sync().await.unwrap();
    assert_eq!(calls(), 2, "a streaming list, too, is transformed once");
    seconds(6).await;
    assert_eq!(seen.take(), ["*a", "*b", "synced", "resync a", "resync b"]);
    assert_eq!(calls(), 2);
    change(&server, "a", "second");
    settle().await;
    assert_eq!(calls(), 3);
    // The last state of an observed delete is a new state, ...
    remove(&server, "a");
    settle().await;
    assert_eq!((calls(), gone.take()), (4, vec!["4".to_owned()]));
    // ... that of a missed one is the cached state.
    server.refuse_connections();
    server.drop_watches();
    settle().await;
    remove(&server, "b");
    server.faults().on(Verb::Watch).inject(Fault::Gone);
    server.accept_connections();
    seconds(30).await;
    assert_eq!((calls(), gone.take()), (4, vec!["2".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn t6_r52_a_failed_transform_is_recorded_and_reported() {
    let server = server();
    add(&server, "bad");
    add(&server, "good");
    let reports = Notes::default();
    let transform = Transform::try_map(|map: &mut Value| match map["data"]["value"].as_str() {
        Some("first") if map["metadata"]["name"] == "bad" => Err("no"),
        Some("worse") => Err("no"),
        _ => Ok(()),
    });
    let maps = builder(&server).transform(transform).on_error(reports.reporter());
    let maps = synced(maps).await;
    let failed = || -> Vec<String> {
        maps.failed().iter().filter_map(|error| Some(error.key()?.name().to_owned())).collect()
    };
    assert_eq!((names(&maps), failed()), (vec!["good".to_owned()], vec!["bad".to_owned()]));
    assert_eq!(reports.nexts(), ["skip"]);
    // On a watch: the version advances, the cached state stays.
    change(&server, "good", "worse");
    settle().await;
    assert_eq!(maps.resource_version(), ResourceVersion::from(server.store().revision()));
    assert_eq!(
        (names(&maps), failed()),
        (vec!["good".to_owned()], vec!["bad".into(), "good".into()])
    );
    assert_eq!(maps.status().failed, 2);
    // An object that can be stored again is stored.
    change(&server, "good", "second");
    change(&server, "bad", "second");
    settle().await;
    assert_eq!((names(&maps), failed().len()), (vec!["bad".into(), "good".into()], 0));
    assert_eq!(reports.nexts(), ["skip", "skip"]);
}

#[tokio::test(start_paused = true)]
async fn t8_a_transform_runs_under_no_lock() {
    let server = server();
    add(&server, "a");
    let lister: Arc<Mutex<Option<Lister<_>>>> = Arc::default();
    let reads = lister.clone();
    let transform = Transform::json(move |map| {
        let there = reads.lock().as_ref().map_or(0, Lister::len);
        map["data"]["there"] = Value::from(there.to_string());
    });
    let maps = builder(&server).transform(transform).build();
    *lister.lock() = Some(maps.lister());
    maps.start();
    maps.wait_for_sync().await.unwrap();
    add(&server, "b");
    settle().await;
    let there = |name: &str| {
        let object = maps.lister().get(("default", name)).unwrap();
        object.field::<String>("data.there").unwrap().unwrap()
    };
    assert_eq!((there("a"), there("b")), ("0".into(), "1".into()));
    lister.lock().take();
}
