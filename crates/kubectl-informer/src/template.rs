//! Templates for output, in the language of Go's `text/template`, which people know from kubectl.
//!
//! `.` is the object, `$event` what happened to it: `{{$event.type}} {{.metadata.name}}{{"\n"}}`.
//!
//! It is Go's language as far as people use it with kubectl, without nested templates (`define`). It is
//! kinder in one way: what is not there has no fields, elements or length, where Go gives up. In a
//! stream of events there is always one object without labels.

mod function;
mod lex;
pub(crate) mod literal;
mod parse;
pub(crate) mod print;
mod printf;
mod run;

use serde_json::Value;

use crate::syntax::SyntaxError;

/// A template that was understood.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    source: String,
    nodes: Vec<Node>,
}

/// What a template consists of.
#[derive(Debug, Clone)]
enum Node {
    Text(String),
    /// A value that is printed, or put into a variable.
    Pipe(Pipe),
    If {
        pipe: Pipe,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    With {
        pipe: Pipe,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Range {
        pipe: Pipe,
        body: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Break,
    Continue,
}

/// Commands, each of which gets the value of the one before it.
#[derive(Debug, Clone)]
struct Pipe {
    at: usize,
    /// The variables that get the value.
    variables: Vec<String>,
    /// Whether they are new.
    declares: bool,
    commands: Vec<Command>,
}

#[derive(Debug, Clone)]
struct Command {
    first: Operand,
    arguments: Vec<Operand>,
}

/// A value with fields of it: `$pod.metadata.name`.
#[derive(Debug, Clone)]
struct Operand {
    at: usize,
    base: Base,
    fields: Vec<String>,
}

#[derive(Debug, Clone)]
enum Base {
    Dot,
    Variable(String),
    Literal(Value),
    Function(function::Function),
    Pipe(Box<Pipe>),
}

/// The variable of the object itself, and that of the event.
const OBJECT: &str = "$";
const EVENT: &str = "$event";

impl Template {
    /// Reads a template.
    pub(crate) fn parse(source: &str) -> Result<Self, SyntaxError> {
        Ok(Self { source: source.to_owned(), nodes: parse::parse(source)? })
    }

    /// What it makes of an object, and of what happened to it.
    pub(crate) fn render(&self, object: &Value, event: &Value) -> Result<String, SyntaxError> {
        run::run(self, object, event)
    }
}

#[cfg(test)]
mod tests;
