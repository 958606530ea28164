//! The context of everything that acts in the demo: the server, a random number generator, and ways
//! to change objects.

use std::collections::VecDeque;
use std::time::Duration;

use embedded_apiserver::ApiServer;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The number of the demo's own events to retain.
const EVENTS_MAX: usize = 12;

/// The server and a random number generator.
#[derive(Debug)]
pub(super) struct World {
    pub(super) server: ApiServer,
    pub(super) rng: fastrand::Rng,
    /// The namespaces and names of the most recent events.
    events: VecDeque<(String, String)>,
}

impl World {
    pub(super) fn new(server: ApiServer, rng: fastrand::Rng) -> Self {
        Self { server, rng, events: VecDeque::new() }
    }

    /// Returns the current time in the format of objects.
    pub(super) fn now(&self) -> String {
        seconds(self.server.now())
    }

    /// Returns the time this long ago, in the same format.
    pub(super) fn ago(&self, age: Duration) -> String {
        seconds(self.server.now().saturating_sub(age).unwrap_or(Timestamp::UNIX_EPOCH))
    }

    /// Creates an object. Returns `None` if the server refuses it, for example because a user has
    /// deleted its namespace.
    pub(super) fn create(&self, object: Value) -> Option<Value> {
        self.create_aged(object, Duration::ZERO)
    }

    pub(super) fn create_aged(&self, object: Value, age: Duration) -> Option<Value> {
        self.server.create_aged(object, age).ok()
    }

    /// Replaces an object, except for its status. On a conflict the object stays as it is, and the
    /// next step examines it again.
    pub(super) fn update(&self, object: Value) -> Option<Value> {
        self.server.update(object).ok()
    }

    /// Replaces the status of an object, if it differs.
    pub(super) fn update_status(&self, object: &Value, status: Value) {
        if object["status"] != status {
            let mut object = object.clone();
            object["status"] = status;
            drop(self.server.update_status(object));
        }
    }

    pub(super) fn delete(&self, resource: &str, object: &Value) {
        let (namespace, name) = (namespace(object), name(object));
        // As controllers do: without a policy, a job would leave its pods behind.
        let options = json!({"propagationPolicy": "Background"});
        drop(self.server.delete_with(resource, namespace, name, &options));
    }

    /// Returns the objects that are not being deleted.
    pub(super) fn list(&self, resource: &str) -> Vec<Value> {
        let mut objects = self.server.list(resource, "");
        objects.retain(|object| object["metadata"]["deletionTimestamp"].is_null());
        objects
    }

    /// Returns a random one of these.
    pub(super) fn one<T>(&mut self, mut of: Vec<T>) -> Option<T> {
        (!of.is_empty()).then(|| of.swap_remove(self.rng.usize(..of.len())))
    }

    /// Writes an event about an object.
    pub(super) fn tell(&mut self, about: &Value, who: &str, reason: &str, message: &str) {
        let kind = if reason == "BackOff" { "Warning" } else { "Normal" };
        let (now, metadata) = (self.now(), &about["metadata"]);
        let number = self.rng.u64(..);
        let created = self.create(json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {
                "namespace": namespace(about),
                "name": format!("{}.{:016x}", name(about), number),
            },
            "involvedObject": {
                "apiVersion": about["apiVersion"], "kind": about["kind"], "uid": metadata["uid"],
                "namespace": metadata["namespace"], "name": metadata["name"],
            },
            "type": kind, "reason": reason, "message": message, "count": 1,
            "firstTimestamp": now, "lastTimestamp": now,
            "source": {"component": who}, "reportingComponent": who, "reportingInstance": "",
        }));
        let Some(event) = created else { return };
        self.events.push_back((namespace(&event).to_owned(), name(&event).to_owned()));
        if self.events.len() > EVENTS_MAX
            && let Some((namespace, name)) = self.events.pop_front()
        {
            drop(self.server.delete("events", &namespace, &name));
        }
    }
}

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(super) fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

/// Returns the uid of the object's owner.
pub(super) fn owner(object: &Value) -> Option<&str> {
    object["metadata"]["ownerReferences"][0]["uid"].as_str()
}

/// Returns the metadata of an object with this owner, without a name.
pub(super) fn owned_by(owner: &Value, labels: &Value) -> Value {
    json!({
        "namespace": owner["metadata"]["namespace"],
        "labels": labels,
        "ownerReferences": [{
            "apiVersion": owner["apiVersion"], "kind": owner["kind"],
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
            "controller": true, "blockOwnerDeletion": true,
        }],
    })
}

fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
