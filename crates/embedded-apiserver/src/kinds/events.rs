//! Conversion between `v1` and `events.k8s.io/v1` events, which share their stored objects.
//!
//! Events are stored as `v1`. The other form differs in the names of some fields.

use serde_json::{Map, Value};

pub(crate) const GROUP: &str = "events.k8s.io";

/// The table for both groups.
pub(crate) const TABLE: &str = "events";

/// The names in `events.k8s.io/v1` and in `v1`.
///
/// All other fields, such as `reason`, `type` and `series`, have the same name in both.
const RENAMED: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// The field selectors of `v1` events.
pub(super) const CORE_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

/// The field selectors of `events.k8s.io/v1` events.
pub(super) const NEW_FIELDS: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

/// Converts from `events.k8s.io/v1` to `v1`, including `apiVersion`.
pub(crate) fn to_core(event: &mut Map<String, Value>) {
    for (new, core) in RENAMED {
        rename(event, new, core);
    }
    event.insert("apiVersion".to_owned(), "v1".into());
}

/// Adds the fields that a `v1` event never omits.
pub(crate) fn complete(event: &mut Map<String, Value>) {
    for time in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        event.entry(time).or_insert(Value::Null);
    }
    for text in ["reportingComponent", "reportingInstance"] {
        event.entry(text).or_insert_with(|| "".into());
    }
    event.entry("source").or_insert_with(|| Map::new().into());
}

/// Converts from `v1` to `events.k8s.io/v1`, including `apiVersion`.
pub(crate) fn from_core(event: &mut Map<String, Value>) {
    for (new, core) in RENAMED {
        rename(event, core, new);
    }
    // `v1` never omits these; `events.k8s.io/v1` does.
    for text in ["reportingController", "reportingInstance"] {
        if event.get(text).and_then(Value::as_str) == Some("") {
            event.remove(text);
        }
    }
    event.insert("apiVersion".to_owned(), format!("{GROUP}/v1").into());
}

/// Renames a field. A field that is unknown in the source form is dropped, like every unknown
/// field: it must not turn into the field of that name in the other form.
fn rename(event: &mut Map<String, Value>, from: &str, to: &str) {
    event.remove(to);
    if let Some(value) = event.remove(from) {
        event.insert(to.to_owned(), value);
    }
}

/// Returns the path in a `v1` event for a field selector of `events.k8s.io/v1`.
pub(super) fn core_field(selector: &str) -> Option<&'static str> {
    let at = NEW_FIELDS.iter().position(|&field| field == selector)?;
    match selector {
        "reason" => Some("reason"),
        "reportingController" => Some("reportingComponent"),
        "type" => Some("type"),
        // The fields of the involved object are in the same order in both.
        _ => CORE_FIELDS.get(at).copied(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("an object") };
        map
    }

    fn new_event() -> Value {
        json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "a.1"},
            "regarding": {"kind": "Pod", "name": "a"},
            "note": "Pulled",
            "reason": "Pulled",
            "type": "Normal",
            "reportingController": "kubelet",
            "reportingInstance": "node-1",
            "deprecatedSource": {"component": "kubelet"},
            "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
            "deprecatedLastTimestamp": "2026-01-01T00:00:01Z",
            "deprecatedCount": 2,
            "series": {"count": 2},
        })
    }

    #[test]
    fn an_event_survives_the_round_trip_between_its_groups() {
        let mut event = map(new_event());
        to_core(&mut event);
        assert_eq!(event["apiVersion"], "v1");
        assert_eq!(event["involvedObject"]["name"], "a");
        assert_eq!(event["message"], "Pulled");
        assert_eq!(event["source"]["component"], "kubelet");
        assert_eq!(event["reportingComponent"], "kubelet");
        assert_eq!(event["count"], 2);
        assert_eq!(event["reportingInstance"], "node-1");
        assert!(!event.contains_key("note"));
        from_core(&mut event);
        assert_eq!(Value::Object(event), new_event());
    }

    #[test]
    fn a_field_of_the_wrong_group_does_not_take_the_place_of_the_right_one() {
        let mut event = map(json!({"note": "right", "message": "wrong", "count": 3}));
        to_core(&mut event);
        assert_eq!(Value::Object(event), json!({"apiVersion": "v1", "message": "right"}));
    }

    #[test]
    fn selectors_of_the_new_group_look_at_the_stored_fields() {
        assert_eq!(core_field("regarding.kind"), Some("involvedObject.kind"));
        assert_eq!(core_field("regarding.fieldPath"), Some("involvedObject.fieldPath"));
        assert_eq!(core_field("reportingController"), Some("reportingComponent"));
        assert_eq!(core_field("type"), Some("type"));
        assert_eq!(core_field("involvedObject.kind"), None);
        for field in NEW_FIELDS {
            assert!(CORE_FIELDS.contains(&core_field(field).expect("known")), "{field}");
        }
    }
}
