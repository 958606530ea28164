//! One term of a leader: its duration, and the handles to it.

use std::fmt;
use std::future::poll_fn;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::{Error, Result};

/// The time between winning a lease and letting go of it.
///
/// The clock decides: a term is over when its deadline has passed, whether or not any task has noticed. A
/// process that was paused is therefore no longer the leader at its first instruction after the pause.
pub(super) struct Term {
    state: watch::Sender<TermState>,
    renew_deadline: Duration,
    transitions: u64,
}

#[derive(Clone, Copy)]
struct TermState {
    /// The start of the last request that acquired or renewed the lease. Other candidates cannot have seen that
    /// write any earlier.
    renewed: Instant,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Leading,
    /// The lease is lost, but the guard is still held.
    Lost,
    /// The guard has been dropped.
    Over,
}

impl Term {
    pub(super) fn new(renewed: Instant, renew_deadline: Duration, transitions: u64) -> Self {
        let (state, _) = watch::channel(TermState { renewed, phase: Phase::Leading });
        Self { state, renew_deadline, transitions }
    }

    pub(super) fn is_leader(&self) -> bool {
        self.until(*self.state.borrow()).is_some()
    }

    /// Returns when the term ends unless it is renewed; `None` if it is over.
    fn until(&self, state: TermState) -> Option<Instant> {
        let deadline = state.renewed + self.renew_deadline;
        (state.phase == Phase::Leading && Instant::now() < deadline).then_some(deadline)
    }

    /// Returns the start of the last request that renewed the lease.
    pub(super) fn renewed(&self) -> Instant {
        self.state.borrow().renewed
    }

    /// Returns whether the guard is still held.
    pub(super) fn is_held(&self) -> bool {
        self.state.borrow().phase != Phase::Over
    }

    /// Extends the term, unless it is over: a term that was lost stays lost, because the program may have acted
    /// on that.
    pub(super) fn renew(&self, started: Instant) -> bool {
        self.state.send_if_modified(|state| {
            let leads = self.until(*state).is_some();
            if leads {
                state.renewed = started;
            }
            leads
        })
    }

    /// Ends the term at once.
    pub(super) fn lose(&self) {
        self.state.send_if_modified(|state| {
            let leads = state.phase == Phase::Leading;
            if leads {
                state.phase = Phase::Lost;
            }
            leads
        });
    }

    /// Ends the term because its guard was dropped.
    pub(super) fn let_go(&self) {
        self.state.send_modify(|state| state.phase = Phase::Over);
    }

    /// Waits until the term is over.
    pub(super) async fn lost(&self) {
        let mut state = self.state.subscribe();
        loop {
            let now = *state.borrow_and_update();
            let Some(deadline) = self.until(now) else { return };
            tokio::select! {
                biased;
                _ = state.changed() => {}
                () = sleep_until(deadline) => {}
            }
        }
    }
}

/// A view of one term as leader: whether it lasts, and for how long. Cheap to clone.
///
/// It does not prolong the term, which lasts as long as the [`LeadershipGuard`] does, or the future that
/// [`LeaderElector::run`](super::LeaderElector::run) runs. Once a term is over it stays over, even if the same
/// elector becomes leader again: that is a new term.
#[derive(Clone)]
pub struct Leadership(pub(super) Arc<Term>);

impl Leadership {
    /// Returns whether this candidate leads now.
    ///
    /// Reads the clock, not a flag that a task would have to set: it is false as soon as the lease has not been
    /// renewed for the renew deadline, even if the process was paused in the meantime.
    pub fn is_leader(&self) -> bool {
        self.0.is_leader()
    }

    /// Waits until leadership is lost or given up. Returns at once if it is over already.
    pub async fn lost(&self) {
        self.0.lost().await;
    }

    /// Returns how long leadership will last unless the lease is renewed; zero if it is over.
    ///
    /// Limit a request to this time if it must not take effect under the next leader. Even then it can arrive
    /// late: see [fencing](super#fencing).
    pub fn remaining(&self) -> Duration {
        let until = self.0.until(*self.0.state.borrow());
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Returns the Lease's `leaseTransitions` in this term: each takeover increments it, so that it can serve as a
    /// [fencing token](super#fencing).
    pub fn transitions(&self) -> u64 {
        self.0.transitions
    }

    /// Runs a future as long as leadership lasts. Returns its output, or `None` if leadership was lost first.
    ///
    /// The clock is checked before each poll, so a process that was paused does not run one more step of the future as
    /// leader. When leadership is lost the future is dropped, before this returns and before another candidate can have the
    /// lease. Tasks that the future has spawned are not dropped with it: wrap each of them, or have the future own
    /// them in a `JoinSet`.
    ///
    /// ```
    /// # use kube_informer::LeaderElector;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> kube_informer::Result<()> {
    /// # let client = embedded_apiserver::ApiServer::start().client();
    /// let elector = LeaderElector::builder(client, "default", "my-operator").build()?;
    /// let guard = elector.acquire().await;
    /// let leadership = guard.leadership().clone();
    /// let worker = tokio::spawn(async move {
    ///     leadership.while_leader(async { "worked" }).await
    /// });
    /// assert_eq!(worker.await.unwrap(), Some("worked"));
    /// # guard.release().await
    /// # }
    /// ```
    pub async fn while_leader<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut lost = pin!(self.0.lost());
        poll_fn(|context| {
            // `lost` wakes the task at the deadline. The timer behind it may be late, the clock is not.
            if lost.as_mut().poll(context).is_ready() || !self.is_leader() {
                return Poll::Ready(None);
            }
            future.as_mut().poll(context).map(Some)
        })
        .await
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("remaining", &self.remaining())
            .field("transitions", &self.transitions())
            .finish()
    }
}

/// Leadership that lasts until this is dropped or [released](Self::release), or until it is lost.
///
/// A task renews the lease in the background. Dropping the guard ends it; if the elector [releases on
/// stop](super::LeaderElectorBuilder::release_on_stop), the task then gives the lease to the next candidate.
/// End everything that must run only on the leader *before* dropping the guard.
#[derive(Debug)]
pub struct LeadershipGuard {
    leadership: Leadership,
    candidacy: Candidacy,
}

impl LeadershipGuard {
    pub(super) fn new(leadership: Leadership, candidacy: Candidacy) -> Self {
        Self { leadership, candidacy }
    }

    /// Returns a view of this term, which can be cloned and passed on.
    pub fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// Gives up the lease, so that another candidate can take it at once, and waits until that is done.
    ///
    /// Leadership ends immediately, whatever the result. It is not an error if another candidate holds the
    /// lease by now. After an error, the lease may still name this candidate; it then expires after the lease
    /// duration. Takes no longer than the renew deadline.
    pub async fn release(mut self) -> Result<()> {
        self.leadership.0.let_go();
        self.candidacy.end(Ending::Release).await
    }

    /// Like dropping the guard, but waits until that is done.
    pub(crate) async fn stop(mut self) {
        self.leadership.0.let_go();
        // A failed release has been logged.
        let _ = self.candidacy.end(Ending::Stop).await;
    }
}

impl Deref for LeadershipGuard {
    type Target = Leadership;

    fn deref(&self) -> &Leadership {
        &self.leadership
    }
}

impl Drop for LeadershipGuard {
    fn drop(&mut self) {
        self.leadership.0.let_go();
    }
}

/// How to end a candidacy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Ending {
    /// Releases the lease if the elector releases on stop.
    Stop,
    /// Releases the lease.
    Release,
}

/// The task that acquires and renews. It ends when this is dropped: at once, or after releasing the lease.
#[derive(Debug)]
pub(super) struct Candidacy {
    ending: Option<oneshot::Sender<Ending>>,
    task: JoinHandle<Result<()>>,
}

impl Candidacy {
    pub(super) fn new(ending: oneshot::Sender<Ending>, task: JoinHandle<Result<()>>) -> Self {
        Self { ending: Some(ending), task }
    }

    /// Ends the task and waits for it.
    pub(super) async fn end(&mut self, ending: Ending) -> Result<()> {
        if let Some(sender) = self.ending.take() {
            // If the task is gone, there is nothing to end.
            let _ = sender.send(ending);
        }
        let ended = (&mut self.task).await;
        ended.unwrap_or_else(|_| {
            Err(Error::connection("the lease was not released: the runtime has shut down"))
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(10);
    const NEARLY: Duration = Duration::from_millis(9999);

    #[tokio::test(start_paused = true)]
    async fn le7_a_term_ends_at_its_deadline_unless_renewed() {
        let term = Term::new(Instant::now(), DEADLINE, 0);
        advance(NEARLY).await;
        assert!(term.is_leader() && term.renew(Instant::now()));
        advance(NEARLY).await;
        assert!(term.is_leader());
        advance(Duration::from_millis(1)).await;
        assert!(!term.is_leader());
    }

    #[tokio::test(start_paused = true)]
    async fn le7_a_term_that_is_over_cannot_be_renewed() {
        let late = Term::new(Instant::now(), DEADLINE, 0);
        advance(DEADLINE).await;
        let lost = Term::new(Instant::now(), DEADLINE, 0);
        lost.lose();
        let let_go = Term::new(Instant::now(), DEADLINE, 0);
        let_go.let_go();
        let_go.lose();
        for term in [&late, &lost, &let_go] {
            assert!(!term.renew(Instant::now()) && !term.is_leader());
            term.lost().await;
        }
        assert!(late.is_held() && lost.is_held() && !let_go.is_held());
    }

    #[tokio::test(start_paused = true)]
    async fn busy_work_is_not_polled_past_the_deadline() {
        let leadership = Leadership(Arc::new(Term::new(Instant::now(), DEADLINE, 0)));
        let mut polls = 0;
        // Each poll takes a second and wakes itself at once, like a busy future.
        let busy = async {
            loop {
                polls += 1;
                advance(Duration::from_secs(1)).await;
                tokio::task::yield_now().await;
            }
        };
        assert_eq!(leadership.while_leader(busy).await, None::<()>);
        assert_eq!(polls, 10);
    }
}
