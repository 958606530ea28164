//! Writes of clients.

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use super::history::{History, State};

pub(crate) const NAMESPACES: [&str; 3] = ["default", "kube-public", "kube-system"];
const NAMES: [&str; 4] = ["a", "b", "cb", "da"];
const APPS: [&str; 3] = ["web", "db", "mail"];
const NODES: [&str; 3] = ["n1", "n2", "n3"];
const LEASES: &str = "leases.coordination.k8s.io";
const FINALIZER: &str = "model.example.com/hold";

/// Clients that write at random.
pub(crate) struct Writers {
    stamp: u64,
}

impl Writers {
    pub(crate) fn new() -> Self {
        Self { stamp: 0 }
    }

    /// Writes to a random object, and describes the write if it succeeded.
    pub(crate) fn write(
        &mut self,
        rng: &mut fastrand::Rng,
        server: &ApiServer,
        history: &mut History,
    ) -> String {
        let mut resource = if rng.u8(..4) == 0 { "configmaps" } else { "pods" };
        let mut namespace = NAMESPACES[rng.usize(..NAMESPACES.len())].to_owned();
        let mut name = NAMES[rng.usize(..NAMES.len())].to_owned();
        if let Some(twin) = history.twin().filter(|twin| twin.resource != LEASES && rng.bool()) {
            // The same version of the same object, in another history.
            resource = twin.resource;
            let (of, named) = twin.key.split_once('/').expect("all that is written has both");
            (namespace, name) = (of.to_owned(), named.to_owned());
        }
        let (namespace, name) = (&*namespace, &*name);
        self.stamp += 1;
        let did = match server.get(resource, namespace, name) {
            None => {
                let object = self.object(rng, resource, namespace, name);
                server.create(object).expect("nothing has this name");
                "create"
            }
            Some(object) if is_ending(&object) => self.let_go(server, object),
            Some(object) => match rng.u8(..10) {
                0..3 => delete(server, resource, namespace, name),
                3..5 => {
                    // Two objects of the same name in one history.
                    delete(server, resource, namespace, name);
                    record(server, history, resource, namespace, name);
                    if server.get(resource, namespace, name).is_none() {
                        let object = self.object(rng, resource, namespace, name);
                        server.create(object).expect("nothing has this name");
                    }
                    "recreate"
                }
                5 if resource == "pods" => {
                    let mut object = object;
                    object["status"]["message"] = self.stamp.to_string().into();
                    server.update_status(object).expect("it is the newest");
                    "update the status of"
                }
                _ => {
                    let mut new = self.object(rng, resource, namespace, name);
                    for field in ["uid", "resourceVersion"] {
                        new["metadata"][field] = object["metadata"][field].clone();
                    }
                    server.update(new).expect("it is the newest");
                    "update"
                }
            },
        };
        record(server, history, resource, namespace, name);
        format!("{did} {resource} {namespace}/{name}")
    }

    /// Writes an object that no informer selects, to advance the version.
    pub(crate) fn nudge(&mut self, server: &ApiServer, history: &mut History) {
        self.stamp += 1;
        let name = format!("nudge-{}", self.stamp);
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": "default", "name": name},
        });
        server.create(lease).expect("nothing has this name");
        record(server, history, LEASES, "default", &name);
    }

    fn object(
        &self,
        rng: &mut fastrand::Rng,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Value {
        let mut object = json!({
            "apiVersion": "v1",
            "kind": if resource == "pods" { "Pod" } else { "ConfigMap" },
            "metadata": {
                "namespace": namespace, "name": name,
                "annotations": {"stamp": self.stamp.to_string(), "text": "größer als ☃ 🦀"},
            },
        });
        if rng.u8(..4) > 0 {
            object["metadata"]["labels"] = json!({"app": APPS[rng.usize(..APPS.len())]});
        }
        if rng.u8(..4) == 0 {
            let uid = format!("owner-{}", rng.u8(..3));
            object["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner", "uid": uid,
                "controller": true,
            }]);
        }
        if rng.u8(..12) == 0 {
            object["metadata"]["finalizers"] = json!([FINALIZER]);
        }
        if resource == "pods" {
            object["spec"] =
                json!({"containers": [{"name": "main", "image": "nginx", "resources": {}}]});
            if rng.u8(..4) > 0 {
                object["spec"]["nodeName"] = NODES[rng.usize(..NODES.len())].into();
            }
        } else {
            object["data"] = json!({"count": self.stamp.to_string()});
        }
        object
    }

    /// Removes the finalizer of an object that is being deleted.
    fn let_go(&self, server: &ApiServer, mut object: Value) -> &'static str {
        object["metadata"]["annotations"]["stamp"] = self.stamp.to_string().into();
        object["metadata"]["finalizers"] = json!([]);
        server.update(object).expect("it is the newest");
        "let go of"
    }
}

fn is_ending(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn delete(server: &ApiServer, resource: &str, namespace: &str, name: &str) -> &'static str {
    server.delete(resource, namespace, name).expect("it is there");
    "delete"
}

/// Records the effect of a write, if it had one.
fn record(
    server: &ApiServer,
    history: &mut History,
    resource: &'static str,
    namespace: &str,
    name: &str,
) {
    let (top, key) = (history.top(), format!("{namespace}/{name}"));
    let revision = server.store().revision();
    if revision == top + 1 {
        let after = server.get(resource, namespace, name);
        history.push(revision, resource, &key, after.map(State::new));
    } else if revision > top {
        // A delete can be two writes: the request, and the removal.
        let states = server.history(resource, namespace, name);
        for (version, after) in states.into_iter().filter(|(version, _)| *version > top) {
            history.push(version, resource, &key, after.map(State::new));
        }
    }
    assert_eq!(history.top(), revision, "every write is noted");
}
