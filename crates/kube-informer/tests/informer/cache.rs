//! The content of the cache and the events about it: C-1 to C-23, I-50 to I-53, and storage of objects.

use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::list_watch::KubeListWatch;
use kube_informer::{Event, SharedInformerFactory, Storage};
use parking_lot::Mutex;

use super::running::{Book, Running};
use super::scene::{Maps, maps_of, seconds, server, settle};
use super::script::{End, Script, bookmark, event, stored};

fn scripted(script: &Script) -> Running {
    let server = server();
    let source = KubeListWatch::of::<ConfigMap>(script.client(&server));
    Running::from_source(server, source, |builder| builder)
}

#[tokio::test(start_paused = true)]
async fn c1_c2_nothing_is_there_and_nothing_asked_before_the_start() {
    let running = Running::new(server());
    running.server.add("a", "1");
    seconds(100).await;
    assert!(running.informer.resource_version().is_empty());
    assert!(!running.informer.has_synced() && !running.informer.is_live());
    assert_eq!(running.informer.staleness(), None);
    assert_eq!(running.state(), "idle");
    assert_eq!(super::scene::asked(&running.server), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn c10_the_cache_decides_between_add_and_update() {
    let script = Script::default();
    script.watch(
        [
            event("ADDED", &stored("a", "1", "10")),
            bookmark("20", Some("true")),
            event("ADDED", &stored("a", "2", "21")),
            event("MODIFIED", &stored("b", "1", "22")),
        ],
        End::Silent,
    );
    let running = scripted(&script);
    let book = Book::keep(&running.informer);
    running.informer.start();
    settle().await;
    assert_eq!(book.news(), ["add a initially", "synced", "update a", "add b"]);
}

#[tokio::test(start_paused = true)]
async fn c11_the_delete_of_an_unseen_object_is_dropped() {
    // client-go delivers it; by I11, only existing objects are deleted.
    let script = Script::default();
    script.watch(
        [bookmark("20", Some("true")), event("DELETED", &stored("ghost", "1", "21"))],
        End::Silent,
    );
    let running = scripted(&script);
    let book = Book::keep(&running.informer);
    running.informer.start();
    settle().await;
    assert_eq!(book.news(), ["synced"]);
    assert_eq!(running.informer.resource_version(), *"21");
}

#[tokio::test(start_paused = true)]
async fn c12_i52_i9_the_cache_is_updated_before_handlers_run() {
    let running = Running::new(server());
    let index = running.informer.index_by_label("value");
    let lister = running.informer.lister();
    let wrong = Arc::new(Mutex::new(Vec::new()));
    let seen = wrong.clone();
    running.informer.handler().for_each(move |event: Event<ConfigMap>| {
        let right = match &event {
            Event::Added { object, .. } | Event::Updated { new: object, .. } => {
                let value = object.labels().get("value").unwrap_or_default().to_owned();
                lister.resource_version() >= *object.resource_version()
                    && lister
                        .get(object.key())
                        .is_none_or(|cached| cached.resource_version() >= object.resource_version())
                    && (lister.get(object.key()).is_none_or(|cached| !cached.same_version(object))
                        || index.get(&value).iter().any(|indexed| indexed.same_version(object)))
            }
            Event::Deleted(deleted) => {
                let newer = |cached: &kube_informer::Object<ConfigMap>| {
                    cached.resource_version() > deleted.resource_version()
                };
                lister.get(deleted.key()).is_none_or(|cached| newer(&cached))
            }
            Event::Resynced(_) | Event::Synced => true,
        };
        if !right {
            seen.lock().push(format!("{event:?}"));
        }
    });
    let running = running.sync().await;
    for turn in 0..200 {
        let name = format!("m{}", turn % 7);
        match turn / 7 % 3 {
            0 => running.server.add(&name, "1"),
            1 => running.server.change(&name, &turn.to_string()),
            _ => running.server.remove(&name),
        };
        if turn % 5 == 0 {
            settle().await;
        }
    }
    settle().await;
    assert_eq!(*wrong.lock(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn c13_c22_c23_a_relist_delivers_deletes_first() {
    let running = Running::synced(server()).await;
    for name in ["a", "b", "c"] {
        running.server.add(name, "1");
    }
    let book = Book::keep(&running.informer);
    let quiet = Book::default();
    running.informer.handler().only_changes().for_each(quiet.writer());
    let lister = running.informer.lister();
    let complete = Arc::new(Mutex::new(Vec::new()));
    let at = complete.clone();
    running.informer.handler().on_delete(move |_| at.lock().push(lister.keys())).register();
    settle().await;
    book.news();
    quiet.news();
    running.server.refuse_connections();
    running.server.remove("a");
    running.server.change("b", "2");
    running.server.add("d", "1");
    running.server.store().compact(running.server.store().revision());
    running.server.accept_connections();
    seconds(60).await;
    // Objects of a relist are not initial.
    assert_eq!(book.news(), ["miss a", "update b", "add d", "repeat c"]);
    assert_eq!(quiet.news(), ["miss a", "update b", "add d"]);
    // From the first callback on, the cache has the whole new list.
    let mut keys: Vec<_> = complete.lock()[0].iter().map(|key| key.name().to_owned()).collect();
    keys.sort();
    assert_eq!(keys, ["b", "c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn c15_i17_a_resync_is_an_event_of_its_own_and_changes_nothing() {
    let server = server();
    server.add("a", "1");
    let running = Running::new(server);
    let book = Book::default();
    running.informer.handler().resync(Duration::from_secs(10)).for_each(book.writer());
    let updates = Arc::new(Mutex::new(0));
    let counted = updates.clone();
    running
        .informer
        .handler()
        .resync(Duration::from_secs(10))
        .on_update(move |old, new| {
            assert!(old.is_same_instance(new));
            *counted.lock() += 1;
        })
        .register();
    let running = running.sync().await;
    let version = running.informer.resource_version();
    seconds(25).await;
    assert_eq!(book.news(), ["add a initially", "synced", "resync a", "resync a"]);
    assert_eq!(*updates.lock(), 2, "client-go's form of it");
    assert_eq!(running.informer.resource_version(), version);
}

#[tokio::test(start_paused = true)]
async fn c16_i7_a_bookmark_advances_the_version_without_events() {
    let running = Running::synced(server()).await;
    let book = Book::keep(&running.informer);
    running
        .server
        .create(serde_json::json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        }))
        .unwrap();
    settle().await;
    let before = running.informer.resource_version();
    assert_ne!(before, *running.server.version());
    seconds(61).await;
    assert_eq!(running.informer.resource_version(), *running.server.version());
    assert_eq!(book.news(), ["synced"]);
    assert!(running.informer.staleness().unwrap() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn r57_i7_the_version_of_the_cache_is_never_ahead_of_the_cache() {
    // client-go's LastSyncResourceVersion may be ahead, which makes it useless to read your own
    // writes.
    let running = Running::synced(server()).await;
    for turn in 0..50 {
        let version = running.server.add(&format!("m{turn}"), "1");
        running.informer.wait_for_version(version.as_str()).await.unwrap();
        assert!(running.informer.lister().get(("default", &*format!("m{turn}"))).is_some());
        let list = running.informer.lister().list();
        assert_eq!((list.len(), list.resource_version().as_str()), (turn + 1, &*version));
    }
}

#[tokio::test(start_paused = true)]
async fn i50_i3_the_states_of_an_object_come_in_the_servers_order() {
    let running = Running::synced(server()).await;
    let versions = Arc::new(Mutex::new(Vec::new()));
    let told = versions.clone();
    running.informer.handler().for_each(move |event: Event<ConfigMap>| {
        if let Some(object) = event.object() {
            told.lock().push(object.resource_version().as_str().parse::<u64>().unwrap());
        }
    });
    let faults = running.server.faults();
    faults.on(Verb::Watch).after_events(3).times(20).inject(Fault::Reset);
    running.server.add("a", "0");
    for turn in 1..200 {
        running.server.change("a", &turn.to_string());
    }
    seconds(120).await;
    let history: Vec<u64> = running
        .server
        .history("configmaps", "default", "a")
        .iter()
        .map(|(version, _)| *version)
        .collect();
    assert_eq!(*versions.lock(), history, "I-51: and none is missing");
}

#[tokio::test(start_paused = true)]
async fn i53_i16_a_delete_has_the_version_of_the_deletion() {
    let running = Running::synced(server()).await;
    running.server.add("a", "1");
    let deleted = Arc::new(Mutex::new(None));
    let told = deleted.clone();
    running
        .informer
        .handler()
        .on_delete(move |deleted| {
            *told.lock() = Some((deleted.resource_version().to_string(), deleted.final_state));
        })
        .register();
    let version = running.server.remove("a");
    settle().await;
    assert_eq!(*deleted.lock(), Some((version, kube_informer::FinalState::Known)));
}

#[tokio::test(start_paused = true)]
async fn k7_i16_an_object_recreated_in_a_gap_is_one_update() {
    let running = Running::synced(server()).await;
    running.server.add("a", "1");
    settle().await;
    let uids = Arc::new(Mutex::new(Vec::new()));
    let told = uids.clone();
    running
        .informer
        .handler()
        .on_update(move |old, new| told.lock().push(old.uid() == new.uid()))
        .register();
    running.server.refuse_connections();
    running.server.remove("a");
    running.server.add("a", "1");
    running.server.store().compact(running.server.store().revision());
    running.server.accept_connections();
    seconds(60).await;
    assert_eq!(*uids.lock(), [false]);
}

#[tokio::test(start_paused = true)]
async fn storage_decides_when_objects_are_decoded() {
    for (storage, kept) in [(Storage::Packed, false), (Storage::Decoded, true)] {
        let server = server();
        server.add("a", "1");
        let source = maps_of(&server);
        let running = Running::from_source(server, source, |builder| builder.storage(storage));
        let running = running.sync().await;
        let object = running.informer.lister().get(("default", "a")).unwrap();
        let decoded = object.decode().unwrap();
        assert_eq!(decoded.data.as_ref().unwrap()["value"], "1");
        assert!(Arc::ptr_eq(&decoded, &object.decode().unwrap()), "while somebody has it");
        let weak = Arc::downgrade(&decoded);
        drop(decoded);
        assert_eq!(weak.upgrade().is_some(), kept, "{storage:?}");
        // The bytes are there either way.
        assert_eq!(object.field::<String>("data.value").unwrap().as_deref(), Some("1"));
    }
}

#[tokio::test(start_paused = true)]
async fn storage_makes_no_difference_but_in_memory() {
    let mut taken = Vec::new();
    for storage in [Storage::Packed, Storage::Plain, Storage::Decoded] {
        let server = server();
        let value = |n: usize| format!("{n}: {}", "what all of them have in common; ".repeat(20));
        let add = |n: usize| {
            let (name, data) = (format!("map-{n}"), serde_json::json!({"value": value(n)}));
            let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
                "metadata": {"name": name, "namespace": "default"}});
            server.create(map).expect("it is new");
        };
        (0..5).for_each(add);
        let factory = SharedInformerFactory::new(server.client());
        let builder = factory.builder_for::<ConfigMap>().storage(storage).train_on(8);
        let maps = builder.build();
        let by_value = maps.index_by_field("data.value").expect("a path");
        factory.start();
        factory.wait_for_sync().await.expect("the server answers");
        // The dictionary is trained on these; the first ones are packed afterwards.
        (5..30).for_each(add);
        seconds(1).await;
        server.change("map-29", "changed");
        seconds(1).await;
        assert_eq!(maps.lister().len(), 30);
        for n in 0..29 {
            let map = maps.lister().get(("default", &*format!("map-{n}"))).expect("it is there");
            assert_eq!(
                map.decode().expect("a map").data.as_ref().expect("data")["value"],
                value(n)
            );
            assert_eq!(map.field::<String>("data.value").expect("a path"), Some(value(n)));
            assert_eq!(by_value.keys(&value(n)), [map.key().clone()]);
            assert!(map.to_json().expect("text").starts_with(b"{"));
        }
        assert_eq!(by_value.get("changed").len(), 1);
        taken.push(maps.status().bytes);
        factory.shutdown().await;
    }
    assert!(taken[0] * 2 < taken[1], "{taken:?}: packed, plain, decoded");
    assert!(taken[0] < taken[2], "{taken:?}: packed, plain, decoded");
}

#[tokio::test(start_paused = true)]
async fn managed_fields_are_left_out_unless_they_are_kept() {
    for keep in [false, true] {
        let script = Script::default();
        let mut object = stored("a", "1", "10");
        object["metadata"]["managedFields"] = serde_json::json!([{"manager": "kubectl"}]);
        script.watch([event("ADDED", &object), bookmark("20", Some("true"))], End::Silent);
        let server = server();
        let factory = SharedInformerFactory::new(script.client(&server));
        let builder = factory.builder_for::<ConfigMap>();
        let builder = if keep { builder.keep_managed_fields() } else { builder };
        let informer = builder.build();
        factory.start();
        factory.wait_for_sync().await.unwrap();
        let object = informer.lister().get(("default", "a")).unwrap();
        assert_eq!(object.decode().unwrap().metadata.managed_fields.is_some(), keep);
        assert_eq!(object.field::<String>("data.value").unwrap().as_deref(), Some("1"));
    }
}

#[tokio::test(start_paused = true)]
async fn i11_an_index_can_come_while_it_runs_and_is_complete_at_once() {
    let running = Running::synced(server()).await;
    for (name, value) in [("a", "x"), ("b", "y"), ("c", "x")] {
        running.server.add(name, value);
    }
    settle().await;
    let index = running.informer.index_by_field("data.value").unwrap();
    let names = |value: &str| -> Vec<_> {
        index.keys(value).iter().map(|key| key.name().to_owned()).collect()
    };
    assert_eq!(names("x"), ["a", "c"]);
    running.server.change("b", "x");
    running.server.remove("a");
    settle().await;
    assert_eq!(names("x"), ["b", "c"]);
    assert_eq!(index.values().len(), 1);
    // After a stop the cache stays readable, and indexes may still be added.
    running.informer.shutdown().await;
    assert_eq!(running.informer.index_by_label("value").get("x").len(), 2);
}
