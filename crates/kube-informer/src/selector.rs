//! Label selectors, evaluated in memory.

use std::fmt;
use std::str::FromStr;

use kube_core::{Expression, Selector as KubeSelector};

use crate::{Error, Labels};

/// A label selector: parse it (`"app=web,tier in (a,b)".parse()`), or convert kube's own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selector(KubeSelector);

impl Selector {
    /// Matches everything.
    pub fn everything() -> Self {
        Self::default()
    }
    /// Matches objects whose label `key` is `value`.
    pub fn label(key: &str, value: &str) -> Self {
        Self(Expression::Equal(key.into(), value.into()).into())
    }
    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        let _ = labels;
        false
    }
}

impl FromStr for Selector {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Err(Error::invalid(format!("not yet: {text}")))
    }
}
impl From<KubeSelector> for Selector {
    fn from(selector: KubeSelector) -> Self {
        Self(selector)
    }
}
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
