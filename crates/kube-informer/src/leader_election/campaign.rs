//! One candidate's attempts to acquire, renew and release the lease.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, timeout};

use super::lease::{Claim, Lease};
use super::leases::Leases;
use super::settings::Settings;
use super::shared::Shared;
use crate::{Error, Result};

/// A candidate waits between one retry period and 1 + this many, so that candidates do not act in lockstep.
pub(super) const JITTER_FACTOR: f64 = 1.2;

/// The result of an attempt without an error.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Attempt {
    /// This candidate holds the lease, by a write whose request started then.
    Won { started: Instant },
    /// Another candidate holds the lease.
    Held,
}

/// State that is kept between attempts.
pub(super) struct Campaign {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
    leases: Leases,
    seen: Option<Seen>,
    /// Whether a write may have reached the server although there was no response.
    in_doubt: bool,
    /// The `renewTime` of the last write.
    written: Timestamp,
    rng: Rng,
}

/// The Lease as it was last read or written.
struct Seen {
    lease: Lease,
    /// When this record was first seen. The times in the record are ignored: other clocks may be wrong by any
    /// amount.
    since: Instant,
}

impl Campaign {
    pub(super) fn new(
        settings: Arc<Settings>,
        shared: Arc<Shared>,
        leases: Leases,
        rng: Rng,
    ) -> Self {
        let (seen, written) = (None, Timestamp::MIN);
        Self { settings, shared, leases, seen, in_doubt: false, written, rng }
    }

    /// Makes one attempt to acquire the lease or, if `leading`, to renew it.
    pub(super) async fn attempt(&mut self, leading: bool) -> Result<Attempt> {
        if leading && let Some(lease) = self.own().cloned() {
            match self.renew(lease).await {
                Ok(attempt) => return Ok(attempt),
                Err(error) => {
                    tracing::debug!(lease = %self.settings.lease, "reading the lease again: {error}");
                }
            }
        }
        self.attempt_slowly(leading).await
    }

    /// Reads the lease first.
    async fn attempt_slowly(&mut self, leading: bool) -> Result<Attempt> {
        if leading {
            self.shared.took_slow_path();
        }
        let Some(lease) = self.leases.get().await? else {
            return self.create(leading).await;
        };
        self.observe(lease.clone());
        match lease.holder() {
            Some(holder) if *holder == *self.settings.identity => self.renew(lease).await,
            // A leader that finds any other record has lost the lease, for whatever reason.
            _ if leading => Ok(Attempt::Held),
            Some(_) if !self.is_expired() => Ok(Attempt::Held),
            _ => {
                let taken = |claim: Claim<'_>| lease.taken(claim);
                self.write(taken, Write::Update).await
            }
        }
    }

    /// Creates the Lease, which never existed or was deleted. A holder that was seen recently may not know that
    /// yet, and leads until its term ends.
    async fn create(&mut self, leading: bool) -> Result<Attempt> {
        let held = self.seen.as_ref().is_some_and(|seen| seen.lease.holder().is_some());
        let ours = self.own().is_some();
        if held && !ours && !self.is_expired() {
            return Ok(Attempt::Held);
        }
        let before = self.seen.as_ref().map(|seen| seen.lease.transitions());
        let transitions = match before {
            // The number of transitions must not go back because the Lease was deleted.
            Some(before) if leading && ours => before,
            Some(before) => before.saturating_add(1),
            None => 0,
        };
        let settings = self.settings.clone();
        let made = |claim: Claim<'_>| {
            let lease = Lease::new(&settings.namespace, &settings.name);
            lease.first_taken(claim).with_transitions(transitions)
        };
        self.write(made, Write::Create).await
    }

    async fn renew(&mut self, lease: Lease) -> Result<Attempt> {
        self.write(|claim| lease.renewed(claim), Write::Update).await
    }

    async fn write(
        &mut self,
        make: impl FnOnce(Claim<'_>) -> Lease,
        how: Write,
    ) -> Result<Attempt> {
        let settings = self.settings.clone();
        let now = self.now();
        let claim = Claim { identity: &settings.identity, duration: settings.lease_duration, now };
        let lease = make(claim);
        // Read before the request: from here on other candidates may see the write.
        let started = Instant::now();
        self.send(&lease, how).await?;
        Ok(Attempt::Won { started })
    }

    async fn send(&mut self, lease: &Lease, how: Write) -> Result<()> {
        self.in_doubt = true;
        let answer = match how {
            Write::Create => self.leases.create(lease).await,
            Write::Update => self.leases.update(lease).await,
        };
        let refused = |error: &Error| error.status().is_some_and(|status| status.code < 500);
        if answer.as_ref().err().is_none_or(refused) {
            self.in_doubt = false;
        }
        self.observe(answer?);
        Ok(())
    }

    /// Releases the lease if this candidate holds it; otherwise does nothing.
    pub(super) async fn release(&mut self) -> Result<()> {
        let bound = self.settings.renew_deadline;
        timeout(bound, self.release_soon()).await.unwrap_or_else(|_| {
            Err(Error::connection(format!(
                "cannot release the lease {} within {bound:?}: it keeps changing",
                self.settings.lease
            )))
        })
    }

    async fn release_soon(&mut self) -> Result<()> {
        loop {
            if self.in_doubt {
                match self.leases.get().await? {
                    Some(lease) => self.observe(lease),
                    None => return Ok(()),
                }
                self.in_doubt = false;
            }
            let Some(lease) = self.own().cloned() else { return Ok(()) };
            let released = lease.released(self.now());
            match self.send(&released, Write::Update).await {
                Err(error) if is_conflict(&error) => self.in_doubt = true,
                Err(error) if error.is_not_found() => return Ok(()),
                result => return result,
            }
        }
    }

    /// Returns whether this candidate may hold the lease by a write without a response.
    pub(super) fn may_hold(&self) -> bool {
        self.in_doubt || self.own().is_some()
    }

    /// Returns the pause before a candidate's next attempt.
    pub(super) fn pause(&mut self) -> Duration {
        self.settings.retry_period.mul_f64(1.0 + JITTER_FACTOR * self.rng.f64())
    }

    /// Returns how often the lease has changed hands, as far as it was observed.
    pub(super) fn transitions(&self) -> u64 {
        self.seen.as_ref().map_or(0, |seen| seen.lease.transitions())
    }

    fn own(&self) -> Option<&Lease> {
        let lease = &self.seen.as_ref()?.lease;
        (lease.holder() == Some(&*self.settings.identity)).then_some(lease)
    }

    fn observe(&mut self, lease: Lease) {
        let now = Instant::now();
        let since = match &self.seen {
            Some(seen) if seen.lease.same_record(&lease) => seen.since,
            _ => now,
        };
        self.shared.saw_leader(&self.settings, lease.holder());
        self.seen = Some(Seen { lease, since });
    }

    /// Returns whether the record has not changed for the lease duration that it states.
    fn is_expired(&self) -> bool {
        let Some(seen) = &self.seen else { return true };
        let duration = seen.lease.duration().unwrap_or(self.settings.lease_duration);
        seen.since.elapsed() >= duration
    }

    /// Returns the wall clock, but always later than the last time: if the clock stood still, a renewal would
    /// change nothing, and other candidates would not notice it.
    fn now(&mut self) -> Timestamp {
        let next = self.written.saturating_add(SignedDuration::from_micros(1));
        self.written = next.unwrap_or(Timestamp::MAX).max(Timestamp::now());
        self.written
    }
}

#[derive(Clone, Copy)]
enum Write {
    Create,
    Update,
}

/// Returns whether another candidate was faster.
pub(super) fn is_conflict(error: &Error) -> bool {
    error.status().is_some_and(|status| status.code == 409)
}
