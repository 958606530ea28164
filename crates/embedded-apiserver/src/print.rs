//! The tables of `kubectl get`: the columns of a resource, and the cells of an object.
//!
//! `kubectl` requests a `Table` and prints it, so the server decides what a user sees. Objects are
//! read as they are stored: a field that is missing or of the wrong type is printed as if it were
//! not set.

mod access;
mod age;
mod columns;
mod core;
mod custom;
mod event;
mod job;
pub(crate) mod jsonpath;
mod network;
mod node;
mod pod;
mod policy;
pub(crate) mod read;
mod selector;
mod storage;
mod workload;

#[cfg(test)]
mod fixtures;

use std::borrow::Cow;

pub use columns::{Column, Columns, NoColumns};
use jiff::Timestamp;
use serde_json::Value;

pub(crate) use selector::requirements;

use crate::kinds::{Resource, Text};

/// A column, as in `Table.columnDefinitions`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct ColumnDefinition {
    pub(crate) name: Text,
    #[serde(rename = "type")]
    pub(crate) kind: Text,
    pub(crate) format: Text,
    pub(crate) description: Text,
    /// Columns of priority 0 are always shown, others only with `-o wide`.
    pub(crate) priority: i32,
}

/// The printer of a built-in resource.
struct Printer {
    columns: &'static [ColumnDefinition],
    cells: fn(&Value, Timestamp) -> Vec<Value>,
}

/// Returns the columns of a resource's table.
pub(crate) fn columns(resource: &Resource) -> Vec<ColumnDefinition> {
    if resource.custom {
        custom::columns(&resource.columns)
    } else {
        own_printer(resource).columns.to_vec()
    }
}

/// Returns the cells of an object, one for each of the `columns`.
pub(crate) fn cells(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    if resource.custom {
        custom::cells(&resource.columns, object, now)
    } else {
        (own_printer(resource).cells)(object, now)
    }
}

fn own_printer(resource: &Resource) -> &'static Printer {
    printer(&resource.group, &resource.plural)
}

fn printer(group: &str, plural: &str) -> &'static Printer {
    match (group, plural) {
        ("", "configmaps") => &core::CONFIG_MAP,
        ("", "endpoints") => &network::ENDPOINTS,
        ("", "events") => &event::CORE,
        ("", "namespaces") => &core::NAMESPACE,
        ("", "nodes") => &node::NODE,
        ("", "persistentvolumeclaims") => &storage::CLAIM,
        ("", "persistentvolumes") => &storage::VOLUME,
        ("", "pods") => &pod::POD,
        ("", "podtemplates") => &workload::POD_TEMPLATE,
        ("", "replicationcontrollers") => &workload::REPLICATION_CONTROLLER,
        ("", "resourcequotas") => &policy::QUOTA,
        ("", "secrets") => &core::SECRET,
        ("", "services") => &network::SERVICE,
        (
            "admissionregistration.k8s.io",
            "mutatingwebhookconfigurations" | "validatingwebhookconfigurations",
        ) => &policy::WEBHOOKS,
        ("apps", "daemonsets") => &workload::DAEMON_SET,
        ("apps", "deployments") => &workload::DEPLOYMENT,
        ("apps", "replicasets") => &workload::REPLICA_SET,
        ("apps", "statefulsets") => &workload::STATEFUL_SET,
        ("autoscaling", "horizontalpodautoscalers") => &policy::AUTOSCALER,
        ("autoscaling", "scales") => &policy::SCALE,
        ("batch", "cronjobs") => &job::CRON_JOB,
        ("batch", "jobs") => &job::JOB,
        ("coordination.k8s.io", "leases") => &core::LEASE,
        ("discovery.k8s.io", "endpointslices") => &network::ENDPOINT_SLICE,
        ("events.k8s.io", "events") => &event::EVENTS_K8S_IO,
        ("networking.k8s.io", "ingressclasses") => &network::INGRESS_CLASS,
        ("networking.k8s.io", "ingresses") => &network::INGRESS,
        ("networking.k8s.io", "networkpolicies") => &network::POLICY,
        ("node.k8s.io", "runtimeclasses") => &core::RUNTIME_CLASS,
        ("policy", "poddisruptionbudgets") => &policy::DISRUPTION_BUDGET,
        ("rbac.authorization.k8s.io", "clusterrolebindings" | "rolebindings") => &access::BINDING,
        ("scheduling.k8s.io", "priorityclasses") => &policy::PRIORITY_CLASS,
        ("storage.k8s.io", "csidrivers") => &storage::DRIVER,
        ("storage.k8s.io", "storageclasses") => &storage::STORAGE_CLASSES,
        ("", "limitranges")
        | ("apiextensions.k8s.io", "customresourcedefinitions")
        | ("rbac.authorization.k8s.io", "clusterroles" | "roles") => &core::CREATED,
        // This includes service accounts: a real server shows only these two columns as well.
        _ => &core::OTHER,
    }
}

const NAME: ColumnDefinition = name_column(0);

const AGE: ColumnDefinition = text("Age", "The time since the object was created.");

const CONTAINERS: ColumnDefinition = wide("Containers", "The names of the template's containers.");

const IMAGES: ColumnDefinition = wide("Images", "The images of the template's containers.");

const fn text(name: &'static str, description: &'static str) -> ColumnDefinition {
    column(name, "string", description, 0)
}

const fn integer(name: &'static str, description: &'static str) -> ColumnDefinition {
    column(name, "integer", description, 0)
}

/// Returns a text column that is shown only with `-o wide`.
const fn wide(name: &'static str, description: &'static str) -> ColumnDefinition {
    column(name, "string", description, 1)
}

/// Returns the column whose text, together with the kind, identifies the object.
const fn name_column(priority: i32) -> ColumnDefinition {
    ColumnDefinition {
        name: Cow::Borrowed("Name"),
        kind: Cow::Borrowed("string"),
        format: Cow::Borrowed("name"),
        description: Cow::Borrowed("The object's name, unique within its namespace."),
        priority,
    }
}

const fn column(
    name: &'static str,
    kind: &'static str,
    description: &'static str,
    priority: i32,
) -> ColumnDefinition {
    ColumnDefinition {
        name: Cow::Borrowed(name),
        kind: Cow::Borrowed(kind),
        format: Cow::Borrowed(""),
        description: Cow::Borrowed(description),
        priority,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::fixtures::{builtin, custom, now, printer_column};
    use super::*;

    /// Returns every resource with its own printer, one without, and a custom one.
    fn resources() -> Vec<Resource> {
        let known = [
            ("", "configmaps"),
            ("", "endpoints"),
            ("", "events"),
            ("", "namespaces"),
            ("", "nodes"),
            ("", "persistentvolumeclaims"),
            ("", "persistentvolumes"),
            ("", "pods"),
            ("", "replicationcontrollers"),
            ("", "secrets"),
            ("", "serviceaccounts"),
            ("", "services"),
            ("apiextensions.k8s.io", "customresourcedefinitions"),
            ("apps", "daemonsets"),
            ("apps", "deployments"),
            ("apps", "replicasets"),
            ("apps", "statefulsets"),
            ("batch", "cronjobs"),
            ("batch", "jobs"),
            ("coordination.k8s.io", "leases"),
            ("discovery.k8s.io", "endpointslices"),
            ("events.k8s.io", "events"),
            ("networking.k8s.io", "ingresses"),
            ("", "limitranges"),
            ("", "resourcequotas"),
            ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
            ("autoscaling", "horizontalpodautoscalers"),
            ("networking.k8s.io", "ingressclasses"),
            ("networking.k8s.io", "networkpolicies"),
            ("policy", "poddisruptionbudgets"),
            ("rbac.authorization.k8s.io", "rolebindings"),
            ("rbac.authorization.k8s.io", "roles"),
            ("scheduling.k8s.io", "priorityclasses"),
            ("storage.k8s.io", "storageclasses"),
        ];
        let mut resources: Vec<_> = known.iter().map(|(g, p)| builtin(g, p)).collect();
        resources.push(custom(Vec::new()));
        let kinds = ["string", "integer", "number", "boolean", "date"];
        resources
            .push(custom(kinds.iter().map(|kind| printer_column(kind, kind, ".spec.*")).collect()));
        resources.push(custom(vec![
            printer_column("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#),
            printer_column("Broken", "string", ".spec["),
        ]));
        resources
    }

    /// Generates field names that printers use, so that random objects get past the first lookup.
    fn key() -> impl Strategy<Value = String> {
        const KNOWN: &[&str] = &[
            "metadata",
            "spec",
            "status",
            "name",
            "labels",
            "creationTimestamp",
            "template",
            "containers",
            "initContainers",
            "containerStatuses",
            "initContainerStatuses",
            "state",
            "lastState",
            "terminated",
            "waiting",
            "running",
            "reason",
            "exitCode",
            "signal",
            "finishedAt",
            "restartCount",
            "started",
            "ready",
            "restartPolicy",
            "conditions",
            "type",
            "phase",
            "podIPs",
            "readinessGates",
            "conditionType",
            "deletionTimestamp",
            "replicas",
            "selector",
            "matchLabels",
            "matchExpressions",
            "key",
            "operator",
            "values",
            "ports",
            "port",
            "subsets",
            "addresses",
            "ip",
            "startTime",
            "completionTime",
            "series",
            "count",
            "eventTime",
            "loadBalancer",
            "ingress",
            "rules",
            "host",
            "endpoints",
            "accessModes",
            "metrics",
            "currentMetrics",
            "resource",
            "target",
            "averageUtilization",
            "hard",
            "used",
            "subjects",
            "roleRef",
            "parameters",
            "annotations",
        ];
        prop_oneof![9 => prop::sample::select(KNOWN).prop_map(str::to_owned), 1 => ".{0,4}"]
    }

    fn leaf() -> impl Strategy<Value = Value> {
        const TEXTS: &[&str] = &[
            "",
            "Ready",
            "True",
            "Always",
            "In",
            "Exists",
            "2025-12-31T23:59:00Z",
            "9999-12-31T23:59:59Z",
            "-009999-01-02T01:59:59Z",
            "LoadBalancer",
            "Completed",
            "é—…",
        ];
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            (-3..300_i32).prop_map(Value::from),
            prop::sample::select(TEXTS).prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ]
    }

    fn document() -> impl Strategy<Value = Value> {
        leaf().prop_recursive(7, 160, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key(), inner), 0..6)
                    .prop_map(|entries| Value::Object(Map::from_iter(entries))),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_at_all_prints_a_cell_for_every_column(document in document()) {
            for resource in resources() {
                let cells = cells(&resource, &document, now());
                prop_assert_eq!(cells.len(), columns(&resource).len(), "{}", &resource.plural);
            }
        }

        #[test]
        fn an_object_with_any_parts_prints_a_cell_for_every_column(
            metadata in document(), spec in document(), status in document(),
        ) {
            let object = json!({"metadata": metadata, "spec": spec, "status": status});
            for resource in resources() {
                let cells = cells(&resource, &object, now());
                prop_assert_eq!(cells.len(), columns(&resource).len(), "{}", &resource.plural);
            }
        }
    }

    #[test]
    fn a_column_serializes_with_every_field_of_a_table_column() {
        assert_eq!(
            serde_json::to_value(&columns(&builtin("", "pods"))[0]).unwrap(),
            json!({
                "name": "Name", "type": "string", "format": "name", "priority": 0,
                "description": "The object's name, unique within its namespace.",
            })
        );
    }
}
