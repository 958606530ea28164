//! The upgrade from client-side apply, which keeps its last configuration in an annotation.

use serde_json::Value;

use super::compare::{compare, field_set};
use super::managers::{Author, Managers};
use super::set::Set;
use super::update::{Applied, Conflict, Tracked};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The manager of `kubectl apply --server-side`, the only one whose objects are upgraded.
const KUBECTL: &str = "kubectl";

/// The bytes of all annotations of an object. The annotation is dropped if there are more.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

impl Tracked<'_> {
    /// Applies a configuration, and takes over the fields that kubectl has applied itself.
    pub(crate) fn apply_upgrading(
        &self,
        live: &Value,
        config: &Value,
        managers: &Managers,
        author: &Author,
        now: &str,
        force: bool,
    ) -> Result<Applied, Vec<Conflict>> {
        let outcome = self.apply(live, config, managers, author, now, force);
        if author.manager != KUBECTL {
            return outcome;
        }
        let outcome = match outcome {
            Err(conflicts) => match self.last_applied_fields(live) {
                Some(allowed) if conflicts.iter().all(|conflict| allowed.has(&conflict.path)) => {
                    self.apply(live, config, managers, author, now, true)
                }
                Some(allowed) => Err(conflicts
                    .into_iter()
                    .filter(|conflict| !allowed.has(&conflict.path))
                    .collect()),
                None => Err(conflicts),
            },
            applied => applied,
        };
        outcome.map(|applied| with_annotation(applied, live, config))
    }

    /// Returns the fields that the annotation has and that are unchanged since.
    fn last_applied_fields(&self, live: &Value) -> Option<Set> {
        let last: Value = serde_json::from_str(annotation(live)?).ok()?;
        if last.get("apiVersion")? != self.api_version
            || !super::validate::problems(self.kind, &last).is_empty()
        {
            return None;
        }
        let changes = compare(self.kind, last.as_object()?, live.as_object()?);
        let fields = field_set(self.kind, &last);
        Some(
            fields
                .difference(&changes.modified)
                .difference(&changes.added)
                .difference(&changes.removed),
        )
    }
}

fn annotation(object: &Value) -> Option<&str> {
    let text = object["metadata"]["annotations"][ANNOTATION].as_str()?;
    Some(text).filter(|text| !text.is_empty())
}

/// Keeps the annotation up to date, for clients that go on with client-side apply.
fn with_annotation(mut applied: Applied, live: &Value, config: &Value) -> Applied {
    if annotation(applied.object.as_ref().unwrap_or(live)).is_none() {
        return applied;
    }
    let mut config = config.clone();
    if let Some(annotations) =
        config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
    {
        annotations.remove(ANNOTATION);
        if annotations.is_empty()
            && let Some(metadata) = config["metadata"].as_object_mut()
        {
            metadata.remove("annotations");
        }
    }
    // As Go encodes objects, with a line feed.
    let text = format!("{config}\n");
    let mut object = applied.object.take().unwrap_or_else(|| live.clone());
    if let Some(annotations) =
        object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
    {
        annotations.insert(ANNOTATION.to_owned(), text.into());
        let bytes =
            annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len));
        if bytes.sum::<usize>() > ANNOTATIONS_BYTES_MAX {
            annotations.remove(ANNOTATION);
        }
    }
    applied.object = Some(object);
    applied
}
