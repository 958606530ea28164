//! The key of an object within its table.

use std::fmt;

/// Namespace and name. Ordered as lists are: by namespace, then by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Both in one text, with a NUL between, which is in no name: tables are searched by this, and
    /// each comparison costs one look into memory that is not at hand.
    text: Box<str>,
    name_at: u32,
}

impl Key {
    /// The namespace is empty for cluster-scoped objects.
    pub fn new(namespace: impl AsRef<str>, name: impl AsRef<str>) -> Self {
        let (namespace, name) = (namespace.as_ref(), name.as_ref());
        let text = [namespace, "\0", name].concat().into();
        Self { text, name_at: namespace.len() as u32 + 1 }
    }

    /// The namespace, empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        &self.text[..self.name_at as usize - 1]
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.text[self.name_at as usize..]
    }

    /// A key that is greater than any in a namespace, and less than any in a later one: the names of
    /// namespaces have no character that is less than this one.
    pub(crate) fn after_namespace(namespace: &str) -> Self {
        Self::new(format!("{namespace}\u{1}"), "")
    }

    /// The smallest key after this one: where the next page starts.
    pub(crate) fn successor(&self) -> Self {
        Self::new(self.namespace(), format!("{}\0", self.name()))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace() {
            "" => f.write_str(self.name()),
            namespace => write!(f, "{namespace}/{}", self.name()),
        }
    }
}
