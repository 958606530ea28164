//! Label selectors, evaluated in memory.

mod parse;

use std::fmt;
use std::str::FromStr;

use kube_core::{Expression, ParseExpressionError, Selector as KubeSelector};

use crate::{Error, Labels, Result};

pub(crate) use parse::{is_prefix as is_subdomain, is_qualified_name};

/// A label selector, parsed from text (`"app=web,tier in (a,b)".parse()`) or converted from kube's
/// own type.
///
/// It follows Kubernetes' semantics: all requirements must be met, and `!=` and `notin` also match
/// objects that lack the label. Selectors with the same requirements are equal, however they were
/// written, and the `Display` form parses back to an equal selector.
///
/// ```
/// use kube_informer::{Object, Selector};
///
/// let selector: Selector = "tier notin (db, cache), app = web".parse()?;
/// assert_eq!(selector.to_string(), "app=web,tier notin (cache,db)");
/// let pod: Object = Object::from_json(r#"{"metadata": {"name": "a", "labels": {"app": "web"}}}"#)?;
/// assert!(pod.labels().matches(&selector));
///
/// let error = "app in web".parse::<Selector>().unwrap_err();
/// assert_eq!(error.to_string(), r#""app in web" is not a label selector: '(' expected at character 8"#);
/// # Ok::<(), kube_informer::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    /// Sorted, without duplicates.
    requirements: Vec<Requirement>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Requirement {
    label: Box<str>,
    test: Test,
}

/// A requirement on the value of a label.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Test {
    /// The label is set.
    Exists,
    /// The label is not set.
    Missing,
    /// The value is one of these. Not empty.
    In(Values),
    /// The value is none of these, or the label is not set. Not empty.
    NotIn(Values),
    Above(i64),
    Below(i64),
}

/// Sorted, without duplicates.
type Values = Box<[Box<str>]>;

impl Selector {
    /// Matches everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Matches nothing, both in memory and on a server: it requires a label that it also excludes.
    pub fn nothing() -> Self {
        Self::new(none_with("nothing"))
    }

    /// Matches objects whose label `key` is `value`.
    pub fn label(key: &str, value: &str) -> Self {
        Expression::Equal(key.into(), value.into()).into()
    }

    /// Converts the selector of a spec, with `matchLabels` and `matchExpressions` (`LabelSelector` in
    /// `k8s_openapi`). An empty one matches everything.
    ///
    /// ```
    /// use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
    /// use kube_informer::Selector;
    ///
    /// let selector = LabelSelector {
    ///     match_labels: Some([("app".to_owned(), "web".to_owned())].into()),
    ///     ..LabelSelector::default()
    /// };
    /// assert_eq!(Selector::from_spec(selector)?, Selector::label("app", "web"));
    /// # Ok::<(), kube_informer::Error>(())
    /// ```
    pub fn from_spec<S>(selector: S) -> Result<Self>
    where
        KubeSelector: TryFrom<S, Error = ParseExpressionError>,
    {
        let selector = KubeSelector::try_from(selector).map_err(|ParseExpressionError(why)| {
            Error::invalid(format!("the selector is invalid: {why}"))
        })?;
        Ok(selector.into())
    }

    /// Returns whether the selector matches an object with these labels.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.test.passes(labels.get(&requirement.label)))
    }

    /// Returns whether it matches everything, so that labels need not be read.
    pub(crate) fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns whether it matches nothing, so that objects need not be read: a label is both
    /// required and excluded.
    pub(crate) fn is_nothing(&self) -> bool {
        // Requirements are sorted, so these two are neighbours.
        self.requirements.windows(2).any(|pair| {
            pair[0].label == pair[1].label
                && pair[0].test == Test::Exists
                && pair[1].test == Test::Missing
        })
    }

    fn new(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut requirements: Vec<_> = requirements.into_iter().collect();
        requirements.sort_unstable();
        requirements.dedup();
        Self { requirements }
    }
}

impl Test {
    fn passes(&self, value: Option<&str>) -> bool {
        let one_of = |values: &Values| {
            value.is_some_and(|value| values.binary_search_by(|one| (**one).cmp(value)).is_ok())
        };
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::Missing => value.is_none(),
            Self::In(values) => one_of(values),
            Self::NotIn(values) => !one_of(values),
            Self::Above(bound) => number().is_some_and(|number| number > *bound),
            Self::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// Requirements that no object meets.
fn none_with(label: &str) -> Vec<Requirement> {
    [Test::Exists, Test::Missing].map(|test| Requirement { label: label.into(), test }).into()
}

fn values<V: AsRef<str>>(values: impl IntoIterator<Item = V>) -> Values {
    let mut values: Vec<Box<str>> = values.into_iter().map(|value| value.as_ref().into()).collect();
    values.sort_unstable();
    values.dedup();
    values.into()
}

/// Converts an expression. `notin` without values is no requirement at all; `in` without values is
/// never met.
fn requirements(expression: Expression) -> Vec<Requirement> {
    let (label, test) = match expression {
        Expression::In(label, none) if none.is_empty() => return none_with(&label),
        Expression::NotIn(_, none) if none.is_empty() => return Vec::new(),
        Expression::In(label, all) => (label, Test::In(values(all))),
        Expression::NotIn(label, all) => (label, Test::NotIn(values(all))),
        Expression::Equal(label, value) => (label, Test::In(values([value]))),
        Expression::NotEqual(label, value) => (label, Test::NotIn(values([value]))),
        Expression::Exists(label) => (label, Test::Exists),
        Expression::DoesNotExist(label) => (label, Test::Missing),
    };
    vec![Requirement { label: label.into(), test }]
}

impl FromStr for Selector {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        parse::requirements(text).map(Self::new)
    }
}
impl From<KubeSelector> for Selector {
    fn from(selector: KubeSelector) -> Self {
        Self::new(selector.into_iter().flat_map(requirements))
    }
}
impl From<Expression> for Selector {
    fn from(expression: Expression) -> Self {
        Self::new(requirements(expression))
    }
}
impl From<&Selector> for Selector {
    fn from(selector: &Selector) -> Self {
        selector.clone()
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, requirement) in self.requirements.iter().enumerate() {
            f.write_str(if n > 0 { "," } else { "" })?;
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = &self.label;
        match &self.test {
            Test::Exists => f.write_str(label),
            Test::Missing => write!(f, "!{label}"),
            Test::In(values) if values.len() == 1 => write!(f, "{label}={}", values[0]),
            Test::NotIn(values) if values.len() == 1 => write!(f, "{label}!={}", values[0]),
            Test::In(values) => write!(f, "{label} in ({})", values.join(",")),
            Test::NotIn(values) => write!(f, "{label} notin ({})", values.join(",")),
            Test::Above(bound) => write!(f, "{label}>{bound}"),
            Test::Below(bound) => write!(f, "{label}<{bound}"),
        }
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selector({self})")
    }
}

#[cfg(test)]
mod tests;
