//! Autoscalers, disruption budgets, quotas, priorities and webhooks.

use jiff::Timestamp;
use serde_json::Value;

use super::read::{age, entries, flag, int, items, maybe_int, name, text as string};
use super::{AGE, NAME, Printer, column, integer, text};

/// The number of an autoscaler's metrics that are shown.
const METRICS_SHOWN: usize = 2;

pub(super) static AUTOSCALER: Printer = Printer {
    columns: &[
        NAME,
        text("Reference", "The kind and name of what is scaled."),
        text("Targets", "The metrics: what they are, and what they should be."),
        text("MinPods", "How many pods there are at least."),
        text("MaxPods", "How many pods there are at most."),
        text("Replicas", "How many pods there are."),
        AGE,
    ],
    cells: autoscaler,
};

fn autoscaler(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let scaled = &spec["scaleTargetRef"];
    let min = maybe_int(&spec["minReplicas"]);
    vec![
        name(object).into(),
        format!("{}/{}", string(&scaled["kind"]), string(&scaled["name"])).into(),
        metrics(items(&spec["metrics"]), items(&status["currentMetrics"])).into(),
        min.map_or_else(|| "<unset>".to_owned(), |min| min.to_string()).into(),
        int(&spec["maxReplicas"]).into(),
        int(&status["currentReplicas"]).into(),
        age(object, now).into(),
    ]
}

pub(super) static SCALE: Printer = Printer {
    columns: &[
        text("Name", "The name of the object that is scaled."),
        integer("Desired", "The number of replicas that there should be."),
        integer("Available", "The number of replicas that there are."),
        AGE,
    ],
    cells: scale,
};

fn scale(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object).into(),
        int(&object["spec"]["replicas"]).into(),
        int(&object["status"]["replicas"]).into(),
        age(object, now).into(),
    ]
}

fn metrics(specs: &[Value], statuses: &[Value]) -> String {
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    let status = |at: usize| statuses.get(at).unwrap_or(&Value::Null);
    let shown = specs.iter().enumerate().take(METRICS_SHOWN);
    let list: Vec<_> = shown.map(|(at, spec)| metric(spec, status(at))).collect();
    let list = list.join(", ");
    match specs.len().saturating_sub(METRICS_SHOWN) {
        0 => list,
        more => format!("{list} + {more} more..."),
    }
}

fn metric(spec: &Value, status: &Value) -> String {
    let (field, of_resource) = match string(&spec["type"]) {
        "External" => ("external", false),
        "Object" => ("object", false),
        "Pods" => ("pods", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let (target, current) = (&spec[field]["target"], &status[field]["current"]);
    let average = !target["averageValue"].is_null();
    let unknown = || "<unknown>".to_owned();
    if of_resource && !average {
        let percent = |value: &Value| maybe_int(value).map(|part| format!("{part}%"));
        let current = percent(&current["averageUtilization"]).unwrap_or_else(unknown);
        let target = percent(&target["averageUtilization"]).unwrap_or_else(|| "<auto>".to_owned());
        return format!("{}: {current}/{target}", string(&spec[field]["name"]));
    }
    let value = if average || field == "pods" { "averageValue" } else { "value" };
    let pair = format!(
        "{}/{}",
        quantity(&current[value]).unwrap_or_else(unknown),
        quantity(&target[value]).unwrap_or_else(|| "0".to_owned())
    );
    match (of_resource, average && field != "pods") {
        (true, _) => format!("{}: {pair}", string(&spec[field]["name"])),
        (false, true) => format!("{pair} (avg)"),
        (false, false) => pair,
    }
}

/// Returns a quantity, number or percentage as it was written.
fn quantity(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(super) static DISRUPTION_BUDGET: Printer = Printer {
    columns: &[
        NAME,
        text("Min Available", "How many pods must be available."),
        text("Max Unavailable", "How many pods may be unavailable."),
        integer("Allowed Disruptions", "How many pods may be disrupted now."),
        AGE,
    ],
    cells: |object, now| {
        let spec = &object["spec"];
        let limit = |value: &Value| quantity(value).unwrap_or_else(|| "N/A".to_owned());
        vec![
            name(object).into(),
            limit(&spec["minAvailable"]).into(),
            limit(&spec["maxUnavailable"]).into(),
            int(&object["status"]["disruptionsAllowed"]).into(),
            age(object, now).into(),
        ]
    },
};

pub(super) static QUOTA: Printer = Printer {
    columns: &[
        NAME,
        text("Request", "What may be asked for, and how much of it is."),
        text("Limit", "What may be used at most, and how much of it is promised."),
        AGE,
    ],
    cells: |object, now| {
        let (hard, used) = (&object["status"]["hard"], &object["status"]["used"]);
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        // The entries of a map are sorted by name.
        for (resource, hard) in entries(hard) {
            let used = quantity(&used[resource]).unwrap_or_else(|| "0".to_owned());
            let hard = quantity(hard).unwrap_or_else(|| "0".to_owned());
            let list = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
            list.push(format!("{resource}: {used}/{hard}"));
        }
        vec![
            name(object).into(),
            requests.join(", ").into(),
            limits.join(", ").into(),
            age(object, now).into(),
        ]
    },
};

pub(super) static PRIORITY_CLASS: Printer = Printer {
    columns: &[
        NAME,
        integer("Value", "The priority: the higher, the sooner."),
        column("Global-Default", "boolean", "Whether pods without a class have this one.", 0),
        AGE,
        text("PreemptionPolicy", "Whether others may be made to go for it."),
    ],
    cells: |object, now| {
        vec![
            name(object).into(),
            int(&object["value"]).into(),
            flag(&object["globalDefault"]).into(),
            age(object, now).into(),
            string(&object["preemptionPolicy"]).into(),
        ]
    },
};

/// Mutating and validating admission webhooks.
pub(super) static WEBHOOKS: Printer = Printer {
    columns: &[NAME, integer("Webhooks", "How many there are in it."), AGE],
    cells: |object, now| {
        let count = items(&object["webhooks"]).len();
        vec![name(object).into(), count.into(), age(object, now).into()]
    },
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{assert_columns, assert_rows};

    #[test]
    fn autoscalers_show_their_metrics() {
        let names = ["Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"];
        let group = ("autoscaling", "horizontalpodautoscalers");
        assert_columns(group.0, group.1, &names.map(|name| (name, "string", 0)));
        let row = |targets: &str| json!(["a", "Deployment/web", targets, "2", 9, 3, "<unknown>"]);
        let object = |specs: serde_json::Value, statuses: serde_json::Value| {
            json!({
                "metadata": {"name": "a"},
                "spec": {
                    "scaleTargetRef": {"kind": "Deployment", "name": "web"}, "metrics": specs,
                    "minReplicas": 2, "maxReplicas": 9,
                },
                "status": {"currentReplicas": 3, "currentMetrics": statuses},
            })
        };
        let cpu = json!({"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
        }});
        let used = json!({"type": "Resource", "resource": {
            "name": "cpu", "current": {"averageUtilization": 42, "averageValue": "210m"},
        }});
        let memory = json!({"type": "ContainerResource", "containerResource": {
            "name": "memory", "container": "web", "target": {"averageValue": "100Mi"},
        }});
        let pods = json!({"type": "Pods", "pods": {"target": {"averageValue": "1k"}}});
        let external =
            |field: &str| json!({"type": "External", "external": {"target": {field: "30"}}});
        let seen = json!({"external": {"current": {"value": "7", "averageValue": "8"}}});
        assert_rows(
            group.0,
            group.1,
            [
                ("utilization", object(json!([cpu]), json!([used])), row("cpu: 42%/80%")),
                ("not known yet", object(json!([cpu]), json!(null)), row("cpu: <unknown>/80%")),
                ("memory", object(json!([memory]), json!([])), row("memory: <unknown>/100Mi")),
                ("pods", object(json!([pods]), json!([])), row("<unknown>/1k")),
                ("external", object(json!([external("value")]), json!([seen])), row("7/30")),
                (
                    "external by pod",
                    object(json!([external("averageValue")]), json!([seen])),
                    row("8/30 (avg)"),
                ),
                (
                    "more than two",
                    object(json!([cpu, pods, cpu]), json!([used])),
                    row("cpu: 42%/80%, <unknown>/1k + 1 more..."),
                ),
                ("strange", object(json!([{}]), json!([])), row("<unknown type>")),
                (
                    "bare",
                    json!({"metadata": {"name": "a"}}),
                    json!(["a", "/", "<none>", "<unset>", 0, 0, "<unknown>"]),
                ),
            ],
        );
    }

    #[test]
    fn budgets_show_what_is_limited() {
        assert_rows(
            "policy",
            "poddisruptionbudgets",
            [
                (
                    "at least",
                    json!({
                        "metadata": {"name": "a"}, "spec": {"minAvailable": 2},
                        "status": {"disruptionsAllowed": 1},
                    }),
                    json!(["a", "2", "N/A", 1, "<unknown>"]),
                ),
                (
                    "at most",
                    json!({"metadata": {"name": "a"}, "spec": {"maxUnavailable": "25%"}}),
                    json!(["a", "N/A", "25%", 0, "<unknown>"]),
                ),
            ],
        );
    }

    #[test]
    fn quotas_show_what_is_used() {
        assert_rows(
            "",
            "resourcequotas",
            [
                (
                    "both",
                    json!({"metadata": {"name": "a"}, "status": {
                        "hard": {"requests.cpu": "4", "limits.cpu": "8", "pods": "10"},
                        "used": {"requests.cpu": "500m", "pods": 3},
                    }}),
                    json!([
                        "a",
                        "pods: 3/10, requests.cpu: 500m/4",
                        "limits.cpu: 0/8",
                        "<unknown>"
                    ]),
                ),
                ("bare", json!({}), json!(["", "", "", "<unknown>"])),
            ],
        );
    }

    #[test]
    fn priorities_and_webhooks() {
        assert_rows(
            "scheduling.k8s.io",
            "priorityclasses",
            [(
                "high",
                json!({"metadata": {"name": "a"}, "value": 1000, "preemptionPolicy": "Never"}),
                json!(["a", 1000, false, "<unknown>", "Never"]),
            )],
        );
        for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
            assert_rows(
                "admissionregistration.k8s.io",
                plural,
                [("two", json!({"webhooks": [{}, {}]}), json!(["", 2, "<unknown>"]))],
            );
        }
    }
}
