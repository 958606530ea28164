//! Paths to fields.

mod parse;

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::Cause;
use crate::json::{self, Children, Head, Syntax};
use crate::{Error, Result};

/// A path to a field: `spec.nodeName`, `spec.containers[*].image`, or a JSON pointer (`/a/b~1c`).
///
/// Names are separated by dots. `[0]` is an element of a list, and `[*]` is everything in a list or map.
/// Names with dots or slashes are quoted, as in `metadata.labels['app.kubernetes.io/name']`, or have a
/// backslash before each dot. A path that starts with a slash is a JSON pointer, as in RFC 6901.
///
/// Any text converts to a path. If it is malformed, using the path is an error; [`parse`](Self::parse)
/// returns that error at once.
///
/// ```
/// use kube_informer::{FieldPath, Object};
///
/// let pod: Object = Object::from_json(
///     r#"{"metadata": {"name": "web-0", "labels": {"example.com/tier": "front"}},
///         "spec": {"containers": [{"image": "web:1"}, {"image": "proxy:2"}]}}"#,
/// )?;
/// let images: Option<Vec<String>> = pod.field("spec.containers[*].image")?;
/// assert_eq!(images.unwrap(), ["web:1", "proxy:2"]);
/// let tier: Option<String> = pod.field("metadata.labels['example.com/tier']")?;
/// assert_eq!(tier.as_deref(), Some("front"));
/// // To ask many objects, parse the path once.
/// let node = FieldPath::parse("spec.nodeName")?;
/// assert_eq!(pod.field::<String>(&node)?, None);
/// let error = FieldPath::parse("spec..nodeName").unwrap_err();
/// assert!(error.is_invalid() && error.to_string().contains("a name expected, at character 6"));
/// # Ok::<(), kube_informer::Error>(())
/// ```
#[derive(Clone)]
pub struct FieldPath(Arc<Parsed>);

struct Parsed {
    text: Box<str>,
    steps: Result<Vec<Step>>,
}

/// One step into a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A member of an object.
    Key(Box<str>),
    /// An element of an array.
    Index(usize),
    /// A number in a JSON pointer: an element of an array or a member of an object.
    Either(Box<str>, usize),
    /// Everything in an array or object.
    Every,
}

impl Step {
    /// Returns whether this step leads to this child of an object, or of an array, in which it is the `nth`.
    pub(crate) fn leads_to(&self, json: &[u8], head: &Head, object: bool, nth: usize) -> bool {
        let is_key = |key: &str| object && json::is_key(&json[head.key.clone()], key);
        match self {
            Self::Every => true,
            Self::Key(key) => is_key(key),
            Self::Index(index) => !object && nth == *index,
            Self::Either(key, index) => is_key(key) || !object && nth == *index,
        }
    }
}

impl FieldPath {
    /// Parses a path. Fails if the text is malformed.
    pub fn parse(text: &str) -> Result<Self> {
        let path = Self::from(text);
        path.check()?;
        Ok(path)
    }

    /// Checks the path. The error says what is wrong, where, and gives an example.
    pub(crate) fn check(&self) -> Result<()> {
        self.steps().map(drop)
    }

    /// Returns the steps, or the error in the text.
    pub(crate) fn steps(&self) -> Result<&[Step]> {
        self.0.steps.as_deref().map_err(Clone::clone)
    }

    /// Returns the JSON text at the path. If the path has a `[*]`, this is a list of all matches. Returns
    /// `None` if there is nothing, or null.
    ///
    /// If a key occurs twice, which no API server sends, the first occurrence counts, because the text after
    /// it is not read.
    pub(crate) fn find<'a>(&self, json: &'a [u8]) -> Result<Option<Cow<'a, str>>> {
        let steps = self.steps()?;
        let text = |range: Range<usize>| {
            std::str::from_utf8(&json[range]).map_err(|_| self.broken(&"not UTF-8"))
        };
        let mut ranges = Vec::new();
        let many = visit(json, 0, steps, &mut |range| ranges.push(range))
            .map_err(|syntax| self.broken(&syntax))?;
        if !steps.contains(&Step::Every) {
            return ranges.pop().map(|range| text(range).map(Cow::Borrowed)).transpose();
        }
        if !many {
            return Ok(None);
        }
        let texts = ranges.into_iter().map(text).collect::<Result<Vec<_>>>()?;
        Ok(Some(Cow::Owned(format!("[{}]", texts.join(",")))))
    }

    /// Returns the values to index an object by, sorted: strings as they are, numbers and booleans as they
    /// are written. Other values are ignored, and an invalid path has no values.
    pub(crate) fn values(&self, json: &[u8]) -> Vec<Arc<str>> {
        let mut values = Vec::new();
        let mut add = |range: Range<usize>| {
            let value = match &json[range] {
                [b'"', text @ .., b'"'] => json::text(text),
                [b'{' | b'[', ..] => None,
                other => std::str::from_utf8(other).ok().map(Cow::Borrowed),
            };
            values.extend(value.map(Arc::<str>::from));
        };
        if let Ok(steps) = self.steps() {
            // The kept text is valid JSON. If it were not, the values found so far would still count.
            let _ = visit(json, 0, steps, &mut add);
        }
        values.sort_unstable();
        values.dedup();
        values
    }

    fn broken(&self, why: &dyn fmt::Display) -> Error {
        Error::new(Cause::Decode { key: None }, format!("{self} cannot be found: {why}"))
    }
}

/// Calls `found` with every value that the steps lead to and that is not null. Returns whether there is a
/// list or map at the first `[*]`.
fn visit(
    json: &[u8],
    mut at: usize,
    steps: &[Step],
    found: &mut dyn FnMut(Range<usize>),
) -> Result<bool, Syntax> {
    for (n, step) in steps.iter().enumerate() {
        let Some(mut children) = Children::of(json, at) else { return Ok(false) };
        if *step == Step::Every {
            return every(json, children, &steps[n + 1..], found);
        }
        let Some(value) = descend(json, &mut children, step)? else { return Ok(false) };
        at = value;
    }
    let at = json::space(json, at);
    let end = json::skip(json, at)?;
    if &json[at..end] != b"null" {
        found(at..end);
    }
    Ok(false)
}

fn every(
    json: &[u8],
    mut children: Children<'_>,
    steps: &[Step],
    found: &mut dyn FnMut(Range<usize>),
) -> Result<bool, Syntax> {
    while let Some(head) = children.head()? {
        visit(json, head.value, steps, found)?;
        let end = json::skip(json, head.value)?;
        children.close(head, end)?;
    }
    Ok(true)
}

/// Returns where the value starts that a step leads to.
fn descend(json: &[u8], children: &mut Children<'_>, step: &Step) -> Result<Option<usize>, Syntax> {
    let mut nth = 0;
    while let Some(head) = children.head()? {
        if step.leads_to(json, &head, children.is_object(), nth) {
            return Ok(Some(head.value));
        }
        let end = json::skip(json, head.value)?;
        children.close(head, end)?;
        nth += 1;
    }
    Ok(None)
}

impl From<&str> for FieldPath {
    fn from(text: &str) -> Self {
        Self(Arc::new(Parsed { steps: parse::steps(text), text: text.into() }))
    }
}
impl From<String> for FieldPath {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}
impl From<&String> for FieldPath {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}
impl From<&FieldPath> for FieldPath {
    fn from(path: &FieldPath) -> Self {
        path.clone()
    }
}
impl FromStr for FieldPath {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

/// Paths are equal if their texts are.
impl PartialEq for FieldPath {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}
impl Eq for FieldPath {}
impl Hash for FieldPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.text)
    }
}
impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

#[cfg(test)]
mod tests;
