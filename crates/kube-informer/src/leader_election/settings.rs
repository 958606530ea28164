//! The settings of an elector, and their validation.

use std::sync::Arc;
use std::time::Duration;

use super::campaign::JITTER_FACTOR;
use crate::{Error, Result};

/// `leaseDurationSeconds` is an `int32`.
const LEASE_SECONDS_MAX: u64 = i32::MAX as u64;

/// Number of requests without a response that fit into the renew deadline.
const REQUESTS_IN_RENEW_DEADLINE: u32 = 3;

pub(super) type OnNewLeader = Arc<dyn Fn(&str) + Send + Sync>;

pub(super) struct Settings {
    pub(super) namespace: String,
    pub(super) name: String,
    /// `namespace/name`, for logs and errors.
    pub(super) lease: String,
    pub(super) identity: Arc<str>,
    pub(super) lease_duration: Duration,
    pub(super) renew_deadline: Duration,
    pub(super) retry_period: Duration,
    pub(super) release_on_stop: bool,
    pub(super) on_new_leader: Option<OnNewLeader>,
}

impl Settings {
    /// Returns the time limit of a request.
    pub(super) fn request_wait_max(&self) -> Duration {
        self.renew_deadline / REQUESTS_IN_RENEW_DEADLINE
    }

    pub(super) fn check(&self) -> Result<()> {
        let Self { lease, lease_duration, renew_deadline, retry_period, .. } = self;
        let invalid =
            |what: String| Err(Error::invalid(format!("leader election on {lease}: {what}")));
        if self.identity.is_empty() {
            return invalid("the identity is empty: give each candidate a unique one".to_owned());
        }
        for (name, value) in [
            ("lease_duration", lease_duration),
            ("renew_deadline", renew_deadline),
            ("retry_period", retry_period),
        ] {
            if value.is_zero() {
                return invalid(format!("{name} is zero: the default is a good start"));
            }
        }
        if lease_duration.as_secs() >= LEASE_SECONDS_MAX {
            return invalid(format!(
                "lease_duration is {lease_duration:?}: a Lease can say up to {LEASE_SECONDS_MAX} s"
            ));
        }
        if lease_duration <= renew_deadline {
            return invalid(format!(
                "lease_duration ({lease_duration:?}) must be longer than renew_deadline \
                 ({renew_deadline:?}), or another could lead before this one has stopped: lengthen \
                 the one or shorten the other"
            ));
        }
        // The first comparison also keeps the product in range.
        if renew_deadline <= retry_period || *renew_deadline <= retry_period.mul_f64(JITTER_FACTOR)
        {
            return invalid(format!(
                "renew_deadline ({renew_deadline:?}) must be longer than {JITTER_FACTOR} times \
                 retry_period ({retry_period:?}), or one slow renewal would end leadership: lengthen \
                 the one or shorten the other"
            ));
        }
        Ok(())
    }
}
