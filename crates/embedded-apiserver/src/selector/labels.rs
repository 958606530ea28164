//! Label selectors.

use std::fmt;

use super::grammar;

/// A conjunction of requirements on labels, such as `app=web,tier notin (cache,db),!canary`.
///
/// The default selector is empty and matches everything.
///
/// ```
/// use embedded_apiserver::selector::LabelSelector;
///
/// let selector = LabelSelector::parse("tier notin (db, cache), app = web")?;
/// assert_eq!(selector.to_string(), "app=web,tier notin (cache,db)");
/// assert!(selector.matches(&[("app", "web")]));
/// assert!(!selector.matches(&[("app", "web"), ("tier", "db")]));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// Sorted by key. Requirements with the same key are in the order in which they were written.
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requirement {
    pub(super) key: Box<str>,
    pub(super) test: Test,
}

/// The operator of a requirement, with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Test {
    Exists,
    DoesNotExist,
    Equals(Box<str>),
    /// The same as `Equals`, kept separate so that it is printed as it was written.
    DoubleEquals(Box<str>),
    NotEquals(Box<str>),
    In(Values),
    NotIn(Values),
    GreaterThan(Bound),
    LessThan(Bound),
}

/// Sorted, without duplicates, never empty.
pub(super) type Values = Box<[Box<str>]>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) number: i64,
    /// The number as it was written: `007` stays `007`.
    pub(super) text: Box<str>,
}

impl LabelSelector {
    /// Parses the value of a `labelSelector` parameter. The error is Kubernetes' message.
    ///
    /// ```
    /// use embedded_apiserver::selector::LabelSelector;
    ///
    /// assert!(LabelSelector::parse("app,version>3").is_ok());
    /// assert_eq!(
    ///     LabelSelector::parse("app,").unwrap_err(),
    ///     "found '', expected: identifier after ','",
    /// );
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut requirements = grammar::parse(text)?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self { requirements })
    }

    /// Returns whether an object with these labels is selected. The labels must be sorted by key.
    ///
    /// ```
    /// use embedded_apiserver::selector::LabelSelector;
    ///
    /// let selector = LabelSelector::parse("app!=web")?;
    /// let labels: Vec<(Box<str>, Box<str>)> = vec![("app".into(), "api".into())];
    /// assert!(selector.matches(&labels));
    /// # Ok::<(), String>(())
    /// ```
    pub fn matches<K: AsRef<str>, V: AsRef<str>>(&self, labels: &[(K, V)]) -> bool {
        self.requirements.iter().all(|requirement| {
            let found = labels.binary_search_by(|(key, _)| key.as_ref().cmp(&requirement.key));
            requirement.test.passes(found.ok().map(|at| labels[at].1.as_ref()))
        })
    }

    /// Returns whether the selector has no requirements, and therefore matches everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl Test {
    fn passes(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::Equals(want) | Self::DoubleEquals(want) => value == Some(want),
            Self::NotEquals(other) => value != Some(other),
            Self::In(values) => value.is_some_and(|value| contains(values, value)),
            Self::NotIn(values) => !value.is_some_and(|value| contains(values, value)),
            Self::GreaterThan(bound) => number().is_some_and(|number| number > bound.number),
            Self::LessThan(bound) => number().is_some_and(|number| number < bound.number),
        }
    }
}

fn contains(values: &Values, value: &str) -> bool {
    values.binary_search_by(|have| (**have).cmp(value)).is_ok()
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.test {
            Test::Exists => f.write_str(key),
            Test::DoesNotExist => write!(f, "!{key}"),
            Test::Equals(value) => write!(f, "{key}={value}"),
            Test::DoubleEquals(value) => write!(f, "{key}=={value}"),
            Test::NotEquals(value) => write!(f, "{key}!={value}"),
            Test::In(values) => write!(f, "{key} in ({})", values.join(",")),
            Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(",")),
            Test::GreaterThan(bound) => write!(f, "{key}>{}", bound.text),
            Test::LessThan(bound) => write!(f, "{key}<{}", bound.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> LabelSelector {
        LabelSelector::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    #[test]
    fn prints_the_canonical_form() {
        for (text, want) in [
            ("", ""),
            (" \t\r\n", ""),
            ("a = b , c\tnotin\n( d )\r", "a=b,c notin (d)"),
            ("b,a,!b,a=1", "a,a=1,b,!b"),
            ("a==b", "a==b"),
            ("a!=b", "a!=b"),
            ("a=", "a="),
            ("a!=,b", "a!=,b"),
            ("a in (c,b,c)", "a in (b,c)"),
            ("a in ()", "a in ()"),
            ("a in (,)", "a in ()"),
            ("a in (b,,c)", "a in (,b,c)"),
            ("a in (b,)", "a in (,b)"),
            ("a notin(b)", "a notin (b)"),
            ("in in (in,notin)", "in in (in,notin)"),
            ("notin=in", "notin=in"),
            ("a>1,a<01", "a>1,a<01"),
            ("example.com/A_b.c=D-e", "example.com/A_b.c=D-e"),
        ] {
            assert_eq!(parse(text).to_string(), want, "{text:?}");
        }
    }

    #[test]
    fn a_nul_ends_what_it_is_in() {
        // Kubernetes' lexer treats the byte as the end of its input.
        for (text, want) in [("\0a", ""), ("a=\0,b", "a=,b"), ("a\0,b", "a,b"), ("a \0,b", "a")] {
            assert_eq!(parse(text).to_string(), want, "{text:?}");
        }
    }

    #[test]
    fn selects_by_every_operator() {
        let labels = [("app", "web"), ("empty", ""), ("n", "10"), ("tier", "front")];
        for selected in [
            "",
            "app",
            "empty",
            "!absent",
            "app=web",
            "app==web,tier=front",
            "empty=",
            "app!=api",
            "absent!=web",
            "app in (api,web)",
            "empty in ()",
            "empty in (,x)",
            "app notin (api)",
            "absent notin (web)",
            "n>9,n<11",
        ] {
            assert!(parse(selected).matches(&labels), "{selected}");
        }
        for refused in [
            "absent",
            "!app",
            "app=api",
            "absent=",
            "app!=web",
            "app in (api)",
            "absent in ()",
            "app notin (web)",
            "empty notin ()",
            "n>10",
            "n<10",
            "app>1",
            "absent<1",
            "app=web,!tier",
        ] {
            assert!(!parse(refused).matches(&labels), "{refused}");
        }
    }

    #[test]
    fn only_the_empty_selector_is_empty() {
        assert!(LabelSelector::default().is_empty());
        assert!(parse("").is_empty());
        assert!(!parse("a").is_empty());
    }

    fn requirement() -> impl Strategy<Value = String> {
        let key = "([a-z]{1,3}/)?(in|notin|[A-Za-z0-9]{1,3})";
        let value = || "(in|notin|[A-Za-z0-9]{0,3})";
        let space = || "[ \t\r\n]{0,2}";
        let values = proptest::collection::vec(value(), 0..4).prop_map(|v| v.join(","));
        prop_oneof![
            key.prop_map(|key| key),
            (key, space()).prop_map(|(key, space)| format!("!{space}{key}")),
            (key, space(), "=|==|!=", space(), value()).prop_map(
                |(key, before, op, after, value)| [key, before, op, after, value].concat()
            ),
            (key, " in| notin", space(), values)
                .prop_map(|(key, op, space, values)| format!("{key}{op}{space}({values})")),
            (key, "<|>", "[0-9]{1,18}").prop_map(|(key, op, value)| [key, op, value].concat()),
        ]
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_to_the_same(
            requirements in proptest::collection::vec(requirement(), 0..6),
        ) {
            let text = requirements.join(",");
            let selector = LabelSelector::parse(&text);
            prop_assert!(selector.is_ok(), "{text:?}: {selector:?}");
            let selector = selector.unwrap_or_default();
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
        }

        #[test]
        fn any_string_parses_or_is_refused(text in any::<String>(), soup in "[a1=!()<>, in\0]{0,40}") {
            for text in [text, soup] {
                if let Ok(selector) = LabelSelector::parse(&text) {
                    prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
                }
            }
        }

        #[test]
        fn a_requirement_and_its_opposite_never_agree(
            value in "[a-c]{0,2}",
            labels in proptest::option::of("[a-c]{0,2}"),
        ) {
            let labels: Vec<_> = labels.into_iter().map(|value| ("k", value)).collect();
            for (one, other) in [
                ("k".to_owned(), "!k".to_owned()),
                (format!("k={value}"), format!("k!={value}")),
                (format!("k in ({value},b)"), format!("k notin ({value},b)")),
            ] {
                prop_assert_ne!(parse(&one).matches(&labels), parse(&other).matches(&labels));
            }
        }
    }
}
