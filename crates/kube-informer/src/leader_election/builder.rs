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

// The values of Kubernetes' own components. A leader that is killed is replaced after 15 to 19.4 seconds, and a
// leader that cannot reach the server has 5 seconds to stop before it is replaced.
const LEASE_DURATION: Duration = Duration::from_secs(15);
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// Builds a [`LeaderElector`]. Created by [`LeaderElector::builder`].
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

    /// Sets the name of this candidate; by default the host's name (in a container, the pod's) and a random
    /// suffix.
    ///
    /// No two candidates may share an identity: a candidate that finds its own identity in the Lease takes the
    /// Lease for its own. With an identity that stays the same across restarts, such as that of a
    /// `StatefulSet`'s pod, a restarted process leads at once instead of waiting for its predecessor's lease to
    /// expire. Use one only if the predecessor is sure to be gone.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.settings.identity = identity.into().into();
        self
    }

    /// Sets how long other candidates wait for a renewal before one takes the lease over: 15 seconds by
    /// default.
    ///
    /// The Lease states it in whole seconds, rounded up.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.settings.lease_duration = duration;
        self
    }

    /// Sets how long leadership lasts after the last successful renewal was sent: 10 seconds by
    /// default.
    ///
    /// It must be shorter than the lease duration. The difference is the time that a leader has to end its
    /// work, and the margin for clocks that run at different speeds.
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.settings.renew_deadline = deadline;
        self
    }

    /// Sets how often a leader renews the lease, and a candidate reads it (with a jitter of up to 120 %): 2
    /// seconds by default.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.settings.retry_period = period;
        self
    }

    /// Sets whether the lease is released when leadership is given up without being lost: by
    /// [`run`](LeaderElector::run) when it stops or its future ends, or by dropping a
    /// [`LeadershipGuard`](super::LeadershipGuard). True by default, so that the next leader need not wait
    /// until the lease expires.
    ///
    /// client-go's default is false, because its workers may still run at that point. Here they have ended when
    /// the lease is released, except for tasks and threads that they leave behind; pass false if there are any.
    pub fn release_on_stop(mut self, release: bool) -> Self {
        self.settings.release_on_stop = release;
        self
    }

    /// Calls a function with the identity of each leader that this elector observes, including the first one
    /// and itself.
    ///
    /// It runs on the task that renews the lease, so it must not block. A panic in it is logged.
    pub fn on_new_leader(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.settings.on_new_leader = Some(Arc::new(tell));
        self
    }

    /// Seeds the jitter, to make tests reproducible.
    pub fn seed(mut self, seed: u64) -> Self {
        self.rng = Rng::with_seed(seed);
        self
    }

    /// Checks the settings and builds the elector.
    ///
    /// Fails if a setting is invalid, and says which one and what to do: the lease duration must be longer than
    /// the renew deadline, and that longer than 1.2 times the retry period; none may be zero, the identity must
    /// not be empty, and namespace and name must be valid.
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

/// Returns a name that no other candidate has.
fn own_identity() -> String {
    // Set by the kubelet; shells do not always export it.
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
