//! Realistic pods. The same numbers always yield the same pods.

use serde_json::{Value, json};

use crate::pods::{self, Part};

/// The number of namespaces: `team-00` and so on.
const NAMESPACES: usize = 20;

/// The namespace of the sentinel pod, which is written last so that clients know that they have seen everything. It
/// sorts last in every list.
pub const SENTINEL_NAMESPACE: &str = "zz";

/// The name of the sentinel pod.
pub const SENTINEL: &str = "sentinel";

/// The field manager that creates pods.
pub const CREATOR: &str = "kube-controller-manager";

/// The field manager that writes their status.
pub const KUBELET: &str = "kubelet";

/// Returns all namespaces that must exist.
pub fn namespaces() -> impl Iterator<Item = Value> {
    let names = (0..NAMESPACES).map(|number| format!("team-{number:02}"));
    let names = names.chain([SENTINEL_NAMESPACE.to_owned()]);
    names.map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
}

/// Returns a pod, with its status after a number of changes.
pub fn pod(number: usize, change: usize) -> Value {
    let mut text = String::with_capacity(16 << 10);
    pods::item(&mut text, number, change, Part::Whole);
    let mut pod: Value = serde_json::from_str(&text).expect("what was made is JSON");
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    if let Some(metadata) = pod["metadata"].as_object_mut() {
        // The server sets these.
        for mine in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            metadata.remove(mine);
        }
        if let Some(Value::Array(managers)) = metadata.get_mut("managedFields") {
            managers.retain(|entry| entry["manager"] == CREATOR || entry["manager"] == KUBELET);
        }
    }
    pod
}

/// Returns the sentinel pod.
pub fn sentinel(change: usize) -> Value {
    let mut pod = pod(0, change);
    pod["metadata"]["namespace"] = SENTINEL_NAMESPACE.into();
    pod["metadata"]["name"] = SENTINEL.into();
    // Each round writes a different value, so that the server sends an event.
    pod["status"]["message"] = format!("change {change}").into();
    pod
}

/// Returns a pod's namespace and name.
pub fn place(number: usize) -> (String, String) {
    (pods::namespace(number), pods::name(number))
}

/// Returns a pod's node.
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
