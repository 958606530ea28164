//! The functions of templates: Go's, kubectl's, and a few useful additions.

use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::print::{MAX_OUTPUT, Text};
use super::printf;
use super::run::Val;

/// The result of a function, or an error message.
type Outcome<'v> = Result<Val<'v>, String>;

/// A function and the number of its arguments.
#[derive(Clone, Copy)]
pub(super) struct Function {
    name: &'static str,
    least: usize,
    most: usize,
    call: Call,
}

#[derive(Clone, Copy)]
pub(super) enum Call {
    /// Returns the first argument with this truth value, or else the last one. The arguments after
    /// it are not evaluated.
    FirstThatIs(bool),
    Of(for<'v> fn(&[Val<'v>]) -> Outcome<'v>),
}

const ANY: usize = usize::MAX;

const FUNCTIONS: &[Function] = &[
    lazy("and", false),
    lazy("or", true),
    new("base64decode", 1, 1, base64_decode),
    new("contains", 2, 2, |a| Ok(text(&a[1])?.contains(text(&a[0])?).into())),
    new("default", 2, 2, |a| Ok(a[usize::from(is_true(&a[1]))].clone())),
    new("eq", 2, ANY, eq),
    new("exists", 1, ANY, |a| Ok(exists(a).into())),
    new("ge", 2, 2, |a| Ok((order(&a[0], &a[1])?.is_ge()).into())),
    new("gt", 2, 2, |a| Ok((order(&a[0], &a[1])?.is_gt()).into())),
    new("hasPrefix", 2, 2, |a| Ok(text(&a[1])?.starts_with(text(&a[0])?).into())),
    new("hasSuffix", 2, 2, |a| Ok(text(&a[1])?.ends_with(text(&a[0])?).into())),
    new("index", 1, ANY, index),
    new("join", 2, 2, join),
    new("json", 1, 1, |a| Ok(a[0].to_string().into())),
    new("le", 2, 2, |a| Ok((order(&a[0], &a[1])?.is_le()).into())),
    new("len", 1, 1, len),
    new("lower", 1, 1, |a| Ok(text(&a[0])?.to_lowercase().into())),
    new("lt", 2, 2, |a| Ok((order(&a[0], &a[1])?.is_lt()).into())),
    new("ne", 2, 2, |a| Ok((!equal(&a[0], &a[1])?).into())),
    new("not", 1, 1, |a| Ok((!is_true(&a[0])).into())),
    new("print", 0, ANY, print),
    new("printf", 1, ANY, printf),
    new("println", 0, ANY, println),
    new("quote", 1, 1, |a| Ok(printf::quote(text(&a[0])?, '"').into())),
    new("replace", 3, 3, replace),
    new("slice", 1, 3, slice),
    new("split", 2, 2, split),
    new("toJson", 1, 1, |a| Ok(a[0].to_string().into())),
    new("trim", 1, 1, |a| Ok(text(&a[0])?.trim().to_owned().into())),
    new("upper", 1, 1, |a| Ok(text(&a[0])?.to_uppercase().into())),
];

const fn new(
    name: &'static str,
    least: usize,
    most: usize,
    call: for<'v> fn(&[Val<'v>]) -> Outcome<'v>,
) -> Function {
    Function { name, least, most, call: Call::Of(call) }
}

const fn lazy(name: &'static str, wanted: bool) -> Function {
    Function { name, least: 1, most: ANY, call: Call::FirstThatIs(wanted) }
}

impl Function {
    /// Looks up a function. The error is a message and a hint.
    pub(super) fn named(name: &str) -> Result<Self, (String, String)> {
        if let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) {
            return Ok(*function);
        }
        let names: Vec<_> = FUNCTIONS.iter().map(|function| function.name).collect();
        let hint = if matches!(name, "metadata" | "spec" | "status" | "kind" | "event") {
            let sign = if name == "event" { '$' } else { '.' };
            format!("write {sign}{name}")
        } else {
            format!("the functions are {}", names.join(", "))
        };
        Err((format!("there is no function {name}"), hint))
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    pub(super) fn call(&self) -> Call {
        self.call
    }

    /// Checks the number of arguments.
    pub(super) fn check(&self, count: usize) -> Result<(), String> {
        if (self.least..=self.most).contains(&count) {
            return Ok(());
        }
        Err(format!("{} takes {}, not {count}", self.name, self.takes()))
    }

    /// Describes the number of arguments.
    pub(super) fn takes(&self) -> String {
        let arguments = |count| if count == 1 { "argument" } else { "arguments" };
        match (self.least, self.most) {
            (least, ANY) => format!("{least} {} or more", arguments(least)),
            (least, most) if least == most => format!("{least} {}", arguments(least)),
            (least, most) => format!("{least} to {most} arguments"),
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Returns whether a value is true: neither empty nor zero.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// Returns the name of a value's type, for error messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Returns a string argument. A missing value is the empty string.
fn text<'a>(value: &'a Val<'_>) -> Result<&'a str, String> {
    match &**value {
        Value::String(text) => Ok(text),
        Value::Null => Ok(""),
        other => Err(format!("it wants a text, not {}", kind(other))),
    }
}

fn finished<'v>(text: Text) -> Outcome<'v> {
    text.finish().map(Val::from).ok_or_else(too_long)
}

fn too_long() -> String {
    format!("the text is longer than {MAX_OUTPUT} bytes")
}

fn base64_decode<'v>(arguments: &[Val<'v>]) -> Outcome<'v> {
    let decoded = STANDARD.decode(text(&arguments[0])?);
    // The string may be a secret, so the error does not include it.
    let decoded = decoded.map_err(|_| "the text is not encoded with base64".to_owned())?;
    Ok(String::from_utf8_lossy(&decoded).into_owned().into())
}

fn equal(left: &Value, right: &Value) -> Result<bool, String> {
    match (left, right) {
        (Value::Null, other) | (other, Value::Null) => Ok(other.is_null()),
        (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => {
            Err("lists and maps cannot be compared".to_owned())
        }
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        (left, right) => Ok(order(left, right)?.is_eq()),
    }
}

fn eq<'v>(arguments: &[Val<'v>]) -> Outcome<'v> {
    for argument in &arguments[1..] {
        if equal(&arguments[0], argument)? {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

fn order(left: &Value, right: &Value) -> Result<Ordering, String> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Ok(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Ok(left.cmp(&right)),
            _ => Ok(left.as_f64().partial_cmp(&right.as_f64()).unwrap_or(Ordering::Equal)),
        },
        (Value::Null, other) | (other, Value::Null) => Err(format!(
            "nothing cannot be compared with {}; `default` gives it a value",
            kind(other)
        )),
        _ => Err(format!("{} cannot be compared with {}", kind(left), kind(right))),
    }
}

/// Returns whether there is a value at the end of a path of names and indexes, as in kubectl.
fn exists(arguments: &[Val<'_>]) -> bool {
    let mut value = arguments[0].clone();
    for key in &arguments[1..] {
        match value.at(key) {
            Ok(Some(next)) => value = next,
            _ => return false,
        }
    }
    true
}

fn index<'v>(arguments: &[Val<'v>]) -> Outcome<'v> {
    let mut value = arguments[0].clone();
    for key in &arguments[1..] {
        value = match value.at(key)? {
            Some(next) => next,
            None => Val::nothing(),
        };
    }
    Ok(value)
}

fn len<'v>(arguments: &[Val<'v>]) -> Outcome<'v> {
    let length = match &*arguments[0] {
        Value::Null => 0,
        Value::String(text) => text.len(),
        Value::Array(list) => list.len(),
        Value::Object(fields) => fields.len(),
        other => return Err(format!("{} has no length", kind(other))),
    };
    Ok(Value::from(length).into())
}

/// Prints values, with a space between two of which neither is a string.
fn print<'v>(arguments: &[Val<'v>]) -> Outcome<'v> {
    let mut out = Text::default();
    for (at, value) in arguments.iter().enumerate() {
        if at > 0 && !value.is_string() && !arguments[at - 1].is_string() {
            out.push(" ");
        }
        out.show(value);
    }
    finished(out)
}

fn println<'v>(arguments: &[Val<'v>]) -> Outcome<'v> {
    let mut out = Text::default();
    for (at, value) in arguments.iter().enumerate() {
        out.push(if at > 0 { " " } else { "" });
        out.show(value);
    }
    out.push("\n");
    finished(out)
}

fn printf<'v>(arguments: &[Val<'v>]) -> Outcome<'v> {
    let values: Vec<&Value> = arguments[1..].iter().map(|value| &**value).collect();
    finished(printf::printf(text(&arguments[0])?, &values))
}

fn join<'v>(arguments: &[Val<'v>]) -> Outcome<'v> {
    let separator = text(&arguments[0])?;
    let mut out = Text::default();
    match &*arguments[1] {
        Value::Null => {}
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                out.push(if at > 0 { separator } else { "" });
                out.show(value);
            }
        }
        other => return Err(format!("it wants a list, not {}", kind(other))),
    }
    finished(out)
}

fn replace<'v>(arguments: &[Val<'v>]) -> Outcome<'v> {
    let (old, new, whole) = (text(&arguments[0])?, text(&arguments[1])?, text(&arguments[2])?);
    let length = whole.len().saturating_add(whole.matches(old).count().saturating_mul(new.len()));
    if length > MAX_OUTPUT {
        return Err(too_long());
    }
    Ok(whole.replace(old, new).into())
}

fn split<'v>(arguments: &[Val<'v>]) -> Outcome<'v> {
    let (separator, whole) = (text(&arguments[0])?, text(&arguments[1])?);
    if separator.is_empty() {
        return Err("it wants a text to split at".to_owned());
    }
    let parts: Vec<Value> = whole.split(separator).map(Value::from).collect();
    Ok(Val::Own(Rc::new(Value::Array(parts))))
}

fn slice<'v>(arguments: &[Val<'v>]) -> Outcome<'v> {
    let length = match &*arguments[0] {
        Value::String(text) => text.len(),
        Value::Array(list) => list.len(),
        Value::Null => return Ok(Val::nothing()),
        other => return Err(format!("{} cannot be sliced", kind(other))),
    };
    let place = |at: usize, default: usize| match arguments.get(at) {
        None => Ok(default),
        Some(place) => place
            .as_u64()
            .and_then(|place| usize::try_from(place).ok())
            .filter(|place| *place <= length)
            .ok_or_else(|| format!("{} is not within it, it has the length {length}", **place)),
    };
    let (start, end) = (place(1, 0)?, place(2, length)?);
    let wrong = || format!("it cannot be cut from {start} to {end}");
    match &*arguments[0] {
        Value::String(text) => Ok(text.get(start..end).ok_or_else(wrong)?.to_owned().into()),
        Value::Array(list) => {
            let part = list.get(start..end).ok_or_else(wrong)?.to_vec();
            Ok(Val::Own(Rc::new(Value::Array(part))))
        }
        _ => Err(wrong()),
    }
}
