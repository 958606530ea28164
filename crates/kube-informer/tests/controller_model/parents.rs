//! Writes of clients: to parents, and to children behind the controller's back.

use std::collections::BTreeMap;
use std::time::Duration;

use embedded_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::keeper::data;
use super::world::{NAMESPACE, controller};

const NAMES: [&str; 6] = ["ann", "ben", "cat", "dan", "eve", "fay"];
const SLOTS: [&str; 4] = ["a", "b", "c", "d"];
/// How soon a parent that asks for it is reconciled again.
pub(crate) const AGAIN: Duration = Duration::from_secs(6);

/// The wishes of a parent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wants {
    /// A number for each child.
    pub(crate) children: BTreeMap<String, u32>,
    /// Whether it wants something outside the cluster.
    pub(crate) outside: bool,
    /// Whether it wants to be reconciled periodically.
    pub(crate) again: bool,
}

impl Wants {
    pub(crate) fn of(parent: &ConfigMap) -> Self {
        let mut children = parent.data.clone().unwrap_or_default();
        let outside = children.remove("outside").is_some();
        let again = children.remove("again").is_some();
        let number = |(slot, text): (String, String)| (slot, text.parse().unwrap_or_default());
        Self { children: children.into_iter().map(number).collect(), outside, again }
    }

    fn random(rng: &mut fastrand::Rng, requeues: bool) -> Value {
        let mut data = json!({});
        for slot in SLOTS {
            if rng.bool() {
                data[slot] = rng.u32(..3).to_string().into();
            }
        }
        if rng.u8(..3) == 0 {
            data["outside"] = "yes".into();
        }
        if requeues && rng.u8(..3) == 0 {
            data["again"] = "yes".into();
        }
        data
    }
}

/// Creates, changes or deletes a parent, and returns a description.
pub(crate) fn write(rng: &mut fastrand::Rng, server: &ApiServer, requeues: bool) -> String {
    let name = NAMES[rng.usize(..NAMES.len())];
    let Some(mut parent) = server.get("configmaps", NAMESPACE, name) else {
        let data = Wants::random(rng, requeues);
        let text = format!("create parent {name}: {data}");
        server.create(parent_of(name, &data)).expect("nothing has this name");
        return text;
    };
    let is_ending = !parent["metadata"]["deletionTimestamp"].is_null();
    match rng.u8(..10) {
        0..3 => {
            server.delete("configmaps", NAMESPACE, name).expect("it is there");
            if rng.bool() && server.get("configmaps", NAMESPACE, name).is_none() {
                let data = Wants::random(rng, requeues);
                server.create(parent_of(name, &data)).expect("nothing has this name");
                return format!("delete parent {name} and create it anew: {data}");
            }
            format!("delete parent {name}")
        }
        _ if is_ending => format!("parent {name} is being deleted"),
        _ => {
            parent["data"] = Wants::random(rng, requeues);
            let text = format!("change parent {name}: {}", parent["data"]);
            server.update(parent).expect("it is the newest");
            text
        }
    }
}

fn parent_of(name: &str, data: &Value) -> Value {
    let metadata = json!({"namespace": NAMESPACE, "name": name});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
}

/// Deletes, changes or orphans a child, even one that no cache has seen yet.
pub(crate) fn meddle(rng: &mut fastrand::Rng, server: &ApiServer) -> String {
    let mut children = server.list("secrets", NAMESPACE);
    if children.is_empty() {
        return "nothing to meddle with".to_owned();
    }
    let mut child = children.swap_remove(rng.usize(..children.len()));
    let name = name_of(&child).to_owned();
    match rng.u8(..5) {
        0 | 1 => {
            server.delete("secrets", NAMESPACE, &name).expect("it is there");
            format!("meddle: delete {name}")
        }
        2 | 3 => {
            child["data"] = json!(data(7));
            server.update(child).expect("it is the newest");
            format!("meddle: change {name}")
        }
        _ => {
            child["metadata"]["ownerReferences"] = json!([]);
            server.update(child).expect("it is the newest");
            format!("meddle: orphan {name}")
        }
    }
}

/// Deletes the children whose owner is gone, as the garbage collector does.
pub(crate) fn collect_garbage(server: &ApiServer) {
    let parents = server.list("configmaps", NAMESPACE);
    for child in server.list("secrets", NAMESPACE) {
        let is_owner = |uid: &str| parents.iter().any(|parent| parent["metadata"]["uid"] == uid);
        if controller(&child).is_some_and(|uid| !is_owner(uid)) {
            server.delete("secrets", NAMESPACE, name_of(&child)).expect("it is there");
        }
    }
}

pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
