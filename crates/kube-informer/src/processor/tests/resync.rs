//! Each handler's own resync period.

use super::*;

const S: Duration = Duration::from_secs(1);

/// Drives resyncs like the informer's loop.
fn drive(fake: &Fake) -> tokio::task::JoinHandle<()> {
    let processor = Arc::downgrade(&fake.processor);
    tokio::spawn(async move {
        while let Some(processor) = processor.upgrade() {
            let due = processor.resync_due();
            let far = Instant::now() + Duration::from_secs(1_000_000);
            tokio::select! {
                biased;
                () = processor.resync_changed().notified() => {}
                () = tokio::time::sleep_until(due.unwrap_or(far)) => processor.resync(Instant::now()),
            }
        }
    })
}

/// The times, in milliseconds, at which a handler was resynced.
#[derive(Clone, Default)]
struct Times(Arc<Mutex<Vec<u64>>>);

impl Times {
    fn note(&self) -> impl FnMut(Event) + Send + 'static {
        let (times, begin) = (self.0.clone(), Instant::now());
        move |event| {
            if let Event::Resynced(_) = event {
                times.lock().push(begin.elapsed().as_millis() as u64);
            }
        }
    }

    #[track_caller]
    fn assert(&self, times: &[u64]) {
        assert_eq!(*self.0.lock(), times);
    }
}

#[tokio::test(start_paused = true)]
async fn h5_h8_i43_exactly_those_who_asked_are_resynced_each_at_its_own_pace() {
    let fake = Fake::synced(&["a"]);
    drive(&fake);
    let (two, three, zero, none) = <(Times, Times, Times, Times)>::default();
    fake.handler().resync(2 * S).for_each(two.note());
    fake.handler().resync(3 * S).for_each(three.note());
    fake.handler().resync(Duration::ZERO).for_each(zero.note());
    fake.handler().for_each(none.note());
    tokio::time::sleep(9 * S).await;
    settle().await;
    two.assert(&[2000, 4000, 6000, 8000]);
    three.assert(&[3000, 6000, 9000]);
    zero.assert(&[]);
    none.assert(&[]);
}

#[tokio::test(start_paused = true)]
async fn i42_i44_a_period_is_exact_and_counts_from_when_the_handler_came() {
    let fake = Fake::synced(&["a"]);
    drive(&fake);
    let (slow, fast) = <(Times, Times)>::default();
    fake.handler().resync(10 * S).for_each(slow.note());
    tokio::time::sleep(Duration::from_millis(1500)).await;
    // A shorter period than any so far, while the loop waits for a longer one.
    let (note, fast_from) = (fast.note(), 1500);
    fake.handler().resync(Duration::from_millis(2500)).for_each(note);
    // Relists do not affect it.
    tokio::time::sleep(S).await;
    fake.relist();
    tokio::time::sleep(Duration::from_millis(20_000 - fast_from - 1000)).await;
    settle().await;
    fast.assert(&[2500, 5000, 7500, 10_000, 12_500, 15_000, 17_500]);
    slow.assert(&[10_000, 20_000]);
}

#[tokio::test(start_paused = true)]
async fn i41_a_period_below_a_second_is_a_second() {
    let fake = Fake::synced(&["a"]);
    drive(&fake);
    let times = Times::default();
    fake.handler().resync(Duration::from_millis(1)).for_each(times.note());
    tokio::time::sleep(2 * S).await;
    settle().await;
    times.assert(&[1000, 2000]);
}

#[tokio::test(start_paused = true)]
async fn i40_i45_a_handler_has_the_default_unless_it_says_otherwise() {
    let fake = Fake::synced(&["a"]);
    drive(&fake);
    let default = || HandlerBuilder::<Untyped>::new(fake.processor.clone(), None, Some(4 * S));
    let (inherited, own, never, changes) = <(Times, Times, Times, Times)>::default();
    default().for_each(inherited.note());
    default().resync(3 * S).for_each(own.note());
    default().resync(Duration::ZERO).for_each(never.note());
    default().only_changes().for_each(changes.note());
    tokio::time::sleep(6 * S).await;
    settle().await;
    inherited.assert(&[4000]);
    own.assert(&[3000, 6000]);
    never.assert(&[]);
    changes.assert(&[]);
}

#[tokio::test(start_paused = true)]
async fn resyncs_begin_one_period_after_the_first_list() {
    let fake = Fake::started();
    drive(&fake);
    let times = Times::default();
    fake.handler().resync(2 * S).for_each(times.note());
    tokio::time::sleep(5 * S).await;
    assert_eq!(fake.processor.resync_due(), None);
    fake.sync(&["a"]);
    tokio::time::sleep(4 * S).await;
    settle().await;
    times.assert(&[7000, 9000]);
}

#[tokio::test(start_paused = true)]
async fn i17_a_resync_is_an_event_of_its_own_and_changes_nothing() {
    let fake = Fake::synced(&["a", "b"]);
    let (_, bystander) = fake.noting();
    let seen = Seen::default();
    fake.handler().resync(S).for_each(seen.note());
    settle().await;
    assert_eq!(seen.take(), bystander.take());
    let before = fake.cache();
    tokio::time::advance(S).await;
    fake.processor.resync(Instant::now());
    settle().await;
    assert_eq!(seen.take(), ["=a@1", "=b@2"]);
    assert_eq!(bystander.take(), [""; 0]);
    assert!(
        fake.cache().values().zip(before.values()).all(|(now, then)| now.is_same_instance(then))
    );
}

#[tokio::test(start_paused = true)]
async fn h7_unchanged_objects_of_a_relist_go_to_all_who_want_them_and_are_no_resync() {
    let fake = Fake::synced(&["a"]);
    let (with, without, changes) = <(Seen, Seen, Seen)>::default();
    fake.handler().resync(10 * S).for_each(with.note());
    fake.handler().for_each(without.note());
    fake.handler().only_changes().for_each(changes.note());
    fake.relist();
    settle().await;
    assert_eq!(with.take(), ["*a@1", "synced", "a@1>1"]);
    assert_eq!(without.take(), ["*a@1", "synced", "a@1>1"]);
    assert_eq!(changes.take(), ["*a@1", "synced"]);
}

#[tokio::test(start_paused = true)]
async fn h9_a_resync_that_is_queued_is_delivered_whatever_is_due_next() {
    let fake = Fake::synced(&["a"]);
    let mut stream = fake.handler().resync(S).stream();
    for _ in 0..3 {
        tokio::time::advance(S).await;
        fake.processor.resync(Instant::now());
        // No handler is due: this has no effect.
        fake.processor.resync(Instant::now());
    }
    let mut seen = vec![];
    for _ in 0..3 {
        seen.extend(stream.next().await.as_ref().map(text));
    }
    assert_eq!(seen, ["*a@1", "synced", "=a@1"]);
    assert_eq!(stream.registration().backlog(), 0, "three that nobody took are one");
    assert_eq!(stream.registration().skipped(), 2);
}

#[tokio::test(start_paused = true)]
async fn resyncs_that_were_missed_are_not_made_up_for() {
    let fake = Fake::synced(&["a"]);
    let begin = Instant::now();
    let registration = fake.handler().resync(2 * S).for_each(drop);
    let due = || fake.processor.resync_due().map(|due| (due - begin).as_millis());
    assert_eq!(due(), Some(2000));
    tokio::time::advance(Duration::from_millis(2100)).await;
    fake.processor.resync(Instant::now());
    assert_eq!(due(), Some(4000), "a little late is no reason to shift");
    tokio::time::advance(60 * S).await;
    fake.processor.resync(Instant::now());
    assert_eq!(due(), Some(64_100));
    drop(registration.remove());
    assert_eq!(due(), None);
}

#[tokio::test(start_paused = true)]
async fn periods_without_an_end_never_come() {
    let fake = Fake::synced(&["a"]);
    fake.handler().resync(Duration::MAX).for_each(drop);
    assert_eq!(fake.processor.resync_due(), None);
    let early = Fake::started();
    early.handler().resync(Duration::MAX).for_each(drop);
    early.sync(&[]);
    assert_eq!(early.processor.resync_due(), None);
}
