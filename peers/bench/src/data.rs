//! Pods as clusters have them, for a server to keep. The same numbers always give the same pods.

use serde_json::{Value, json};

use crate::pods::{self, Part};

/// How many namespaces the pods are in: `team-00` and so on.
const NAMESPACES: usize = 20;

/// The namespace of the pod that is written last, when clients are to know that they have seen all. It is
/// the last in every list.
pub const SENTINEL_NAMESPACE: &str = "zz";

/// The name of that pod.
pub const SENTINEL: &str = "sentinel";

/// Who makes pods, and the first of their managers.
pub const CREATOR: &str = "kube-controller-manager";

/// Who writes their status, and the other.
pub const KUBELET: &str = "kubelet";

/// All namespaces that there must be.
pub fn namespaces() -> impl Iterator<Item = Value> {
    let names = (0..NAMESPACES).map(|number| format!("team-{number:02}"));
    let names = names.chain([SENTINEL_NAMESPACE.to_owned()]);
    names.map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
}

/// A pod, with its status as it is after some changes.
pub fn pod(number: usize, change: usize) -> Value {
    let mut text = String::with_capacity(16 << 10);
    pods::item(&mut text, number, change, Part::Whole);
    let mut pod: Value = serde_json::from_str(&text).expect("what was made is JSON");
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    if let Some(metadata) = pod["metadata"].as_object_mut() {
        // Those are the server's.
        for mine in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            metadata.remove(mine);
        }
        if let Some(Value::Array(managers)) = metadata.get_mut("managedFields") {
            managers.retain(|entry| entry["manager"] == CREATOR || entry["manager"] == KUBELET);
        }
    }
    pod
}

/// The pod that says that all was written.
pub fn sentinel(change: usize) -> Value {
    let mut pod = pod(0, change);
    pod["metadata"]["namespace"] = SENTINEL_NAMESPACE.into();
    pod["metadata"]["name"] = SENTINEL.into();
    // As every round writes something else, so that the server has something to tell.
    pod["status"]["message"] = format!("change {change}").into();
    pod
}

/// Where a pod is.
pub fn place(number: usize) -> (String, String) {
    (pods::namespace(number), pods::name(number))
}

/// The node of a pod.
pub fn node(number: usize) -> String {
    pods::node(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_have_the_size_and_the_parts_of_real_ones() {
        let pod = pod(4711, 1);
        let bytes = pod.to_string().len();
        assert!((10_000..12_000).contains(&bytes), "{bytes}");
        assert_eq!(pod["metadata"]["managedFields"].as_array().map(Vec::len), Some(2));
        assert_eq!(pod["spec"]["containers"].as_array().map(Vec::len), Some(2));
        assert_eq!(pod["status"]["containerStatuses"].as_array().map(Vec::len), Some(2));
        let (namespace, name) = place(4711);
        assert_eq!(pod["metadata"]["namespace"], *namespace);
        assert_eq!(pod["metadata"]["name"], *name);
        assert_eq!(pod["spec"]["nodeName"], *node(4711));
        assert!(namespaces().any(|made| made["metadata"]["name"] == *namespace));
    }

    #[test]
    fn the_same_numbers_give_the_same_pod_and_others_another() {
        assert_eq!(pod(5, 3), pod(5, 3));
        assert_ne!(pod(5, 3)["status"], pod(5, 4)["status"]);
        assert_ne!(sentinel(1)["status"], sentinel(2)["status"]);
        assert_ne!(place(5), place(6));
    }
}
