//! Episodes: a single kind of fault that lasts for a while, and the reaction of informers.

use std::time::Duration;

use embedded_apiserver::{Denial, Fault, Verb};
use tokio::time::{Instant, sleep};

use super::run::Run;

const SECOND: Duration = Duration::from_secs(1);

/// The longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How long a watch may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(75);
/// How long the response head of a watch may take.
const HEAD_MAX: Duration = Duration::from_secs(30);
/// How long the end of a streaming list may take.
const STREAM_MAX: Duration = Duration::from_secs(30);
/// A watch is dead if it was silent for this long and no bookmark has ever arrived.
const OUTLIVED: Duration = Duration::from_secs(675);
/// Five consecutive failures, and the pauses after them.
const FIVE_PAUSES: Duration = Duration::from_secs(50);

/// The way in which watches fail while lists work.
#[derive(Debug, Clone, Copy)]
enum Watches {
    Forbidden,
    Broken,
    Failing,
    Unanswered,
    /// The watch is open, but silent.
    Swallowed,
}

impl Watches {
    /// Returns how long a write may take to reach the caches: the first one, and later ones.
    fn bounds(self, bookmarks: bool) -> (Duration, Duration) {
        let slack = 5 * SECOND;
        let (first, then) = match self {
            Watches::Forbidden | Watches::Broken | Watches::Failing => (FIVE_PAUSES, PAUSE_MAX),
            Watches::Unanswered => (5 * HEAD_MAX + FIVE_PAUSES, HEAD_MAX + PAUSE_MAX),
            Watches::Swallowed if bookmarks => {
                (2 * SILENCE_MAX + PAUSE_MAX + STREAM_MAX, SILENCE_MAX + PAUSE_MAX)
            }
            Watches::Swallowed => {
                let first = 2 * SILENCE_MAX + OUTLIVED + PAUSE_MAX + STREAM_MAX;
                (first, OUTLIVED + PAUSE_MAX)
            }
        };
        (first + slack, then + slack)
    }
}

impl Run {
    pub(crate) async fn episode(&mut self) {
        match self.rng.u8(..7) {
            // A server that compacts at once forces lists instead.
            0 | 1 if !self.forgets => self.cut_idle_watches().await,
            2 => self.let_watches_fail(Watches::Forbidden).await,
            3 => self.let_watches_fail(Watches::Broken).await,
            4 => self.let_watches_fail(Watches::Failing).await,
            5 | 0 => self.let_watches_fail(Watches::Unanswered).await,
            _ => self.let_watches_fail(Watches::Swallowed).await,
        }
    }

    /// Waits until there are no faults, every watch works, and all informers have received a bookmark.
    async fn steady(&mut self) {
        self.quiet().await;
        // The first round may only reveal a dead watch. The second arrives as a bookmark.
        for _ in 0..2 {
            self.writers.nudge(&self.server, &mut self.history);
            self.let_versions_come().await;
        }
        self.bookmarks = true;
        // A watch that has ended is reopened within a second.
        for _ in 0..3 {
            if self.server.watches() != self.watches() {
                sleep(SECOND).await;
            }
        }
        assert_eq!(self.server.watches(), self.watches(), "watches are open");
    }

    /// A load balancer cuts idle connections. This is not a failure: the watch is resumed.
    async fn cut_idle_watches(&mut self) {
        self.steady().await;
        let (seconds, before, began) =
            (self.rng.u32(180..900), self.last_request(), self.trace.len());
        let mut cuts = 0;
        let mut blind = vec![0; self.informers.len()];
        for _ in 0..seconds {
            if self.rng.u8(..60) == 0 {
                self.write(1).await;
            }
            sleep(SECOND).await;
            cuts += self.network.cut_idle();
            for (informer, blind) in self.informers.iter().zip(&mut blind) {
                *blind = if informer.handle.is_live() { 0 } else { *blind + 1 };
                let (name, state) = (informer.handle.name(), informer.handle.state());
                assert!(*blind <= 2, "L1: {name} is not live for {blind} s: {state}");
            }
        }
        self.note(format!("{cuts} idle watches were cut in {seconds} s"));
        self.settle().await;
        self.poll_streams(true).await;
        self.check();
        // In five minutes without a bookmark, the version to resume from may expire.
        let expired = self.trace[began..].iter().any(|line| line.contains("any longer (410)"));
        assert!(expired || self.lists_since(before) == 0, "L3: idle cuts led to lists");
        self.let_caches_come(5 * SECOND).await;
    }

    /// Watches fail and lists work: the caches still follow, and informers watch again once they can.
    async fn let_watches_fail(&mut self, how: Watches) {
        // Without a bookmark, a silent watch could just be idle.
        if matches!(how, Watches::Swallowed) && self.rng.bool() {
            self.quiet().await;
        } else {
            self.steady().await;
        }
        self.note(format!("watches fail: {how:?}"));
        self.break_watches(how);
        let (first, then) = how.bounds(self.bookmarks);
        let rounds = self.rng.u32(1..4);
        for round in 0..rounds {
            let count = self.rng.u32(3..9);
            self.write(count).await;
            self.let_caches_come(if round == 0 { first } else { then }).await;
        }
        self.note("the caches follow by polling");
        self.server.faults().clear();
        self.server.access().allow_everything();
        self.let_watches_work(then).await;
    }

    fn break_watches(&mut self, how: Watches) {
        let watches = || self.server.faults().on(Verb::Watch).always();
        match how {
            Watches::Forbidden => {
                self.server.access().deny(Denial::verbs([Verb::Watch]));
            }
            Watches::Broken => drop(watches().inject(Fault::Reset)),
            Watches::Failing => drop(watches().inject(Fault::status(500))),
            Watches::Unanswered => drop(watches().inject(Fault::StalledHeaders)),
            Watches::Swallowed => drop(watches().after_events(0).inject(Fault::StalledBody)),
        }
        match how {
            Watches::Swallowed => {}
            _ if self.rng.bool() => self.server.drop_watches(),
            _ => self.server.restart(),
        }
    }

    /// Checks that writes arrive soon, and without a list.
    async fn let_watches_work(&mut self, within: Duration) {
        self.let_caches_come(within).await;
        // If the content never changed, the last pause may still be running.
        sleep(within).await;
        let before = self.last_request();
        let count = self.rng.u32(3..9);
        self.write(count).await;
        self.let_caches_come(3 * SECOND).await;
        assert!(self.forgets || self.lists_since(before) == 0, "L1: there is no watch again");
        for informer in &self.informers {
            assert!(informer.handle.is_live(), "L1: {} is not live again", informer.handle.name());
        }
        self.note("watches work again");
    }

    async fn let_caches_come(&mut self, within: Duration) {
        let began = Instant::now();
        let mut pause = SECOND;
        loop {
            sleep(pause).await;
            pause = (pause * 2).min(5 * SECOND);
            self.poll_streams(true).await;
            self.check();
            let Err(why) = self.is_current() else { return };
            let waited = began.elapsed();
            assert!(waited < within, "L1: after {waited:?}: {why}");
        }
    }

    /// Checks that every cache equals the server's content, live or not.
    fn is_current(&self) -> Result<(), String> {
        for informer in &self.informers {
            informer.check_content(&self.history)?;
        }
        self.mirror.check_content(&self.history)
    }

    fn last_request(&self) -> u64 {
        self.server.requests().last().map_or(0, |request| request.id)
    }

    /// Returns the number of lists since a request. A list of a single object only asks for the version.
    fn lists_since(&self, before: u64) -> usize {
        let is_list = |uri: &str| {
            let asks = |what| uri.contains(what);
            let is_question = asks("limit=1") && !asks("resourceVersion=") && !asks("continue=");
            asks("sendInitialEvents=true") || !asks("watch=true") && !is_question
        };
        let requests = self.server.requests();
        requests.iter().filter(|request| request.id > before && is_list(&request.uri)).count()
    }
}
