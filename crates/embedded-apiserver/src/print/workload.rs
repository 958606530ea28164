//! Controllers of long-running pods.

use jiff::Timestamp;
use serde_json::Value;

use super::read::{age, int, items, maybe_int, name, text as string};
use super::selector::{labels, requirements, selector};
use super::{AGE, CONTAINERS, ColumnDefinition, IMAGES, NAME, Printer, integer, text, wide};

const SELECTOR: ColumnDefinition = wide("Selector", "Which pods belong to it.");

pub(super) static DEPLOYMENT: Printer = Printer {
    columns: &[
        NAME,
        text("Ready", "How many pods are ready, of how many there should be."),
        text("Up-to-date", "How many pods are of the current template."),
        text("Available", "How many pods have been ready for long enough."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: deployment,
};

fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let status = &object["status"];
    let [containers, images] = containers(&object["spec"]["template"]);
    let selector = requirements(&object["spec"]["selector"]);
    vec![
        name(object).into(),
        format!("{}/{}", int(&status["readyReplicas"]), replicas(object)).into(),
        int(&status["updatedReplicas"]).into(),
        int(&status["availableReplicas"]).into(),
        age(object, now).into(),
        containers.into(),
        images.into(),
        // Unlike other selectors, this one is empty if there is none.
        selector.unwrap_or_else(|| "<invalid>".to_owned()).into(),
    ]
}

/// Replica sets, and replication controllers, their predecessors.
const REPLICA_COLUMNS: &[ColumnDefinition] = &[
    NAME,
    integer("Desired", "How many pods there should be."),
    integer("Current", "How many pods there are."),
    integer("Ready", "How many pods are ready."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) static REPLICA_SET: Printer = Printer {
    columns: REPLICA_COLUMNS,
    cells: |object, now| replica_cells(object, selector(&object["spec"]["selector"]), now),
};

pub(super) static REPLICATION_CONTROLLER: Printer = Printer {
    columns: REPLICA_COLUMNS,
    cells: |object, now| replica_cells(object, labels(&object["spec"]["selector"]), now),
};

fn replica_cells(object: &Value, selector: String, now: Timestamp) -> Vec<Value> {
    let status = &object["status"];
    let [containers, images] = containers(&object["spec"]["template"]);
    vec![
        name(object).into(),
        replicas(object).into(),
        int(&status["replicas"]).into(),
        int(&status["readyReplicas"]).into(),
        age(object, now).into(),
        containers.into(),
        images.into(),
        selector.into(),
    ]
}

pub(super) static POD_TEMPLATE: Printer = Printer {
    columns: &[
        NAME,
        text("Containers", "The names of the template's containers."),
        text("Images", "The images of the template's containers."),
        text("Pod Labels", "The labels of the pods."),
    ],
    cells: |object, _| {
        let [containers, images] = containers(&object["template"]);
        let labels = labels(&object["template"]["metadata"]["labels"]);
        vec![name(object).into(), containers.into(), images.into(), labels.into()]
    },
};

pub(super) static STATEFUL_SET: Printer = Printer {
    columns: &[
        NAME,
        text("Ready", "How many pods are ready, of how many there should be."),
        AGE,
        CONTAINERS,
        IMAGES,
    ],
    cells: |object, now| {
        let [containers, images] = containers(&object["spec"]["template"]);
        let ready = format!("{}/{}", int(&object["status"]["readyReplicas"]), replicas(object));
        vec![
            name(object).into(),
            ready.into(),
            age(object, now).into(),
            containers.into(),
            images.into(),
        ]
    },
};

pub(super) static DAEMON_SET: Printer = Printer {
    columns: &[
        NAME,
        integer("Desired", "How many nodes should run the pod."),
        integer("Current", "How many of these nodes have the pod."),
        integer("Ready", "On how many nodes the pod is ready."),
        integer("Up-to-date", "On how many nodes the pod is of the current template."),
        integer("Available", "On how many nodes the pod has been ready for long enough."),
        text("Node Selector", "Which nodes run the pod."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: daemon_set,
};

fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let [containers, images] = containers(&spec["template"]);
    vec![
        name(object).into(),
        int(&status["desiredNumberScheduled"]).into(),
        int(&status["currentNumberScheduled"]).into(),
        int(&status["numberReady"]).into(),
        int(&status["updatedNumberScheduled"]).into(),
        int(&status["numberAvailable"]).into(),
        labels(&spec["template"]["spec"]["nodeSelector"]).into(),
        age(object, now).into(),
        containers.into(),
        images.into(),
        selector(&spec["selector"]).into(),
    ]
}

/// Returns the desired number of pods. The default is one.
fn replicas(object: &Value) -> i32 {
    maybe_int(&object["spec"]["replicas"]).unwrap_or(1)
}

/// Returns the names and the images of a pod template's containers.
pub(super) fn containers(template: &Value) -> [String; 2] {
    let containers = items(&template["spec"]["containers"]);
    ["name", "image"].map(|field| {
        let texts: Vec<_> = containers.iter().map(|container| string(&container[field])).collect();
        texts.join(",")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{assert_columns, assert_rows};
    use super::*;

    fn template() -> Value {
        json!({"spec": {
            "nodeSelector": {"os": "linux", "disk": "ssd"},
            "containers": [{"name": "a", "image": "img:1"}, {"name": "b", "image": "img:2"}],
        }})
    }

    fn metadata() -> Value {
        json!({"name": "web", "creationTimestamp": "2025-12-30T21:00:00Z"})
    }

    #[test]
    fn deployments_show_the_state_of_their_rollout() {
        assert_columns(
            "apps",
            "deployments",
            &[
                ("Name", "string", 0),
                ("Ready", "string", 0),
                ("Up-to-date", "string", 0),
                ("Available", "string", 0),
                ("Age", "string", 0),
                ("Containers", "string", 1),
                ("Images", "string", 1),
                ("Selector", "string", 1),
            ],
        );
        assert_rows(
            "apps",
            "deployments",
            [
                (
                    "rolling out",
                    json!({
                        "metadata": metadata(),
                        "spec": {
                            "replicas": 3, "template": template(),
                            "selector": {"matchLabels": {"app": "web"}},
                        },
                        "status": {"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2},
                    }),
                    json!(["web", "2/3", 1, 2, "27h", "a,b", "img:1,img:2", "app=web"]),
                ),
                (
                    "bare",
                    json!({"metadata": metadata()}),
                    json!(["web", "0/1", 0, 0, "27h", "", "", ""]),
                ),
                (
                    "malformed",
                    json!({
                        "metadata": metadata(), "status": {"readyReplicas": "2"},
                        "spec": {
                            "replicas": 0, "template": {"spec": {"containers": [1, {"name": "a"}]}},
                            "selector": {"matchExpressions": [{}]},
                        },
                    }),
                    json!(["web", "0/0", 0, 0, "27h", ",a", ",", "<invalid>"]),
                ),
            ],
        );
    }

    #[test]
    fn replica_sets_show_their_pods() {
        let columns = [
            ("Name", "string", 0),
            ("Desired", "integer", 0),
            ("Current", "integer", 0),
            ("Ready", "integer", 0),
            ("Age", "string", 0),
            ("Containers", "string", 1),
            ("Images", "string", 1),
            ("Selector", "string", 1),
        ];
        assert_columns("apps", "replicasets", &columns);
        assert_columns("", "replicationcontrollers", &columns);
        let status = json!({"replicas": 2, "readyReplicas": 1});
        assert_rows(
            "apps",
            "replicasets",
            [
                (
                    "scaling up",
                    json!({
                        "metadata": metadata(), "status": status,
                        "spec": {
                            "replicas": 3, "template": template(),
                            "selector": {"matchLabels": {"app": "web"}},
                        },
                    }),
                    json!(["web", 3, 2, 1, "27h", "a,b", "img:1,img:2", "app=web"]),
                ),
                (
                    "bare",
                    json!({"metadata": metadata()}),
                    json!(["web", 1, 0, 0, "27h", "", "", "<none>"]),
                ),
            ],
        );
        assert_rows(
            "",
            "replicationcontrollers",
            [(
                "selecting by labels alone",
                json!({
                    "metadata": metadata(), "status": status,
                    "spec": {"replicas": 2, "template": template(), "selector": {"b": "2", "a": "1"}},
                }),
                json!(["web", 2, 2, 1, "27h", "a,b", "img:1,img:2", "a=1,b=2"]),
            )],
        );
    }

    #[test]
    fn pod_templates_show_what_their_pods_are_made_of() {
        let object = json!({"metadata": {"name": "t"}, "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }});
        assert_rows("", "podtemplates", [("one", object, json!(["t", "c", "i", "app=a"]))]);
    }

    #[test]
    fn stateful_sets_show_how_many_pods_are_ready() {
        assert_columns(
            "apps",
            "statefulsets",
            &[
                ("Name", "string", 0),
                ("Ready", "string", 0),
                ("Age", "string", 0),
                ("Containers", "string", 1),
                ("Images", "string", 1),
            ],
        );
        assert_rows(
            "apps",
            "statefulsets",
            [
                (
                    "starting",
                    json!({
                        "metadata": metadata(), "spec": {"replicas": 5, "template": template()},
                        "status": {"readyReplicas": 4},
                    }),
                    json!(["web", "4/5", "27h", "a,b", "img:1,img:2"]),
                ),
                ("bare", json!({}), json!(["", "0/1", "<unknown>", "", ""])),
            ],
        );
    }

    #[test]
    fn daemon_sets_show_their_nodes() {
        assert_columns(
            "apps",
            "daemonsets",
            &[
                ("Name", "string", 0),
                ("Desired", "integer", 0),
                ("Current", "integer", 0),
                ("Ready", "integer", 0),
                ("Up-to-date", "integer", 0),
                ("Available", "integer", 0),
                ("Node Selector", "string", 0),
                ("Age", "string", 0),
                ("Containers", "string", 1),
                ("Images", "string", 1),
                ("Selector", "string", 1),
            ],
        );
        assert_rows(
            "apps",
            "daemonsets",
            [
                (
                    "rolling out",
                    json!({
                        "metadata": metadata(),
                        "spec": {"template": template(), "selector": {"matchLabels": {"app": "web"}}},
                        "status": {
                            "desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3,
                            "updatedNumberScheduled": 2, "numberAvailable": 1,
                        },
                    }),
                    json!([
                        "web",
                        5,
                        4,
                        3,
                        2,
                        1,
                        "disk=ssd,os=linux",
                        "27h",
                        "a,b",
                        "img:1,img:2",
                        "app=web",
                    ]),
                ),
                (
                    "bare",
                    json!({"metadata": metadata()}),
                    json!(["web", 0, 0, 0, 0, 0, "<none>", "27h", "", "", "<none>"]),
                ),
            ],
        );
    }
}
