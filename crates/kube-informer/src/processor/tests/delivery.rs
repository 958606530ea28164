//! The events that a handler receives, their order, and panics and stops.

use std::sync::atomic::AtomicBool;

use k8s_openapi::api::core::v1::Pod;

use crate::object::Packer;
use crate::{Deleted, EventHandler, FieldPath, Index, Transform};

use super::logs::Logs;
use super::*;

#[tokio::test(start_paused = true)]
async fn h1_h2_every_handler_is_told_everything_in_order() {
    let fake = Fake::started();
    let handlers = [fake.noting(), fake.noting()];
    fake.sync(&["a", "b"]);
    fake.put("a");
    fake.put("c");
    fake.delete("b");
    fake.relist();
    settle().await;
    let expected = ["*a@1", "*b@2", "synced", "a@1>3", "+c@4", "-b@5", "a@3>3", "c@4>4"];
    for (registration, seen) in handlers {
        assert_eq!(seen.take(), expected);
        assert_eq!(registration.backlog(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn i9_the_cache_has_it_before_a_handler_is_told() {
    let fake = Fake::started();
    let (core, late) = (fake.core.clone(), Arc::new(AtomicBool::new(false)));
    let missed = late.clone();
    let registration = fake.handler().for_each(move |event| {
        let Some(object) = event.object() else { return };
        let cached = core.store.get(object.key().into()).as_ref().map(version);
        let fits = match &event {
            Event::Deleted(_) => cached.is_none(),
            _ => cached >= Some(version(object)),
        };
        missed.fetch_or(!fits, Ordering::Relaxed);
    });
    fake.sync(&["a"]);
    settle().await;
    fake.put("a");
    settle().await;
    fake.delete("a");
    settle().await;
    assert!(registration.has_synced());
    assert!(!late.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn h10_a_panic_is_contained_counted_and_reported_and_the_next_event_delivered() {
    let (logs, _guard) = Logs::capture();
    let fake = Fake::synced(&[]);
    let seen = Seen::default();
    let mut note = seen.note();
    // A panic prints its backtrace, which is slow on a busy machine.
    let handler = fake.handler().name("shaky").slow_after(Duration::MAX);
    let registration = handler.for_each(move |event| {
        let secret = event.object().map(ToOwned::to_owned);
        assert!(secret.is_none_or(|object| object.name() != "bad"), "the body");
        note(event);
    });
    fake.put("a");
    fake.put("bad");
    fake.put("b");
    settle().await;
    assert_eq!(seen.take(), ["synced", "+a@1", "+b@3"]);
    assert_eq!(registration.panics(), 1);
    let logs = logs.lines();
    assert_eq!(logs.len(), 1, "{logs:?}");
    for part in ["ERROR", "informer=\"fakes\"", "handler=\"shaky\"", "key=\"ns/bad\"", "panics=1"] {
        assert!(logs[0].contains(part), "{logs:?}");
    }
    assert!(!logs[0].contains("the body"), "{logs:?}");
}

#[tokio::test(start_paused = true)]
async fn h11_a_handler_that_panics_on_its_initial_list_is_synced_all_the_same() {
    let fake = Fake::synced(&["a", "b"]);
    let registration = fake.handler().for_each(|_| panic!("always"));
    let filtered = fake.handler().filter(|_| panic!("always")).for_each(drop);
    settle().await;
    assert!(registration.has_synced() && filtered.has_synced());
    assert_eq!((registration.panics(), filtered.panics()), (3, 2));
    registration.wait_for_sync().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn h13_h14_i22_a_handler_is_synced_when_its_last_initial_callback_has_returned() {
    let fake = Fake::synced(&["a", "b"]);
    let synced = Arc::new(OnceLock::<Registration>::new());
    let (early, own) = (Arc::new(AtomicBool::new(false)), synced.clone());
    let was = early.clone();
    let registration = fake.handler().for_each(move |_| {
        was.fetch_or(own.get().is_some_and(Registration::has_synced), Ordering::Relaxed);
    });
    synced.set(registration.clone()).unwrap();
    assert!(!registration.has_synced(), "although the informer is");
    assert_eq!(registration.backlog(), 3);
    settle().await;
    assert!(registration.has_synced());
    assert!(!early.load(Ordering::Relaxed), "not even in the callback for synced itself");
}

#[tokio::test(start_paused = true)]
async fn h12_stop_drops_what_waits_and_lets_the_running_callback_finish() {
    let fake = Fake::started();
    let (seen, processor) = (Seen::default(), fake.processor.clone());
    let mut note = seen.note();
    let registration = fake.handler().for_each(move |event| {
        processor.stop();
        note(event);
    });
    let mut stream = fake.handler().stream();
    fake.sync(&["a", "b"]);
    settle().await;
    assert_eq!(seen.take(), ["*a@1"]);
    assert_eq!(registration.backlog(), 0);
    assert!(ends(stream.next()).await.is_none());
    fake.tracker.close();
    ends(fake.tracker.wait()).await;
}

#[tokio::test(start_paused = true)]
async fn h12_stop_comes_through_the_token_too_and_ends_all_tasks() {
    let fake = Fake::synced(&["a"]);
    let (registration, seen) = fake.noting();
    settle().await;
    fake.stop.cancel();
    fake.tracker.close();
    ends(fake.tracker.wait()).await;
    fake.put("b");
    settle().await;
    assert_eq!(seen.take(), ["*a@1", "synced"]);
    assert!(registration.has_synced(), "what was reached stays");
    assert_eq!(fake.cache().len(), 2, "the store is written all the same");
}

#[tokio::test(start_paused = true)]
async fn h16_a_handler_that_goes_before_it_is_synced_never_is() {
    let fake = Fake::started();
    let (removed, _) = fake.noting();
    let (stopped, _) = fake.noting();
    settle().await;
    removed.clone().remove().await;
    fake.processor.stop();
    fake.sync(&["a"]);
    settle().await;
    assert!(!removed.has_synced() && !stopped.has_synced());
}

#[tokio::test(start_paused = true)]
async fn h18_a_handler_is_called_by_its_name_or_by_where_it_is_registered() {
    let fake = Fake::new();
    let named = fake.handler().name("web").for_each(drop);
    let (anonymous, here) = (fake.handler().for_each(drop), line!());
    assert_eq!(named.name(), "web");
    assert_eq!(anonymous.name(), format!("{}:{here}", file!()));
    let callbacks = fake.handler().on_add(|_, _| {}).register();
    assert!(callbacks.name().starts_with(&format!("{}:", file!())), "{}", callbacks.name());
    assert!(fake.handler().stream().registration().name().starts_with(file!()));
    assert!(format!("{named:?}").contains("\"web\""));
}

#[tokio::test(start_paused = true)]
async fn h19_falling_behind_is_reported_once() {
    let (logs, _guard) = Logs::capture();
    let fake = Fake::synced(&[]);
    let stream = fake.handler().name("lazy").stream();
    for _ in 0..BACKLOG_EVENTS_MAX + 100 {
        fake.put("a");
    }
    let logs = logs.lines();
    assert_eq!(logs.len(), 1, "{logs:?}");
    for part in ["WARN", "handler=\"lazy\"", "informer=\"fakes\"", "waiting=1026"] {
        assert!(logs[0].contains(part), "{logs:?}");
    }
    assert_eq!(stream.registration().merged(), 99);
}

/// A handler that records one line per call of a trait method.
struct Calls(Seen);
impl EventHandler<Pod> for Calls {
    fn on_add(&mut self, object: &Object<Pod>, initial: bool) {
        let name = object.decode().unwrap().metadata.name.clone().unwrap();
        self.0.0.lock().push(format!("add {name} {initial}"));
    }
    fn on_update(&mut self, old: &Object<Pod>, new: &Object<Pod>) {
        self.0.0.lock().push(format!(
            "update {} {}",
            old.resource_version(),
            new.resource_version()
        ));
    }
    fn on_delete(&mut self, deleted: &Deleted<Pod>) {
        self.0.0.lock().push(format!("delete {:?}", deleted.final_state));
    }
    fn on_synced(&mut self) {
        self.0.0.lock().push("synced".to_owned());
    }
}

#[tokio::test(start_paused = true)]
async fn c26_handlers_are_typed_and_a_resync_is_an_update_unless_they_say_otherwise() {
    let fake = Fake::started();
    let (plain, boxed) = (Seen::default(), Seen::default());
    let period = Some(Duration::from_secs(60));
    let typed = || HandlerBuilder::<Pod>::new(fake.processor.clone(), None, period);
    typed().register(Calls(plain.clone()));
    let handler: Box<dyn EventHandler<Pod>> = Box::new(Calls(boxed.clone()));
    typed().register(handler);
    fake.sync(&["a"]);
    fake.put("a");
    fake.resync_after(60).await;
    fake.list(vec![]);
    settle().await;
    let expected = ["add a true", "synced", "update 1 2", "update 2 2", "delete Unknown"];
    assert_eq!(plain.take(), expected);
    assert_eq!(boxed.take(), expected);
}

#[tokio::test(start_paused = true)]
async fn c25_closures_that_are_left_out_do_nothing() {
    let fake = Fake::started();
    let seen = Seen::default();
    let note = |what: &'static str| {
        let seen = seen.clone();
        move || seen.0.lock().push(what.to_owned())
    };
    let (added, first, repeated) = (note("add"), note("initial"), note("resync"));
    let (changed, synced, gone) = (note("update"), note("synced"), note("delete"));
    fake.handler().on_add(move |_, initial| if initial { first() } else { added() }).register();
    let handler = || fake.handler().resync(Duration::from_secs(60));
    handler().on_update(move |_, _| changed()).on_delete(move |_| gone()).register();
    handler().on_synced(synced).on_resync(move |_| repeated()).register();
    fake.sync(&["a"]);
    settle().await;
    assert_eq!(seen.take(), ["initial", "synced"]);
    fake.put("b");
    fake.delete("a");
    settle().await;
    assert_eq!(seen.take(), ["add", "delete"]);
    fake.resync_after(60).await;
    settle().await;
    assert_eq!(seen.take(), ["update", "resync"]);
    fake.delete("b");
    settle().await;
    assert_eq!(seen.take(), ["delete"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_with_much_to_do_lets_other_tasks_run() {
    let fake = Fake::synced(&[]);
    let names: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    fake.sync(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let (turns, last) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (read, write) = (turns.clone(), last.clone());
    let note = move |_| write.store(read.load(Ordering::Relaxed), Ordering::Relaxed);
    let registration = fake.handler().for_each(note);
    let other = tokio::spawn(async move {
        loop {
            turns.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    while !registration.has_synced() {
        tokio::task::yield_now().await;
    }
    other.abort();
    assert!(last.load(Ordering::Relaxed) >= 7, "1001 events are at least 7 turns");
}

#[tokio::test(start_paused = true)]
async fn i50_an_older_state_is_neither_written_nor_told() {
    let fake = Fake::synced(&[]);
    let (_registration, seen) = fake.noting();
    for version in [5, 3, 5, 6] {
        fake.processor.write(0, vec![Delta::Updated(object("a", version))]);
    }
    let older = Deleted { object: object("a", 4), final_state: FinalState::Known };
    fake.processor.write(0, vec![Delta::Deleted(older)]);
    settle().await;
    assert_eq!(seen.take(), ["synced", "+a@5", "a@5>6"]);
    assert_eq!(fake.cache().len(), 1);
}

/// Returns an object whose informer packs bodies after the first eight.
fn packed(packer: &Packer, name: &str, version: u64) -> Object {
    let text = "some text that all of these objects have in common; ".repeat(8);
    let json = serde_json::json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()},
        "spec": {"text": text, "nodeName": name},
    });
    packer.pack(json.to_string().as_bytes(), None).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_body_is_unpacked_once_for_all_handlers_and_indexes_of_an_event() {
    let fake = Fake::started();
    let packer = Packer::new(Transform::default(), None, false).train_on(8);
    fake.list((0..20).map(|n| packed(&packer, &format!("pod-{n}"), 1)).collect());
    let index = |path: &str| Index::<Untyped>::field(&fake.core.store, None, FieldPath::from(path));
    let _indexes = [index("spec.nodeName").unwrap(), index("spec.text").unwrap()];
    let nodes = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..10 {
        let nodes = nodes.clone();
        fake.handler().only_changes().for_each(move |event| {
            if let Event::Updated { new, .. } = event {
                nodes.lock().push(new.field::<String>("spec.nodeName").unwrap().unwrap());
                assert!(new.to_json().unwrap().starts_with(b"{"));
            }
        });
    }
    settle().await;
    let object = packed(&packer, "pod-3", 2);
    let before = object.unpacks();
    assert!(object.is_packed());
    fake.processor.write(0, vec![Delta::Updated(object.clone())]);
    settle().await;
    assert_eq!((object.unpacks() - before, nodes.lock().len()), (1, 10));
    assert!(nodes.lock().iter().all(|node| node == "pod-3"));
}
