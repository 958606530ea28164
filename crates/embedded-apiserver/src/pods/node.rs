//! The node on which pods run.
//!
//! It has no heartbeats. No controller would mark it as lost without them, and each would be a
//! write that tests did not ask for.

use serde_json::{Value, json};

use super::address;

pub(super) const NAME: &str = "embedded-node";

/// Also the address of nodes that have none.
pub(super) const ADDRESS: &str = "172.18.0.2";

/// Returns the node without its status, which is written separately as for every object.
pub(super) fn object() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NAME,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": NAME,
                "kubernetes.io/os": "linux",
            },
        },
        "spec": {"podCIDR": address::CIDR, "podCIDRs": [address::CIDR]},
    })
}

/// Returns the status of a node that started at `now`.
pub(super) fn status(now: &str) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    // These are never enforced, because nothing uses them up.
    let resources = json!({
        "cpu": "8", "memory": "16Gi", "ephemeral-storage": "100Gi", "hugepages-1Gi": "0",
        "hugepages-2Mi": "0", "pods": "65534",
    });
    json!({
        "addresses": [
            {"type": "InternalIP", "address": ADDRESS},
            {"type": "Hostname", "address": NAME},
        ],
        "allocatable": resources,
        "capacity": resources,
        "conditions": [
            condition(
                "MemoryPressure",
                "False",
                "KubeletHasSufficientMemory",
                "kubelet has sufficient memory available",
            ),
            condition(
                "DiskPressure",
                "False",
                "KubeletHasNoDiskPressure",
                "kubelet has no disk pressure",
            ),
            condition(
                "PIDPressure",
                "False",
                "KubeletHasSufficientPID",
                "kubelet has sufficient PID available",
            ),
            condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "00000000-0000-4000-8000-000000000001",
            "containerRuntimeVersion": "containerd://2.1.4",
            "kernelVersion": "6.12.0-embedded",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.36.3",
            "machineID": "00000000000040008000000000000002",
            "operatingSystem": "linux",
            "osImage": "Embedded",
            "systemUUID": "00000000-0000-4000-8000-000000000003",
        },
    })
}
