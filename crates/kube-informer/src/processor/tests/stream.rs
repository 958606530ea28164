//! Streams: listeners that are polled.

use futures_util::{FutureExt, StreamExt};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_stream_gives_what_handlers_get() {
    let fake = Fake::synced(&["a"]);
    let mut stream = fake.handler().stream();
    fake.put("a");
    fake.delete("a");
    let mut seen = vec![];
    for _ in 0..4 {
        seen.extend(stream.next().await.as_ref().map(text));
    }
    assert_eq!(seen, ["*a@1", "synced", "a@1>2", "-a@3"]);
    assert!(stream.next().now_or_never().is_none());
    assert!(format!("{stream:?}").contains("has_synced: true"));
}

#[tokio::test(start_paused = true)]
async fn h13_a_stream_is_synced_when_it_has_given_synced() {
    let fake = Fake::synced(&["a"]);
    let mut stream = fake.handler().stream();
    let registration = stream.registration().clone();
    stream.next().await;
    assert!(!registration.has_synced());
    stream.next().await;
    assert!(registration.has_synced());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_waits_is_woken_by_events_and_by_the_end() {
    let fake = Fake::synced(&[]);
    let seen = Seen::default();
    let mut note = seen.note();
    let mut stream = fake.handler().stream();
    let task = tokio::spawn(async move {
        while let Some(event) = stream.next().await {
            note(event);
        }
    });
    settle().await;
    fake.put("a");
    settle().await;
    assert_eq!(seen.take(), ["synced", "+a@1"]);
    fake.processor.stop();
    ends(task).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_ended_by_its_registration_and_by_being_dropped() {
    let fake = Fake::synced(&["a"]);
    let mut stream = fake.handler().stream();
    ends(stream.registration().clone().remove()).await;
    assert!(ends(stream.next()).await.is_none());
    assert!(ends(stream.next()).await.is_none());
    let stream = fake.handler().stream();
    let registration = stream.registration().clone();
    assert_eq!(registration.backlog(), 2);
    drop(stream);
    assert_eq!(registration.backlog(), 0);
    let error = registration.wait_for_sync().await.unwrap_err().to_string();
    assert!(error.contains("removed"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn c24_filters_apply_to_streams() {
    let fake = Fake::synced(&["a", "b"]);
    let mut stream = fake
        .handler()
        .filter(|object| object.name() != "a")
        .filter(|object| version(object) != 4)
        .only_changes()
        .stream();
    fake.put("a");
    fake.put("b");
    fake.relist();
    fake.put("b");
    let mut seen = vec![];
    for _ in 0..4 {
        seen.extend(stream.next().await.as_ref().map(text));
    }
    assert_eq!(seen, ["*b@2", "synced", "-b@2", "+b@5"]);
    assert!(stream.next().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_panics_does_not_end_its_stream() {
    let fake = Fake::synced(&["a"]);
    let mut stream = fake.handler().filter(|_| panic!("bad")).stream();
    assert_eq!(stream.next().await.as_ref().map(text).as_deref(), Some("synced"));
    assert_eq!(stream.registration().panics(), 1);
}

#[tokio::test(start_paused = true)]
async fn next_is_cancel_safe() {
    let fake = Fake::synced(&[]);
    let mut stream = fake.handler().stream();
    stream.next().await;
    for round in 0..10 {
        assert!(stream.next().now_or_never().is_none());
        fake.put("a");
        let event = stream.next().now_or_never().flatten();
        assert_eq!(event.map(|event| version(event.object().unwrap())), Some(round + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_always_has_something_lets_others_run() {
    let fake = Fake::new();
    let names: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    fake.sync(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let turns = Arc::new(AtomicU64::new(0));
    let count = turns.clone();
    let other = tokio::spawn(async move {
        loop {
            count.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    // No event passes, so that the whole backlog is one call of `next`.
    let mut stream = fake.handler().filter(|_| false).stream();
    assert_eq!(StreamExt::next(&mut stream).await.as_ref().map(text).as_deref(), Some("synced"));
    other.abort();
    assert!(turns.load(Ordering::Relaxed) >= 7);
}
