//! Paths to fields.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::{Error, Result};

/// A path to a field: `spec.nodeName`, `spec.containers[*].image`, or a JSON pointer (`/a/b~1c`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldPath(Arc<str>);

impl FieldPath {
    /// The JSON text of what is there; a list of everything where the path has a `[*]`.
    pub(crate) fn find<'a>(&self, json: &'a [u8]) -> Result<Option<Cow<'a, str>>> {
        let _ = json;
        Err(Error::invalid("not yet"))
    }
}

impl From<&str> for FieldPath {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
