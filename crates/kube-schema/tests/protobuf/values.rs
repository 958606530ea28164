//! Single values, read into types of a program's own as well.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube_schema::{Envelope, Error, from_slice, to_vec};
use serde::Deserialize;
use serde_json::{Value, json};

fn through(object: &Value) -> Value {
    from_slice(&to_vec(object).expect("it fits")).expect("it was just written")
}

#[test]
fn absent_and_zero_are_told_apart_where_json_does() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "generation": 0, "namespace": ""},
        "spec": {"containers": [], "activeDeadlineSeconds": 0, "hostNetwork": false, "terminationGracePeriodSeconds": null},
    });
    let wanted = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        // A pointer's zero is a value.
        "spec": {"activeDeadlineSeconds": 0},
        "status": {},
    });
    assert_eq!(through(&pod), wanted);
}

#[test]
fn times() {
    let event = |micro: &str| json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {}, "eventTime": micro});
    assert_eq!(
        through(&event("2024-01-02T03:04:05.123456Z"))["eventTime"],
        "2024-01-02T03:04:05.123456Z"
    );
    assert_eq!(
        through(&event("2024-01-02T05:04:05.1239999+02:00"))["eventTime"],
        "2024-01-02T03:04:05.123999Z"
    );
    // Required, so that JSON has it although it is not set.
    assert_eq!(through(&event("0001-01-01T00:00:00Z"))["eventTime"], Value::Null);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"deletionTimestamp": "2024-01-02T03:04:05.9Z"}});
    assert_eq!(through(&pod)["metadata"], json!({"deletionTimestamp": "2024-01-02T03:04:05Z"}));
}

#[test]
fn quantities_ports_and_bytes() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{
            "name": "c",
            "resources": {"limits": {"cpu": 2, "memory": "1Gi"}},
            "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 3},
            "readinessProbe": {"tcpSocket": {"port": 80}},
        }]},
    });
    let container = through(&pod)["spec"]["containers"][0].take();
    assert_eq!(container["resources"], json!({"limits": {"cpu": "2", "memory": "1Gi"}}));
    assert_eq!(
        container["livenessProbe"],
        json!({"httpGet": {"port": "http"}, "periodSeconds": 3})
    );
    assert_eq!(container["readinessProbe"], json!({"tcpSocket": {"port": 80}}));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "AP8=", "b": ""}});
    let bytes = to_vec(&secret).unwrap();
    assert_eq!(from_slice::<Value>(&bytes).unwrap()["data"], secret["data"]);
    let typed: Secret = from_slice(&bytes).unwrap();
    assert_eq!(typed.data.unwrap()["a"].0, [0, 0xff]);
}

#[test]
fn schemas_of_definitions() {
    let schema = json!({
        "type": "object",
        "default": {"a": 1},
        "enum": [1, "two", null],
        "maximum": 3,
        "minimum": 0.5,
        "items": [{"type": "string"}],
        "additionalProperties": false,
        "additionalItems": {"type": "integer"},
        "dependencies": {"a": ["b"], "c": {"type": "object"}},
        "$ref": "#/a",
        "x-kubernetes-preserve-unknown-fields": false,
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {},
        "spec": {"group": "g", "names": {"plural": "p", "kind": "K"}, "scope": "Cluster", "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
        ]},
    });
    assert_eq!(through(&definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"], schema);
}

#[test]
fn extensions_are_json_or_objects_in_protobuf() {
    let claim = json!({"apiVersion": "v1", "kind": "List", "items": [{"any": ["json"]}, 7, null]});
    assert_eq!(through(&claim)["items"], claim["items"]);
    let item =
        to_vec(&json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}})).unwrap();
    let (mut extension, mut list) = (Vec::new(), Vec::new());
    kube_schema::push_field(&mut extension, 1, &item);
    kube_schema::push_field(&mut list, 2, &extension);
    let body = Envelope { api_version: "v1", kind: "List", raw: &list }.to_vec();
    let list: Value = from_slice(&body).unwrap();
    let wanted =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"a": "b"}}]);
    assert_eq!(list["items"], wanted);
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Slim<'a> {
    #[serde(borrow)]
    metadata: Meta<'a>,
    spec: Spec,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Meta<'a> {
    name: &'a str,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Spec {
    restart_policy: RestartPolicy,
    #[serde(default)]
    tolerations: Vec<IgnoredToleration>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct IgnoredToleration {}

#[derive(Debug, Deserialize, PartialEq)]
struct Status {
    phase: String,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

#[derive(Debug, Deserialize, PartialEq)]
enum RestartPolicy {
    Always,
    Never,
}

#[test]
fn slim_structs_borrow_and_skip() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"b": "c"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "resources": {}}], "tolerations": [{"key": "k"}, {}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1"},
    });
    let bytes = to_vec(&pod).unwrap();
    let slim: Slim<'_> = from_slice(&bytes).unwrap();
    assert!(bytes.as_ptr_range().contains(&slim.metadata.name.as_ptr()), "borrowed");
    assert_eq!(slim.metadata.name, "a");
    assert_eq!(slim.spec.restart_policy, RestartPolicy::Never);
    assert_eq!(slim.spec.tolerations.len(), 2);
    let status = slim.status.unwrap();
    assert_eq!((&*status.phase, &status.rest["podIP"]), ("Running", &json!("10.0.0.1")));
    let typed: Pod = from_slice(&bytes).unwrap();
    assert_eq!(typed, serde_json::from_value(pod).unwrap());
}

#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key(String);

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Wrapped {
    api_version: Option<Key>,
    kind: Option<String>,
    data: Option<BTreeMap<Key, Option<Key>>>,
}

#[test]
fn keys_and_kinds_are_read_into_options_and_newtypes() {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
    let wrapped: Wrapped = from_slice(&to_vec(&map).unwrap()).unwrap();
    let key = |text: &str| Key(text.to_owned());
    let data = BTreeMap::from([(key("a"), Some(key("b")))]);
    let kind = Some("ConfigMap".to_owned());
    assert_eq!(wrapped, Wrapped { api_version: Some(key("v1")), kind, data: Some(data) });
}

#[test]
fn errors_of_the_type_are_passed_on() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"restartPolicy": "Sometimes"}});
    let error = from_slice::<Slim<'_>>(&to_vec(&pod).unwrap()).unwrap_err();
    assert!(error.to_string().contains("unknown variant `Sometimes`"), "{error}");
    assert!(!error.is_unknown_kind());
    let unknown = Envelope { api_version: "example.com/v1", kind: "Widget", raw: &[] }.to_vec();
    let error: Error = from_slice::<Value>(&unknown).unwrap_err();
    assert!(error.is_unknown_kind());
    assert_eq!(error.to_string(), r#"there is no protobuf for kind "Widget" in "example.com/v1""#);
}

#[test]
fn fields_that_no_table_has_are_left_out() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"brandNew": 1}});
    assert_eq!(through(&pod)["spec"], json!({}));
}
