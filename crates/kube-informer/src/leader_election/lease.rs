//! A Lease as JSON, so that fields that this module does not know survive an update.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{Error, Result};

pub(super) const API_GROUP: &str = "coordination.k8s.io";
pub(super) const API_VERSION: &str = "v1";

/// The value of `leaseDurationSeconds` after a release: the smallest that servers accept.
const RELEASED_SECONDS: u64 = 1;

/// `spec.leaseTransitions` is an `int32`.
const TRANSITIONS_MAX: u64 = i32::MAX as u64;

/// A complete Lease, as the server sent it or as it is to be written.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Lease(Map<String, Value>);

/// The part of the record that a holder writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'a> {
    pub(super) identity: &'a str,
    pub(super) duration: Duration,
    pub(super) now: Timestamp,
}

impl Lease {
    /// Creates a Lease that the server does not have yet, without a holder.
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        let lease = json!({
            "apiVersion": format!("{API_GROUP}/{API_VERSION}"),
            "kind": "Lease",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {},
        });
        Self(lease.as_object().cloned().unwrap_or_default())
    }

    /// Parses the body of a response.
    pub(super) fn read(body: &[u8]) -> Result<Self> {
        let unfit = |what| Error::protocol(format!("the server's response is not a Lease: {what}"));
        let Ok(Value::Object(lease)) = serde_json::from_slice(body) else {
            return Err(unfit("it is not a JSON object"));
        };
        // Without a version an update would overwrite whatever another candidate has written.
        let version = lease.get("metadata").and_then(|metadata| metadata.get("resourceVersion"));
        if version.and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(unfit("it has no metadata.resourceVersion"));
        }
        match lease.get("spec") {
            None | Some(Value::Null | Value::Object(_)) => Ok(Self(lease)),
            Some(_) => Err(unfit("its spec is not an object")),
        }
    }

    /// Returns the body of a request.
    pub(super) fn to_json(&self) -> Value {
        Value::from(self.0.clone())
    }

    /// Returns the holder; `None` if the lease is free.
    pub(super) fn holder(&self) -> Option<&str> {
        self.field("holderIdentity")?.as_str().filter(|holder| !holder.is_empty())
    }

    /// Returns how long the holder keeps the lease without renewing it.
    pub(super) fn duration(&self) -> Option<Duration> {
        self.field("leaseDurationSeconds")?.as_u64().map(Duration::from_secs)
    }

    /// Returns how often the lease has changed hands.
    pub(super) fn transitions(&self) -> u64 {
        self.field("leaseTransitions").and_then(Value::as_u64).unwrap_or_default()
    }

    /// Returns whether the record is the same: labels and other metadata do not count, because they say nothing
    /// about whether the holder is alive.
    pub(super) fn same_record(&self, other: &Lease) -> bool {
        self.0.get("spec") == other.0.get("spec")
    }

    /// Returns the Lease as renewed by its holder.
    pub(super) fn renewed(mut self, claim: Claim<'_>) -> Self {
        self.set("holderIdentity", claim.identity);
        self.set("leaseDurationSeconds", whole_seconds(claim.duration));
        self.set("renewTime", micro_time(claim.now));
        self
    }

    /// Returns the Lease as taken by a new holder.
    pub(super) fn taken(self, claim: Claim<'_>) -> Self {
        let transitions = self.transitions().saturating_add(1);
        self.first_taken(claim).with_transitions(transitions)
    }

    /// Returns the Lease as taken for the first time, or again after it was deleted.
    pub(super) fn first_taken(self, claim: Claim<'_>) -> Self {
        let mut lease = self.renewed(claim);
        lease.set("acquireTime", micro_time(claim.now));
        let transitions = lease.transitions();
        lease.with_transitions(transitions)
    }

    /// Returns the Lease without a holder: any candidate may take it at once.
    pub(super) fn released(mut self, now: Timestamp) -> Self {
        self.set("holderIdentity", "");
        self.set("leaseDurationSeconds", RELEASED_SECONDS);
        self.set("renewTime", micro_time(now));
        self.set("acquireTime", micro_time(now));
        self
    }

    pub(super) fn with_transitions(mut self, transitions: u64) -> Self {
        self.set("leaseTransitions", transitions.min(TRANSITIONS_MAX));
        self
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.0.get("spec")?.get(name)
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        let spec = self.0.entry("spec").or_insert(Value::Null);
        if !spec.is_object() {
            *spec = Value::Object(Map::new());
        }
        if let Value::Object(spec) = spec {
            spec.insert(name.to_owned(), value.into());
        }
    }
}

/// Rounds up: a record that promised less than the holder's configuration would be taken over early.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// Formats a time as Kubernetes' `MicroTime`.
fn micro_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(spec: &Value) -> Lease {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "a", "resourceVersion": "7", "labels": {"team": "shop"}},
            "spec": spec,
            "unknown": [1],
        });
        Lease::read(lease.to_string().as_bytes()).unwrap()
    }

    fn claim(identity: &str) -> Claim<'_> {
        let now = "2026-11-17T20:15:30.5Z".parse().unwrap();
        Claim { identity, duration: Duration::from_millis(1500), now }
    }

    #[test]
    fn times_are_written_as_micro_time() {
        assert_eq!(micro_time(claim("a").now), "2026-11-17T20:15:30.500000Z");
    }

    #[test]
    fn durations_are_rounded_up_to_whole_seconds() {
        for (millis, seconds) in [(1, 1), (1000, 1), (1001, 2), (15_000, 15)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
    }

    #[test]
    fn le6_a_takeover_counts_and_a_renewal_does_not() {
        let first = Lease::new("default", "a").first_taken(claim("a"));
        assert_eq!((first.holder(), first.transitions()), (Some("a"), 0));
        assert_eq!(first.field("leaseTransitions"), Some(&json!(0)));
        let second = first.taken(claim("b"));
        assert_eq!((second.holder(), second.transitions()), (Some("b"), 1));
        let renewed = second.clone().renewed(Claim { now: Timestamp::UNIX_EPOCH, ..claim("b") });
        assert_eq!(renewed.transitions(), 1);
        assert_eq!(renewed.field("acquireTime"), second.field("acquireTime"));
        assert_ne!(renewed.field("renewTime"), second.field("renewTime"));
    }

    #[test]
    fn le9_a_released_lease_has_no_holder_and_keeps_its_count() {
        let released = lease(&json!({"leaseTransitions": 4, "holderIdentity": "a"}))
            .released(Timestamp::UNIX_EPOCH);
        assert_eq!((released.holder(), released.transitions()), (None, 4));
        assert_eq!(released.field("holderIdentity"), Some(&json!("")));
        assert_eq!(released.duration(), Some(Duration::from_secs(1)));
        assert_eq!(released.field("acquireTime"), Some(&json!("1970-01-01T00:00:00.000000Z")));
    }

    #[test]
    fn unknown_fields_and_labels_survive() {
        let written = lease(&json!({"strategy": "OldestEmulationVersion", "future": {"x": 1}}))
            .taken(claim("a"));
        let value = written.to_json();
        assert_eq!(value["metadata"]["labels"], json!({"team": "shop"}));
        assert_eq!(value["spec"]["strategy"], "OldestEmulationVersion");
        assert_eq!(value["spec"]["future"], json!({"x": 1}));
        assert_eq!(value["unknown"], json!([1]));
    }

    #[test]
    fn only_the_record_tells_whether_something_changed() {
        let one = lease(&json!({"holderIdentity": "a"}));
        let mut labelled = one.clone();
        labelled.0.insert("metadata".to_owned(), json!({"labels": {}, "resourceVersion": "8"}));
        assert!(one.same_record(&labelled));
        assert!(!one.same_record(&lease(&json!({"holderIdentity": "b"}))));
    }

    #[test]
    fn answers_that_are_no_lease_are_errors() {
        for body in [
            "",
            "[]",
            "null",
            "{}",
            "{\"metadata\": {}}",
            "{\"metadata\": {\"resourceVersion\": 7}}",
            "{\"metadata\": {\"resourceVersion\": \"7\"}, \"spec\": []}",
        ] {
            let error = Lease::read(body.as_bytes()).unwrap_err();
            assert!(error.is_protocol(), "{body}: {error}");
        }
    }

    #[test]
    fn records_of_any_shape_are_read() {
        for spec in [json!(null), json!({}), json!({"holderIdentity": ""})] {
            let lease = lease(&spec);
            assert_eq!((lease.holder(), lease.duration(), lease.transitions()), (None, None, 0));
        }
        let odd = lease(
            &json!({"holderIdentity": 3, "leaseDurationSeconds": -1, "leaseTransitions": "x"}),
        );
        assert_eq!((odd.holder(), odd.duration(), odd.transitions()), (None, None, 0));
        let most = lease(&json!({"leaseTransitions": i32::MAX})).taken(claim("a"));
        assert_eq!(most.transitions(), TRANSITIONS_MAX);
    }
}
