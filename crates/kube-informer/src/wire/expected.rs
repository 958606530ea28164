//! Checks that received objects are of the requested kind.
//!
//! A list of another kind is rejected as a whole. An event of another kind is skipped, and has no effect on the
//! resource, because its name belongs to a different object.

use super::Call;
use super::payload::SaidTypes;
use super::status::excerpt;
use crate::error::Cause;
use crate::{Error, Result};

const PARTIAL: &str = "PartialObjectMetadata";
const META_GROUP: &str = "meta.k8s.io/";

/// How much of a kind is shown in errors.
const KIND_CHARS_MAX: usize = 100;

/// Checks an object of a watch. An object without a kind is assumed to be of the requested one.
pub(crate) fn check_object(said: &SaidTypes<'_>, call: &Call) -> Result<()> {
    let Some(kind) = said.kind.as_deref() else { return Ok(()) };
    let version = said.api_version.as_deref().unwrap_or_default();
    let target = &call.target;
    let right = match version.strip_prefix(META_GROUP) {
        Some(_) => kind == PARTIAL && target.metadata_only,
        None => {
            kind != "Status"
                && target.kind.as_deref().is_none_or(|expected| expected == kind)
                && (version.is_empty() || target.is_api_version(version))
        }
    };
    if right {
        return Ok(());
    }
    let text = format!("an event is {}", difference(kind, version, call));
    Err(Error::new(Cause::Unreadable { key: None }, text))
}

/// Checks a list. The author of a resource chooses the name of its list kind.
pub(crate) fn check_list(kind: &str, version: &str, call: &Call) -> Result<()> {
    let target = &call.target;
    let right = match (version.strip_prefix(META_GROUP), kind) {
        (Some(_), kind) => kind.strip_suffix("List") == Some(PARTIAL) && target.metadata_only,
        (None, "Status") => false,
        (None, "List") if version == "v1" => true,
        (None, _) => version.is_empty() || version == target.api_version(),
    };
    if right {
        return Ok(());
    }
    let text = format!("cannot {call}: the answer is {}", difference(kind, version, call));
    Err(Error::protocol(text))
}

fn difference(kind: &str, version: &str, call: &Call) -> String {
    let shown = |text| excerpt(text, KIND_CHARS_MAX).unwrap_or_else(|| "(none)".to_owned());
    let expected = call.target.kind.as_deref().unwrap_or(&call.target.plural);
    format!(
        "of kind {:?} of {:?}, expected {expected:?} of {:?}",
        shown(kind),
        shown(version),
        call.target.api_version(),
    )
}
