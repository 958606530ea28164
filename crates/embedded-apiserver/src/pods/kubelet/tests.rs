use super::*;

const AT: Moment<'static> = Moment { now: "t", host: "172.18.0.2" };

fn pod(spec: &Value) -> Value {
    json!({"metadata": {"name": "p", "uid": "u", "generation": 1}, "spec": spec, "status": {}})
}

fn after(pod: &Value, status: Object) -> Value {
    let mut pod = pod.clone();
    pod["status"] = Value::Object(status);
    pod
}

/// Returns the conditions as `Type=Status/Reason`.
fn shown(pod: &Value) -> Vec<String> {
    let show = |condition: &Value| {
        let [kind, status, reason] = ["type", "status", "reason"].map(|f| text(&condition[f]));
        format!("{kind}={status}/{reason}")
    };
    items(&pod["status"]["conditions"]).iter().map(show).collect()
}

#[test]
fn a_pod_is_created_starts_and_stops() {
    let new = pod(&json!({"containers": [{"name": "a", "image": "nginx"}]}));
    let created = after(&new, create(&new, AT));
    assert_eq!(created["status"]["phase"], "Pending");
    assert_eq!(created["status"]["hostIPs"], json!([{"ip": "172.18.0.2"}]));
    assert_eq!(
        created["status"]["containerStatuses"][0]["state"]["waiting"]["reason"],
        "ContainerCreating"
    );
    assert_eq!(
        shown(&created),
        [
            "PodReadyToStartContainers=False/",
            "Initialized=True/",
            "Ready=False/ContainersNotReady",
            "ContainersReady=False/ContainersNotReady",
            "PodScheduled=True/",
        ]
    );
    assert_eq!(
        created["status"]["conditions"][2]["message"],
        "containers with unready status: [a]"
    );

    let started = after(&created, start(&created, "10.244.0.1", AT));
    assert_eq!(started["status"]["phase"], "Running");
    assert_eq!(started["status"]["podIPs"], json!([{"ip": "10.244.0.1"}]));
    assert_eq!(started["status"]["observedGeneration"], 1);
    assert!(shown(&started).iter().all(|condition| condition.ends_with("=True/")));

    let stopped = after(&started, stop(&started, End::Done, AT));
    assert_eq!(stopped["status"]["phase"], "Succeeded");
    assert_eq!(
        shown(&stopped),
        [
            "PodReadyToStartContainers=False/",
            "Initialized=True/PodCompleted",
            "Ready=False/PodCompleted",
            "ContainersReady=False/PodCompleted",
            "PodScheduled=True/",
        ]
    );
    let killed = after(&started, stop(&started, End::Killed, AT));
    assert_eq!(killed["status"]["phase"], "Failed");
    assert_eq!(shown(&killed)[2], "Ready=False/PodFailed");
    let never_ran = stop(&created, End::Done, AT);
    assert_eq!(never_ran["phase"], "Failed");
}

#[test]
fn init_containers_end_one_after_the_other() {
    let new = pod(&json!({
        "initContainers": [{"name": "a"}, {"name": "b"}], "containers": [{"name": "c"}],
    }));
    let states = |pod: &Value| -> Vec<String> {
        let state = |status: &Value| status["state"].as_object()?.keys().next().cloned();
        items(&pod["status"]["initContainerStatuses"]).iter().filter_map(state).collect()
    };
    let mut pod = after(&new, create(&new, AT));
    assert_eq!(
        pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"],
        "PodInitializing"
    );
    assert_eq!(
        pod["status"]["conditions"][1]["message"],
        "containers with incomplete status: [a b]"
    );
    for expected in [["running", "waiting"], ["terminated", "running"]] {
        pod = after(&pod, start_init(&pod, "10.244.0.1", AT));
        assert_eq!(states(&pod), expected);
        assert_eq!(shown(&pod)[0], "PodReadyToStartContainers=True/");
        assert_eq!(shown(&pod)[1], "Initialized=False/ContainersNotInitialized");
        pod = after(&pod, end_init(&pod, AT));
    }
    assert_eq!(states(&pod), ["terminated", "terminated"]);
    assert_eq!(pod["status"]["initContainerStatuses"][1]["ready"], true);
    assert_eq!(shown(&pod)[1], "Initialized=True/");
}

#[test]
fn a_pod_on_the_network_of_its_node_has_its_address() {
    let new = pod(&json!({"hostNetwork": true}));
    assert_eq!(start(&new, "", AT)["podIP"], "172.18.0.2");
}

#[test]
fn what_others_wrote_does_no_harm() {
    let mut strange = pod(&json!({"containers": ["x", 1], "initContainers": {}}));
    strange["status"] = json!("x");
    let mut created = after(&strange, create(&strange, AT));
    created["status"]["initContainerStatuses"] = json!([1, null]);
    for status in [
        start_init(&created, "", AT),
        end_init(&created, AT),
        start(&created, "", AT),
        stop(&created, End::Done, AT),
        unschedulable(&created, "w", "t"),
    ] {
        assert!(status.contains_key("conditions"));
    }
}

#[test]
fn conditions_of_others_stay() {
    let mut pod = pod(&json!({}));
    pod["status"] = json!({"conditions": [{"type": "example.com/gate", "status": "True"}]});
    assert_eq!(shown(&after(&pod, start(&pod, "", AT)))[0], "example.com/gate=True/");
}
