//! Leader election on a Lease: one of several candidates leads, and another takes over when it ends.
//!
//! It follows the rules of client-go's `leaderelection`, and can share a Lease with candidates written in Go.
//!
//! ```
//! use kube_informer::leader_election::{LeaderElector, RunOutcome};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> kube_informer::Result<()> {
//! # let server = embedded_apiserver::ApiServer::start();
//! # let client = server.client();
//! let elector = LeaderElector::builder(client, "kube-system", "my-operator")
//!     .on_new_leader(|identity| println!("{identity} leads"))
//!     .build()?;
//!
//! let stop = std::future::pending::<()>(); // elsewhere: tokio::signal::ctrl_c()
//! let outcome = elector
//!     .run(stop, |leadership| async move {
//!         assert!(leadership.is_leader());
//!         "the work of the leader"
//!     })
//!     .await;
//! assert_eq!(outcome, RunOutcome::Finished("the work of the leader"));
//! assert!(!elector.is_leader());
//! # Ok(())
//! # }
//! ```
//!
//! [`LeaderElector::run`] runs a future while this candidate leads. Programs that need more control use
//! [`LeaderElector::acquire`], which returns a guard.
//!
//! # How long leadership lasts
//!
//! The leader renews the Lease every retry period. Its term lasts until the *renew deadline* (10 seconds) after
//! it sent the last successful renewal, by its own monotonic clock. Other candidates take the Lease over when
//! they have not seen it change for the *lease duration* that it states (15 seconds), by their own clocks. They
//! have seen the last renewal only after it was sent, so the leader has stopped at least the difference of the
//! two (5 seconds) earlier. Clocks of different machines are never compared; only if one runs much faster than
//! another is that margin used up.
//!
//! The end of leadership does not depend on any task being scheduled in time. [`Leadership::is_leader`] reads
//! the clock, and [`Leadership::while_leader`], on which `run` is built, does so before each poll of its
//! future. A process that is suspended for a minute and then resumed finds that it no longer leads before it
//! takes another step.
//!
//! # Fencing
//!
//! Kubernetes does not check who leads when an object is written. Some things no client can prevent:
//!
//! - A write that was sent before leadership ended can arrive afterwards: it may be delayed in the network or
//!   in the server.
//! - A process that is paused between reading the clock and sending a request sends it when it is resumed. The
//!   same holds for code that runs for a long time without an await.
//! - Threads and tasks that the leader has started keep running unless they are told to end: see
//!   [`Leadership::while_leader`].
//! - The monotonic clock of Linux stops while a machine is suspended, or while a virtual machine is paused by
//!   its host. After that, the process may believe for up to the renew deadline that it leads.
//!
//! Leader election therefore avoids duplicate work, but does not replace optimistic concurrency. Make writes
//! conditional on the `resourceVersion` that they are based on: then a late write of a former leader fails with
//! a conflict if the new leader has changed the object. Systems that can compare numbers can use
//! [`Leadership::transitions`], which each takeover increments, and reject writes with a smaller number than
//! the largest they have seen. It is a fencing token only among candidates with different identities and as
//! long as the Lease is not deleted. The Lease's `renewTime` is not one, because it comes from a wall clock.
//!
//! # Permissions
//!
//! The program needs the verbs `get`, `create` and `update` on `leases` of the API group `coordination.k8s.io`,
//! in the Lease's namespace.

mod builder;
mod campaign;
mod leadership;
mod lease;
mod leases;
mod settings;
mod shared;
mod tenure;
#[cfg(test)]
mod tests;

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::error::Cause;
use crate::list_watch::Client;
use crate::{Error, Result};
use campaign::Campaign;
use leadership::{Candidacy, Ending};
use settings::Settings;
use shared::Shared;

pub use builder::LeaderElectorBuilder;
pub use leadership::{Leadership, LeadershipGuard};

/// A candidate for leadership on one Lease. Cheap to clone; clones are the same candidate.
///
/// See the [module](self) for how to use it and what it guarantees.
#[derive(Clone)]
pub struct LeaderElector(Arc<Inner>);

struct Inner {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
    /// Locked from the first attempt to the end of the term: an elector is one candidate at a time.
    campaign: Arc<tokio::sync::Mutex<Campaign>>,
    /// The term that the controllers of this process share. Locked while one of them campaigns.
    together: tokio::sync::Mutex<Weak<LeadershipGuard>>,
}

impl LeaderElector {
    /// Builds an elector for the Lease of that namespace and name, which the first leader creates if it does
    /// not exist.
    pub fn builder(
        client: Client,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> LeaderElectorBuilder {
        LeaderElectorBuilder::new(client, namespace.into(), name.into())
    }

    /// Waits until this candidate leads.
    ///
    /// Must be called within a Tokio runtime, because a task renews the lease from then on. Never fails:
    /// requests that fail are retried, and the log and [`status`](Self::status) say why. If an earlier guard of
    /// this elector has been neither lost nor dropped, waits for that first.
    ///
    /// # Cancel safety
    ///
    /// The future can be dropped at any time. If a request in flight wins the lease, the lease is released
    /// again (unless [`release_on_stop`](LeaderElectorBuilder::release_on_stop) is false).
    pub async fn acquire(&self) -> LeadershipGuard {
        let (mut candidacy, won) = self.start();
        if let Ok(leadership) = won.await {
            return LeadershipGuard::new(leadership, candidacy);
        }
        // The task ends without a result only when the runtime shuts down, and then no waiting future is polled
        // again.
        let _ = candidacy.end(Ending::Stop).await;
        std::future::pending().await
    }

    /// Like `acquire`, for controllers that lead together: the lease is held until the last of them lets go.
    /// Cancel safe.
    pub(crate) async fn acquire_together(&self) -> Arc<LeadershipGuard> {
        let mut together = self.0.together.lock().await;
        if let Some(guard) = together.upgrade().filter(|guard| guard.is_leader()) {
            return guard;
        }
        let guard = Arc::new(self.acquire().await);
        *together = Arc::downgrade(&guard);
        guard
    }

    /// Waits until this candidate leads, then runs a future as long as it does.
    ///
    /// - When leadership is lost, the future is dropped before another candidate can lead, and
    ///   [`RunOutcome::Lost`] is returned. The elector can be run again.
    /// - When `stop` completes, the future is dropped and then the lease is released. For a graceful shutdown,
    ///   let the future observe the signal itself and complete.
    /// - When the future completes, the lease is released.
    ///
    /// A release takes no longer than the renew deadline; without one ([`release_on_stop`]) the next leader has
    /// to wait until the lease expires. The future is polled by the caller's task. Tasks that it spawns are not
    /// dropped with it: see [`Leadership::while_leader`].
    ///
    /// To keep taking part in the election, call it in a loop:
    ///
    /// ```
    /// # use kube_informer::leader_election::{LeaderElector, RunOutcome};
    /// # async fn run(elector: LeaderElector, stop: tokio_util::sync::CancellationToken) {
    /// while elector.run(stop.cancelled(), |_| async { /* work */ }).await == RunOutcome::Lost {}
    /// # }
    /// ```
    ///
    /// [`release_on_stop`]: LeaderElectorBuilder::release_on_stop
    pub async fn run<F: Future>(
        &self,
        stop: impl Future,
        work: impl FnOnce(Leadership) -> F,
    ) -> RunOutcome<F::Output> {
        let mut stop = pin!(stop);
        let (mut candidacy, won) = self.start();
        let won = tokio::select! {
            biased;
            _ = &mut stop => None,
            won = won => won.ok(),
        };
        let Some(leadership) = won else {
            // A failed release has been logged.
            let _ = candidacy.end(Ending::Stop).await;
            return RunOutcome::Stopped;
        };
        let guard = LeadershipGuard::new(leadership.clone(), candidacy);
        let outcome = tokio::select! {
            biased;
            _ = stop => RunOutcome::Stopped,
            output = leadership.while_leader(work(leadership.clone())) => {
                output.map_or(RunOutcome::Lost, RunOutcome::Finished)
            }
        };
        guard.stop().await;
        outcome
    }

    /// Starts the task of a candidate.
    fn start(&self) -> (Candidacy, oneshot::Receiver<Leadership>) {
        let (won, winning) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let task = tokio::spawn(tenure::tenure(self.0.clone(), won, ended));
        (Candidacy::new(ending, task), winning)
    }

    /// Returns the identity of this candidate.
    pub fn identity(&self) -> &str {
        &self.0.settings.identity
    }

    /// Returns whether this candidate leads now, by the clock: see [`Leadership::is_leader`].
    pub fn is_leader(&self) -> bool {
        self.0.shared.look(|state| state.term.as_ref().is_some_and(|term| term.is_leader()))
    }

    /// Returns the holder of the Lease when it was last read, which may have expired since. `None` if it had no
    /// holder, or has not been read yet.
    pub fn leader(&self) -> Option<Arc<str>> {
        self.0.shared.look(|state| state.leader.clone())
    }

    /// Returns a summary of the elector's state, for debug pages and metrics.
    pub fn status(&self) -> LeaderElectorStatus {
        let Inner { settings, shared, .. } = &*self.0;
        shared.look(|state| LeaderElectorStatus {
            lease: settings.lease.as_str().into(),
            identity: settings.identity.clone(),
            leader: state.leader.clone(),
            is_leader: state.term.as_ref().is_some_and(|term| term.is_leader()),
            terms: state.terms,
            slow_path_total: state.slow_path,
            last_error: state.last_error.clone(),
        })
    }

    /// Reads the elector for metrics for as long as it exists.
    #[cfg(feature = "metrics")]
    pub(crate) fn reader(
        &self,
    ) -> impl Fn() -> Option<LeaderElectorStatus> + Send + Sync + 'static {
        let elector = Arc::downgrade(&self.0);
        move || Some(Self(elector.upgrade()?).status())
    }

    /// Fails if the program still holds on to leadership although the lease expired more than `tolerance` ago:
    /// its work does not end, as if it were stuck. For liveness probes, so that the process is restarted.
    ///
    /// A candidate that does not lead is healthy.
    pub fn check(&self, tolerance: Duration) -> Result<()> {
        let Inner { settings, shared, .. } = &*self.0;
        let Some(term) = shared.look(|state| state.term.clone()) else { return Ok(()) };
        let silence = term.renewed().elapsed();
        if !term.is_held() || silence <= settings.lease_duration.saturating_add(tolerance) {
            return Ok(());
        }
        let text = format!(
            "the lease {} was last renewed {silence:.1?} ago and has expired, but the work of the leader has not ended: \
             restart the process if it is stuck",
            settings.lease
        );
        Err(Error::new(Cause::Timeout, text))
    }
}

impl fmt::Debug for LeaderElector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderElector")
            .field("lease", &self.0.settings.lease)
            .field("identity", &self.0.settings.identity)
            .field("leader", &self.leader())
            .finish_non_exhaustive()
    }
}

/// The result of [`LeaderElector::run`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunOutcome<T> {
    /// The future completed.
    Finished(T),
    /// Leadership was lost, and the future dropped.
    Lost,
    /// `stop` completed, and the future, if it had started, was dropped.
    Stopped,
}

/// A summary of an elector.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LeaderElectorStatus {
    /// Namespace and name of the Lease.
    pub lease: Arc<str>,
    /// The identity of this candidate.
    pub identity: Arc<str>,
    /// The holder of the Lease when it was last read.
    pub leader: Option<Arc<str>>,
    /// Whether this candidate leads now.
    pub is_leader: bool,
    /// Number of times that this candidate has become leader.
    pub terms: u64,
    /// Number of renewals that had to read the Lease first, because a direct write failed.
    pub slow_path_total: u64,
    /// The most recent error of a request, even if it has been overcome.
    pub last_error: Option<Error>,
}
