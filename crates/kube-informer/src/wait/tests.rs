use tokio_util::sync::CancellationToken;

use crate::{Error, RequestCounts, ResourceVersion};

use super::*;

const S: Duration = Duration::from_secs(1);

/// An informer whose progress the test controls.
struct Fake {
    name: Arc<str>,
    progress: watch::Sender<Progress>,
    state: State,
    last_error: Option<Error>,
}

impl Fake {
    fn new(name: &'static str) -> Self {
        let progress = watch::Sender::new(Progress { started: true, ..Progress::default() });
        Self { name: name.into(), progress, state: State::Listing, last_error: None }
    }
    fn set(&self, change: impl FnOnce(&mut Progress)) {
        self.progress.send_modify(change);
    }
}

impl Watched for Fake {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
    fn status(&self) -> InformerStatus {
        InformerStatus {
            name: self.name.clone(),
            state: self.state.clone(),
            since: Instant::now(),
            synced: self.progress.borrow().synced,
            live: false,
            staleness: None,
            objects: 0,
            received: 0,
            failed: 0,
            bytes: 0,
            index_panics: 0,
            resource_version: ResourceVersion::default(),
            last_error: self.last_error.clone(),
            queued: 0,
            lag: None,
            silence_limit: Duration::ZERO,
            requests: RequestCounts::default(),
        }
    }
    fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }
}

#[derive(Default)]
struct FakeHandler {
    sync: watch::Sender<HandlerSync>,
    delivered: std::sync::atomic::AtomicU64,
}

impl WatchedHandler for FakeHandler {
    fn name(&self) -> Arc<str> {
        "src/main.rs:7".into()
    }
    fn waiting(&self) -> usize {
        12
    }
    fn delivered(&self) -> u64 {
        self.delivered.load(std::sync::atomic::Ordering::Relaxed)
    }
    fn sync(&self) -> watch::Receiver<HandlerSync> {
        self.sync.subscribe()
    }
}

fn wait_for(informers: &[&Arc<Fake>]) -> WaitForSync {
    let informers = informers.iter().map(|informer| (*informer).clone() as Arc<dyn Watched>);
    WaitForSync::new(informers.collect::<Vec<_>>())
}

fn wait_for_handler(informer: &Arc<Fake>, handler: &Arc<FakeHandler>) -> WaitForSync {
    WaitForSync::of_handler(Some(informer.clone()), handler.clone())
}

/// The result of a wait, and its duration in seconds.
async fn outcome(wait: WaitForSync) -> (Result<(), NotSyncedReason>, u64) {
    let begin = Instant::now();
    let result = wait.await.map_err(|error| error.reason);
    (result, begin.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn i60_nothing_to_wait_for_is_synced() {
    assert_eq!(outcome(WaitForSync::new([])).await, (Ok(()), 0));
}

#[tokio::test(start_paused = true)]
async fn i60_sync_is_noticed_immediately_and_without_polling() {
    let (a, b) = (Arc::new(Fake::new("a")), Arc::new(Fake::new("b")));
    a.set(|progress| progress.synced = true);
    assert_eq!(outcome(wait_for(&[&a]).timeout(Duration::ZERO)).await, (Ok(()), 0));
    let waiting = tokio::spawn(outcome(wait_for(&[&a, &b])));
    tokio::time::sleep(3 * S).await;
    b.set(|progress| progress.synced = true);
    assert_eq!(waiting.await.unwrap(), (Ok(()), 3));
}

#[tokio::test(start_paused = true)]
async fn l4_waiting_for_an_informer_not_started_fails_at_once() {
    let (a, b) =
        (Arc::new(Fake::new("a")), Arc::new(Fake { state: State::Idle, ..Fake::new("b") }));
    b.set(|progress| progress.started = false);
    let begin = Instant::now();
    let error = wait_for(&[&a, &b]).await.unwrap_err();
    assert_eq!((error.reason, begin.elapsed()), (NotSyncedReason::NotStarted, Duration::ZERO));
    assert_eq!(
        error.to_string(),
        "not synced: an informer has not been started: call start() first; a is listing; b is idle"
    );
}

#[tokio::test(start_paused = true)]
async fn i60_i61_a_stop_ends_the_wait_but_what_has_synced_counts() {
    let (a, b) = (Arc::new(Fake::new("a")), Arc::new(Fake::new("b")));
    a.set(|progress| (progress.synced, progress.stopped) = (true, true));
    assert_eq!(outcome(wait_for(&[&a])).await, (Ok(()), 0));
    let waiting = tokio::spawn(outcome(wait_for(&[&a, &b])));
    tokio::time::sleep(S).await;
    b.set(|progress| progress.stopped = true);
    assert_eq!(waiting.await.unwrap(), (Err(NotSyncedReason::Stopped), 1));
}

#[tokio::test(start_paused = true)]
async fn l4_a_wait_ends_only_without_progress() {
    let slow = Arc::new(Fake::new("slow"));
    let (feed, stop) = (slow.clone(), CancellationToken::new());
    let stopped = stop.clone();
    tokio::spawn(async move {
        for page in 1..=10 {
            tokio::time::sleep(100 * S).await;
            feed.set(|progress| progress.received = page);
        }
        // Retries without items are no progress.
        while !stopped.is_cancelled() {
            tokio::time::sleep(50 * S).await;
            feed.set(|_| {});
        }
    });
    let result = outcome(wait_for(&[&slow]).timeout(10_000 * S)).await;
    assert_eq!(result, (Err(NotSyncedReason::NoProgress(WAIT_PROGRESS_MAX)), 1000 + 120));
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn limits_can_be_set() {
    let a = Arc::new(Fake::new("a"));
    let result = outcome(wait_for(&[&a]).timeout(5 * S)).await;
    assert_eq!(result, (Err(NotSyncedReason::TimedOut(5 * S)), 5));
    let result = outcome(wait_for(&[&a]).progress_timeout(7 * S)).await;
    assert_eq!(result, (Err(NotSyncedReason::NoProgress(7 * S)), 7));
    let patient = wait_for(&[&a]).progress_timeout(Duration::MAX).timeout(10_000 * S);
    assert_eq!(outcome(patient).await, (Err(NotSyncedReason::TimedOut(10_000 * S)), 10_000));
    let endless = wait_for(&[&a]).progress_timeout(Duration::MAX).timeout(Duration::MAX);
    let waiting = tokio::spawn(outcome(endless));
    tokio::time::sleep(1_000_000 * S).await;
    a.set(|progress| progress.synced = true);
    assert_eq!(waiting.await.unwrap(), (Ok(()), 1_000_000));
}

#[tokio::test(start_paused = true)]
async fn i62_the_error_names_the_problem_of_each_informer() {
    let forbidden = Error::invalid("pods is forbidden");
    let until = Instant::now();
    let why = forbidden.clone();
    let pods = Arc::new(Fake {
        state: State::BackingOff { until, why },
        last_error: Some(forbidden),
        ..Fake::new("pods")
    });
    let last_error = Some(Error::invalid("connection refused"));
    let nodes = Arc::new(Fake { last_error, ..Fake::new("nodes") });
    let done = Arc::new(Fake::new("done"));
    done.set(|progress| progress.synced = true);
    let error = wait_for(&[&pods, &nodes, &done]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "not synced: nothing arrived for 120s; nodes is listing, its last error was: connection \
         refused; pods is backing off: pods is forbidden"
    );
    assert_eq!(error.informers.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_makes_progress_is_waited_for() {
    let (a, handler) = (Arc::new(Fake::new("a")), Arc::new(FakeHandler::default()));
    let waiting = tokio::spawn(outcome(wait_for_handler(&a, &handler)));
    tokio::time::sleep(110 * S).await;
    a.set(|progress| progress.synced = true);
    for _ in 0..10 {
        tokio::time::sleep(100 * S).await;
        handler.delivered.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    handler.sync.send_replace(HandlerSync::Synced);
    assert_eq!(waiting.await.unwrap(), (Ok(()), 1110));
}

#[tokio::test(start_paused = true)]
async fn l4_the_error_names_a_stuck_handler() {
    let (a, handler) = (Arc::new(Fake::new("a")), Arc::new(FakeHandler::default()));
    a.set(|progress| progress.synced = true);
    let error = wait_for_handler(&a, &handler).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "not synced: nothing arrived for 120s; handler src/main.rs:7 has not finished its initial \
         list, 12 events are queued"
    );
}

#[tokio::test(start_paused = true)]
async fn h16_a_handler_that_ends_ends_the_wait() {
    for (end, reason) in [
        (HandlerSync::Removed, NotSyncedReason::HandlerRemoved),
        (HandlerSync::Stopped, NotSyncedReason::Stopped),
    ] {
        for synced in [false, true] {
            let (a, handler) = (Arc::new(Fake::new("a")), Arc::new(FakeHandler::default()));
            a.set(|progress| progress.synced = synced);
            let waiting = tokio::spawn(outcome(wait_for_handler(&a, &handler)));
            tokio::time::sleep(S).await;
            handler.sync.send_replace(end);
            assert_eq!(waiting.await.unwrap(), (Err(reason), 1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_informer_counts_as_stopped() {
    let handler = Arc::new(FakeHandler::default());
    let gone = || WaitForSync::of_handler(None, handler.clone());
    assert_eq!(outcome(gone()).await, (Err(NotSyncedReason::Stopped), 0));
    handler.sync.send_replace(HandlerSync::Synced);
    assert_eq!(outcome(gone()).await, (Ok(()), 0));
}
