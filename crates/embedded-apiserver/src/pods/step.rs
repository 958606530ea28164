//! The next step of a pod. It depends on the pod alone, whatever client wrote it, and even if the
//! server has just been restored from a backup.

use std::time::Duration;

use serde_json::Value;

use super::container::{End, is_running, is_sidecar, is_terminated};
use super::delays::PodDelays;
use crate::print::read::{is_deleting, items, text};

/// The annotation with the number of seconds after which a running pod completes, unless it would
/// be restarted.
pub(super) const COMPLETE_AFTER: &str = "embedded-apiserver/complete-after-seconds";

/// A step of a pod's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The pod is assigned to a node.
    Schedule,
    /// The node sees the pod.
    Create,
    /// An init container starts.
    StartInit,
    /// An init container completes.
    EndInit,
    /// All containers run.
    Start,
    /// The pod completes by itself.
    Complete,
    /// The containers terminate because the pod is deleted.
    Stop,
    /// The pod is removed.
    Remove,
}

impl Step {
    /// Returns the next step of a pod, or `None` if it waits for another client or has finished.
    pub(super) fn next(pod: &Value) -> Option<Self> {
        let assigned = !text(&pod["spec"]["nodeName"]).is_empty();
        let ended = matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed");
        match (is_deleting(pod), assigned, ended) {
            (true, true, true) => (grace(pod) > Duration::ZERO).then_some(Self::Remove),
            (true, true, false) => Some(Self::Stop),
            (false, true, false) => Self::toward_running(pod),
            (false, false, false) => may_be_scheduled(pod).then_some(Self::Schedule),
            (true, false, _) | (false, _, true) => None,
        }
    }

    fn toward_running(pod: &Value) -> Option<Self> {
        let status = &pod["status"];
        if text(&status["phase"]) == "Running" {
            return complete_after(pod).map(|_| Self::Complete);
        }
        if text(&status["startTime"]).is_empty() {
            return Some(Self::Create);
        }
        Some(match current_init(pod) {
            Some((_, status)) if is_running(status) => Self::EndInit,
            Some(_) => Self::StartInit,
            None => Self::Start,
        })
    }

    /// Returns the time until this step.
    pub(super) fn delay(self, pod: &Value, delays: &PodDelays) -> Duration {
        let uid = text(&pod["metadata"]["uid"]);
        let stretched = |delay, stage| delays.stretched(delay, uid, stage);
        match self {
            Self::Schedule => stretched(delays.schedule, "schedule"),
            Self::Create | Self::StartInit => stretched(delays.create, "create"),
            Self::Start | Self::EndInit => stretched(delays.start, "start"),
            Self::Complete => complete_after(pod).unwrap_or_default(),
            Self::Stop => stretched(delays.stop, "stop").min(grace(pod)),
            Self::Remove => Duration::ZERO,
        }
    }
}

/// Returns how the containers of a deleted pod terminate: by themselves, if the grace period is
/// long enough.
pub(super) fn end(pod: &Value, delays: &PodDelays) -> End {
    let needed = delays.stretched(delays.stop, text(&pod["metadata"]["uid"]), "stop");
    if needed <= grace(pod) { End::Done } else { End::Killed }
}

/// Returns the current init container and its status.
pub(super) fn current_init(pod: &Value) -> Option<(usize, &Value)> {
    let specs = items(&pod["spec"]["initContainers"]);
    let statuses = items(&pod["status"]["initContainerStatuses"]);
    let waits = |(at, status): &(usize, &Value)| {
        let sidecar = specs.get(*at).is_some_and(is_sidecar);
        !(is_terminated(status) || sidecar && is_running(status))
    };
    statuses.iter().enumerate().find(waits)
}

/// Returns whether this scheduler is responsible. Pods of other schedulers and pods with scheduling
/// gates are left alone.
fn may_be_scheduled(pod: &Value) -> bool {
    let spec = &pod["spec"];
    matches!(text(&spec["schedulerName"]), "" | "default-scheduler")
        && items(&spec["schedulingGates"]).is_empty()
}

fn complete_after(pod: &Value) -> Option<Duration> {
    let seconds = text(&pod["metadata"]["annotations"][COMPLETE_AFTER]).parse::<f64>().ok()?;
    let restarts = matches!(text(&pod["spec"]["restartPolicy"]), "" | "Always");
    Duration::try_from_secs_f64(seconds).ok().filter(|_| !restarts)
}

fn grace(pod: &Value) -> Duration {
    let seconds = pod["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or(0);
    Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DELETED: &str = "2026-01-01T00:00:00Z";

    #[test]
    fn the_next_step_follows_from_the_pod() {
        let cases = [
            (json!({}), Some(Step::Schedule)),
            (json!({"spec": {"schedulerName": "mine"}}), None),
            (json!({"spec": {"schedulingGates": [{"name": "g"}]}}), None),
            (json!({"metadata": {"deletionTimestamp": DELETED}}), None),
            (json!({"status": {"phase": "Failed"}}), None),
            (json!({"spec": {"nodeName": "n"}}), Some(Step::Create)),
            (json!({"spec": {"nodeName": "n"}, "status": {"startTime": "t"}}), Some(Step::Start)),
            (json!({"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}), None),
            (json!({"spec": {"nodeName": "n"}, "status": {"phase": "Succeeded"}}), None),
            (json!({"spec": "nonsense", "status": 1}), Some(Step::Schedule)),
        ];
        for (pod, expected) in cases {
            assert_eq!(Step::next(&pod), expected, "{pod}");
        }
    }

    #[test]
    fn init_containers_take_turns() {
        let next = |statuses: Value| {
            Step::next(&json!({
                "spec": {
                    "nodeName": "n",
                    "initContainers": [{"name": "a"}, {"name": "b", "restartPolicy": "Always"}],
                },
                "status": {"startTime": "t", "initContainerStatuses": statuses},
            }))
        };
        let (waiting, running, done) = (
            json!({"state": {"waiting": {}}}),
            json!({"state": {"running": {}}}),
            json!({"state": {"terminated": {}}}),
        );
        assert_eq!(next(json!([waiting, waiting])), Some(Step::StartInit));
        assert_eq!(next(json!([running, waiting])), Some(Step::EndInit));
        assert_eq!(next(json!([done, waiting])), Some(Step::StartInit));
        // A sidecar counts as complete once it runs.
        assert_eq!(next(json!([done, running])), Some(Step::Start));
    }

    #[test]
    fn a_deleted_pod_stops_and_goes() {
        let next = |phase: &str, grace: i64| {
            Step::next(&json!({
                "metadata": {"deletionTimestamp": DELETED, "deletionGracePeriodSeconds": grace},
                "spec": {"nodeName": "n"},
                "status": {"phase": phase},
            }))
        };
        assert_eq!(next("Pending", 30), Some(Step::Stop));
        assert_eq!(next("Running", 30), Some(Step::Stop));
        assert_eq!(next("Succeeded", 30), Some(Step::Remove));
        // Finalizers keep it. The server removes it when they are done.
        assert_eq!(next("Succeeded", 0), None);
        assert_eq!(next("Running", 0), Some(Step::Stop));
    }

    #[test]
    fn a_short_grace_period_ends_in_a_kill() {
        let delays = PodDelays { stop: Duration::from_secs(5), jitter: 0.0, ..Default::default() };
        let with = |grace: i64| json!({"metadata": {"deletionGracePeriodSeconds": grace}});
        assert_eq!(Step::Stop.delay(&with(30), &delays), Duration::from_secs(5));
        assert_eq!(end(&with(30), &delays), End::Done);
        assert_eq!(Step::Stop.delay(&with(1), &delays), Duration::from_secs(1));
        assert_eq!(end(&with(1), &delays), End::Killed);
    }

    #[test]
    fn only_pods_that_are_not_restarted_complete() {
        let next = |policy: &str, after: &str| {
            Step::next(&json!({
                "metadata": {"annotations": {COMPLETE_AFTER: after}},
                "spec": {"nodeName": "n", "restartPolicy": policy},
                "status": {"phase": "Running"},
            }))
        };
        assert_eq!(next("Never", "1.5"), Some(Step::Complete));
        assert_eq!(next("OnFailure", "0"), Some(Step::Complete));
        assert_eq!(next("Always", "1"), None);
        assert_eq!(next("Never", "-1"), None);
        assert_eq!(next("Never", "soon"), None);
    }
}
