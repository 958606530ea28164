//! Kinds with few columns: namespaces, configuration, and all kinds without their own printer.

use jiff::Timestamp;
use serde_json::Value;

use super::read::{age, name, size, text as string, text_or, time};
use super::{AGE, NAME, Printer, column, text};

pub(super) static NAMESPACE: Printer = Printer {
    columns: &[NAME, text("Status", "Whether the namespace is in use or being deleted."), AGE],
    cells: |object, now| {
        // The phase has a default, whatever the object's source.
        let phase = text_or(&object["status"]["phase"], "Active");
        vec![name(object).into(), phase.into(), age(object, now).into()]
    },
};

pub(super) static CONFIG_MAP: Printer = Printer {
    columns: &[NAME, text("Data", "The number of entries."), AGE],
    cells: |object, now| {
        let entries = size(&object["data"]) + size(&object["binaryData"]);
        vec![name(object).into(), entries.into(), age(object, now).into()]
    },
};

pub(super) static SECRET: Printer = Printer {
    columns: &[
        NAME,
        text("Type", "What the secret is for."),
        text("Data", "The number of entries."),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object).into(),
            text_or(&object["type"], "Opaque").into(),
            size(&object["data"]).into(),
            age(object, now).into(),
        ]
    },
};

pub(super) static LEASE: Printer = Printer {
    columns: &[NAME, text("Holder", "Who holds the lease."), AGE],
    cells: |object, now| {
        let holder = string(&object["spec"]["holderIdentity"]);
        vec![name(object).into(), holder.into(), age(object, now).into()]
    },
};

pub(super) static RUNTIME_CLASS: Printer = Printer {
    columns: &[NAME, text("Handler", "Who runs the pods of the class."), AGE],
    cells: |object, now| {
        vec![name(object).into(), string(&object["handler"]).into(), age(object, now).into()]
    },
};

/// Kinds for which a real server has no printer, and custom resource definitions. They show the
/// time of creation instead of the age.
pub(super) static CREATED: Printer = Printer {
    columns: &[NAME, column("Created At", "date", "When the object was created.", 0)],
    cells: |object, _| vec![name(object).into(), created_at(object).into()],
};

/// All other kinds.
pub(super) static OTHER: Printer = Printer {
    columns: &[NAME, AGE],
    cells: |object, now| vec![name(object).into(), age(object, now).into()],
};

fn created_at(object: &Value) -> String {
    time(&object["metadata"]["creationTimestamp"])
        .and_then(|created| Timestamp::from_second(created.as_second()).ok())
        .map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), |created| created.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{assert_columns, assert_rows};

    #[test]
    fn runtime_classes_show_their_handler() {
        let class = json!({"metadata": {"name": "a"}, "handler": "runsc"});
        let row = ("a handler", class, json!(["a", "runsc", "<unknown>"]));
        assert_rows("node.k8s.io", "runtimeclasses", [row]);
    }

    #[test]
    fn namespaces_show_their_phase() {
        assert_columns(
            "",
            "namespaces",
            &[("Name", "string", 0), ("Status", "string", 0), ("Age", "string", 0)],
        );
        assert_rows(
            "",
            "namespaces",
            [
                (
                    "in use",
                    json!({
                        "metadata": {"name": "default", "creationTimestamp": "2025-12-31T12:00:00Z"},
                        "status": {"phase": "Active"},
                    }),
                    json!(["default", "Active", "12h"]),
                ),
                (
                    "being deleted",
                    json!({"metadata": {"name": "old"}, "status": {"phase": "Terminating"}}),
                    json!(["old", "Terminating", "<unknown>"]),
                ),
                (
                    "no status",
                    json!({"metadata": {"name": "new"}}),
                    json!(["new", "Active", "<unknown>"]),
                ),
                ("not an object", json!([]), json!(["", "Active", "<unknown>"])),
            ],
        );
    }

    #[test]
    fn config_maps_count_text_and_binary_entries() {
        assert_columns(
            "",
            "configmaps",
            &[("Name", "string", 0), ("Data", "string", 0), ("Age", "string", 0)],
        );
        assert_rows(
            "",
            "configmaps",
            [
                (
                    "both",
                    json!({
                        "metadata": {"name": "one", "creationTimestamp": "2025-12-31T23:59:15Z"},
                        "data": {"a": "1", "b": "2"}, "binaryData": {"c": "AA=="},
                    }),
                    json!(["one", 3, "45s"]),
                ),
                ("none", json!({"metadata": {"name": "two"}}), json!(["two", 0, "<unknown>"])),
                (
                    "malformed",
                    json!({"data": [1], "metadata": {"name": 7}}),
                    json!(["", 0, "<unknown>"]),
                ),
            ],
        );
    }

    #[test]
    fn secrets_show_their_type_and_size() {
        let columns = [
            ("Name", "string", 0),
            ("Type", "string", 0),
            ("Data", "string", 0),
            ("Age", "string", 0),
        ];
        assert_columns("", "secrets", &columns);
        assert_rows(
            "",
            "secrets",
            [
                (
                    "typed",
                    json!({
                        "metadata": {"name": "tls", "creationTimestamp": "2025-12-01T00:00:00Z"},
                        "type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""},
                    }),
                    json!(["tls", "kubernetes.io/tls", 2, "31d"]),
                ),
                (
                    "untyped",
                    json!({"metadata": {"name": "s"}}),
                    json!(["s", "Opaque", 0, "<unknown>"]),
                ),
            ],
        );
    }

    #[test]
    fn leases_show_their_holder() {
        assert_columns(
            "coordination.k8s.io",
            "leases",
            &[("Name", "string", 0), ("Holder", "string", 0), ("Age", "string", 0)],
        );
        assert_rows(
            "coordination.k8s.io",
            "leases",
            [
                (
                    "held",
                    json!({
                        "metadata": {"name": "leader", "creationTimestamp": "2025-12-31T23:56:50Z"},
                        "spec": {"holderIdentity": "pod-1"},
                    }),
                    json!(["leader", "pod-1", "3m10s"]),
                ),
                (
                    "free",
                    json!({"metadata": {"name": "leader"}}),
                    json!(["leader", "", "<unknown>"]),
                ),
            ],
        );
    }

    #[test]
    fn definitions_show_when_they_were_created() {
        let group = "apiextensions.k8s.io";
        let plural = "customresourcedefinitions";
        assert_columns(group, plural, &[("Name", "string", 0), ("Created At", "date", 0)]);
        assert_rows(
            group,
            plural,
            [
                (
                    "created",
                    json!({"metadata": {"name": "a.b", "creationTimestamp": "2025-12-31T13:00:00.5+01:00"}}),
                    json!(["a.b", "2025-12-31T12:00:00Z"]),
                ),
                (
                    "not yet",
                    json!({"metadata": {"name": "a.b"}}),
                    json!(["a.b", "0001-01-01T00:00:00Z"]),
                ),
            ],
        );
    }

    #[test]
    fn other_kinds_show_name_and_age() {
        assert_columns("", "serviceaccounts", &[("Name", "string", 0), ("Age", "string", 0)]);
        assert_rows(
            "",
            "serviceaccounts",
            [(
                "a service account",
                json!({"metadata": {"name": "default", "creationTimestamp": "2023-12-22T00:00:00Z"}}),
                json!(["default", "2y11d"]),
            )],
        );
    }
}
