//! Random bodies: valid, nearly valid and invalid objects.

use fastrand::Rng;
use serde_json::{Value, json};

use super::grammar::{one_in, pick};

/// Returns a valid object.
pub(crate) fn valid(api_version: &str, kind: &str, name: &str) -> Value {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "labels": {"a": "b"}, "annotations": {"x": "y"}},
    });
    let parts = match kind {
        "Pod" => json!({
            "spec": {"nodeName": "a", "containers": [{"name": "c", "image": "i",
                "ports": [{"containerPort": 80}]}], "initContainers": [{"name": "i"}]},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions":
                [{"type": "Ready", "status": "True"}], "containerStatuses": [{"ready": true,
                "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"finishedAt": "2024-01-01T00:00:00Z"}}}]},
        }),
        "Deployment" => json!({"spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}},
            "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
        "Job" => json!({"spec": {"completions": 3, "parallelism": 1}, "status": {"succeeded": 1,
            "startTime": "2024-01-01T00:00:00Z", "completionTime": "2024-01-02T00:00:00Z"}}),
        "Service" => json!({"spec": {"ports": [{"port": 80, "nodePort": 1, "protocol": "TCP"}],
            "externalIPs": ["1.2.3.4"], "selector": {"a": "b"}}}),
        "Node" => json!({"spec": {"unschedulable": true, "taints": []}, "status": {"conditions":
            [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1"},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}}),
        "Secret" => json!({"stringData": {"a": "b"}, "data": {"c": "ZA=="}}),
        "ConfigMap" => json!({"data": {"a": "b"}, "list": [1, [2, {"deep": []}]]}),
        "Event" => json!({"involvedObject": {"kind": "Pod", "name": "a"}, "reason": "r",
            "message": "m", "count": 2, "lastTimestamp": "2024-01-01T00:00:00Z"}),
        "Lease" => json!({"spec": {"holderIdentity": "h", "renewTime": "2024-01-01T00:00:00.0Z"}}),
        "ClusterRole" => json!({"rules": [{"verbs": ["*"]}]}),
        "CustomResourceDefinition" => definition(),
        _ => json!({"spec": {"x": 1, "when": "2024-01-01T00:00:00Z"}, "status": {"y": 2}}),
    };
    let members = parts.as_object().cloned().unwrap_or_default();
    object.as_object_mut().expect("it is one").extend(members);
    object
}

fn definition() -> Value {
    json!({"spec": {
        "group": "e.io", "scope": "Cluster",
        "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object",
                "x-kubernetes-preserve-unknown-fields": true}},
            "selectableFields": [{"jsonPath": ".spec.x"}],
            "additionalPrinterColumns": [
                {"name": "X", "type": "integer", "jsonPath": ".spec.x"},
                {"name": "When", "type": "date", "jsonPath": ".spec.when"},
                {"name": "All", "type": "string", "jsonPath": ".spec[*]"}]}],
    }})
}

/// Replaces, removes or adds something in an object.
pub(crate) fn mutated(rng: &mut Rng, mut object: Value) -> Value {
    for _ in 0..rng.usize(1..4) {
        let mut places = Vec::new();
        pointers(&object, "", &mut places);
        let place = places[rng.usize(..places.len())].clone();
        let new = any(rng, 3);
        let remove = one_in(rng, 4);
        let target = object.pointer_mut(&place).expect("it was found there");
        match target {
            Value::Object(members) if one_in(rng, 3) => {
                members.insert(any_name(rng).to_owned(), new);
            }
            Value::Array(items) if one_in(rng, 3) => items.push(new),
            Value::Object(members) if remove => members.clear(),
            other if remove => *other = Value::Null,
            other => *other = new,
        }
    }
    object
}

fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                pointers(member, &format!("{at}/{name}"), out);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &format!("{at}/{index}"), out);
            }
        }
        _ => {}
    }
}

fn any_name(rng: &mut Rng) -> &'static str {
    let names = [
        "metadata",
        "name",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "resourceVersion",
        "uid",
        "generateName",
        "deletionTimestamp",
        "ownerReferences",
        "spec",
        "status",
        "phase",
        "data",
        "kind",
        "conditions",
        "containers",
        "generation",
        "creationTimestamp",
        "",
        "a/b",
        "~",
        "\u{0}",
        "\u{1F600}",
        "managedFields",
        "deletionGracePeriodSeconds",
        "replicas",
        "apiVersion",
        "items",
        "versions",
    ];
    pick(rng, &names)
}

/// Returns any JSON up to a depth.
pub(crate) fn any(rng: &mut Rng, depth: usize) -> Value {
    match rng.u8(..if depth == 0 { 7 } else { 10 }) {
        0 => Value::Null,
        1 => rng.bool().into(),
        2 => serde_json::from_str(number(rng)).unwrap_or_default(),
        3 => any_name(rng).into(),
        4 => "long ".repeat(rng.usize(..100)).into(),
        5 => {
            pick(rng, &["2024-01-01T00:00:00Z", "0", "-1", "a", "x/y", "True", "[{(", "\n"]).into()
        }
        6 => (0..rng.usize(..5)).map(|_| rng.char(..)).collect::<String>().into(),
        7 => (0..rng.usize(..4)).map(|_| any(rng, depth - 1)).collect(),
        _ => {
            let members =
                (0..rng.usize(..4)).map(|_| (any_name(rng).to_owned(), any(rng, depth - 1)));
            Value::Object(members.collect())
        }
    }
}

pub(crate) fn number(rng: &mut Rng) -> &'static str {
    let numbers = [
        "0",
        "-0",
        "-0.0",
        "1",
        "-1",
        "1.5",
        "1e5",
        "1e308",
        "1e309",
        "-1e400",
        "1e-400",
        "0.1e1",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "123456789012345678901234567890",
        "00",
        "1.",
        ".5",
        "+1",
        "NaN",
        "0x10",
    ];
    pick(rng, &numbers)
}

/// Returns nested brackets, up to and beyond a parser's limit.
pub(crate) fn deep_text(rng: &mut Rng) -> Vec<u8> {
    let depth = [10, 100, 117, 118, 119, 120, 125, 126, 127, 128, 1000, 100_000][rng.usize(..12)];
    let mut text = br#"{"metadata":{"name":"a"},"x":"#.to_vec();
    let (open, close): (&[u8], &[u8]) = if rng.bool() { (b"[", b"]") } else { (b"{\"a\":", b"}") };
    text.extend(open.repeat(depth));
    text.extend(b"1");
    text.extend(close.repeat(depth));
    text.push(b'}');
    text
}

pub(crate) fn merge_patch(rng: &mut Rng) -> Value {
    let mut patch = json!({"metadata": {"labels": {"a": any(rng, 0)}}});
    if one_in(rng, 3) {
        patch["metadata"][any_name(rng)] = any(rng, 2);
    }
    if rng.bool() {
        patch[any_name(rng)] = any(rng, 3);
    }
    patch
}

pub(crate) fn json_patch(rng: &mut Rng) -> Value {
    let paths = [
        "",
        "/",
        "/metadata",
        "/metadata/labels",
        "/metadata/labels/a",
        "/spec",
        "/data",
        "/data/a",
        "/list",
        "/list/-",
        "/list/0",
        "/list/1/1/deep",
        "/list/1/1/deep/-",
        "/list/99",
        "/list/-1",
        "/new",
        "/new/new",
        "/status",
        "/metadata/finalizers",
        "/metadata/resourceVersion",
        "/metadata/name",
        "~",
        "x",
        "/a~1b",
        "/a~2b",
        "/list/01",
    ];
    let operations = (0..rng.usize(1..12)).map(|_| {
        let op =
            pick(rng, &["add", "add", "copy", "copy", "move", "remove", "replace", "test", "x"]);
        let (path, from) = (pick(rng, &paths), pick(rng, &paths));
        json!({"op": op, "path": path, "from": from, "value": any(rng, 2)})
    });
    operations.collect()
}

pub(crate) fn delete_options(rng: &mut Rng) -> Value {
    let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
    let names = ["gracePeriodSeconds", "propagationPolicy", "preconditions", "dryRun", "x"];
    let value = match rng.u8(..4) {
        0 => any(rng, 2),
        1 => json!({"uid": "x", "resourceVersion": "1"}),
        2 => json!(["All"]),
        _ => json!(i64::MAX),
    };
    options[pick(rng, &names)] = value;
    options
}
