//! Runs a template.

use std::ops::Deref;
use std::rc::Rc;

use serde_json::Value;

use super::function::{self, Call, Function};
use super::print::{self, Text};
use super::{Base, Command, EVENT, Node, OBJECT, Operand, Pipe, Template};
use crate::syntax::SyntaxError;

/// Limits on the number of values that a template visits, and on the bytes that its functions
/// process. No sensible template needs more.
const MAX_STEPS: usize = 300_000;
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// A value: a reference into the input, or one that the template has created.
#[derive(Clone)]
pub(super) enum Val<'v> {
    Ref(&'v Value),
    Own(Rc<Value>),
}

impl Deref for Val<'_> {
    type Target = Value;

    fn deref(&self) -> &Value {
        match self {
            Self::Ref(value) => value,
            Self::Own(value) => value,
        }
    }
}

impl<T: Into<Value>> From<T> for Val<'_> {
    fn from(value: T) -> Self {
        Self::Own(Rc::new(value.into()))
    }
}

impl Val<'_> {
    pub(super) fn nothing() -> Self {
        Self::Ref(&Value::Null)
    }

    /// Returns a part of the value.
    fn part(&self, get: impl for<'a> FnOnce(&'a Value) -> Option<&'a Value>) -> Option<Self> {
        match self {
            Self::Ref(value) => get(value).map(Self::Ref),
            Self::Own(value) => get(value).map(|part| Self::Own(Rc::new(part.clone()))),
        }
    }

    fn field(&self, name: &str) -> Result<Self, String> {
        match &**self {
            Value::Object(_) => {
                Ok(self.part(|value| value.get(name)).unwrap_or_else(Self::nothing))
            }
            Value::Null => Ok(Self::nothing()),
            Value::Array(_) => Err(format!(
                "a list has no field {name}: look at its elements with range, or at one with index"
            )),
            other => Err(format!("{} has no field {name}", function::kind(other))),
        }
    }

    /// Returns the element at an index or with a name. A missing value has none.
    pub(super) fn at(&self, key: &Value) -> Result<Option<Self>, String> {
        match (&**self, key) {
            (Value::Null, _) => Ok(None),
            (Value::Object(_), Value::String(name)) => Ok(self.part(|value| value.get(name))),
            (Value::Array(list), Value::Number(at)) => {
                let position = at.as_u64().and_then(|at| usize::try_from(at).ok());
                let position = position.filter(|at| *at < list.len()).ok_or_else(|| {
                    format!("there is no element {at} in a list of {}", list.len())
                })?;
                Ok(self.part(|value| value.get(position)))
            }
            (Value::Object(_), key) => {
                Err(format!("a map has elements by name, not by {}", function::kind(key)))
            }
            (Value::Array(_), key) => {
                Err(format!("a list has elements by number, not by {}", function::kind(key)))
            }
            (other, _) => Err(format!("{} has no elements", function::kind(other))),
        }
    }
}

pub(super) fn run<'v>(
    template: &'v Template,
    object: &'v Value,
    event: &'v Value,
) -> Result<String, SyntaxError> {
    let mut run = Run {
        template,
        out: Text::default(),
        variables: vec![(OBJECT, Val::Ref(object)), (EVENT, Val::Ref(event))],
        steps: 0,
        bytes: 0,
    };
    run.nodes(&template.nodes, &Val::Ref(object))?;
    let end = template.source.len();
    run.out.finish().ok_or_else(|| SyntaxError::new(&template.source, end, "too much output"))
}

struct Run<'v> {
    template: &'v Template,
    out: Text,
    variables: Vec<(&'v str, Val<'v>)>,
    steps: usize,
    bytes: usize,
}

/// The control flow after some nodes.
#[derive(PartialEq, Eq)]
enum Flow {
    On,
    Break,
    Continue,
}

type Result<T, E = SyntaxError> = std::result::Result<T, E>;

impl<'v> Run<'v> {
    fn error(&self, at: usize, problem: impl Into<String>) -> SyntaxError {
        SyntaxError::new(&self.template.source, at, problem)
    }

    fn step(&mut self, at: usize) -> Result<()> {
        self.steps += 1;
        if self.steps > MAX_STEPS || self.out.is_full() {
            return Err(self.error(at, "the template does not come to an end: too much to do"));
        }
        Ok(())
    }

    fn nodes(&mut self, nodes: &'v [Node], dot: &Val<'v>) -> Result<Flow> {
        for node in nodes {
            let known = self.variables.len();
            match node {
                Node::Text(text) => self.out.push(text),
                Node::Pipe(pipe) => self.print(pipe, dot)?,
                Node::Break => return Ok(Flow::Break),
                Node::Continue => return Ok(Flow::Continue),
                Node::Range { pipe, body, otherwise } => {
                    let flow = self.range(pipe, body, otherwise, dot)?;
                    self.variables.truncate(known);
                    if flow != Flow::On {
                        return Ok(flow);
                    }
                }
                Node::If { pipe, then, otherwise } | Node::With { pipe, then, otherwise } => {
                    let value = self.pipe(pipe, dot)?;
                    self.set(pipe, &value);
                    let flow = match (function::is_true(&value), node) {
                        (true, Node::With { .. }) => self.nodes(then, &value)?,
                        (true, _) => self.nodes(then, dot)?,
                        (false, _) => self.nodes(otherwise, dot)?,
                    };
                    self.variables.truncate(known);
                    if flow != Flow::On {
                        return Ok(flow);
                    }
                }
            }
        }
        Ok(Flow::On)
    }

    fn print(&mut self, pipe: &'v Pipe, dot: &Val<'v>) -> Result<()> {
        let value = self.pipe(pipe, dot)?;
        if !pipe.variables.is_empty() {
            self.set(pipe, &value);
        } else if value.is_null() {
            self.out.push("<no value>");
        } else {
            self.out.show(&value);
        }
        Ok(())
    }

    /// Assigns a value to the variable of a pipe.
    fn set(&mut self, pipe: &'v Pipe, value: &Val<'v>) {
        if let Some(name) = pipe.variables.last() {
            self.assign(name, value.clone(), pipe.declares);
        }
    }

    fn assign(&mut self, name: &'v str, value: Val<'v>, declares: bool) {
        match self.variables.iter_mut().rev().find(|(known, _)| *known == name) {
            Some((_, old)) if !declares => *old = value,
            _ => self.variables.push((name, value)),
        }
    }

    fn range(
        &mut self,
        pipe: &'v Pipe,
        body: &'v [Node],
        otherwise: &'v [Node],
        dot: &Val<'v>,
    ) -> Result<Flow> {
        let value = self.pipe(pipe, dot)?;
        let known = self.variables.len();
        let names = names(&value).map_err(|problem| self.error(pipe.at, problem))?;
        let mut count = 0;
        while let Some((key, element)) = element(&value, &names, count) {
            self.step(pipe.at)?;
            count += 1;
            if let [first, second] = pipe.variables.as_slice() {
                self.assign(first, key, pipe.declares);
                self.assign(second, element.clone(), pipe.declares);
            } else {
                self.set(pipe, &element);
            }
            let flow = self.nodes(body, &element)?;
            self.variables.truncate(known);
            if flow == Flow::Break {
                break;
            }
        }
        if count == 0 { self.nodes(otherwise, dot) } else { Ok(Flow::On) }
    }

    fn pipe(&mut self, pipe: &'v Pipe, dot: &Val<'v>) -> Result<Val<'v>> {
        let mut value = None;
        for command in &pipe.commands {
            value = Some(self.command(command, dot, value)?);
        }
        Ok(value.unwrap_or_else(Val::nothing))
    }

    fn command(
        &mut self,
        command: &'v Command,
        dot: &Val<'v>,
        piped: Option<Val<'v>>,
    ) -> Result<Val<'v>> {
        match &command.first.base {
            Base::Function(function) => {
                self.call(function, command.first.at, &command.arguments, dot, piped)
            }
            _ => self.operand(&command.first, dot),
        }
    }

    fn operand(&mut self, operand: &'v Operand, dot: &Val<'v>) -> Result<Val<'v>> {
        self.step(operand.at)?;
        let mut value = match &operand.base {
            Base::Dot => dot.clone(),
            Base::Literal(value) => Val::Ref(value),
            Base::Pipe(pipe) => self.pipe(pipe, dot)?,
            Base::Function(function) => self.call(function, operand.at, &[], dot, None)?,
            Base::Variable(name) => {
                let known = self.variables.iter().rev().find(|(known, _)| known == name);
                known.map_or_else(Val::nothing, |(_, value)| value.clone())
            }
        };
        for name in &operand.fields {
            value = value.field(name).map_err(|problem| self.error(operand.at, problem))?;
        }
        Ok(value)
    }

    fn call(
        &mut self,
        function: &Function,
        at: usize,
        arguments: &'v [Operand],
        dot: &Val<'v>,
        piped: Option<Val<'v>>,
    ) -> Result<Val<'v>> {
        self.step(at)?;
        let count = arguments.len() + usize::from(piped.is_some());
        function.check(count).map_err(|problem| self.error(at, problem))?;
        let call = match function.call() {
            Call::Of(call) => call,
            Call::FirstThatIs(wanted) => {
                let mut value = Val::nothing();
                for argument in arguments {
                    value = self.operand(argument, dot)?;
                    if function::is_true(&value) == wanted {
                        return Ok(value);
                    }
                }
                return Ok(piped.unwrap_or(value));
            }
        };
        let mut values = Vec::with_capacity(count);
        for argument in arguments {
            values.push(self.operand(argument, dot)?);
        }
        values.extend(piped);
        self.work(at, values.iter().map(|value| size(value)).sum())?;
        let value = call(&values)
            .map_err(|problem| self.error(at, format!("{}: {problem}", function.name())))?;
        self.work(at, size(&value))?;
        Ok(value)
    }

    fn work(&mut self, at: usize, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes > MAX_BYTES {
            return Err(self.error(at, "the template works on too much text"));
        }
        Ok(())
    }
}

/// Returns the sorted keys of a map to iterate over. Lists and numbers have none.
fn names(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Object(fields) => {
            Ok(print::sorted(fields).into_iter().map(|(name, _)| name.clone()).collect())
        }
        Value::Null | Value::Array(_) => Ok(Vec::new()),
        Value::Number(number) if number.is_i64() => Ok(Vec::new()),
        other => Err(format!("range wants a list or a map, not {}", function::kind(other))),
    }
}

/// Returns the next element of a range, with its key or index.
fn element<'v>(value: &Val<'v>, names: &[String], at: usize) -> Option<(Val<'v>, Val<'v>)> {
    match &**value {
        Value::Object(_) => {
            let name = Value::from(names.get(at)?.as_str());
            let element = value.at(&name).ok()??;
            Some((name.into(), element))
        }
        Value::Array(_) => Some((at.into(), value.at(&at.into()).ok()??)),
        // A range over a number counts from 0.
        Value::Number(number) => {
            (at as i64 <= number.as_i64()?.checked_sub(1)?).then(|| (at.into(), at.into()))
        }
        _ => None,
    }
}

/// Estimates the number of bytes that a function may have to process, or has created.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => 32 * list.len(),
        _ => 0,
    }
}
