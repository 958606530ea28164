//! Namespace and name, which identify an object in a cache.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use crate::Error;
use crate::shown::shown;

/// Number of characters of a key that `Display` prints. Names have up to 253, namespaces up to 63.
const KEY_CHARS_MAX: usize = 512;

/// The key of an object: `namespace/name`, or `name` if it is cluster-scoped. A single allocation,
/// cheap to clone.
///
/// The uid is not part of it: an object that is deleted and recreated under the same name has the
/// same key.
///
/// [`as_str`](Self::as_str) is exact. `Display` always fits into a log line, however a server names its
/// objects: control characters are escaped, and a name longer than Kubernetes allows is truncated.
///
/// ```
/// use kube_informer::ObjectKey;
///
/// let key: ObjectKey = "shop/web-0".parse()?;
/// assert_eq!((key.namespace(), key.name()), (Some("shop"), "web-0"));
/// assert_eq!(key.sibling("web-1").to_string(), "shop/web-1");
/// # Ok::<(), kube_informer::Error>(())
/// ```
#[derive(Clone)]
pub struct ObjectKey {
    text: Arc<str>,
    /// Offset of the slash; the length of the text if there is none.
    slash: u32,
}

impl ObjectKey {
    /// Creates the key of an object in a namespace. An empty namespace means cluster-scoped.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() {
            return Self::cluster(name);
        }
        let mut text = String::with_capacity(namespace.len() + 1 + name.len());
        text.push_str(namespace);
        text.push('/');
        text.push_str(name);
        Self { text: text.into(), slash: namespace.len() as u32 }
    }

    /// Creates the key of a cluster-scoped object.
    pub fn cluster(name: &str) -> Self {
        Self { text: name.into(), slash: name.len() as u32 }
    }

    /// Returns the key of another name in the same namespace, or cluster-scoped like this one.
    pub fn sibling(&self, name: &str) -> Self {
        self.namespace().map_or_else(|| Self::cluster(name), |ns| Self::namespaced(ns, name))
    }

    /// Returns the namespace, or `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.has_slash().then(|| &self.text[..self.slash as usize])
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        if self.has_slash() { &self.text[self.slash as usize + 1..] } else { &self.text }
    }

    /// Returns `namespace/name` or `name`, without an allocation.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn has_slash(&self) -> bool {
        (self.slash as usize) < self.text.len()
    }
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        self.slash == other.slash && self.text == other.text
    }
}
impl Eq for ObjectKey {}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.namespace(), self.name()).cmp(&(other.namespace(), other.name()))
    }
}

/// Hashes like [`KeyRef`], so that a map of keys can be queried with a borrowed key.
impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        KeyRef::from(self).hash(state);
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&shown(&self.text, KEY_CHARS_MAX))
    }
}
impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Parses `name` or `namespace/name`; more than one slash is an error.
impl FromStr for ObjectKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (namespace, name) = text.split_once('/').unwrap_or(("", text));
        if name.contains('/') {
            return Err(Error::invalid(format!(
                "{text:?} is not a key: it has more than one slash; expected NAMESPACE/NAME or NAME"
            )));
        }
        Ok(Self::namespaced(namespace, name))
    }
}

/// A borrowed key, so that lookups take `&key`, `("ns", "name")`, `"ns/name"` or `"name"`.
///
/// Any text converts: `&str`, `&String`, `&Cow<str>`, pairs of them, and references to such pairs. An empty
/// namespace means cluster-scoped, and so does `None`.
///
/// ```
/// use kube_informer::KeyRef;
///
/// let (namespace, name) = ("shop".to_owned(), "web-0".to_owned());
/// let key = KeyRef::from(("shop", "web-0"));
/// assert_eq!(KeyRef::from("shop/web-0"), key);
/// assert_eq!(KeyRef::from((&namespace, &name)), key);
/// assert_eq!(KeyRef::from((Some("shop"), "web-0")), key);
/// assert_eq!(KeyRef::from(&(namespace, name)), key);
/// // Cluster-scoped:
/// assert_eq!(KeyRef::from("node-1"), KeyRef::from((None, "node-1")));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KeyRef<'a> {
    /// The namespace, or `None` for cluster-scoped objects.
    pub namespace: Option<&'a str>,
    /// The name.
    pub name: &'a str,
}

impl<'a> From<&'a ObjectKey> for KeyRef<'a> {
    fn from(key: &'a ObjectKey) -> Self {
        Self { namespace: key.namespace(), name: key.name() }
    }
}
impl<'a, S, N> From<(&'a S, &'a N)> for KeyRef<'a>
where
    S: AsRef<str> + ?Sized,
    N: AsRef<str> + ?Sized,
{
    fn from((namespace, name): (&'a S, &'a N)) -> Self {
        (Some(namespace.as_ref()), name).into()
    }
}
impl<'a, S: AsRef<str>, N: AsRef<str>> From<&'a (S, N)> for KeyRef<'a> {
    fn from((namespace, name): &'a (S, N)) -> Self {
        (namespace, name).into()
    }
}
/// Takes the namespace as [`Object::namespace`](crate::Object::namespace) returns it.
impl<'a, N: AsRef<str> + ?Sized> From<(Option<&'a str>, &'a N)> for KeyRef<'a> {
    fn from((namespace, name): (Option<&'a str>, &'a N)) -> Self {
        Self { namespace: namespace.filter(|text| !text.is_empty()), name: name.as_ref() }
    }
}
impl<'a> From<&'a str> for KeyRef<'a> {
    fn from(text: &'a str) -> Self {
        text.split_once('/').map_or(Self { namespace: None, name: text }, Self::from)
    }
}
impl<'a> From<&'a String> for KeyRef<'a> {
    fn from(text: &'a String) -> Self {
        text.as_str().into()
    }
}
impl<'a> From<&'a Cow<'_, str>> for KeyRef<'a> {
    fn from(text: &'a Cow<'_, str>) -> Self {
        (**text).into()
    }
}
impl From<KeyRef<'_>> for ObjectKey {
    fn from(key: KeyRef<'_>) -> Self {
        Self::namespaced(key.namespace.unwrap_or_default(), key.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k1_a_key_is_namespace_and_name_or_the_name_alone() {
        assert_eq!(ObjectKey::namespaced("a", "b").to_string(), "a/b");
        assert_eq!(ObjectKey::namespaced("", "b").to_string(), "b");
        assert_eq!(ObjectKey::cluster("b").namespace(), None);
    }

    #[test]
    fn k3_a_key_has_at_most_one_slash() {
        let parse = |text: &str| text.parse::<ObjectKey>();
        assert_eq!(parse("a/b").unwrap(), ObjectKey::namespaced("a", "b"));
        assert_eq!(parse("b").unwrap(), ObjectKey::cluster("b"));
        // A leading slash is an empty namespace, which is not written back.
        assert_eq!(parse("/b").unwrap().to_string(), "b");
        let error = parse("a/b/c").unwrap_err().to_string();
        assert!(error.contains("\"a/b/c\"") && error.contains("NAMESPACE/NAME"), "{error}");
    }

    #[test]
    fn k2_lookups_take_keys_in_every_form() {
        fn found<'a>(key: impl Into<KeyRef<'a>>) -> ObjectKey {
            key.into().into()
        }
        let key = ObjectKey::namespaced("a", "b");
        let (a, b, text) = ("a".to_owned(), "b".to_owned(), "a/b".to_owned());
        for form in [
            found(&key),
            found(KeyRef::from(&key)),
            found("a/b"),
            found(&text),
            found(&Cow::Borrowed("a/b")),
            found(("a", "b")),
            found((&a, &b)),
            found((&a, "b")),
            found(("a", &b)),
            found((a.as_str(), &Cow::Borrowed("b"))),
            found((key.namespace(), "b")),
            found((Some("a"), &b)),
            found(&(a.clone(), b.clone())),
        ] {
            assert_eq!(form, key);
        }
        let (empty, node) = (String::new(), ObjectKey::cluster("b"));
        for form in [
            found(&node),
            found("b"),
            found(&b),
            found(("", "b")),
            found((&empty, &b)),
            found((None, "b")),
            found((Some(""), &b)),
            found((node.namespace(), node.name())),
        ] {
            assert_eq!(form, node);
        }
    }

    #[test]
    fn l4_an_empty_namespace_is_none_however_a_key_is_written() {
        assert_eq!(KeyRef::from(("", "b")), KeyRef::from("b"));
        assert_eq!(KeyRef::from("/b"), KeyRef::from(&ObjectKey::cluster("b")));
    }

    #[test]
    fn i20_display_escapes_control_characters_in_keys() {
        let key = ObjectKey::namespaced("a\n", "\u{1b}[2J\u{202e}");
        assert_eq!(key.as_str(), "a\n/\u{1b}[2J\u{202e}");
        assert_eq!(key.to_string(), r"a\n/\u{1b}[2J\u{202e}");
        assert_eq!(format!("{key:?}"), key.to_string());
        let long = ObjectKey::cluster(&"x".repeat(1 << 20));
        assert_eq!((long.to_string().chars().count(), long.as_str().len()), (513, 1 << 20));
        assert_eq!(format!("{:>8}", ObjectKey::namespaced("a", "b")), "     a/b");
    }

    #[test]
    fn a_name_with_an_empty_end_does_not_confuse_the_slash() {
        let key = ObjectKey::namespaced("a", "");
        assert_eq!((key.namespace(), key.name()), (Some("a"), ""));
        assert_eq!(ObjectKey::cluster("").name(), "");
    }
}
