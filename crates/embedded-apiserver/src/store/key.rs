//! The key of an object within its table.

use std::fmt;

/// Namespace and name. Ordered as lists are: by namespace, then by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    namespace: Box<str>,
    name: Box<str>,
}

impl Key {
    /// The namespace is empty for cluster-scoped objects.
    pub fn new(namespace: impl Into<Box<str>>, name: impl Into<Box<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The namespace, empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The smallest key after this one: where the next page starts.
    pub(crate) fn successor(&self) -> Self {
        Self::new(&*self.namespace, format!("{}\0", self.name))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}
