//! The subset of Kubernetes' `JSONPath` that printer columns use.
//!
//! It has fields (`.spec.replicas`, `['spec']`), elements (`[0]`, `[-1]`, `[*]`), children (`.*`)
//! and array filters (`[?(@.type=="Ready")]`). In a field's name a backslash escapes a dot, also
//! within quotes and brackets: `['example\.com/size']`.

use serde_json::{Number, Value};

/// Longer than any column's path.
const MAX_LENGTH: usize = 1024;
const MAX_STEPS: usize = 64;

/// A path to values in an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// The value of an object's key.
    Field(String),
    /// All values of an object or array.
    Children,
    /// An element of an array, from its end if negative.
    Index(i64),
    /// All elements of an array.
    Elements,
    /// The elements of an array that match.
    Filter(Filter),
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    /// The path from the element to the tested value.
    steps: Vec<Step>,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Exists,
    Equal(Value),
    NotEqual(Value),
}

impl JsonPath {
    /// Parses a path. The error names the invalid part.
    pub(crate) fn parse(path: &str) -> Result<Self, String> {
        if path.len() > MAX_LENGTH {
            return Err(format!("a JSONPath may have at most {MAX_LENGTH} bytes"));
        }
        let mut parser = Parser { rest: path, in_filter: false };
        parser.take("$");
        let steps = parser.steps().map_err(|problem| {
            let offset = path.len() - parser.rest.len();
            format!("JSONPath {path:?}, at byte {offset}: {problem}")
        })?;
        if steps.is_empty() {
            return Err(format!("JSONPath {path:?} names no field"));
        }
        Ok(Self { steps })
    }

    /// Returns the values at the path, or none if it does not apply to the object.
    pub(crate) fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        walk(&self.steps, object).unwrap_or_default()
    }
}

/// Follows the steps. Returns `None` if a step contradicts the data, such as an index past the end,
/// which makes the whole result empty. A missing field omits only its own value.
fn walk<'a>(steps: &[Step], object: &'a Value) -> Option<Vec<&'a Value>> {
    let mut values = vec![object];
    for step in steps {
        let mut found = Vec::new();
        for value in values {
            match step {
                Step::Field(name) => found.extend(value.get(name)),
                Step::Children => match value {
                    Value::Object(fields) => found.extend(fields.values()),
                    Value::Array(elements) => found.extend(elements),
                    _ => {}
                },
                Step::Filter(filter) => {
                    for element in value.as_array()? {
                        if filter.passes(element)? {
                            found.push(element);
                        }
                    }
                }
                Step::Index(_) | Step::Elements if value.is_null() => {}
                Step::Index(index) => found.push(element(value.as_array()?, *index)?),
                Step::Elements => match value.as_array()?.as_slice() {
                    // A real server also stops at an empty array.
                    [] => break,
                    elements => found.extend(elements),
                },
            }
        }
        values = found;
    }
    Some(values)
}

fn element(elements: &[Value], index: i64) -> Option<&Value> {
    let from_end = usize::try_from(index.unsigned_abs()).ok()?;
    let index = if index < 0 { elements.len().checked_sub(from_end)? } else { from_end };
    elements.get(index)
}

impl Filter {
    /// Returns `None` if the two sides cannot be compared.
    fn passes(&self, element: &Value) -> Option<bool> {
        let values = walk(&self.steps, element);
        if self.test == Test::Exists {
            return Some(values.is_some_and(|values| !values.is_empty()));
        }
        match (values?.as_slice(), &self.test) {
            ([value], Test::Equal(literal)) => equal(value, literal),
            ([value], Test::NotEqual(literal)) => equal(value, literal).map(|equal| !equal),
            ([], _) => Some(false),
            _ => None,
        }
    }
}

/// Returns whether two values of the same type are equal. Integers and fractions are different
/// types here.
fn equal(left: &Value, right: &Value) -> Option<bool> {
    let comparable = match (left, right) {
        (Value::String(_), Value::String(_)) | (Value::Bool(_), Value::Bool(_)) => true,
        (Value::Number(left), Value::Number(right)) => left.is_f64() == right.is_f64(),
        _ => false,
    };
    comparable.then(|| left == right)
}

struct Parser<'a> {
    rest: &'a str,
    /// Inside `[?(…)]`, where an operator also ends a name.
    in_filter: bool,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }

    fn steps(&mut self) -> Result<Vec<Step>, String> {
        let mut steps = Vec::new();
        while let Some(next) = self.peek() {
            match next {
                '.' => steps.push(self.field()?),
                '[' => self.brackets(&mut steps)?,
                _ if self.in_filter => break,
                _ if steps.is_empty() => return Err("a path starts with a dot".to_owned()),
                _ => return Err(format!("expected a dot or a bracket, not {next:?}")),
            }
            if steps.len() > MAX_STEPS {
                return Err(format!("a path may have at most {MAX_STEPS} steps"));
            }
        }
        Ok(steps)
    }

    fn field(&mut self) -> Result<Step, String> {
        self.take(".");
        if self.peek() == Some('.') {
            return Err("recursive descent (..) is not supported".to_owned());
        }
        let mut name = String::new();
        while let Some(next) = self.peek().filter(|next| !self.ends_name(*next)) {
            self.next();
            let plain = if next == '\\' { self.next() } else { Some(next) };
            name.push(plain.ok_or("a backslash ends the path")?);
        }
        match name.as_str() {
            "" => Err("expected the name of a field".to_owned()),
            "*" => Ok(Step::Children),
            _ => Ok(Step::Field(name)),
        }
    }

    fn ends_name(&self, next: char) -> bool {
        matches!(next, '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}' | ' ' | '\t' | '\r' | '\n')
            || self.in_filter && matches!(next, '=' | '!' | '<' | '>' | ')')
    }

    fn brackets(&mut self, steps: &mut Vec<Step>) -> Result<(), String> {
        if self.take("[?(") {
            steps.push(Step::Filter(self.filter()?));
            return Ok(());
        }
        let end = self.rest.find(']').ok_or("this bracket is not closed")?;
        let inside = &self.rest["[".len()..end];
        let quoted = inside.strip_prefix('\'').and_then(|inside| inside.strip_suffix('\''));
        if inside == "*" {
            steps.push(Step::Elements);
        } else if let Some(name) = quoted {
            // Quotes do not protect dots: `['a.b']` is `.a.b`, as on a real server.
            let path = format!(".{name}");
            steps.extend(Parser { rest: &path, in_filter: false }.steps()?);
        } else if let Ok(index) = inside.parse() {
            steps.push(Step::Index(index));
        } else {
            return Err(format!(
                "expected an index, '*', a name in single quotes or a filter, not {inside:?}"
            ));
        }
        self.rest = &self.rest[end + "]".len()..];
        Ok(())
    }

    /// Parses a filter after its `[?(`.
    fn filter(&mut self) -> Result<Filter, String> {
        if self.in_filter {
            return Err("a filter within a filter is not supported".to_owned());
        }
        self.in_filter = true;
        self.skip_spaces();
        self.take("@");
        let steps = self.steps()?;
        self.skip_spaces();
        let test = self.test()?;
        self.skip_spaces();
        if !self.take(")]") {
            return Err("expected the end of the filter, )]".to_owned());
        }
        self.in_filter = false;
        Ok(Filter { steps, test })
    }

    fn test(&mut self) -> Result<Test, String> {
        if self.take("==") {
            Ok(Test::Equal(self.literal()?))
        } else if self.take("!=") {
            Ok(Test::NotEqual(self.literal()?))
        } else if self.peek() == Some(')') {
            Ok(Test::Exists)
        } else {
            Err("expected ==, != or the end of the filter".to_owned())
        }
    }

    fn literal(&mut self) -> Result<Value, String> {
        self.skip_spaces();
        if let Some(quote @ ('"' | '\'')) = self.peek() {
            return self.quoted(quote).map(Value::String);
        }
        let end = self.rest.find([' ', ')']).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => number(word).ok_or_else(|| {
                format!("expected a text in quotes, a number or a boolean, not {word:?}")
            })?,
        };
        self.rest = &self.rest[end..];
        Ok(value)
    }

    fn quoted(&mut self, quote: char) -> Result<String, String> {
        self.next();
        let mut text = String::new();
        loop {
            match self.next().ok_or("this text is not closed")? {
                '\\' => text.extend(self.next()),
                next if next == quote => return Ok(text),
                next => text.push(next),
            }
        }
    }
}

fn number(word: &str) -> Option<Value> {
    if let Ok(integer) = word.parse::<i64>() {
        return Some(integer.into());
    }
    let digits = word.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte));
    let fraction = word.parse().ok().filter(|_| digits)?;
    Number::from_f64(fraction).map(Value::Number)
}

#[cfg(test)]
mod tests;
