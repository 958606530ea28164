//! Events, in the core group and in `events.k8s.io`, which names some fields differently.

use jiff::Timestamp;
use serde_json::Value;

use super::age::since;
use super::read::{int, name, text as string, text_or, time};
use super::{ColumnDefinition, Printer, name_column, text, wide};

pub(super) static CORE: Printer =
    Printer { columns: COLUMNS, cells: |event, now| cells(event, &CORE_FIELDS, now) };

pub(super) static EVENTS_K8S_IO: Printer =
    Printer { columns: COLUMNS, cells: |event, now| cells(event, &EVENTS_K8S_IO_FIELDS, now) };

const COLUMNS: &[ColumnDefinition] = &[
    text("Last Seen", "When this last happened."),
    text("Type", "Normal or Warning."),
    text("Reason", "Why this happened, in a word."),
    text("Object", "What the event is about."),
    wide("Subobject", "The part of the object that the event is about."),
    wide("Source", "Who reported the event."),
    text("Message", "What happened."),
    wide("First Seen", "When this first happened."),
    wide("Count", "How often this happened."),
    name_column(1),
];

/// The names of the fields that differ between the groups.
struct Fields {
    object: &'static str,
    message: &'static str,
    reporter: &'static str,
    source: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
}

const CORE_FIELDS: Fields = Fields {
    object: "involvedObject",
    message: "message",
    reporter: "reportingComponent",
    source: "source",
    first: "firstTimestamp",
    last: "lastTimestamp",
    count: "count",
};

const EVENTS_K8S_IO_FIELDS: Fields = Fields {
    object: "regarding",
    message: "note",
    reporter: "reportingController",
    source: "deprecatedSource",
    first: "deprecatedFirstTimestamp",
    last: "deprecatedLastTimestamp",
    count: "deprecatedCount",
};

fn cells(event: &Value, fields: &Fields, now: Timestamp) -> Vec<Value> {
    let first = time(&event[fields.first]).or_else(|| time(&event["eventTime"]));
    let series = Some(&event["series"]).filter(|series| series.is_object());
    let (last, count) = match series {
        Some(series) => (time(&series["lastObservedTime"]), int(&series["count"])),
        None => (time(&event[fields.last]).or(first), int(&event[fields.count])),
    };
    // In the newer API, an event that happened once has no count.
    let count = if series.is_none() && count == 0 { 1 } else { count };
    let object = &event[fields.object];
    vec![
        since(last, now).into(),
        string(&event["type"]).into(),
        string(&event["reason"]).into(),
        target(object).into(),
        string(&object["fieldPath"]).into(),
        source(event, fields).into(),
        string(&event[fields.message]).trim().into(),
        since(first, now).into(),
        count.into(),
        name(event).into(),
    ]
}

/// Returns `pod/web-0`.
fn target(object: &Value) -> String {
    let kind = string(&object["kind"]).to_lowercase();
    match string(&object["name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

/// Returns `kubelet, node-1`.
fn source(event: &Value, fields: &Fields) -> String {
    let source = &event[fields.source];
    let component = text_or(&source["component"], string(&event[fields.reporter]));
    match text_or(&source["host"], string(&event["reportingInstance"])) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{assert_columns, assert_rows};

    #[test]
    fn events_of_both_groups_have_the_columns_of_kubectl() {
        for group in ["", "events.k8s.io"] {
            assert_columns(
                group,
                "events",
                &[
                    ("Last Seen", "string", 0),
                    ("Type", "string", 0),
                    ("Reason", "string", 0),
                    ("Object", "string", 0),
                    ("Subobject", "string", 1),
                    ("Source", "string", 1),
                    ("Message", "string", 0),
                    ("First Seen", "string", 1),
                    ("Count", "string", 1),
                    ("Name", "string", 1),
                ],
            );
        }
    }

    #[test]
    fn core_events_show_what_happened_to_what_and_when() {
        assert_rows(
            "",
            "events",
            [
                (
                    "an event that repeats",
                    json!({
                        "metadata": {"name": "e1"}, "type": "Warning", "reason": "BackOff",
                        "involvedObject": {
                            "kind": "Pod", "name": "web-0", "fieldPath": "spec.containers{app}",
                        },
                        "source": {"component": "kubelet", "host": "n1"},
                        "message": "  restarting\n", "count": 5,
                        "firstTimestamp": "2025-12-31T23:00:00Z", "lastTimestamp": "2025-12-31T23:59:30Z",
                    }),
                    json!([
                        "30s",
                        "Warning",
                        "BackOff",
                        "pod/web-0",
                        "spec.containers{app}",
                        "kubelet, n1",
                        "restarting",
                        "60m",
                        5,
                        "e1",
                    ]),
                ),
                (
                    "an event of the newer kind, in a series",
                    json!({
                        "metadata": {"name": "e2"}, "type": "Normal", "reason": "Scheduled",
                        "involvedObject": {"kind": "Pod"}, "message": "m",
                        "reportingComponent": "scheduler", "reportingInstance": "s-0",
                        "eventTime": "2025-12-31T23:50:00.000000Z",
                        "series": {"count": 3, "lastObservedTime": "2025-12-31T23:59:50.000000Z"},
                    }),
                    json!([
                        "10s",
                        "Normal",
                        "Scheduled",
                        "pod",
                        "",
                        "scheduler, s-0",
                        "m",
                        "10m",
                        3,
                        "e2"
                    ]),
                ),
                (
                    "a single event",
                    json!({
                        "metadata": {"name": "e3"}, "eventTime": "2025-12-31T23:59:00Z",
                        "firstTimestamp": null, "lastTimestamp": null, "reportingComponent": "me",
                    }),
                    json!(["60s", "", "", "", "", "me", "", "60s", 1, "e3"]),
                ),
                (
                    "nothing at all",
                    json!({}),
                    json!(["<unknown>", "", "", "", "", "", "", "<unknown>", 1, ""]),
                ),
            ],
        );
    }

    #[test]
    fn newer_events_have_other_names_for_their_fields() {
        assert_rows(
            "events.k8s.io",
            "events",
            [
                (
                    "with deprecated fields",
                    json!({
                        "metadata": {"name": "e1"}, "type": "Normal", "reason": "Pulled",
                        "regarding": {"kind": "Pod", "name": "web-0"}, "note": "pulled",
                        "deprecatedSource": {"component": "kubelet"}, "deprecatedCount": 2,
                        "deprecatedFirstTimestamp": "2025-12-31T22:00:00Z",
                        "deprecatedLastTimestamp": "2025-12-31T23:59:58Z",
                    }),
                    json!([
                        "2s",
                        "Normal",
                        "Pulled",
                        "pod/web-0",
                        "",
                        "kubelet",
                        "pulled",
                        "120m",
                        2,
                        "e1"
                    ]),
                ),
                (
                    "without",
                    json!({
                        "metadata": {"name": "e2"}, "eventTime": "2025-12-31T23:59:00Z",
                        "reportingController": "c", "reportingInstance": "c-1",
                        "message": "of the other group", "count": 9,
                    }),
                    json!(["60s", "", "", "", "", "c, c-1", "", "60s", 1, "e2"]),
                ),
            ],
        );
    }
}
