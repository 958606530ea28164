//! Builds an elector.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use fastrand::Rng;

use super::campaign::Campaign;
use super::leases::Leases;
use super::settings::Settings;
use super::shared::Shared;
use super::{Inner, LeaderElector};
use crate::Result;
use crate::list_watch::Client;

// Those of Kubernetes' own components. A leader that is killed is replaced after 15 to 19.4 seconds, and a leader that
// cannot reach the server has 5 seconds to stop before it is.
const LEASE_DURATION: Duration = Duration::from_secs(15);
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// Builds a [`LeaderElector`]. Made by [`LeaderElector::builder`].
#[must_use]
pub struct LeaderElectorBuilder {
    client: Client,
    settings: Settings,
    rng: Rng,
}

impl LeaderElectorBuilder {
    pub(super) fn new(client: Client, namespace: String, name: String) -> Self {
        let settings = Settings {
            lease: format!("{namespace}/{name}"),
            namespace,
            name,
            identity: own_identity().into(),
            lease_duration: LEASE_DURATION,
            renew_deadline: RENEW_DEADLINE,
            retry_period: RETRY_PERIOD,
            release_on_stop: true,
            on_new_leader: None,
        };
        Self { client, settings, rng: Rng::new() }
    }

    /// The name of this candidate, by default the host's name (in a container, the pod's) and a random suffix.
    ///
    /// No two candidates may share one: a candidate that finds its own identity in the Lease takes it for its own. With an
    /// identity that stays the same across restarts, such as that of a `StatefulSet`'s pod, a restarted process leads at
    /// once instead of waiting for its predecessor's lease to expire; only do that if the predecessor is sure to be gone.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.settings.identity = identity.into().into();
        self
    }

    /// How long other candidates wait for a renewal before one takes the lease over: 15 seconds by default.
    ///
    /// The Lease has it in whole seconds, rounded up.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.settings.lease_duration = duration;
        self
    }

    /// How long leadership lasts after the last successful renewal was sent: 10 seconds by default.
    ///
    /// Shorter than the lease duration. The difference is the time that a leader has to end its work, and the error that
    /// clocks that run at different speeds may add up to.
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.settings.renew_deadline = deadline;
        self
    }

    /// How often a leader renews the lease, and a candidate looks at it (with a jitter of up to 120 %): 2 seconds by
    /// default.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.settings.retry_period = period;
        self
    }

    /// Whether the lease is released when leadership is given up without being lost: by
    /// [`run`](LeaderElector::run) when it stops or its future ends, or by dropping a
    /// [`LeadershipGuard`](super::LeadershipGuard). True by default, so that the next leader need not wait until the lease
    /// expires.
    ///
    /// client-go's default is not to, because its workers may still run at that point. Ours have ended when the lease is
    /// released, except for tasks and threads that they have left behind; say false if there are such.
    pub fn release_on_stop(mut self, release: bool) -> Self {
        self.settings.release_on_stop = release;
        self
    }

    /// Calls a function with the identity of each leader that this elector sees, including the first and itself.
    ///
    /// It runs on the task that renews the lease, so it must not block. One that panics is logged.
    pub fn on_new_leader(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.settings.on_new_leader = Some(Arc::new(tell));
        self
    }

    /// Makes the jitter repeatable, for tests.
    pub fn seed(mut self, seed: u64) -> Self {
        self.rng = Rng::with_seed(seed);
        self
    }

    /// Checks the settings.
    ///
    /// Fails if a setting is not valid, and says which and what to do: the lease duration must be longer than the renew
    /// deadline, that longer than 1.2 times the retry period; none may be zero, nor the identity empty; namespace and name
    /// must be valid.
    pub fn build(self) -> Result<LeaderElector> {
        let Self { client, settings, rng } = self;
        settings.check()?;
        let wait_max = settings.request_wait_max();
        let leases = Leases::new(client, &settings.namespace, &settings.name, wait_max)?;
        let (settings, shared) = (Arc::new(settings), Arc::new(Shared::default()));
        let campaign = Campaign::new(settings.clone(), shared.clone(), leases, rng);
        let campaign = Arc::new(tokio::sync::Mutex::new(campaign));
        let together = tokio::sync::Mutex::default();
        Ok(LeaderElector(Arc::new(Inner { settings, shared, campaign, together })))
    }
}

impl fmt::Debug for LeaderElectorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderElectorBuilder")
            .field("lease", &self.settings.lease)
            .field("identity", &self.settings.identity)
            .finish_non_exhaustive()
    }
}

/// A name that no other candidate has.
fn own_identity() -> String {
    // The kubelet sets it; shells do not always export it.
    let host = env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    let host = host.or_else(|| fs::read_to_string("/proc/sys/kernel/hostname").ok());
    let host = host.as_deref().map_or("candidate", str::trim);
    format!("{host}_{:016x}", Rng::new().u64(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_identities_differ() {
        let (one, other) = (own_identity(), own_identity());
        assert_ne!(one, other);
        assert_eq!(one.split('_').next(), other.split('_').next());
    }
}
