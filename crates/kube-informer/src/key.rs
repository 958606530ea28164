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

/// The longest text that a key stores inline, which makes a key 48 bytes. Most namespaces and names fit.
const INLINE_BYTES_MAX: usize = 45;

/// The key of an object: `namespace/name`, or `name` if it is cluster-scoped. Cheap to clone: a key of up to
/// 45 bytes needs no allocation, and clones of a longer one share theirs.
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
pub struct ObjectKey(Text);

/// The text of a key, and the offset of its slash: the length of the text if there is none.
#[derive(Clone)]
enum Text {
    Inline { len: u8, slash: u8, bytes: [u8; INLINE_BYTES_MAX] },
    Shared { text: Arc<str>, slash: u32 },
}

impl ObjectKey {
    /// Creates the key of an object in a namespace. An empty namespace means cluster-scoped.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() {
            return Self::cluster(name);
        }
        Self::of(&[namespace, "/", name], namespace.len())
    }

    /// Creates the key of a cluster-scoped object.
    pub fn cluster(name: &str) -> Self {
        Self::of(&[name], name.len())
    }

    fn of(parts: &[&str], slash: usize) -> Self {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if len > INLINE_BYTES_MAX {
            return Self(Text::Shared { text: parts.concat().into(), slash: slash as u32 });
        }
        let (mut bytes, mut at) = ([0; INLINE_BYTES_MAX], 0);
        for part in parts {
            bytes[at..at + part.len()].copy_from_slice(part.as_bytes());
            at += part.len();
        }
        Self(Text::Inline { len: len as u8, slash: slash as u8, bytes })
    }

    /// Returns the key of another name in the same namespace, or cluster-scoped like this one.
    pub fn sibling(&self, name: &str) -> Self {
        self.namespace().map_or_else(|| Self::cluster(name), |ns| Self::namespaced(ns, name))
    }

    /// Returns the namespace, or `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        let (text, slash) = self.bytes();
        (slash < text.len()).then(|| whole(&text[..slash]))
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        let (text, slash) = self.bytes();
        whole(text.get(slash + 1..).unwrap_or(text))
    }

    /// Returns `namespace/name` or `name`, without an allocation.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Inline { .. } => whole(self.bytes().0),
            Text::Shared { text, .. } => text,
        }
    }

    /// The text, and where its slash is. Comparing bytes needs no look at whether they are UTF-8.
    fn bytes(&self) -> (&[u8], usize) {
        match &self.0 {
            Text::Inline { len, slash, bytes } => {
                (&bytes[..usize::from(*len)], usize::from(*slash))
            }
            Text::Shared { text, slash } => (text.as_bytes(), *slash as usize),
        }
    }

    /// Bytes that are kept outside of the key.
    pub(crate) fn allocated(&self) -> usize {
        match &self.0 {
            Text::Inline { .. } => 0,
            Text::Shared { text, .. } => text.len(),
        }
    }
}

/// A text of a key: it came from a `str`, and has been cut at a slash or not at all.
fn whole(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}
impl Eq for ObjectKey {}

impl ObjectKey {
    /// Returns whether this is the same key. Not `PartialEq`, which would make comparisons of keys that are parsed
    /// ambiguous in programs.
    pub(crate) fn is(&self, other: KeyRef<'_>) -> bool {
        let (text, slash) = self.bytes();
        let (namespace, name) = (other.namespace.map(str::as_bytes), other.name.as_bytes());
        match text.get(slash + 1..) {
            Some(ours) => namespace == Some(&text[..slash]) && name == ours,
            None => namespace.is_none() && name == text,
        }
    }
}

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
        let (text, slash) = self.bytes();
        match text.get(slash + 1..) {
            Some(name) => hash_parts(&text[..slash], name, state),
            None => hash_parts(&[], text, state),
        }
    }
}

fn hash_parts(namespace: &[u8], name: &[u8], state: &mut impl Hasher) {
    state.write(namespace);
    // No text contains this byte, so that parts of different lengths never run together, as for `str`.
    state.write_u8(0xff);
    state.write(name);
    state.write_u8(0xff);
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&shown(self.as_str(), KEY_CHARS_MAX))
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyRef<'a> {
    /// The namespace, or `None` for cluster-scoped objects.
    pub namespace: Option<&'a str>,
    /// The name.
    pub name: &'a str,
}

impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_parts(self.namespace.unwrap_or_default().as_bytes(), self.name.as_bytes(), state);
    }
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
    use std::hash::BuildHasher;

    use hashbrown::DefaultHashBuilder;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Short keys and long ones, and those in between.
        #[test]
        fn a_key_is_what_it_was_made_of(namespace in "\\PC{0,30}", name in "\\PC{0,40}", other in "\\PC{0,3}") {
            let key = ObjectKey::namespaced(&namespace, &name);
            let given = Some(&*namespace).filter(|namespace| !namespace.is_empty());
            prop_assert_eq!((key.namespace(), key.name()), (given, &*name));
            let text = given.map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"));
            prop_assert_eq!(key.as_str(), &text);

            let hasher = DefaultHashBuilder::default();
            let borrowed = KeyRef { namespace: given, name: &name };
            prop_assert!(key.is(borrowed) && KeyRef::from(&key) == borrowed);
            prop_assert_eq!(hasher.hash_one(&key), hasher.hash_one(borrowed));
            for different in [
                ObjectKey::namespaced(&namespace, &format!("{name}{other}")),
                ObjectKey::namespaced(&format!("{namespace}{other}"), &name),
                ObjectKey::cluster(&text),
            ] {
                let same = (different.namespace(), different.name()) == (given, &name);
                prop_assert_eq!(different == key, same);
                prop_assert_eq!(different.is(borrowed), same);
            }
        }
    }

    #[test]
    fn most_keys_need_no_memory_of_their_own() {
        assert!(size_of::<ObjectKey>() <= 48);
        assert_eq!(ObjectKey::namespaced("kube-system", "coredns-5d78c9869d-8xkzp").allocated(), 0);
        assert_eq!(ObjectKey::cluster(&"x".repeat(46)).allocated(), 46);
    }

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
