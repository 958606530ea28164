//! Validation of names, label keys and label values.
//!
//! Every function returns all errors with Kubernetes' wording, or none if the value is valid. The
//! patterns appear only in the messages: the checks themselves iterate over the bytes.

use std::borrow::Cow;
use std::fmt;

use crate::kinds::NameRule;

const LABEL_BYTES_MAX: usize = 63;
const SUBDOMAIN_BYTES_MAX: usize = 253;

const LABEL_MESSAGE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
    characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
    '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
    (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1035_MESSAGE: &str = "a DNS-1035 label must consist of lower case alphanumeric \
    characters or '-', start with an alphabetic character, and end with an alphanumeric character \
    (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const KEY_MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must \
    start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
    regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_MESSAGE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// The wording of length limits. Lengths are always counted in bytes. Kubernetes has two copies of
/// these checks, however, and the older one says characters.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Bytes,
    Characters,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Characters => "characters",
        })
    }
}

/// Validates the name of an object.
pub(crate) fn name(rule: NameRule, name: &str) -> Vec<String> {
    match rule {
        NameRule::PathSegment => path_segment(name),
        rule => dns_name(rule, name.as_bytes()),
    }
}

/// Validates a `generateName`: a name to which letters are appended, and which may end in a dash.
pub(crate) fn prefix(rule: NameRule, prefix: &str) -> Vec<String> {
    match rule {
        NameRule::PathSegment => path_segment_prefix(prefix),
        rule => dns_name(rule, &mask_trailing_dash(prefix.as_bytes())),
    }
}

fn dns_name(rule: NameRule, name: &[u8]) -> Vec<String> {
    match rule {
        NameRule::Label => dns1123_label(name),
        NameRule::Subdomain | NameRule::PathSegment => dns1123_subdomain(name),
    }
}

/// Masks a trailing dash. Kubernetes replaces the dash *and* the letter before it, so a prefix may
/// be one byte longer than the name rule allows. This operates on bytes, because that letter may be
/// part of a non-ASCII character.
fn mask_trailing_dash(name: &[u8]) -> Cow<'_, [u8]> {
    match name {
        [head @ .., _, b'-'] => Cow::Owned([head, b"a".as_slice()].concat()),
        _ => Cow::Borrowed(name),
    }
}

pub(crate) fn dns1123_label(value: impl AsRef<[u8]>) -> Vec<String> {
    let value = value.as_ref();
    let mut wrong = too_long(value, LABEL_BYTES_MAX, Unit::Characters);
    if !is_dns_label(value) {
        let why = if is_subdomain(value) { "must not contain dots" } else { LABEL_MESSAGE };
        wrong.push(why.to_owned());
    }
    wrong
}

pub(crate) fn dns1123_subdomain(value: impl AsRef<[u8]>) -> Vec<String> {
    subdomain(value.as_ref(), Unit::Characters)
}

fn subdomain(value: &[u8], unit: Unit) -> Vec<String> {
    let mut wrong = too_long(value, SUBDOMAIN_BYTES_MAX, unit);
    if !is_subdomain(value) {
        wrong.push(SUBDOMAIN_MESSAGE.to_owned());
    }
    wrong
}

pub(crate) fn dns1035_label(value: impl AsRef<[u8]>) -> Vec<String> {
    let value = value.as_ref();
    let mut wrong = too_long(value, LABEL_BYTES_MAX, Unit::Characters);
    if !(is_dns_label(value) && value[0].is_ascii_lowercase()) {
        wrong.push(LABEL_1035_MESSAGE.to_owned());
    }
    wrong
}

/// Validates a name that is used in a URL's path. The empty name passes, as in Kubernetes.
pub(crate) fn path_segment(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        name => path_segment_prefix(name),
    }
}

fn path_segment_prefix(prefix: &str) -> Vec<String> {
    let found = ["/", "%"].into_iter().filter(|bad| prefix.contains(bad));
    found.map(|bad| format!("may not contain '{bad}'")).collect()
}

/// Validates a label or annotation key, or a finalizer: a name with an optional `subdomain/` before
/// it.
pub(crate) fn qualified_name(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = match value.split_once('/') {
        None => value,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {KEY_MESSAGE} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            wrong.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let why = subdomain(prefix.as_bytes(), Unit::Bytes);
            wrong.extend(why.iter().map(|why| format!("prefix part {why}")));
            name
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    }
    let long = too_long(name.as_bytes(), LABEL_BYTES_MAX, Unit::Bytes);
    wrong.extend(long.iter().map(|why| format!("name part {why}")));
    if !is_key_name(name.as_bytes()) {
        wrong.push(format!("name part {KEY_MESSAGE}"));
    }
    wrong
}

pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut wrong = too_long(value.as_bytes(), LABEL_BYTES_MAX, Unit::Bytes);
    if !(value.is_empty() || is_key_name(value.as_bytes())) {
        wrong.push(VALUE_MESSAGE.to_owned());
    }
    wrong
}

fn too_long(value: &[u8], bytes_max: usize, unit: Unit) -> Vec<String> {
    if value.len() <= bytes_max {
        return Vec::new();
    }
    vec![format!("must be no more than {bytes_max} {unit}")]
}

fn is_subdomain(value: &[u8]) -> bool {
    value.split(|b| *b == b'.').all(is_dns_label)
}

fn is_dns_label(value: &[u8]) -> bool {
    let letter = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    framed(value, letter, |b| letter(b) || *b == b'-')
}

fn is_key_name(value: &[u8]) -> bool {
    framed(value, u8::is_ascii_alphanumeric, |b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

/// Returns whether the value is not empty, has `edge` at both ends and `inner` in between.
fn framed(value: &[u8], edge: impl Fn(&u8) -> bool, inner: impl Fn(&u8) -> bool) -> bool {
    value.first().is_some_and(&edge) && value.last().is_some_and(&edge) && value.iter().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the start of each message, which is enough to distinguish them.
    fn heads(wrong: &[String]) -> Vec<&str> {
        wrong.iter().map(|why| why.split(" (").next().unwrap_or(why)).collect()
    }

    fn head(message: &str) -> &str {
        message.split(" (").next().unwrap_or(message)
    }

    #[test]
    fn subdomains_are_lower_case_labels_joined_by_dots() {
        let long = "a".repeat(254);
        for ok in ["a", "0", "a-b", "a--b", "a.b", "1.2.3", "a-0.b-1", &long[..253]] {
            assert!(name(NameRule::Subdomain, ok).is_empty(), "{ok}");
        }
        for bad in ["", "A", "a_b", "-a", "a-", ".a", "a.", "a..b", "a.-b", "a b", "é", "a\n"] {
            assert_eq!(name(NameRule::Subdomain, bad), [SUBDOMAIN_MESSAGE], "{bad}");
        }
        assert_eq!(name(NameRule::Subdomain, &long), ["must be no more than 253 characters"]);
    }

    #[test]
    fn labels_have_no_dots_and_are_told_so() {
        let long = "a".repeat(64);
        for ok in ["a", "0", "a-b", &long[..63]] {
            assert!(name(NameRule::Label, ok).is_empty(), "{ok}");
        }
        for bad in ["", "A", "-a", "a-", "a_b", "a..b"] {
            assert_eq!(name(NameRule::Label, bad), [LABEL_MESSAGE], "{bad}");
        }
        assert_eq!(name(NameRule::Label, "a.b"), ["must not contain dots"]);
        let dotted = format!("{long}.b");
        let want = ["must be no more than 63 characters", "must not contain dots"];
        assert_eq!(name(NameRule::Label, &dotted), want);
    }

    #[test]
    fn dns_1035_labels_start_with_a_letter() {
        for ok in ["a", "a0", "a-b"] {
            assert!(dns1035_label(ok).is_empty(), "{ok}");
        }
        for bad in ["", "0", "0a", "A", "a.b", "a-"] {
            assert_eq!(dns1035_label(bad), [LABEL_1035_MESSAGE], "{bad}");
        }
    }

    #[test]
    fn path_segments_are_anything_a_url_can_carry() {
        for ok in ["", "system:node", "A b", "...", "é"] {
            assert!(name(NameRule::PathSegment, ok).is_empty(), "{ok}");
        }
        assert_eq!(name(NameRule::PathSegment, "."), ["may not be '.'"]);
        assert_eq!(name(NameRule::PathSegment, ".."), ["may not be '..'"]);
        let both = ["may not contain '/'", "may not contain '%'"];
        assert_eq!(name(NameRule::PathSegment, "a%/b"), both);
        assert!(prefix(NameRule::PathSegment, "..").is_empty());
    }

    #[test]
    fn a_prefix_may_end_in_a_dash() {
        for ok in ["a-", "ab-", "a--", "a.b-"] {
            assert!(prefix(NameRule::Subdomain, ok).is_empty(), "{ok}");
        }
        assert_eq!(prefix(NameRule::Subdomain, "-"), [SUBDOMAIN_MESSAGE]);
        assert_eq!(prefix(NameRule::Subdomain, "é-"), [SUBDOMAIN_MESSAGE]);
        assert_eq!(prefix(NameRule::Subdomain, "a.b."), [SUBDOMAIN_MESSAGE]);
        assert!(prefix(NameRule::Label, &format!("{}-", "a".repeat(63))).is_empty());
    }

    #[test]
    fn qualified_names_say_which_part_is_wrong() {
        for ok in ["a", "A", "a_b.c-d", "0", "example.com/a", "a/B"] {
            assert!(qualified_name(ok).is_empty(), "{ok}");
        }
        let name_message = format!("name part {}", head(KEY_MESSAGE));
        let prefix_message = format!("prefix part {}", head(SUBDOMAIN_MESSAGE));
        let empty = "name part must be non-empty";
        let key_message = format!("a valid label key {}", head(KEY_MESSAGE));
        let long = format!("{}/{}", "a".repeat(254), "b".repeat(64));
        let cases: [(&str, &[&str]); 9] = [
            ("", &[empty, &name_message]),
            ("-a", &[&name_message]),
            ("a b", &[&name_message]),
            ("a/", &[empty, &name_message]),
            ("/a", &["prefix part must be non-empty"]),
            ("A/b", &[&prefix_message]),
            ("A/", &[&prefix_message, empty, &name_message]),
            ("a/b/c", &[&key_message]),
            (
                &long,
                &[
                    "prefix part must be no more than 253 bytes",
                    "name part must be no more than 63 bytes",
                ],
            ),
        ];
        for (value, want) in cases {
            assert_eq!(heads(&qualified_name(value)), want, "{value}");
        }
    }

    #[test]
    fn label_values_may_be_empty() {
        for ok in ["", "a", "A_b.c-d", "0"] {
            assert!(label_value(ok).is_empty(), "{ok}");
        }
        for bad in ["-", "a-", "_a", "a b", "a/b", "é"] {
            assert_eq!(label_value(bad), [VALUE_MESSAGE], "{bad}");
        }
        assert_eq!(label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
    }
}
