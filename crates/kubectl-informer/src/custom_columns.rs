//! User-defined columns: `-o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName`.

use serde_json::Value;

use crate::path::{Path, Step};
use crate::syntax::SyntaxError;
use crate::template::print::Text;

/// The limit on the number of columns. No screen has room for more.
const MAX_COLUMNS: usize = 100;

const EXAMPLE: &str = "columns are written as NAME:.metadata.name,NODE:.spec.nodeName";

/// The columns of a table of objects.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    columns: Vec<(String, Vec<Step>)>,
}

impl Columns {
    /// Parses a column specification.
    pub(crate) fn parse(source: &str) -> Result<Self, SyntaxError> {
        let mut columns = Vec::new();
        let mut at = 0;
        loop {
            let Some(length) =
                source[at..].find([':', ',']).filter(|n| source[at + n..].starts_with(':'))
            else {
                return Err(SyntaxError::new(
                    source,
                    at,
                    "a column has a name, a colon and a path",
                )
                .hint(EXAMPLE));
            };
            let name = source[at..at + length].trim();
            if name.is_empty() {
                return Err(
                    SyntaxError::new(source, at, "the name of a column is missing").hint(EXAMPLE)
                );
            }
            let (path, end) = path(source, at + length + 1)?;
            columns.push((name.to_owned(), path));
            let rest = source[end..].trim_start();
            at = source.len() - rest.len();
            if rest.is_empty() {
                return Ok(Self { columns });
            }
            if !rest.starts_with(',') {
                return Err(
                    SyntaxError::new(source, at, "expected a comma, or the end").hint(EXAMPLE)
                );
            }
            at += 1;
            if columns.len() == MAX_COLUMNS {
                return Err(SyntaxError::new(
                    source,
                    at,
                    format!("more than {MAX_COLUMNS} columns"),
                ));
            }
        }
    }

    /// Returns the titles of the columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    /// Returns an object's value in each column, formatted as kubectl does. Missing values are
    /// `<none>`.
    pub(crate) fn row(&self, object: &Value) -> Vec<String> {
        self.columns.iter().map(|(_, steps)| cell(&crate::path::find(steps, object))).collect()
    }
}

/// Parses a path. The braces and the leading dot are optional.
fn path(source: &str, from: usize) -> Result<(Vec<Step>, usize), SyntaxError> {
    let start = source.len() - source[from..].trim_start().len();
    let inside = source[start..].strip_prefix('{').map_or(start, |_| start + 1);
    let (steps, end) = Path::parse_steps(source, inside)?;
    if end == inside {
        let (path, end) = Path::parse_start(source, start)?;
        return Ok((path.steps().to_vec(), end));
    }
    if inside == start {
        return Ok((steps, end));
    }
    if source[end..].starts_with('}') {
        return Ok((steps, end + 1));
    }
    Err(SyntaxError::new(source, end, "the brace is not closed with } here").hint(EXAMPLE))
}

fn cell(values: &[&Value]) -> String {
    let mut text = Text::default();
    for (count, value) in values.iter().filter(|value| !value.is_null()).enumerate() {
        text.push(if count > 0 { "," } else { "" });
        text.show(value);
    }
    text.finish().filter(|text| !text.is_empty()).unwrap_or_else(|| "<none>".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_a_row() {
        let columns = Columns::parse(
            "NAME:.metadata.name, APP:metadata.labels['a.b/c,d'],IMAGES:{.spec.containers[*].image},\
             READY:.status.conditions[?(@.type==\"Ready\")].status,NONE:.x.y,FIRST:.spec.containers[0,1].name",
        )
        .unwrap();
        assert_eq!(
            columns.names().collect::<Vec<_>>(),
            ["NAME", "APP", "IMAGES", "READY", "NONE", "FIRST"]
        );
        let pod = json!({
            "metadata": {"name": "web", "labels": {"a.b/c,d": "shop"}},
            "spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        assert_eq!(columns.row(&pod), ["web", "shop", "x,y", "True", "<none>", "a,b"]);
        assert_eq!(columns.row(&Value::Null)[0], "<none>");
    }

    #[test]
    fn a_mistake_is_shown_where_it_is() {
        for (source, place, problem) in [
            ("", 0, "a column has a name"),
            ("NAME", 0, "a column has a name"),
            ("NAME,AGE:.x", 0, "a column has a name"),
            (":.x", 0, "the name of a column is missing"),
            ("A:.x,", 5, "a column has a name"),
            ("A:.x b", 5, "expected a comma"),
            ("A:{.x", 5, "brace is not closed"),
            ("A:", 2, "a path is missing"),
            ("A:.x[0", 4, "bracket is not closed"),
        ] {
            let error = Columns::parse(source).expect_err(source).to_string();
            assert!(error.contains(problem), "{source}: {error}");
            assert_eq!(error.lines().nth(2).unwrap().len() - 5, place, "{source}: {error}");
        }
    }
}
