use serde_json::{Value, json};

use super::super::fixtures::{assert_columns, assert_rows};

#[test]
fn pods_have_the_columns_of_kubectl() {
    assert_columns(
        "",
        "pods",
        &[
            ("Name", "string", 0),
            ("Ready", "string", 0),
            ("Status", "string", 0),
            ("Restarts", "string", 0),
            ("Age", "string", 0),
            ("IP", "string", 1),
            ("Node", "string", 1),
            ("Nominated Node", "string", 1),
            ("Readiness Gates", "string", 1),
        ],
    );
}

/// Returns a pod called `p`, created five hours ago, with two containers unless the spec says
/// otherwise.
fn pod(spec: &Value, status: &Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": "p", "creationTimestamp": "2025-12-31T19:00:00Z"},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
        "status": status,
    });
    for (key, value) in spec.as_object().unwrap() {
        pod["spec"][key] = value.clone();
    }
    pod
}

fn deleted(mut pod: Value) -> Value {
    pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    pod
}

/// Returns the row of a pod with these cells, and defaults for the others.
fn row(ready: &str, status: &str, restarts: &str) -> Value {
    json!(["p", ready, status, restarts, "5h", "<none>", "<none>", "<none>", "<none>"])
}

fn running(ready: bool) -> Value {
    json!({"ready": ready, "state": {"running": {}}})
}

fn terminated(state: &Value) -> Value {
    json!({"state": {"terminated": state}})
}

#[test]
fn running_pods_show_their_containers() {
    let none = json!({});
    assert_rows(
        "",
        "pods",
        [
            (
                "all ready, with everything that wide output shows",
                pod(
                    &json!({
                        "nodeName": "n1",
                        "readinessGates": [{"conditionType": "x/a"}, {"conditionType": "x/b"}, {}],
                    }),
                    &json!({
                        "phase": "Running", "podIP": "10.0.0.9", "nominatedNodeName": "n2",
                        "podIPs": [{"ip": "10.0.0.9"}, {"ip": "fd00::9"}],
                        "conditions": [
                            {"type": "x/a", "status": "True"}, {"type": "x/b", "status": "False"},
                        ],
                        "containerStatuses": [running(true), running(true)],
                    }),
                ),
                json!(["p", "2/2", "Running", "0", "5h", "10.0.0.9", "n1", "n2", "1/3"]),
            ),
            (
                "an address in the newer field alone",
                pod(&none, &json!({"phase": "Running", "podIPs": [{"ip": "fd00::9"}]})),
                json!(["p", "0/2", "Running", "0", "5h", "fd00::9", "<none>", "<none>", "<none>"]),
            ),
            (
                "restarts, with the latest of them",
                pod(
                    &none,
                    &json!({"phase": "Running", "containerStatuses": [
                        {"ready": true, "state": {"running": {}}, "restartCount": 2, "lastState":
                            {"terminated": {"exitCode": 1, "finishedAt": "2025-12-31T23:55:00Z"}}},
                        {"ready": false, "state": {"running": {}}, "restartCount": 1, "lastState":
                            {"terminated": {"exitCode": 1, "finishedAt": "2025-12-31T23:00:00Z"}}},
                    ]}),
                ),
                row("1/2", "Running", "3 (5m ago)"),
            ),
            (
                "restarts at unknown times",
                pod(
                    &none,
                    &json!({"phase": "Running", "containerStatuses": [{"restartCount": 4}]}),
                ),
                row("0/2", "Running", "4"),
            ),
        ],
    );
}

#[test]
fn phases_and_reasons_show_when_no_container_says_more() {
    let none = json!({});
    let scheduled = |reason| json!({"type": "PodScheduled", "status": "False", "reason": reason});
    assert_rows(
        "",
        "pods",
        [
            ("pending", pod(&none, &json!({"phase": "Pending"})), row("0/2", "Pending", "0")),
            (
                "unschedulable",
                pod(
                    &none,
                    &json!({"phase": "Pending", "conditions": [scheduled("Unschedulable")]}),
                ),
                row("0/2", "Pending", "0"),
            ),
            (
                "gated",
                pod(
                    &none,
                    &json!({"phase": "Pending", "conditions": [scheduled("SchedulingGated")]}),
                ),
                row("0/2", "SchedulingGated", "0"),
            ),
            (
                "evicted",
                pod(&none, &json!({"phase": "Failed", "reason": "Evicted"})),
                row("0/2", "Evicted", "0"),
            ),
            (
                "on a lost node",
                pod(&none, &json!({"phase": "Running", "reason": "NodeLost"})),
                row("0/2", "NodeLost", "0"),
            ),
            (
                "on a lost node and deleted",
                deleted(pod(&none, &json!({"phase": "Running", "reason": "NodeLost"}))),
                row("0/2", "Unknown", "0"),
            ),
            (
                "deleted",
                deleted(pod(
                    &none,
                    &json!({"phase": "Running", "containerStatuses": [running(true), running(true)]}),
                )),
                row("2/2", "Terminating", "0"),
            ),
            (
                "deleted when it was done",
                deleted(pod(&none, &json!({"phase": "Succeeded"}))),
                row("0/2", "Succeeded", "0"),
            ),
            ("no status", pod(&none, &json!(null)), row("0/2", "", "0")),
        ],
    );
}

#[test]
fn containers_tell_why_they_wait_or_stopped() {
    let cases = [
        (
            "waiting",
            json!([{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]),
            "0/2",
            "CrashLoopBackOff",
        ),
        ("waiting for no reason", json!([{"state": {"waiting": {}}}]), "0/2", "Running"),
        (
            "the first container is heard",
            json!([
                {"state": {"waiting": {"reason": "ErrImagePull"}}},
                {"state": {"waiting": {"reason": "ContainerCreating"}}},
            ]),
            "0/2",
            "ErrImagePull",
        ),
        (
            "terminated",
            json!([terminated(&json!({"exitCode": 1, "reason": "Error"})), running(true)]),
            "1/2",
            "Error",
        ),
        ("killed", json!([terminated(&json!({"exitCode": 137, "signal": 9}))]), "0/2", "Signal:9"),
        ("exited", json!([terminated(&json!({"exitCode": 3}))]), "0/2", "ExitCode:3"),
        (
            "all done",
            json!([
                terminated(&json!({"reason": "Completed"})),
                terminated(&json!({"reason": "Completed"}))
            ]),
            "0/2",
            "Completed",
        ),
        (
            "one done, one runs",
            json!([terminated(&json!({"reason": "Completed"})), running(true)]),
            "1/2",
            "NotReady",
        ),
        (
            "one done, one failed",
            json!([
                terminated(&json!({"reason": "Completed"})),
                terminated(&json!({"exitCode": 1, "reason": "Error"}))
            ]),
            "0/2",
            "Error",
        ),
        (
            "malformed",
            json!([7, {"state": {"terminated": 1, "waiting": []}}, {"state": "x"}]),
            "0/2",
            "Running",
        ),
    ];
    for (behaviour, statuses, ready, expected) in cases {
        let pod = pod(&json!({}), &json!({"phase": "Running", "containerStatuses": statuses}));
        assert_rows("", "pods", [(behaviour, pod, row(ready, expected, "0"))]);
    }
}

#[test]
fn a_ready_pod_runs_although_one_container_is_done() {
    let statuses = json!([terminated(&json!({"reason": "Completed"})), running(true)]);
    let status = json!({
        "phase": "Running", "containerStatuses": statuses,
        "conditions": [{"type": "Ready", "status": "True"}],
    });
    assert_rows("", "pods", [("ready", pod(&json!({}), &status), row("1/2", "Running", "0"))]);
}

#[test]
fn init_containers_tell_how_far_they_are() {
    let cases = [
        ("the first has not begun", json!([{"name": "i"}, {"name": "j"}]), "Init:0/2"),
        (
            "the first is done",
            json!([terminated(&json!({"exitCode": 0})), {"state": {"running": {}}}]),
            "Init:1/2",
        ),
        (
            "waits its turn",
            json!([{"state": {"waiting": {"reason": "PodInitializing"}}}]),
            "Init:0/2",
        ),
        (
            "waits for an image",
            json!([{"state": {"waiting": {"reason": "ErrImagePull"}}}]),
            "Init:ErrImagePull",
        ),
        ("failed", json!([terminated(&json!({"exitCode": 1, "reason": "Error"}))]), "Init:Error"),
        ("killed", json!([terminated(&json!({"exitCode": 1, "signal": 9}))]), "Init:Signal:9"),
        ("exited", json!([terminated(&json!({"exitCode": 2}))]), "Init:ExitCode:2"),
        (
            "all done",
            json!([
                terminated(&json!({"exitCode": 0})),
                terminated(&json!({"reason": "Completed"}))
            ]),
            "Pending",
        ),
    ];
    for (behaviour, statuses, expected) in cases {
        let spec = json!({"initContainers": [{"name": "i"}, {"name": "j"}]});
        let pod = pod(&spec, &json!({"phase": "Pending", "initContainerStatuses": statuses}));
        assert_rows("", "pods", [(behaviour, pod, row("0/2", expected, "0"))]);
    }
}

#[test]
fn restarts_of_init_containers_count_until_the_pod_is_up() {
    let spec = json!({"initContainers": [{"name": "i"}]});
    let init = |state: Value| {
        json!([{"name": "i", "restartCount": 3, "state": state, "lastState":
            {"terminated": {"exitCode": 1, "finishedAt": "2025-12-31T23:59:50Z"}}}])
    };
    assert_rows(
        "",
        "pods",
        [
            (
                "initializing",
                pod(&spec, &json!({"initContainerStatuses": init(json!({"running": {}}))})),
                row("0/2", "Init:0/1", "3 (10s ago)"),
            ),
            (
                "up",
                pod(
                    &spec,
                    &json!({
                        "phase": "Running",
                        "initContainerStatuses": init(json!({"terminated": {"exitCode": 0}})),
                        "containerStatuses": [{"restartCount": 1, "ready": true, "state": {"running": {}}}],
                    }),
                ),
                row("1/2", "Running", "1"),
            ),
        ],
    );
}

#[test]
fn sidecars_count_as_containers() {
    let spec = json!({"initContainers": [
        {"name": "s", "restartPolicy": "Always"}, {"name": "i"},
    ]});
    let sidecar = |ready: bool| {
        json!({"name": "s", "started": true, "ready": ready, "restartCount": 2,
            "state": {"running": {}}, "lastState":
            {"terminated": {"exitCode": 1, "finishedAt": "2025-12-31T23:58:00Z"}}})
    };
    let done = json!({"name": "i", "restartCount": 5, "state": {"terminated": {"exitCode": 0}}});
    assert_rows(
        "",
        "pods",
        [
            (
                "not started",
                pod(
                    &spec,
                    &json!({"initContainerStatuses": [{"name": "s", "state": {"running": {}}}]}),
                ),
                row("0/3", "Init:0/2", "0"),
            ),
            (
                "started, while another initializes",
                pod(&spec, &json!({"initContainerStatuses": [sidecar(true), {"name": "i"}]})),
                row("1/3", "Init:1/2", "2 (2m ago)"),
            ),
            (
                "up",
                pod(
                    &spec,
                    &json!({
                        "phase": "Running", "initContainerStatuses": [sidecar(true), done],
                        "containerStatuses": [running(true), running(true)],
                    }),
                ),
                row("3/3", "Running", "2 (2m ago)"),
            ),
            (
                "restarting in a pod that is initialized",
                pod(
                    &spec,
                    &json!({
                        "phase": "Running",
                        "conditions": [{"type": "Initialized", "status": "True"}],
                        "initContainerStatuses": [
                            {"name": "s", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}, done,
                        ],
                        "containerStatuses": [running(true), running(true)],
                    }),
                ),
                row("2/3", "Init:CrashLoopBackOff", "0"),
            ),
        ],
    );
}
