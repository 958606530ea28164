//! Whether what came is of the kind that was asked for.
//!
//! Of a list that is not, nothing can be trusted. An event that is not is left out, and says nothing of
//! the resource: its name would be that of something else.

use super::Call;
use super::payload::SaidTypes;
use super::status::excerpt;
use crate::error::Cause;
use crate::{Error, Result};

const PARTIAL: &str = "PartialObjectMetadata";
const META_GROUP: &str = "meta.k8s.io/";

/// How much of a kind is repeated.
const KIND_CHARS_MAX: usize = 100;

/// An object of a watch. One that does not say what it is, is taken for what was asked for.
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

/// A list. What its kind is called is up to whoever defined the resource.
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
