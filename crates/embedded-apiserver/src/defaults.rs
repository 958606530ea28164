//! The few defaults on which clients depend: those that kubectl prints and controllers wait for.
//! Complete defaulting is not attempted.

use serde_json::{Map, Value, json};

use crate::kinds::Resource;
use crate::object::{Object, metadata_mut};
use crate::pods::qos;

/// Sets the defaults of a real server on creation.
pub(crate) fn on_create(resource: &Resource, object: &mut Object) {
    match (&*resource.group, &*resource.plural) {
        ("", "pods") => pod(object),
        ("", "namespaces") => namespace(object),
        ("", "services") => service(object),
        ("", "secrets") => secret(object),
        ("apps", "deployments" | "statefulsets" | "replicasets")
        | ("", "replicationcontrollers") => {
            default(member(object, "spec"), "replicas", json!(1));
        }
        ("storage.k8s.io", "storageclasses") => {
            default(object, "reclaimPolicy", json!("Delete"));
            default(object, "volumeBindingMode", json!("Immediate"));
        }
        ("scheduling.k8s.io", "priorityclasses") => {
            default(object, "preemptionPolicy", json!("PreemptLowerPriority"));
        }
        _ => {}
    }
    if let Some(status) = first_status(resource) {
        default(object, "status", status);
    }
}

/// Returns the initial status of a kind: the fields that are never omitted.
fn first_status(resource: &Resource) -> Option<Value> {
    Some(match (&*resource.group, &*resource.plural) {
        ("", "resourcequotas") | ("apps", "deployments") | ("batch", "jobs" | "cronjobs") => {
            json!({})
        }
        ("", "replicationcontrollers") | ("apps", "replicasets") => json!({"replicas": 0}),
        ("apps", "statefulsets") => json!({"replicas": 0, "availableReplicas": 0}),
        ("apps", "daemonsets") => json!({
            "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0,
            "numberReady": 0,
        }),
        ("", "persistentvolumes" | "persistentvolumeclaims") => json!({"phase": "Pending"}),
        ("networking.k8s.io", "ingresses") => json!({"loadBalancer": {}}),
        ("policy", "poddisruptionbudgets") => json!({
            "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
        }),
        ("autoscaling", "horizontalpodautoscalers") => {
            json!({"desiredReplicas": 0, "currentMetrics": null})
        }
        _ => return None,
    })
}

/// Sets the defaults of a real server on every write.
pub(crate) fn on_write(resource: &Resource, object: &mut Object) {
    match (&*resource.group, &*resource.plural) {
        ("", "secrets") => secret(object),
        ("", "namespaces") => name_label(object),
        _ => {}
    }
}

fn pod(object: &mut Object) {
    let spec = member(object, "spec");
    default(spec, "restartPolicy", json!("Always"));
    default(spec, "terminationGracePeriodSeconds", json!(30));
    default(spec, "dnsPolicy", json!("ClusterFirst"));
    default(spec, "schedulerName", json!("default-scheduler"));
    default(spec, "securityContext", json!({}));
    for containers in ["initContainers", "containers"] {
        for container in items(spec, containers) {
            ports(container);
        }
    }
    let class = qos::class(&object["spec"]);
    let status = member(object, "status");
    default(status, "phase", json!("Pending"));
    default(status, "qosClass", json!(class));
}

fn namespace(object: &mut Object) {
    name_label(object);
    default(member(object, "spec"), "finalizers", json!(["kubernetes"]));
    default(member(object, "status"), "phase", json!("Active"));
}

/// Sets the label with the namespace's name, which selectors depend on.
fn name_label(object: &mut Object) {
    let name = metadata_mut(object).get("name").cloned().unwrap_or_default();
    let labels = member(metadata_mut(object), "labels");
    labels.insert("kubernetes.io/metadata.name".to_owned(), name);
}

fn service(object: &mut Object) {
    let spec = member(object, "spec");
    default(spec, "type", json!("ClusterIP"));
    default(spec, "sessionAffinity", json!("None"));
    ports(spec);
    default(member(object, "status"), "loadBalancer", json!({}));
}

/// Moves `stringData`, which is write-only, to `data`.
fn secret(object: &mut Object) {
    default(object, "type", json!("Opaque"));
    let Some(Value::Object(texts)) = object.remove("stringData") else { return };
    let data = member(object, "data");
    for (name, text) in texts {
        let text = text.as_str().unwrap_or_default();
        let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
        data.insert(name, encoded.into());
    }
}

fn ports(object: &mut Object) {
    for port in items(object, "ports") {
        default(port, "protocol", json!("TCP"));
    }
}

/// Returns the objects in a member that is a list.
fn items<'a>(object: &'a mut Object, name: &str) -> impl Iterator<Item = &'a mut Object> {
    let list = object.get_mut(name).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn default(object: &mut Map<String, Value>, name: &str, value: Value) {
    let current = object.entry(name).or_insert(Value::Null);
    if current.is_null() {
        *current = value;
    }
}

/// Returns a member that is an object, and creates it if it is absent or `null`. A value of another
/// type is replaced: these members are objects in every kind that has defaults.
fn member<'a>(object: &'a mut Object, name: &str) -> &'a mut Object {
    let value = object.entry(name).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it was made one")
}
