//! Handlers that register early, late, twice, or too late.

use super::logs::Logs;
use super::*;
use crate::indexer::Alive;

#[tokio::test(start_paused = true)]
async fn i20_a_handler_that_is_there_first_sees_the_whole_list_as_initial() {
    let fake = Fake::new();
    let (registration, seen) = fake.noting();
    fake.start();
    settle().await;
    assert_eq!(seen.take(), [""; 0]);
    fake.sync(&["a", "b"]);
    settle().await;
    assert_eq!(seen.take(), ["*a@1", "*b@2", "synced"]);
    assert!(registration.has_synced());
}

#[tokio::test(start_paused = true)]
async fn i21_a_late_handler_sees_what_is_there_and_then_what_changes() {
    let fake = Fake::synced(&["a", "b"]);
    fake.put("a");
    let (_, seen) = fake.noting();
    fake.put("b");
    fake.put("c");
    settle().await;
    assert_eq!(seen.take(), ["*a@3", "*b@2", "synced", "b@2>4", "+c@5"]);
}

#[tokio::test(start_paused = true)]
async fn i21_a_handler_may_come_before_the_informer_is_synced() {
    let fake = Fake::started();
    settle().await;
    let (registration, seen) = fake.noting();
    settle().await;
    assert_eq!((seen.take(), registration.has_synced()), (vec![], false));
    fake.sync(&[]);
    settle().await;
    assert_eq!((seen.take(), registration.has_synced()), (vec!["synced".to_owned()], true));
}

#[tokio::test(start_paused = true)]
async fn i23_what_comes_before_the_tasks_are_started_is_kept() {
    let fake = Fake::new();
    fake.sync(&["a"]);
    let (early, early_seen) = fake.noting();
    fake.put("b");
    assert_eq!(early.backlog(), 3);
    fake.start();
    fake.start();
    let (_, late_seen) = fake.noting();
    settle().await;
    assert_eq!(early_seen.take(), ["*a@1", "synced", "+b@2"]);
    assert_eq!(late_seen.take(), ["*a@1", "*b@2", "synced"]);
}

#[tokio::test(start_paused = true)]
async fn i24_a_handler_that_comes_after_the_stop_is_never_called_nor_synced() {
    let (logs, _guard) = Logs::capture();
    let fake = Fake::synced(&["a"]);
    fake.core.progress.send_modify(|progress| progress.stopped = true);
    fake.processor.stop();
    let (registration, seen) = fake.noting();
    let logs = logs.lines();
    assert!(logs.len() == 1 && logs[0].contains("ERROR") && logs[0].contains(registration.name()));
    let mut stream = fake.handler().stream();
    assert!(ends(stream.next()).await.is_none());
    settle().await;
    assert_eq!((seen.take(), registration.has_synced()), (vec![], false));
    let error = registration.wait_for_sync().await.unwrap_err().to_string();
    assert!(error.contains("stopped"), "{error}");
    let error = registration.clone().accepted().unwrap_err();
    assert!(error.is_stopped(), "{error}");
    assert!(error.to_string().contains("was not added to informer fakes, which has stopped"));
    assert_eq!(Arc::strong_count(&seen.0), 1, "the handler is gone");
    ends(registration.remove()).await;
}

#[tokio::test(start_paused = true)]
async fn i25_the_same_handler_twice_is_two_handlers() {
    let fake = Fake::started();
    let seen = Seen::default();
    let first = fake.handler().for_each(seen.note());
    let second = fake.handler().for_each(seen.note());
    fake.sync(&["a"]);
    settle().await;
    assert_eq!(seen.take(), ["*a@1", "synced", "*a@1", "synced"]);
    first.remove().await;
    fake.put("a");
    settle().await;
    assert_eq!(seen.take(), ["a@1>2"]);
    assert!(second.has_synced());
}

#[tokio::test(start_paused = true)]
async fn i29_handlers_may_be_added_and_removed_from_inside_callbacks() {
    let fake = Fake::started();
    let (processor, seen, own) =
        (fake.processor.clone(), Seen::default(), Arc::new(OnceLock::new()));
    let (inner_seen, mine) = (seen.clone(), own.clone());
    let mut inner = vec![];
    let registration = fake.handler().for_each(move |event| {
        let Event::Added { object, .. } = event else { return };
        if let ("last", Some(own)) = (object.name(), mine.get()) {
            drop(Registration::clone(own).remove());
        }
        let builder = HandlerBuilder::<Untyped>::new(processor.clone(), None, None);
        inner.push(builder.for_each(inner_seen.note()).remove_on_drop());
    });
    own.set(registration.clone()).unwrap();
    fake.sync(&["a"]);
    settle().await;
    assert_eq!(seen.take(), ["*a@1", "synced"]);
    fake.put("last");
    fake.put("b");
    settle().await;
    assert_eq!(seen.take(), [""; 0], "the outer handler took its inner ones with it");
    fake.put("c");
    assert_eq!(fake.processor.inner.lock().members.len(), 0);
}

/// Counts the holders, as an informer does to know whether anything still uses it.
#[tokio::test(start_paused = true)]
async fn an_informer_is_kept_alive_by_handlers_and_streams_and_not_by_registrations() {
    let fake = Fake::new();
    let alive = Alive::new(|| ());
    let builder =
        || HandlerBuilder::<Untyped>::new(fake.processor.clone(), Some(alive.clone()), None);
    let unstarted = builder().for_each(drop);
    unstarted.clone().remove().await;
    assert_eq!(Arc::strong_count(&alive), 1);
    let (registration, mut stream) = (builder().for_each(drop), builder().stream());
    fake.start();
    settle().await;
    assert_eq!(Arc::strong_count(&alive), 3);
    registration.clone().remove().await;
    assert_eq!(Arc::strong_count(&alive), 2);
    fake.processor.stop();
    assert!(ends(stream.next()).await.is_none());
    assert_eq!(Arc::strong_count(&alive), 1, "a stream that has ended holds nothing");
    let weak = Arc::downgrade(&fake.processor);
    drop(fake);
    assert!(weak.upgrade().is_none(), "registrations and streams are weak");
    assert!(registration.wait_for_sync().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_is_dropped_ends_its_handlers() {
    let fake = Fake::synced(&[]);
    let ((registration, seen), mut stream) = (fake.noting(), fake.handler().stream());
    settle().await;
    drop(fake);
    settle().await;
    assert!(ends(stream.next()).await.is_none());
    assert_eq!(Arc::strong_count(&seen.0), 1);
    ends(registration.remove()).await;
}

/// Registers a handler that folds its events.
fn folding(fake: &Fake, random: &mut fastrand::Rng) -> (Registration, Arc<Mutex<Fold>>) {
    let fold = Arc::new(Mutex::new(Fold::default()));
    let mut builder = fake.handler();
    if random.bool() {
        builder = builder.only_changes();
    }
    if random.bool() {
        builder = builder.filter(|_| true);
    }
    let write = fold.clone();
    (builder.for_each(move |event| write.lock().tell(&event)), fold)
}

/// I12: whenever handlers register and leave, each receives one state of the cache and then every change.
#[tokio::test(start_paused = true)]
async fn i12_handlers_come_and_go_during_churn() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let fake = Fake::started();
        let mut handlers = vec![];
        let sync_at = random.usize(0..30);
        for step in 0..300 {
            let name = random.usize(0..8).to_string();
            match random.u8(0..20) {
                _ if step == sync_at => fake.sync(&["0", "1", "2"]),
                _ if step < sync_at => handlers.push(folding(&fake, &mut random)),
                0..8 => fake.put(&name),
                8..12 => fake.delete(&name),
                12 => fake.relist(),
                13..15 => handlers.push(folding(&fake, &mut random)),
                15 if !handlers.is_empty() => {
                    let (registration, fold) = handlers.swap_remove(random.usize(..handlers.len()));
                    ends(registration.remove()).await;
                    assert!(fold.lock().wrong.is_empty(), "seed {seed}: {fold:?}");
                    assert_eq!(Arc::strong_count(&fold), 1);
                }
                _ => tokio::task::yield_now().await,
            }
        }
        settle().await;
        for (registration, fold) in handlers {
            assert!(registration.has_synced() && fold.lock().synced, "seed {seed}");
            fold.lock().assert_is(&fake.cache());
        }
    }
}

/// I12 with real threads, so that registrations coincide with distributions at any point.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i12_i29_handlers_come_and_go_from_many_tasks() {
    let fake = Arc::new(Fake::synced(&["0", "1", "2"]));
    let (done, over) = watch::channel(false);
    let joiners: Vec<_> = (0..4)
        .map(|seed| {
            let (fake, over) = (fake.clone(), over.clone());
            tokio::spawn(async move {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut handlers = vec![];
                while !*over.borrow() {
                    handlers.push(folding(&fake, &mut random));
                    if handlers.len() > 5 {
                        let (registration, fold) = handlers.swap_remove(random.usize(..6));
                        registration.wait_for_sync().await.unwrap();
                        registration.remove().await;
                        assert!(fold.lock().wrong.is_empty(), "{fold:?}");
                        assert_eq!(Arc::strong_count(&fold), 1);
                    }
                    tokio::task::yield_now().await;
                }
                handlers
            })
        })
        .collect();
    let writer = fake.clone();
    let write = tokio::task::spawn_blocking(move || {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..3000 {
            let name = random.usize(0..8).to_string();
            if random.u8(0..3) > 0 { writer.put(&name) } else { writer.delete(&name) }
        }
    });
    write.await.unwrap();
    done.send(true).unwrap();
    let mut left = vec![];
    for joiner in joiners {
        left.extend(joiner.await.unwrap());
    }
    fake.put("end");
    let end = ObjectKey::namespaced("ns", "end");
    for (_, fold) in left {
        while !fold.lock().known.contains_key(&end) {
            tokio::task::yield_now().await;
        }
        fold.lock().assert_is(&fake.cache());
    }
}
