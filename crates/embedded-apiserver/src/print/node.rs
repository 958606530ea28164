//! Nodes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::read::{age, entries, flag, items, name, text as string, text_or};
use super::{AGE, NAME, Printer, text, wide};

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";

pub(super) static NODE: Printer = Printer {
    columns: &[
        NAME,
        text("Status", "Whether the node is ready and takes pods."),
        text("Roles", "What the node is for, by its labels."),
        AGE,
        text("Version", "The version of the kubelet."),
        wide("Internal-IP", "The address within the cluster."),
        wide("External-IP", "The address from outside the cluster."),
        wide("OS-Image", "The operating system."),
        wide("Kernel-Version", "The kernel and the architecture it runs on."),
        wide("Container-Runtime", "The runtime that runs the containers, and its version."),
    ],
    cells,
};

fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    let info = &node["status"]["nodeInfo"];
    let kernel = text_or(&info["kernelVersion"], "<unknown>");
    let kernel = match string(&info["architecture"]) {
        "" => kernel.to_owned(),
        architecture => format!("{kernel} ({architecture})"),
    };
    vec![
        name(node).into(),
        status(node).into(),
        roles(node).into(),
        age(node, now).into(),
        string(&info["kubeletVersion"]).into(),
        address(node, "InternalIP").into(),
        address(node, "ExternalIP").into(),
        text_or(&info["osImage"], "<unknown>").into(),
        kernel.into(),
        text_or(&info["containerRuntimeVersion"], "<unknown>").into(),
    ]
}

fn status(node: &Value) -> String {
    let ready = items(&node["status"]["conditions"])
        .iter()
        .rfind(|condition| string(&condition["type"]) == "Ready")
        .map(|condition| string(&condition["status"]) == "True");
    let ready = match ready {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    };
    let cordoned = if flag(&node["spec"]["unschedulable"]) { ",SchedulingDisabled" } else { "" };
    format!("{ready}{cordoned}")
}

fn roles(node: &Value) -> String {
    let roles: BTreeSet<_> = entries(&node["metadata"]["labels"])
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None if key == ROLE_LABEL => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        return "<none>".to_owned();
    }
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    items(&node["status"]["addresses"])
        .iter()
        .find(|address| string(&address["type"]) == kind)
        .map_or("<none>", |address| string(&address["address"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{assert_columns, assert_rows};

    #[test]
    fn nodes_have_the_columns_of_kubectl() {
        assert_columns(
            "",
            "nodes",
            &[
                ("Name", "string", 0),
                ("Status", "string", 0),
                ("Roles", "string", 0),
                ("Age", "string", 0),
                ("Version", "string", 0),
                ("Internal-IP", "string", 1),
                ("External-IP", "string", 1),
                ("OS-Image", "string", 1),
                ("Kernel-Version", "string", 1),
                ("Container-Runtime", "string", 1),
            ],
        );
    }

    #[test]
    fn nodes_show_readiness_roles_and_what_they_run() {
        let unknown = "<unknown>";
        assert_rows(
            "",
            "nodes",
            [
                (
                    "a node with everything",
                    json!({
                        "metadata": {
                            "name": "n1",
                            "creationTimestamp": "2025-12-24T00:00:00Z",
                            "labels": {
                                "node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/": "",
                                "kubernetes.io/role": "gpu", "other": "x",
                            },
                        },
                        "spec": {"unschedulable": true},
                        "status": {
                            "conditions": [
                                {"type": "DiskPressure", "status": "False"},
                                {"type": "Ready", "status": "True"},
                            ],
                            "addresses": [
                                {"type": "Hostname", "address": "n1"},
                                {"type": "InternalIP", "address": "10.0.0.1"},
                                {"type": "InternalIP", "address": "fd00::1"},
                                {"type": "ExternalIP", "address": "192.0.2.1"},
                            ],
                            "nodeInfo": {
                                "kubeletVersion": "v1.36.3", "osImage": "Debian", "kernelVersion": "6.12",
                                "containerRuntimeVersion": "containerd://2.1", "architecture": "arm64",
                            },
                        },
                    }),
                    json!([
                        "n1",
                        "Ready,SchedulingDisabled",
                        "gpu,worker",
                        "8d",
                        "v1.36.3",
                        "10.0.0.1",
                        "192.0.2.1",
                        "Debian",
                        "6.12 (arm64)",
                        "containerd://2.1",
                    ]),
                ),
                (
                    "a node that lost its kubelet",
                    json!({
                        "metadata": {"name": "n2"},
                        "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
                    }),
                    json!([
                        "n2", "NotReady", "<none>", unknown, "", "<none>", "<none>", unknown,
                        unknown, unknown,
                    ]),
                ),
                (
                    "a node that never reported",
                    json!({"metadata": {"name": "n3", "labels": ["x"]}, "status": {"addresses": 1}}),
                    json!([
                        "n3", "Unknown", "<none>", unknown, "", "<none>", "<none>", unknown,
                        unknown, unknown,
                    ]),
                ),
            ],
        );
    }
}
