//! Persistent volumes, claims, and storage classes.

use jiff::Timestamp;
use serde_json::Value;

use super::read::{age, default_name, flag, is_deleting, items, name, text as string, text_or};
use super::{AGE, ColumnDefinition, NAME, Printer, column, text, wide};

/// The annotation that preceded the field for the class. It still takes precedence.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// The annotations of the default storage class.
const DEFAULT_STORAGE_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

const CAPACITY: ColumnDefinition = text("Capacity", "The size of the volume.");
const ACCESS_MODES: ColumnDefinition = text("Access Modes", "Who may mount the volume, and how.");
const STORAGE_CLASS: ColumnDefinition = text("StorageClass", "The class of storage.");
const ATTRIBUTES_CLASS: ColumnDefinition =
    text("VolumeAttributesClass", "The class of attributes that may change.");
const VOLUME_MODE: ColumnDefinition = wide("VolumeMode", "Whether it is a filesystem or a device.");

pub(super) static CLAIM: Printer = Printer {
    columns: &[
        NAME,
        text("Status", "Whether the claim has a volume."),
        text("Volume", "The volume's name."),
        CAPACITY,
        ACCESS_MODES,
        STORAGE_CLASS,
        ATTRIBUTES_CLASS,
        AGE,
        VOLUME_MODE,
    ],
    cells: claim,
};

fn claim(claim: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&claim["spec"], &claim["status"]);
    let volume = string(&spec["volumeName"]);
    let (capacity, access_modes) = if volume.is_empty() {
        ("", String::new())
    } else {
        (capacity(&status["capacity"]), access_modes(&status["accessModes"]))
    };
    vec![
        name(claim).into(),
        phase(claim).into(),
        volume.into(),
        capacity.into(),
        access_modes.into(),
        class(claim).into(),
        attributes_class(spec).into(),
        age(claim, now).into(),
        text_or(&spec["volumeMode"], "Filesystem").into(),
    ]
}

pub(super) static VOLUME: Printer = Printer {
    columns: &[
        NAME,
        CAPACITY,
        ACCESS_MODES,
        text("Reclaim Policy", "What becomes of the volume once its claim is gone."),
        text("Status", "Whether the volume is claimed."),
        text("Claim", "The claim, with its namespace."),
        STORAGE_CLASS,
        ATTRIBUTES_CLASS,
        text("Reason", "Why the volume is in this state."),
        AGE,
        VOLUME_MODE,
    ],
    cells: volume,
};

pub(super) static STORAGE_CLASSES: Printer = Printer {
    columns: &[
        NAME,
        text("Provisioner", "Who makes the volumes."),
        text("ReclaimPolicy", "What becomes of a volume once its claim is gone."),
        text("VolumeBindingMode", "When a claim gets its volume."),
        text("AllowVolumeExpansion", "Whether volumes may grow."),
        AGE,
    ],
    cells: |object, now| {
        vec![
            default_name(object, &DEFAULT_STORAGE_CLASS).into(),
            string(&object["provisioner"]).into(),
            text_or(&object["reclaimPolicy"], "Delete").into(),
            text_or(&object["volumeBindingMode"], "Immediate").into(),
            flag(&object["allowVolumeExpansion"]).into(),
            age(object, now).into(),
        ]
    },
};

pub(super) static DRIVER: Printer = Printer {
    columns: &[
        NAME,
        column(
            "AttachRequired",
            "boolean",
            "Whether volumes are attached before they are mounted.",
            0,
        ),
        column("PodInfoOnMount", "boolean", "Whether the driver is told of the pod.", 0),
        column("StorageCapacity", "boolean", "Whether pods are scheduled by the capacity.", 0),
        text("TokenRequests", "Whose tokens the driver is given."),
        column("RequiresRepublish", "boolean", "Whether volumes are mounted again and again.", 0),
        text("Modes", "How long volumes live."),
        AGE,
    ],
    cells: driver,
};

fn driver(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &object["spec"];
    let audiences = items(&spec["tokenRequests"]).iter().map(|one| string(&one["audience"]));
    let audiences: Vec<_> = audiences.collect();
    let modes: Vec<_> = items(&spec["volumeLifecycleModes"]).iter().map(string).collect();
    let or = |list: Vec<&str>, none: &str| match &*list {
        [] => none.to_owned(),
        list => list.join(","),
    };
    vec![
        name(object).into(),
        spec["attachRequired"].as_bool().unwrap_or(true).into(),
        flag(&spec["podInfoOnMount"]).into(),
        flag(&spec["storageCapacity"]).into(),
        or(audiences, "<unset>").into(),
        flag(&spec["requiresRepublish"]).into(),
        or(modes, "Persistent").into(),
        age(object, now).into(),
    ]
}

fn volume(volume: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, claim) = (&volume["spec"], &volume["spec"]["claimRef"]);
    let claim = if claim.is_object() {
        format!("{}/{}", string(&claim["namespace"]), string(&claim["name"]))
    } else {
        String::new()
    };
    vec![
        name(volume).into(),
        capacity(&spec["capacity"]).into(),
        access_modes(&spec["accessModes"]).into(),
        text_or(&spec["persistentVolumeReclaimPolicy"], "Retain").into(),
        phase(volume).into(),
        claim.into(),
        class(volume).into(),
        attributes_class(spec).into(),
        string(&volume["status"]["reason"]).into(),
        age(volume, now).into(),
        text_or(&spec["volumeMode"], "Filesystem").into(),
    ]
}

fn phase(object: &Value) -> &str {
    if is_deleting(object) { "Terminating" } else { text_or(&object["status"]["phase"], "Pending") }
}

fn capacity(quantities: &Value) -> &str {
    text_or(&quantities["storage"], "0")
}

fn class(object: &Value) -> &str {
    let annotation = object["metadata"]["annotations"][CLASS_ANNOTATION].as_str();
    annotation.unwrap_or_else(|| string(&object["spec"]["storageClassName"]))
}

fn attributes_class(spec: &Value) -> &str {
    spec["volumeAttributesClassName"].as_str().unwrap_or("<unset>")
}

/// Returns `RWO,ROX`, always in this order.
fn access_modes(modes: &Value) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| items(modes).iter().any(|item| string(item) == mode);
    let modes: Vec<_> =
        known.into_iter().filter(|(mode, _)| has(mode)).map(|(_, short)| short).collect();
    modes.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{assert_columns, assert_rows};

    #[test]
    fn claims_show_their_volume_once_they_have_one() {
        let mut columns = [
            "Name",
            "Status",
            "Volume",
            "Capacity",
            "Access Modes",
            "StorageClass",
            "VolumeAttributesClass",
            "Age",
            "VolumeMode",
        ]
        .map(|name| (name, "string", 0));
        columns[8].2 = 1;
        assert_columns("", "persistentvolumeclaims", &columns);
        assert_rows(
            "",
            "persistentvolumeclaims",
            [
                (
                    "bound",
                    json!({
                        "metadata": {"name": "data", "creationTimestamp": "2025-12-29T21:00:00Z"},
                        "spec": {
                            "volumeName": "pv-1", "storageClassName": "fast", "volumeMode": "Block",
                            "volumeAttributesClassName": "gold",
                        },
                        "status": {
                            "phase": "Bound", "capacity": {"storage": "1Gi"},
                            "accessModes": ["ReadOnlyMany", "ReadWriteOnce", "ReadOnlyMany"],
                        },
                    }),
                    json!([
                        "data", "Bound", "pv-1", "1Gi", "RWO,ROX", "fast", "gold", "2d3h", "Block"
                    ]),
                ),
                (
                    "waiting",
                    json!({
                        "metadata": {
                            "name": "data",
                            "annotations": {"volume.beta.kubernetes.io/storage-class": "old"},
                        },
                        "spec": {
                            "storageClassName": "new", "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        },
                    }),
                    json!([
                        "data",
                        "Pending",
                        "",
                        "",
                        "",
                        "old",
                        "<unset>",
                        "<unknown>",
                        "Filesystem"
                    ]),
                ),
                (
                    "being deleted",
                    json!({
                        "metadata": {"name": "data", "deletionTimestamp": "2026-01-01T00:00:00Z"},
                        "spec": {"volumeName": "pv-1"}, "status": {"phase": "Bound"},
                    }),
                    json!([
                        "data",
                        "Terminating",
                        "pv-1",
                        "0",
                        "",
                        "",
                        "<unset>",
                        "<unknown>",
                        "Filesystem"
                    ]),
                ),
            ],
        );
    }

    #[test]
    fn volumes_show_their_claim() {
        let mut columns = [
            "Name",
            "Capacity",
            "Access Modes",
            "Reclaim Policy",
            "Status",
            "Claim",
            "StorageClass",
            "VolumeAttributesClass",
            "Reason",
            "Age",
            "VolumeMode",
        ]
        .map(|name| (name, "string", 0));
        columns[10].2 = 1;
        assert_columns("", "persistentvolumes", &columns);
        assert_rows(
            "",
            "persistentvolumes",
            [
                (
                    "bound",
                    json!({
                        "metadata": {"name": "pv-1", "creationTimestamp": "2025-12-31T23:59:00Z"},
                        "spec": {
                            "capacity": {"storage": "5Gi"}, "storageClassName": "fast",
                            "accessModes": ["ReadWriteMany", "ReadWriteOncePod"],
                            "persistentVolumeReclaimPolicy": "Delete",
                            "claimRef": {"namespace": "default", "name": "data"},
                        },
                        "status": {"phase": "Bound", "reason": "because"},
                    }),
                    json!([
                        "pv-1",
                        "5Gi",
                        "RWX,RWOP",
                        "Delete",
                        "Bound",
                        "default/data",
                        "fast",
                        "<unset>",
                        "because",
                        "60s",
                        "Filesystem",
                    ]),
                ),
                (
                    "bare",
                    json!({"metadata": {"name": "pv-2"}, "spec": {"claimRef": "x"}}),
                    json!([
                        "pv-2",
                        "0",
                        "",
                        "Retain",
                        "Pending",
                        "",
                        "",
                        "<unset>",
                        "",
                        "<unknown>",
                        "Filesystem",
                    ]),
                ),
            ],
        );
    }

    #[test]
    fn classes_show_what_they_do_with_volumes() {
        assert_rows(
            "storage.k8s.io",
            "storageclasses",
            [
                (
                    "the default one",
                    json!({
                        "metadata": {"name": "fast", "annotations": {
                            "storageclass.kubernetes.io/is-default-class": "true",
                        }},
                        "provisioner": "csi.example.com", "reclaimPolicy": "Retain",
                        "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": true,
                    }),
                    json!([
                        "fast (default)",
                        "csi.example.com",
                        "Retain",
                        "WaitForFirstConsumer",
                        true,
                        "<unknown>",
                    ]),
                ),
                (
                    "bare",
                    json!({"metadata": {"name": "a"}}),
                    json!(["a", "", "Delete", "Immediate", false, "<unknown>"]),
                ),
            ],
        );
    }

    #[test]
    fn drivers_show_what_they_ask_for() {
        let row = |spec: serde_json::Value| json!({"metadata": {"name": "d"}, "spec": spec});
        assert_rows(
            "storage.k8s.io",
            "csidrivers",
            [
                (
                    "defaults",
                    row(json!({})),
                    json!(["d", true, false, false, "<unset>", false, "Persistent", "<unknown>"]),
                ),
                (
                    "all of it",
                    row(json!({
                        "attachRequired": false, "podInfoOnMount": true, "storageCapacity": true,
                        "tokenRequests": [{"audience": "a"}, {"audience": "b"}],
                        "requiresRepublish": true, "volumeLifecycleModes": ["Ephemeral"],
                    })),
                    json!(["d", false, true, true, "a,b", true, "Ephemeral", "<unknown>"]),
                ),
            ],
        );
    }
}
