use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn pod() -> Value {
    json!({
        "metadata": {"name": "web", "generation": 3, "labels": {"app.kubernetes.io/name": "shop"}},
        "spec": {"nodeName": "node-1", "paused": false, "finalizers": [], "memory": "512Mi", "cpu": "250m"},
        "status": {
            "phase": "Running",
            "readyReplicas": 3,
            "load": 0.5,
            "message": "a, b && c",
            "containerStatuses": [{"name": "app", "ready": true}, {"name": "side", "ready": false}],
            "conditions": [
                {"type": "Ready", "status": "False"},
                {"type": "PodScheduled", "status": "True", "observedGeneration": 3},
                {"type": "Stale", "status": "True", "observedGeneration": 2},
            ],
        },
    })
}

fn holds(text: &str, what: Happened) -> bool {
    let until: Until = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    until.holds(what, &pod())
}

#[test]
fn what_is_waited_for() {
    for (text, expected) in [
        ("status.phase=Running", true),
        ("status.phase==Running", true),
        (" status.phase = Running ", true),
        (".status.phase=\"Running\"", true),
        ("{.status.phase}='Running'", true),
        ("'{.status.phase}'=Running", true),
        ("status.phase=Pending", false),
        ("status.phase!=Pending", true),
        ("status.phase!=Running", false),
        ("status.nothing!=Running", true),
        ("status.message='a, b && c'", true),
        ("metadata.labels.app.kubernetes.io/name=shop", true),
        // Compared as numbers.
        ("status.readyReplicas=3", true),
        ("status.readyReplicas=3.0", true),
        ("status.readyReplicas='3'", true),
        ("status.readyReplicas>=3", true),
        ("status.readyReplicas>3", false),
        ("status.readyReplicas<=2", false),
        ("status.readyReplicas < 10", true),
        ("status.load<1", true),
        ("spec.memory>=0.5Gi", true),
        ("spec.cpu<200m", false),
        ("status.phase>1", false),
        // A missing field is 0, false or empty.
        ("status.unavailableReplicas=0", true),
        ("status.unavailableReplicas<1", true),
        ("status.unavailableReplicas>0", false),
        ("spec.suspend=false", true),
        ("spec.suspend=true", false),
        ("status.reason=", true),
        ("status.reason=\"\"", true),
        ("status.reason=x", false),
        ("spec.finalizers=[]", true),
        ("spec.finalizers='[1]'", false),
        // Existence.
        ("spec.nodeName", true),
        ("!spec.nodeName", false),
        ("spec.paused", false),
        ("!spec.paused", true),
        ("spec.finalizers", false),
        ("! spec.finalizers", true),
        ("spec.nothing", false),
        ("status.conditions[Ready]", false),
        ("status.conditions[Ready].status", false),
        ("status.conditions[PodScheduled]", true),
        // All of several values.
        ("status.containerStatuses[*].ready=true", false),
        ("status.containerStatuses[*].ready", false),
        ("status.containerStatuses[0].ready=true", true),
        ("status.containerStatuses[*].name!=third", true),
        ("status.containerStatuses[*].name!=side", false),
        // As in `kubectl wait`.
        ("condition=Ready", false),
        ("condition=Ready=False", true),
        ("condition=ready=false", true),
        ("condition=PodScheduled", true),
        ("condition=Stale", false),
        ("condition=Nothing", false),
        ("condition=Nothing=False", false),
        ("jsonpath={.status.phase}=Running", true),
        ("jsonpath='{.status.phase}'=Running", true),
        ("jsonpath='{.status.conditions[?(@.type==\"Ready\")].status}'=False", true),
        ("jsonpath={.spec.paused}", true),
        ("jsonpath={.spec.nothing}", false),
        // Several conditions.
        ("status.phase=Running,spec.nodeName", true),
        ("status.phase=Running && !spec.nodeName", false),
        ("status.phase=Failed || status.phase=Running", true),
        ("status.phase=Failed || status.phase=Running, spec.paused", false),
        ("status.phase in (Succeeded, Running)", true),
        ("status.phase notin (Succeeded,'Running')", false),
        ("status.phase in (Succeeded),spec.nodeName", false),
    ] {
        assert_eq!(holds(text, Happened::Added), expected, "{text}");
        assert_eq!(holds(text, Happened::Updated), expected, "{text}");
    }
}

#[test]
fn what_happened_is_a_condition_too() {
    use Happened::{Added, Deleted, Updated};
    for (text, added, updated, deleted) in [
        ("created", true, false, false),
        ("create", true, false, false),
        ("deleted", false, false, true),
        ("delete ", false, false, true),
        ("created || deleted", true, false, true),
        ("deleted, status.phase=Running", false, false, true),
        ("deleted, status.phase=Failed", false, false, false),
        // A deleted object is in no state, whatever it was before.
        ("status.phase=Running", true, true, false),
        ("!spec.paused", true, true, false),
        ("condition=PodScheduled", true, true, false),
        // A field with that name.
        ("deleted=", true, true, false),
    ] {
        let found = [Added, Updated, Deleted].map(|what| holds(text, what));
        assert_eq!(found, [added, updated, deleted], "{text}");
    }
}

#[test]
fn a_mistake_is_shown_where_it_is() {
    for (text, place, problem) in [
        ("", 0, "a condition is missing"),
        ("status.phase=Running,", 21, "a condition is missing"),
        ("a=b,,c=d", 4, "a condition is missing"),
        ("=Running", 0, "a path is missing"),
        ("status..phase=Running", 7, "two dots"),
        ("status.phase=Running and x=y", 21, "expected a comma, && or ||"),
        ("status.phase=>3", 13, "'>' does not belong here"),
        ("status.phase===3", 14, "'=' does not belong here"),
        ("status.phase=~Run.*", 12, "regular expressions"),
        ("status.phase is Running", 13, "expected a comparison"),
        ("status.phase>Running", 13, "> wants a number, not \"Running\""),
        ("status.phase=\"Running", 13, "quote is not closed"),
        ("'status.phase=Running'", 13, "expected ', the end of the path"),
        ("condition=", 10, "name of a condition is missing"),
        ("!condition=Ready", 0, "! stands before a path only"),
        ("!deleted", 0, "! stands before a path only"),
        ("!status.phase=Running", 0, "without a comparison"),
        ("status.phase in (a b)", 19, "expected a comma, or the end of the values"),
        ("a(b)=c", 1, "expected a comparison"),
    ] {
        let error = text.parse::<Until>().expect_err(text).to_string();
        assert!(error.contains(problem), "{text}: {error}");
        assert_eq!(error.lines().nth(2).unwrap().len() - 5, place, "{text}: {error}");
    }
}

#[test]
fn it_is_shown_as_it_was_written() {
    let until: Until = " condition=Ready ".parse().unwrap();
    assert_eq!(until.to_string(), "condition=Ready");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(text in "(condition=|jsonpath=|deleted|in|[a-c.\\[\\]{}'\"*!=<>,&|() 0-9\\\\ö]){0,12}") {
        if let Ok(until) = text.parse::<Until>() {
            until.holds(Happened::Updated, &pod());
        }
    }

    #[test]
    fn a_value_in_quotes_is_that_value(value in "\\PC*", other in "\\PC*") {
        let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
        let until: Until = format!("a.b=\"{quoted}\"").parse().unwrap();
        let same = value == other;
        for (value, expected) in [(value, true), (other, same)] {
            let object = json!({"a": {"b": value}});
            prop_assert_eq!(until.holds(Happened::Added, &object), expected);
        }
    }
}
