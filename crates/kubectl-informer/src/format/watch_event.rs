//! Events in the form of Kubernetes' watches, which `kubectl get --output-watch-events` prints.

use serde::Serialize;
use serde_json::{Value, json};

use super::ended;
use crate::discovery::Type;
use crate::record::{Happened, Record};

/// The annotation of the bookmark that follows the initial objects, as servers write it.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// An event of a watch.
#[derive(Serialize)]
struct WatchEvent<'a> {
    r#type: &'a str,
    object: &'a Value,
}

/// Formats an event as a line of JSON. The object is copied from the server's bytes as it is.
pub(super) fn json(record: &Record) -> Result<String, String> {
    let object = record.json()?;
    Ok(format!("{{\"type\":\"{}\",\"object\":{object}}}\n", name(record.happened)))
}

/// Formats an event as a document of YAML.
pub(super) fn yaml(record: &Record) -> Result<String, String> {
    document(name(record.happened), record.value()?)
}

/// Formats a bookmark: everything up to this version has been printed. `listed` marks the end of the
/// initial objects.
pub(super) fn bookmark(
    of: &Type,
    version: &str,
    listed: bool,
    as_json: bool,
) -> Result<String, String> {
    let mut object = json!({
        "apiVersion": of.api_version(),
        "kind": of.kind,
        "metadata": {"resourceVersion": version},
    });
    if listed {
        object["metadata"]["annotations"] = json!({INITIAL_EVENTS_END: "true"});
    }
    if as_json {
        let event = WatchEvent { r#type: "BOOKMARK", object: &object };
        let line = serde_json::to_string(&event).map_err(|error| error.to_string())?;
        return Ok(format!("{line}\n"));
    }
    document("BOOKMARK", &object)
}

fn document(r#type: &str, object: &Value) -> Result<String, String> {
    let yaml = serde_saphyr::to_string(&WatchEvent { r#type, object });
    Ok(format!(
        "---\n{}",
        ended(yaml.map_err(|error| format!("an event cannot be written: {error}"))?)
    ))
}

fn name(happened: Happened) -> &'static str {
    match happened {
        Happened::Add => "ADDED",
        Happened::Update | Happened::Resync => "MODIFIED",
        Happened::Delete => "DELETED",
    }
}
