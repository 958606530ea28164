//! R- and W-: the driver of the protocol with stores, sources and stops.

use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use kube_informer::reflector::ReflectorStore;
use kube_informer::{
    Error, Indexer, Next, Object, ObjectKey, Reflector, ResourceVersion, Result, SharedInformer,
    State, Untyped,
};
use tokio::time::{Instant, timeout};

use crate::scene::{
    Lists, Notes, Own, add, builder, change, lists, names, remove, seconds, server, settle, source,
    synced,
};

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn r5_fa9_a_source_that_does_not_stream_lists_is_listed() {
    for (streams, expected) in [(true, &["stream"][..]), (false, &["list", "watch"])] {
        let own = Own { streams, ..Own::default() };
        let informer = SharedInformer::<Untyped>::from_source(own.clone()).build();
        informer.start();
        informer.wait_for_sync().await.unwrap();
        settle().await;
        assert_eq!(own.asked.take(), expected);
        assert_eq!(names(&informer), ["a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn r10_r16_it_begins_at_once_and_never_gives_up() {
    let server = server();
    add(&server, "a");
    server.faults().any().always().inject(Fault::status(500));
    let reports = Notes::default();
    let began = Instant::now();
    let maps = builder(&server).on_error(reports.reporter()).build();
    maps.start();
    settle().await;
    assert_eq!(server.requests().len(), 1, "at once");
    seconds(3600).await;
    let reports = reports.take();
    assert_eq!(reports.len(), server.requests().len(), "each is reported");
    // In the long run a pause is 30 to 60 seconds.
    assert!((3600 / 60..3600 / 30 + 8).contains(&reports.len()), "{}", reports.len());
    assert!(reports.iter().zip(1..).all(|(report, count)| report.attempt == count));
    server.faults().clear();
    maps.wait_for_sync().await.unwrap();
    assert!(began.elapsed() < LONG + Duration::from_secs(61));
}

/// A store that rejects everything.
struct Unwilling(Notes<String>);

impl Unwilling {
    fn refuse<T>(&self, what: &str) -> Result<T> {
        self.0.push(what.to_owned());
        Err(Error::connection("a test refuses"))
    }
}

impl ReflectorStore for Unwilling {
    fn replace(&mut self, _: Vec<Object>, _: Vec<Error>, version: ResourceVersion) -> Result<()> {
        self.refuse(&format!("list at {version}"))
    }
    fn add(&mut self, object: Object) -> Result<()> {
        self.refuse(&format!("+{}", object.name()))
    }
    fn update(&mut self, object: Object) -> Result<()> {
        self.refuse(&format!("~{}", object.name()))
    }
    fn delete(&mut self, object: Object) -> Result<()> {
        self.refuse(&format!("-{}", object.name()))
    }
}

#[tokio::test(start_paused = true)]
async fn r29_a_store_that_rejects_lists_backs_off() {
    let server = server();
    add(&server, "a");
    let (reports, told) = (Notes::default(), Notes::default());
    let store = Unwilling(told.clone());
    let reflector = Reflector::new(source(&server), store).on_error(reports.reporter());
    let running = tokio::spawn(reflector.run_until(seconds(60)));
    settle().await;
    let listed_at = server.store().revision();
    assert_eq!(told.take(), [format!("list at {listed_at}")]);
    let report = reports.take().remove(0);
    assert!(report.error.is_store(), "{report}");
    let source = std::error::Error::source(&report.error).and_then(|source| source.downcast_ref());
    assert!(source.is_some_and(Error::is_connection_broken), "the store's own error");
    assert!(report.to_string().contains("the store did not take the list: a test refuses"));
    change(&server, "a", "second");
    let listed_at = server.store().revision();
    running.await.unwrap();
    let told = told.take();
    assert!((4..=6).contains(&told.len()), "{told:?}");
    assert!(told.iter().all(|told| *told == format!("list at {listed_at}")), "{told:?}");
    assert!(reports.nexts().iter().all(|next| *next == "relist"));
}

/// A store that rejects only the second list.
#[derive(Default)]
struct RefusesSecond {
    lists: u32,
    objects: Vec<Object>,
}

impl ReflectorStore for RefusesSecond {
    fn replace(&mut self, objects: Vec<Object>, _: Vec<Error>, _: ResourceVersion) -> Result<()> {
        self.lists += 1;
        if self.lists == 2 {
            return Err(Error::connection("a test refuses"));
        }
        self.objects = objects;
        Ok(())
    }
    fn add(&mut self, _: Object) -> Result<()> {
        Ok(())
    }
    fn update(&mut self, _: Object) -> Result<()> {
        Ok(())
    }
    fn delete(&mut self, _: Object) -> Result<()> {
        Ok(())
    }
    fn known(&self, key: &ObjectKey) -> Option<Object> {
        self.objects.iter().find(|object| object.key() == key).cloned()
    }
}

/// The store rejected the list that would have revealed that the server was restored from a backup: the same
/// version may then be a different state.
#[tokio::test(start_paused = true)]
async fn r29_i21_a_rejected_list_does_not_count_as_stored() {
    let server = server();
    add(&server, "a");
    let backup = server.store().snapshot();
    change(&server, "a", "before the restore");
    let reflector = Reflector::new(source(&server), RefusesSecond::default()).seed(7);
    let reports: Notes<_> = Notes::default();
    let reflector = reflector.on_error(reports.reporter());
    let running = tokio::spawn(reflector.run_until(seconds(120)));
    settle().await;
    server.restore(&backup);
    while !reports.take().iter().any(|report| report.error.is_store()) {
        settle().await;
    }
    change(&server, "a", "after the restore");
    let store = running.await.unwrap();
    assert_eq!(store.lists, 3);
    let body = store.objects[0].to_json().unwrap();
    assert!(String::from_utf8_lossy(&body).contains("after the restore"));
}

/// A store that accepts only lists.
struct OnlyLists(Unwilling);

impl ReflectorStore for OnlyLists {
    fn replace(&mut self, _: Vec<Object>, _: Vec<Error>, version: ResourceVersion) -> Result<()> {
        self.0.0.push(format!("list at {version}"));
        Ok(())
    }
    fn add(&mut self, object: Object) -> Result<()> {
        self.0.add(object)
    }
    fn update(&mut self, object: Object) -> Result<()> {
        self.0.update(object)
    }
    fn delete(&mut self, object: Object) -> Result<()> {
        self.0.delete(object)
    }
}

#[tokio::test(start_paused = true)]
async fn r52_an_event_that_a_store_rejects_is_reported() {
    let server = server();
    add(&server, "a");
    let (reports, told) = (Notes::default(), Notes::default());
    let store = OnlyLists(Unwilling(told.clone()));
    let reflector = Reflector::new(source(&server), store).on_error(reports.reporter());
    let running = tokio::spawn(reflector.run_until(seconds(9)));
    settle().await;
    let listed_at = server.store().revision();
    change(&server, "a", "second");
    remove(&server, "a");
    running.await.unwrap();
    assert_eq!(told.take(), [format!("list at {listed_at}"), "~a".into(), "-a".into()]);
    assert_eq!(reports.nexts(), ["skip", "skip"]);
    assert_eq!(server.requests().len(), 1, "nothing is asked for again");
}

#[tokio::test(start_paused = true)]
async fn r30_l5_a_list_that_hangs_does_not_hold_up_a_stop() {
    let hanging = Own { lists: Lists::Hang, ..Own::default() };
    let informer = SharedInformer::<Untyped>::from_source(hanging).build();
    informer.start();
    settle().await;
    assert!(matches!(informer.state(), State::Listing));
    let began = Instant::now();
    informer.shutdown().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(informer.wait_for_sync().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn r30_a_source_that_panics_stops_its_informer_and_nothing_else() {
    let panicking = Own { lists: Lists::Panic, ..Own::default() };
    let informer = SharedInformer::<Untyped>::from_source(panicking).build();
    let mut events = informer.events();
    informer.start();
    let error = informer.wait_for_sync().await.unwrap_err().to_string();
    assert!(error.contains("stopped"), "{error}");
    assert!(informer.is_stopped() && matches!(informer.state(), State::Stopped));
    assert!(events.next().await.is_none());
    informer.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn r41_what_is_stopped_already_asks_for_nothing() {
    let own = Own::default();
    let reflector = Reflector::new(own.clone(), Indexer::<Untyped>::new());
    reflector.run_until(std::future::ready(())).await;
    let informer = SharedInformer::<Untyped>::from_source(own.clone()).build();
    informer.stop();
    informer.start();
    settle().await;
    assert!(own.asked.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn r42_w17_a_watch_is_let_go_of_whatever_ends_it() {
    let server = server();
    let maps = synced(builder(&server)).await;
    assert_eq!(server.watches(), 1);
    // An error, an end, silence: there is only one watch at a time.
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
    seconds(10).await;
    assert_eq!(server.watches(), 1);
    server.drop_watches();
    seconds(10).await;
    assert_eq!(server.watches(), 1);
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::HalfOpen);
    seconds(200).await;
    assert_eq!(server.watches(), 1);
    maps.shutdown().await;
    settle().await;
    assert_eq!(server.watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn r48_errors_inside_a_watch_are_reported_with_what_is_done() {
    let server = server();
    let reports = Notes::default();
    let maps = synced(builder(&server).on_error(reports.reporter())).await;
    for (fault, expected, seconds_to_heal) in [
        (Fault::Gone, "relist", 5),
        (Fault::status(500), "resume", 5),
        (Fault::Reset, "resume", 10),
        (Fault::MalformedUtf8, "relist", 20),
    ] {
        server.faults().on(Verb::Watch).after_events(0).inject(fault.clone());
        add(&server, &format!("for-{}", fault.name()));
        seconds(seconds_to_heal).await;
        assert_eq!(reports.nexts(), [expected], "{}", fault.name());
        let report = reports.take().remove(0);
        assert!(matches!(report.during, State::Watching), "{report}");
        assert!(report.error.to_string().contains("configmaps"), "{report}");
    }
    assert_eq!(names(&maps).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn r53_r57_c16_i7_a_bookmark_only_advances_the_version() {
    let server = server();
    let seen = Notes::default();
    let maps = builder(&server).build();
    assert!(maps.resource_version().is_empty());
    maps.handler().for_each(seen.handler());
    maps.start();
    maps.wait_for_sync().await.unwrap();
    settle().await;
    assert_eq!(seen.take(), ["synced"]);
    // A write to another resource advances the server's version.
    let secret = serde_json::json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "s"},
    });
    server.create(secret).unwrap();
    let version = ResourceVersion::from(server.store().revision());
    assert!(maps.resource_version() < version);
    timeout(LONG, maps.wait_for_version(&version)).await.unwrap().unwrap();
    assert_eq!(maps.resource_version(), version);
    assert!(seen.take().is_empty());
    maps.shutdown().await;
    assert_eq!(maps.resource_version(), version);
}

#[tokio::test(start_paused = true)]
async fn w5_nothing_of_a_stream_that_breaks_before_its_end_is_seen() {
    let server = server();
    add(&server, "a-phantom");
    add(&server, "b");
    server.faults().on(Verb::Watch).after_events(1).inject(Fault::Reset);
    let (seen, reports) = (Notes::default(), Notes::default());
    let maps = builder(&server).on_error(reports.reporter()).build();
    maps.handler().for_each(seen.handler());
    maps.start();
    settle().await;
    assert_eq!(reports.nexts(), ["relist"]);
    assert!(!maps.has_synced() && maps.lister().is_empty());
    remove(&server, "a-phantom");
    maps.wait_for_sync().await.unwrap();
    settle().await;
    assert_eq!(seen.take(), ["*b", "synced"]);
    assert_eq!(names(&maps), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn w7_w10_l5_a_stop_ends_a_stream_and_a_pause_at_once() {
    let server = server();
    for fault in [Fault::HalfOpen, Fault::status_retry_after(429, "60")] {
        server.faults().on(Verb::Watch).inject(fault.clone());
        let maps = builder(&server).build();
        maps.start();
        settle().await;
        let state = maps.state();
        assert!(
            matches!(state, State::Streaming | State::BackingOff { .. }),
            "{}: {state}",
            fault.name()
        );
        let began = Instant::now();
        maps.shutdown().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(!maps.has_synced() && matches!(maps.state(), State::Stopped));
    }
}

#[tokio::test(start_paused = true)]
async fn w9_unsupported_streaming_lists_are_requested_once() {
    let server = server();
    server.faults().on(Verb::Watch).inject(Fault::status(422));
    let reports = Notes::default();
    let maps = synced(builder(&server).on_error(reports.reporter())).await;
    assert_eq!(reports.take()[0].next, Next::FallBackToList);
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
    add(&server, "a");
    seconds(10).await;
    assert_eq!(names(&maps), ["a"]);
    let streams =
        server.requests().iter().filter(|one| one.uri.contains("sendInitialEvents")).count();
    assert_eq!((streams, lists(&server)), (1, 3));
}
