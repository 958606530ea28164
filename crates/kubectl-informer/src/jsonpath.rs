//! Output as in `kubectl get -o jsonpath=…`: `{.metadata.name}{"\t"}{.status.phase}{"\n"}`.
//!
//! Braces contain paths, quoted strings, or `{range .spec.containers[*]}…{end}`. This is more
//! lenient than kubectl: missing values are empty, even past the end of a list; quotes protect
//! dots; list elements have names (`{.status.conditions[Ready].status}`); and a single path needs
//! no braces.

use serde_json::Value;

use crate::path::{Path, Step};
use crate::syntax::SyntaxError;
use crate::template::literal;
use crate::template::print::Text;

/// Limits on the length and depth of a template and on the number of values, beyond any sensible
/// use.
const MAX_LENGTH: usize = 64 * 1024;
const MAX_DEPTH: usize = 32;
const MAX_VALUES: usize = 300_000;

const EXAMPLE: &str =
    "it is written as {.metadata.name}{\"\\t\"}{range .spec.containers[*]}{.image}{\"\\n\"}{end}";

/// A parsed template of paths.
#[derive(Debug, Clone)]
pub(crate) struct JsonPath {
    source: String,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone)]
enum Node {
    Text(String),
    Values { at: usize, steps: Vec<Step> },
    Range { at: usize, steps: Vec<Step>, body: Vec<Node> },
}

impl JsonPath {
    /// Parses a template.
    pub(crate) fn parse(source: &str) -> Result<Self, SyntaxError> {
        let mut reader = Reader { source, at: 0, depth: 0 };
        if source.len() > MAX_LENGTH {
            return Err(reader.error(0, format!("it may have at most {MAX_LENGTH} bytes")));
        }
        let nodes = if source.contains('{') {
            reader.nodes(None)?
        } else {
            let path: Path = source.parse()?;
            vec![Node::Values { at: 0, steps: path.steps().to_vec() }]
        };
        Ok(Self { source: source.to_owned(), nodes })
    }

    /// Renders an object.
    pub(crate) fn render(&self, object: &Value) -> Result<String, SyntaxError> {
        let mut run = Run { source: &self.source, out: Text::default(), values: 0 };
        run.nodes(&self.nodes, object)?;
        let end = self.source.len();
        run.out.finish().ok_or_else(|| SyntaxError::new(&self.source, end, "too much output"))
    }
}

struct Run<'a> {
    source: &'a str,
    out: Text,
    /// The number of values found so far.
    values: usize,
}

impl Run<'_> {
    fn nodes(&mut self, nodes: &[Node], object: &Value) -> Result<(), SyntaxError> {
        for node in nodes {
            match node {
                Node::Text(text) => self.out.push(text),
                Node::Values { at, steps } => {
                    for (count, value) in self.find(*at, steps, object)?.into_iter().enumerate() {
                        self.out.push(if count > 0 { " " } else { "" });
                        self.show(value);
                    }
                }
                Node::Range { at, steps, body } => {
                    for value in self.find(*at, steps, object)? {
                        self.nodes(body, value)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn find<'v>(
        &mut self,
        at: usize,
        steps: &[Step],
        object: &'v Value,
    ) -> Result<Vec<&'v Value>, SyntaxError> {
        let mut values = vec![object];
        for step in steps {
            values = step.follow(&values);
            self.count(at, values.len())?;
        }
        self.count(at, 1)?;
        Ok(values)
    }

    fn count(&mut self, at: usize, more: usize) -> Result<(), SyntaxError> {
        self.values += more;
        if self.values > MAX_VALUES || self.out.is_full() {
            return Err(SyntaxError::new(self.source, at, "it finds too much"));
        }
        Ok(())
    }

    fn show(&mut self, value: &Value) {
        match value {
            Value::Null => self.out.push("null"),
            Value::Array(_) | Value::Object(_) => self.out.push(&value.to_string()),
            other => self.out.show(other),
        }
    }
}

struct Reader<'a> {
    source: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn error(&self, at: usize, problem: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.source, at, problem)
    }

    fn skip_spaces(&mut self) {
        self.at = self.source.len() - self.rest().trim_start().len();
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self
            .rest()
            .strip_prefix(word)
            .is_some_and(|rest| rest.starts_with(|c: char| !c.is_alphanumeric() && c != '_'));
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// Parses nodes up to the end of the text, or of the range that starts at this position.
    fn nodes(&mut self, range: Option<usize>) -> Result<Vec<Node>, SyntaxError> {
        let mut nodes = Vec::new();
        loop {
            let (text, rest) =
                self.rest().split_at(self.rest().find('{').unwrap_or(self.rest().len()));
            if !text.is_empty() {
                nodes.push(Node::Text(text.to_owned()));
            }
            self.at += text.len();
            let start = self.at;
            match range {
                Some(range) if rest.is_empty() => {
                    return Err(self.error(range, "{range} without {end}").hint(EXAMPLE));
                }
                None if rest.is_empty() => return Ok(nodes),
                _ => {}
            }
            self.at += "{".len();
            self.skip_spaces();
            if self.word("end") {
                self.close(start)?;
                return match range {
                    Some(_) => Ok(nodes),
                    None => Err(self.error(start, "{end} without {range}").hint(EXAMPLE)),
                };
            }
            self.action(start, &mut nodes)?;
        }
    }

    /// Parses the content of braces.
    fn action(&mut self, start: usize, nodes: &mut Vec<Node>) -> Result<(), SyntaxError> {
        if self.word("range") {
            let at = self.at;
            let steps = self.steps()?;
            self.close(start)?;
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(
                    self.error(start, format!("more than {MAX_DEPTH} ranges in each other"))
                );
            }
            let body = self.nodes(Some(start))?;
            self.depth -= 1;
            nodes.push(Node::Range { at, steps, body });
            return Ok(());
        }
        if let Some(quote @ ('"' | '\'')) = self.rest().chars().next() {
            let read = literal::text(self.rest(), quote);
            let (text, length) = read.map_err(|(at, problem)| self.error(self.at + at, problem))?;
            self.at += length;
            nodes.push(Node::Text(text));
        } else {
            let at = self.at;
            let steps = self.steps()?;
            nodes.push(Node::Values { at, steps });
        }
        self.close(start)
    }

    fn steps(&mut self) -> Result<Vec<Step>, SyntaxError> {
        self.skip_spaces();
        let at = self.at;
        let (steps, end) = Path::parse_steps(self.source, at)?;
        if end == at {
            return Err(self.error(at, "expected a path, which begins with a dot").hint(EXAMPLE));
        }
        self.at = end;
        Ok(steps)
    }

    fn close(&mut self, start: usize) -> Result<(), SyntaxError> {
        self.skip_spaces();
        if self.rest().starts_with('}') {
            self.at += "}".len();
            return Ok(());
        }
        let at = if self.rest().is_empty() { start } else { self.at };
        Err(self.error(at, "the brace is not closed with } here").hint(EXAMPLE))
    }
}

#[cfg(test)]
mod tests;
