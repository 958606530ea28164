//! Field selectors.

use std::fmt;

/// A conjunction of terms on fields, such as `status.phase=Running,metadata.name!=web-0`.
///
/// The selector treats fields as names: the resource defines which of them exist. The default
/// selector is empty and matches everything.
///
/// ```
/// use embedded_apiserver::selector::FieldSelector;
///
/// let selector = FieldSelector::parse("status.phase!=Running,spec.nodeName==")?;
/// assert_eq!(selector.to_string(), "spec.nodeName=,status.phase!=Running");
/// assert!(selector.matches(|field| (field == "status.phase").then_some("Pending")));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// Sorted by their printed form.
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    field: Box<str>,
    operator: FieldOperator,
    value: Box<str>,
}

/// The operator of a term in a [`FieldSelector`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldOperator {
    /// `=` or `==`.
    Equals,
    /// `!=`.
    NotEquals,
}

impl FieldSelector {
    /// Parses the value of a `fieldSelector` parameter. The error is Kubernetes' message.
    ///
    /// In values, `\`, `,` and `=` are escaped with a backslash.
    ///
    /// ```
    /// use embedded_apiserver::selector::FieldSelector;
    ///
    /// let selector = FieldSelector::parse(r"reason=a\,b")?;
    /// assert_eq!(selector.exact("reason"), Some("a,b"));
    /// assert_eq!(
    ///     FieldSelector::parse("reason").unwrap_err(),
    ///     "invalid selector: 'reason'; can't understand 'reason'",
    /// );
    /// # Ok::<(), String>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = split_terms(text);
        // If there are several errors, Kubernetes reports that of the term that sorts first.
        parts.sort_unstable();
        let mut terms = Vec::with_capacity(parts.len());
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, operator, value)) = split_term(part) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            let value = unescape(value)?;
            // A lone operator is not a term.
            if !(field.is_empty() && value.is_empty()) {
                terms.push(Term { field: field.into(), operator, value: value.into() });
            }
        }
        // This order differs from that of the parts: `a==b` sorts before `a=a` but is printed as
        // `a=b`.
        terms.sort_by_cached_key(Term::to_string);
        Ok(Self { terms })
    }

    /// Returns the terms as field, operator and value.
    ///
    /// ```
    /// use embedded_apiserver::selector::{FieldOperator, FieldSelector};
    ///
    /// let selector = FieldSelector::parse("a=1,b!=2")?;
    /// let terms: Vec<_> = selector.terms().collect();
    /// assert_eq!(terms, [("a", FieldOperator::Equals, "1"), ("b", FieldOperator::NotEquals, "2")]);
    /// # Ok::<(), String>(())
    /// ```
    pub fn terms(&self) -> impl Iterator<Item = (&str, FieldOperator, &str)> {
        self.terms.iter().map(|term| (&*term.field, term.operator, &*term.value))
    }

    /// Returns whether an object is selected. `get` returns the values of its fields. A field
    /// without a value compares as the empty string.
    pub fn matches<V: AsRef<str>>(&self, get: impl Fn(&str) -> Option<V>) -> bool {
        self.terms.iter().all(|term| {
            let value = get(&term.field);
            let equal = value.as_ref().map_or("", AsRef::as_ref) == &*term.value;
            equal == (term.operator == FieldOperator::Equals)
        })
    }

    /// Returns the value that the field must have, if the selector requires a specific one.
    ///
    /// ```
    /// use embedded_apiserver::selector::FieldSelector;
    ///
    /// let selector = FieldSelector::parse("metadata.name=web-0,spec.nodeName!=a")?;
    /// assert_eq!(selector.exact("metadata.name"), Some("web-0"));
    /// assert_eq!(selector.exact("spec.nodeName"), None);
    /// # Ok::<(), String>(())
    /// ```
    pub fn exact(&self, field: &str) -> Option<&str> {
        let mut terms = self.terms();
        terms.find_map(|(name, operator, value)| {
            (name == field && operator == FieldOperator::Equals).then_some(value)
        })
    }

    /// Returns whether the selector has no terms, and therefore matches everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
}

/// Splits the text at commas that have no backslash before them.
fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    let comma = |c| {
        let ends = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    };
    text.split(comma).collect()
}

/// Splits a term at its first operator. There are no escapes on the left side.
fn split_term(term: &str) -> Option<(&str, FieldOperator, &str)> {
    let equals = term.find('=')?;
    let (field, value) = (&term[..equals], &term[equals + 1..]);
    if let Some(field) = field.strip_suffix('!') {
        return Some((field, FieldOperator::NotEquals, value));
    }
    Some((field, FieldOperator::Equals, value.strip_prefix('=').unwrap_or(value)))
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: \\{other}"
                    ));
                }
            },
            // Kubernetes prints the number of the character, not the character.
            ',' | '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                ));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.terms.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            term.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.field)?;
        f.write_str(match self.operator {
            FieldOperator::Equals => "=",
            FieldOperator::NotEquals => "!=",
        })?;
        for c in self.value.chars() {
            if matches!(c, '\\' | ',' | '=') {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> FieldSelector {
        FieldSelector::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    #[test]
    fn prints_the_canonical_form() {
        for (text, want) in [
            ("", ""),
            (",,", ""),
            ("a==b", "a=b"),
            ("c=d,a!=b,", "a!=b,c=d"),
            (",,a=b,,", "a=b"),
            ("a=", "a="),
            ("=b", "=b"),
            ("=", ""),
            ("!=,a=b,==", "a=b"),
            ("a==b,a=a", "a=a,a=b"),
            (r"a=b\,c", r"a=b\,c"),
            (r"a=b\=\\c", r"a=b\=\\c"),
            ("a!b=c", "a!b=c"),
            (r"a\,b=c", r"a\,b=c"),
            (r"a\=b", r"a\=b"),
            ("a = b", "a = b"),
        ] {
            assert_eq!(parse(text).to_string(), want, "{text:?}");
        }
    }

    #[test]
    fn errors_are_worded_as_in_kubernetes() {
        for (text, want) in [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
            (r"b=\x,a", r"invalid selector: 'b=\x,a'; can't understand 'a'"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            ("a===b", "invalid field selector: unescaped character in value: 61"),
            ("a!==b", "invalid field selector: unescaped character in value: 61"),
            (r"a=b\c", r"invalid field selector: invalid escape sequence: \c"),
            (r"a=\é", r"invalid field selector: invalid escape sequence: \é"),
            (r"a=b\", r"invalid field selector: invalid escape sequence: \"),
        ] {
            assert_eq!(FieldSelector::parse(text), Err(want.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn a_missing_field_compares_as_the_empty_string() {
        let get = |field: &str| (field == "phase").then_some("Running");
        for selected in ["", "phase=Running", "phase!=Failed", "node=", "node!=a", "node=,phase!="]
        {
            assert!(parse(selected).matches(get), "{selected}");
        }
        for refused in ["phase=", "phase!=Running", "node=a", "node!=", "phase=Running,node=a"] {
            assert!(!parse(refused).matches(get), "{refused}");
        }
    }

    #[test]
    fn exact_is_the_value_that_equality_asks_for() {
        let selector = parse(r"name=a\=b,other!=c,empty=");
        assert_eq!(selector.exact("name"), Some("a=b"));
        assert_eq!(selector.exact("empty"), Some(""));
        assert_eq!(selector.exact("other"), None);
        assert_eq!(selector.exact("absent"), None);
    }

    #[test]
    fn only_selectors_without_terms_are_empty() {
        assert!(FieldSelector::default().is_empty());
        assert!(parse(",=,").is_empty());
        assert!(!parse("a=").is_empty());
    }

    proptest! {
        #[test]
        fn any_string_parses_or_is_refused(text in any::<String>(), soup in r"[ab=!,\\é]{0,30}") {
            for text in [text, soup] {
                if let Ok(selector) = FieldSelector::parse(&text) {
                    prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
                }
            }
        }

        #[test]
        fn any_value_survives_escaping(values in proptest::collection::vec(any::<String>(), 1..4)) {
            let terms = values.iter().map(|value| Term {
                field: "f".into(),
                operator: FieldOperator::Equals,
                value: value.as_str().into(),
            });
            let mut selector = FieldSelector { terms: terms.collect() };
            selector.terms.sort_by_cached_key(Term::to_string);
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
        }
    }
}
