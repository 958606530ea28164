//! Jobs and cron jobs.

use jiff::Timestamp;
use serde_json::Value;

use super::age::{between, since};
use super::read::{
    age, condition, flag, int, is_deleting, items, maybe_int, name, text as string, time,
};
use super::selector::selector;
use super::workload::containers;
use super::{
    AGE, CONTAINERS, ColumnDefinition, IMAGES, NAME, Printer, column, integer, text, wide,
};

const SELECTOR: ColumnDefinition = wide("Selector", "Which pods belong to a job.");

pub(super) static JOB: Printer = Printer {
    columns: &[
        NAME,
        text("Status", "How far the job is."),
        text("Completions", "How many pods succeeded, of how many that should."),
        text("Duration", "How long the job took, or has been running for."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: job,
};

fn job(job: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &job["spec"];
    let [containers, images] = containers(&spec["template"]);
    vec![
        name(job).into(),
        status(job).into(),
        completions(job).into(),
        duration(job, now).into(),
        age(job, now).into(),
        containers.into(),
        images.into(),
        selector(&spec["selector"]).into(),
    ]
}

fn status(job: &Value) -> &'static str {
    let has = |kind| condition(job, kind) == "True";
    if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if is_deleting(job) {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else if has("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

/// Formats the completions. A job without `completions` is complete when one pod is, however many
/// run in parallel.
fn completions(job: &Value) -> String {
    let spec = &job["spec"];
    let succeeded = int(&job["status"]["succeeded"]);
    match (maybe_int(&spec["completions"]), maybe_int(&spec["parallelism"])) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, Some(parallelism @ 2..)) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(job: &Value, now: Timestamp) -> String {
    match (time(&job["status"]["startTime"]), time(&job["status"]["completionTime"])) {
        (None, _) => String::new(),
        (Some(start), end) => between(start, end.unwrap_or(now)),
    }
}

pub(super) static CRON_JOB: Printer = Printer {
    columns: &[
        NAME,
        text("Schedule", "When jobs are made, in the notation of cron."),
        text("Timezone", "The time zone of the schedule."),
        column("Suspend", "boolean", "Whether no jobs are made for now.", 0),
        integer("Active", "How many jobs are running."),
        text("Last Schedule", "When a job was last made."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: cron_job,
};

fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let template = &spec["jobTemplate"]["spec"];
    let [containers, images] = containers(&template["template"]);
    let last_schedule = time(&status["lastScheduleTime"])
        .map_or_else(|| "<none>".to_owned(), |last| since(Some(last), now));
    vec![
        name(object).into(),
        string(&spec["schedule"]).into(),
        spec["timeZone"].as_str().unwrap_or("<none>").into(),
        // A string, despite the column's type.
        if flag(&spec["suspend"]) { "True" } else { "False" }.into(),
        items(&status["active"]).len().into(),
        last_schedule.into(),
        age(object, now).into(),
        containers.into(),
        images.into(),
        selector(&template["selector"]).into(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{assert_columns, assert_rows};
    use super::*;

    #[test]
    fn jobs_show_how_far_they_are() {
        assert_columns(
            "batch",
            "jobs",
            &[
                ("Name", "string", 0),
                ("Status", "string", 0),
                ("Completions", "string", 0),
                ("Duration", "string", 0),
                ("Age", "string", 0),
                ("Containers", "string", 1),
                ("Images", "string", 1),
                ("Selector", "string", 1),
            ],
        );
        let metadata = json!({"name": "j", "creationTimestamp": "2025-12-31T23:50:00Z"});
        let template = json!({"spec": {"containers": [{"name": "a", "image": "i"}]}});
        assert_rows(
            "batch",
            "jobs",
            [
                (
                    "complete",
                    json!({
                        "metadata": metadata,
                        "spec": {
                            "completions": 3, "parallelism": 2, "template": template,
                            "selector": {"matchLabels": {"job": "j"}},
                        },
                        "status": {
                            "succeeded": 3, "conditions": [{"type": "Complete", "status": "True"}],
                            "startTime": "2025-12-31T23:50:00Z", "completionTime": "2025-12-31T23:51:30Z",
                        },
                    }),
                    json!(["j", "Complete", "3/3", "90s", "10m", "a", "i", "job=j"]),
                ),
                (
                    "running",
                    json!({
                        "metadata": metadata, "spec": {"parallelism": 4, "template": template},
                        "status": {"startTime": "2025-12-31T23:55:00Z", "succeeded": 0},
                    }),
                    json!(["j", "Running", "0/1 of 4", "5m", "10m", "a", "i", "<none>"]),
                ),
                (
                    "bare",
                    json!({"metadata": metadata}),
                    json!(["j", "Running", "0/1", "", "10m", "", "", "<none>"]),
                ),
            ],
        );
    }

    #[test]
    fn the_condition_that_matters_most_is_the_status_of_a_job() {
        let all = ["Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"];
        for (index, expected) in all.iter().enumerate() {
            let conditions: Vec<_> =
                all[index..].iter().map(|kind| json!({"type": kind, "status": "True"})).collect();
            assert_eq!(status(&json!({"status": {"conditions": conditions}})), *expected);
        }
        let deleting = json!({
            "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"conditions": [{"type": "Suspended", "status": "True"}]},
        });
        assert_eq!(status(&deleting), "Terminating");
        let denied = json!({"status": {"conditions": [{"type": "Complete", "status": "False"}]}});
        assert_eq!(status(&denied), "Running");
    }

    #[test]
    fn cron_jobs_show_their_schedule() {
        assert_columns(
            "batch",
            "cronjobs",
            &[
                ("Name", "string", 0),
                ("Schedule", "string", 0),
                ("Timezone", "string", 0),
                ("Suspend", "boolean", 0),
                ("Active", "integer", 0),
                ("Last Schedule", "string", 0),
                ("Age", "string", 0),
                ("Containers", "string", 1),
                ("Images", "string", 1),
                ("Selector", "string", 1),
            ],
        );
        assert_rows(
            "batch",
            "cronjobs",
            [
                (
                    "suspended",
                    json!({
                        "metadata": {"name": "c", "creationTimestamp": "2025-12-31T00:00:00Z"},
                        "spec": {
                            "schedule": "0 * * * *", "timeZone": "Europe/Vienna", "suspend": true,
                            "jobTemplate": {"spec": {
                                "template": {"spec": {"containers": [{"name": "a", "image": "i"}]}},
                            }},
                        },
                        "status": {"active": [{}, {}], "lastScheduleTime": "2025-12-31T23:00:00Z"},
                    }),
                    json!([
                        "c",
                        "0 * * * *",
                        "Europe/Vienna",
                        "True",
                        2,
                        "60m",
                        "24h",
                        "a",
                        "i",
                        "<none>"
                    ]),
                ),
                (
                    "bare",
                    json!({}),
                    json!(["", "", "<none>", "False", 0, "<none>", "<unknown>", "", "", "<none>"]),
                ),
            ],
        );
    }
}
