//! The key of an object within its table.

use std::fmt;

/// A namespace and a name, ordered as in lists: by namespace, then by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Both in one string, separated by a NUL, which occurs in no name. Tables are searched by key,
    /// so each comparison costs only one cache miss.
    text: Box<str>,
    name_at: u32,
}

impl Key {
    /// Creates a key. The namespace is empty for cluster-scoped objects.
    pub fn new(namespace: impl AsRef<str>, name: impl AsRef<str>) -> Self {
        let (namespace, name) = (namespace.as_ref(), name.as_ref());
        let text = [namespace, "\0", name].concat().into();
        Self { text, name_at: namespace.len() as u32 + 1 }
    }

    /// Returns the namespace, which is empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        &self.text[..self.name_at as usize - 1]
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.text[self.name_at as usize..]
    }

    /// Returns a key that is greater than any in a namespace and less than any in a later one.
    /// Names of namespaces contain no smaller character than the one that is used.
    pub(crate) fn after_namespace(namespace: &str) -> Self {
        Self::new(format!("{namespace}\u{1}"), "")
    }

    /// Returns the smallest key after this one, where the next page starts.
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
