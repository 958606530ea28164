//! T-1 to T-6: transforms of objects before they are visible.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use embedded_apiserver::{Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{Event, SharedInformerFactory, Transform};
use parking_lot::Mutex;

use super::running::{Book, Running};
use super::scene::{Errors, Maps, maps_of, seconds, server, settle};

/// The same informer twice: with a custom source, and from a factory.
fn both(transform: Transform) -> Vec<Running> {
    let (own, shared) = (server(), server());
    let source = maps_of(&own);
    let own = Running::from_source(own, source, |builder| builder.transform(transform.clone()));
    let errors = Errors::default();
    let factory = SharedInformerFactory::builder(shared.client()).seed(1).build();
    let builder = factory.builder_for::<ConfigMap>().on_error(errors.recorder());
    let informer = builder.transform(transform).build();
    let shared = Running { informer, server: shared, errors };
    vec![own, shared]
}

/// Fails for maps whose value is `bad`, and marks the others.
fn picky(map: &mut ConfigMap) -> Result<(), String> {
    let data = map.data.get_or_insert_default();
    if data.get("value").is_some_and(|value| value == "bad") {
        return Err("it will not have it".to_owned());
    }
    data.insert("marked".to_owned(), "yes".to_owned());
    Ok(())
}

fn is_marked(object: &kube_informer::Object<ConfigMap>) -> bool {
    object.field::<String>("data.marked").unwrap().as_deref() == Some("yes")
}

#[tokio::test(start_paused = true)]
async fn t1_t5_every_object_is_transformed_before_it_is_visible() {
    for running in both(Transform::try_map(picky)) {
        running.server.add("a", "1");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let told = seen.clone();
        running.informer.handler().for_each(move |event: Event<ConfigMap>| {
            told.lock().extend(event.object().map(is_marked));
            if let Event::Updated { old, .. } = &event {
                told.lock().push(is_marked(old));
            }
        });
        let index = running.informer.index_by_field("data.marked").unwrap();
        let running = running.sync().await;
        running.server.change("a", "2");
        settle().await;
        assert_eq!(index.get("yes").len(), 1);
        running.server.remove("a");
        settle().await;
        assert_eq!(*seen.lock(), [true; 4]);
    }
}

#[tokio::test(start_paused = true)]
async fn t2_t3_each_state_is_transformed_once() {
    // client-go applies it twice to each object of a streaming list.
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let count = move |_: &mut ConfigMap| _ = counted.fetch_add(1, Ordering::Relaxed);
    for running in both(Transform::map(count)) {
        calls.store(0, Ordering::Relaxed);
        for name in ["a", "b", "c"] {
            running.server.add(name, "1");
        }
        let book = Book::default();
        let every = std::time::Duration::from_secs(10);
        running.informer.handler().resync(every).for_each(book.writer());
        let running = running.sync().await;
        assert_eq!(calls.load(Ordering::Relaxed), 3);
        running.server.change("a", "2");
        seconds(35).await;
        assert_eq!(calls.load(Ordering::Relaxed), 4);
        assert_eq!(book.news().iter().filter(|line| line.starts_with("resync")).count(), 9);
    }
}

#[tokio::test(start_paused = true)]
async fn t6_a_failed_transform_affects_one_object() {
    for running in both(Transform::try_map(picky)) {
        running.server.add("bad", "bad");
        running.server.add("good", "1");
        let book = Book::keep(&running.informer);
        // client-go would never sync.
        let running = running.sync().await;
        settle().await;
        assert_eq!(running.names(), ["good"]);
        let failed = running.informer.failed();
        assert_eq!((failed.len(), running.informer.status().failed), (1, 1));
        assert_eq!(failed[0].key().unwrap().to_string(), "default/bad");
        assert!(failed[0].is_unreadable());
        assert!(failed[0].to_string().contains("it will not have it"), "{}", failed[0]);
        assert_eq!(running.errors.nexts(), ["skip"]);
        assert_eq!(book.news(), ["add good initially", "synced"]);

        // The object is fixed.
        running.server.change("bad", "1");
        settle().await;
        assert_eq!(running.informer.failed(), []);
        assert_eq!(running.informer.status().failed, 0);
        assert_eq!(book.news(), ["add bad"]);
        assert!(book.is_right(&running.informer));
    }
}

#[tokio::test(start_paused = true)]
async fn t6_a_failed_update_keeps_the_cached_state() {
    for running in both(Transform::try_map(picky)) {
        let running = running.sync().await;
        let book = Book::keep(&running.informer);
        running.server.add("a", "1");
        let version = running.server.change("a", "bad");
        settle().await;
        assert_eq!(running.informer.failed().len(), 1);
        assert_eq!(running.names(), ["a"], "in the last state that could be kept");
        // I7: the cache's version has passed it, and `failed` lists it.
        assert_eq!(running.informer.resource_version(), *version);
        running.server.remove("a");
        settle().await;
        assert_eq!(running.informer.failed(), []);
        assert_eq!(book.news(), ["synced", "add a", "miss a"]);
        assert!(book.is_right(&running.informer));
    }
}

#[tokio::test(start_paused = true)]
async fn t6_a_relist_says_anew_what_fails() {
    for running in both(Transform::try_map(picky)) {
        let running = running.sync().await;
        let book = Book::keep(&running.informer);
        running.server.add("a", "1");
        running.server.add("b", "bad");
        running.server.add("c", "bad");
        settle().await;
        book.news();
        running.server.refuse_connections();
        running.server.change("a", "bad");
        running.server.change("b", "1");
        running.server.remove("c");
        running.server.store().compact(running.server.store().revision());
        running.server.accept_connections();
        seconds(60).await;
        let failed: Vec<_> = running
            .informer
            .failed()
            .iter()
            .map(|error| error.key().unwrap().to_string())
            .collect();
        assert_eq!(failed, ["default/a"]);
        // The server's objects are in the cache, in a state that could be stored.
        assert_eq!(running.names(), ["a", "b"]);
        assert_eq!(book.news(), ["add b"]);
        assert!(book.is_right(&running.informer));
    }
}

#[tokio::test(start_paused = true)]
async fn t6_a_transform_that_panics_fails_for_that_object_alone() {
    let panics = |map: &mut ConfigMap| {
        let bad = map.metadata.name.as_deref() == Some("bad");
        assert!(!bad, "it does not like it");
    };
    for running in both(Transform::map(panics)) {
        running.server.add("bad", "1");
        running.server.add("good", "1");
        let running = running.sync().await;
        assert_eq!(running.names(), ["good"]);
        assert_eq!(running.informer.failed().len(), 1);
        let text = running.informer.failed()[0].to_string();
        assert!(text.contains("panicked") && text.contains("default/bad"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn t4_t9_a_transform_cannot_confuse_the_cache() {
    let rename = |map: &mut ConfigMap| {
        map.metadata.name = Some("other".to_owned());
        map.metadata.resource_version = None;
    };
    for running in both(Transform::map(rename)) {
        let running = running.sync().await;
        let book = Book::keep(&running.informer);
        running.server.add("a", "1");
        running.server.change("a", "2");
        running.server.faults().on(Verb::Watch).after_events(0).inject(Fault::Reset);
        running.server.remove("a");
        seconds(5).await;
        assert_eq!(book.news(), ["synced", "add a", "update a", "delete a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn t4_selectors_and_indexes_see_transformed_labels() {
    let relabel = |map: &mut ConfigMap| {
        let labels = map.metadata.labels.get_or_insert_default();
        let value = labels.remove("value").unwrap_or_default();
        labels.insert("relabelled".to_owned(), value);
    };
    for running in both(Transform::map(relabel)) {
        running.server.add("a", "1");
        let (index, gone) =
            ["relabelled", "value"].map(|label| running.informer.index_by_label(label)).into();
        let running = running.sync().await;
        running.server.change("a", "2");
        settle().await;
        let selected =
            |selector: &str| running.informer.lister().select(&selector.parse().unwrap()).len();
        assert_eq!((selected("relabelled=2"), selected("value"), selected("!value")), (1, 0, 1));
        assert_eq!((index.get("2").len(), index.get("1").len(), gone.get("2").len()), (1, 0, 0));
        let object = running.informer.lister().get(("default", "a")).unwrap();
        let labels = object.decode().unwrap().metadata.labels.clone().unwrap();
        assert!(object.labels().iter().eq(labels.iter().map(|(name, value)| (&**name, &**value))));
    }
}

#[tokio::test(start_paused = true)]
async fn fields_that_are_dropped_are_not_kept() {
    for running in both(Transform::drop_fields(["data"])) {
        running.server.add("a", "1");
        let running = running.sync().await;
        let object = running.informer.lister().get(("default", "a")).unwrap();
        assert_eq!(object.decode().unwrap().data, None);
        assert_eq!(object.labels().get("value"), Some("1"));
    }
}
