//! Resource versions.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::shown::shown;

/// Number of characters of a version that `Display` prints.
const SHOWN_CHARS_MAX: usize = 100;
/// Enough for every 64-bit number, which has at most twenty digits.
const INLINE_BYTES_MAX: usize = 22;

/// A resourceVersion: opaque, but ordered if both sides are decimal numbers of any length.
///
/// It is empty if there is no version yet, as in the Kubernetes API. Short versions, which is what
/// API servers send, need no allocation.
///
/// ```
/// use kube_informer::ResourceVersion;
///
/// assert!(ResourceVersion::from("9") < ResourceVersion::from("10"));
/// // Some aggregated API servers have other versions: those can only be equal or not.
/// assert_eq!(ResourceVersion::from("b").partial_cmp(&ResourceVersion::from("a")), None);
/// ```
#[derive(Clone)]
pub struct ResourceVersion(Text);

#[derive(Clone)]
enum Text {
    Inline { len: u8, bytes: [u8; INLINE_BYTES_MAX] },
    Shared(Arc<str>),
}

impl ResourceVersion {
    /// Returns the version as the server wrote it.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            // Inline bytes were copied from a whole `str`.
            Text::Inline { len, bytes } => {
                std::str::from_utf8(&bytes[..usize::from(*len)]).unwrap_or_default()
            }
            Text::Shared(text) => text,
        }
    }

    /// Returns whether there is no version yet.
    pub fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }

    /// Returns whether this is a number other than 0: two such versions can be ordered.
    pub(crate) fn is_ordered(&self) -> bool {
        self.digits().is_some_and(|digits| !digits.is_empty())
    }

    fn digits(&self) -> Option<&str> {
        let text = self.as_str();
        let decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        decimal.then(|| text.trim_start_matches('0'))
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        if text.len() > INLINE_BYTES_MAX {
            return Self(Text::Shared(text.into()));
        }
        let mut bytes = [0; INLINE_BYTES_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Self(Text::Inline { len: text.len() as u8, bytes })
    }
}
impl From<String> for ResourceVersion {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}
impl From<&String> for ResourceVersion {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}
impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        number.to_string().into()
    }
}
impl From<&ResourceVersion> for ResourceVersion {
    fn from(version: &ResourceVersion) -> Self {
        version.clone()
    }
}
impl Default for ResourceVersion {
    fn default() -> Self {
        "".into()
    }
}

impl PartialEq for ResourceVersion {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}
impl Eq for ResourceVersion {}
impl Hash for ResourceVersion {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}
impl PartialEq<str> for ResourceVersion {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}
impl PartialEq<&str> for ResourceVersion {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialOrd for ResourceVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self == other {
            return Some(Ordering::Equal);
        }
        let (ours, theirs) = (self.digits()?, other.digits()?);
        // "7" and "07" are the same number but not the same version.
        Some((ours.len(), ours).cmp(&(theirs.len(), theirs))).filter(|order| order.is_ne())
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&shown(self.as_str(), SHOWN_CHARS_MAX))
    }
}
impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn version(text: &str) -> ResourceVersion {
        text.into()
    }

    proptest! {
        #[test]
        fn decimal_versions_are_ordered_as_numbers(a: u64, b: u64) {
            prop_assert_eq!(
                ResourceVersion::from(a).partial_cmp(&ResourceVersion::from(b)),
                Some(a.cmp(&b))
            );
        }

        #[test]
        fn a_version_keeps_its_text(text: String) {
            let made = version(&text);
            prop_assert_eq!(made.as_str(), &text);
            prop_assert_eq!(ResourceVersion::from(&text), made);
        }
    }

    #[test]
    fn numbers_of_any_length_are_compared() {
        let long = format!("1{}", "0".repeat(40));
        assert!(version(&long) > version("18446744073709551615"));
        assert!(version("99") < version(&long));
    }

    #[test]
    fn non_numeric_versions_are_equal_or_incomparable() {
        assert_eq!(version("a").partial_cmp(&version("a")), Some(Ordering::Equal));
        assert_eq!(version("a").partial_cmp(&version("1")), None);
        assert_eq!(version("").partial_cmp(&version("1")), None);
        assert_eq!(version("07").partial_cmp(&version("7")), None);
    }

    #[test]
    fn a_version_of_a_strange_server_is_shown_in_one_short_line() {
        let shown = version(&"1\n".repeat(1 << 20)).to_string();
        assert!(shown.starts_with(r"1\n1\n") && shown.len() < 200, "{shown}");
    }

    #[test]
    fn a_version_is_small() {
        assert!(size_of::<ResourceVersion>() <= 24);
    }
}
