//! Output templates in the language of Go's `text/template`, which people know from kubectl.
//!
//! `.` is the object, and `$event` describes the event:
//! `{{$event.type}} {{.metadata.name}}{{"\n"}}`.
//!
//! The language is complete as far as people use it with kubectl; nested templates (`define`) are
//! missing. It is more lenient in one way: the fields, elements and length of a missing value are
//! empty, while Go fails. In a stream of events there is always one object without labels.

mod function;
mod lex;
pub(crate) mod literal;
mod parse;
pub(crate) mod print;
mod printf;
mod run;

use serde_json::Value;

use crate::syntax::SyntaxError;

/// A parsed template.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    source: String,
    nodes: Vec<Node>,
}

/// A part of a template.
#[derive(Debug, Clone)]
enum Node {
    Text(String),
    /// A value that is printed, or assigned to a variable.
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

/// A chain of commands, each of which receives the value of the previous one.
#[derive(Debug, Clone)]
struct Pipe {
    at: usize,
    /// The variables that the value is assigned to.
    variables: Vec<String>,
    /// Whether the variables are declared here.
    declares: bool,
    commands: Vec<Command>,
}

#[derive(Debug, Clone)]
struct Command {
    first: Operand,
    arguments: Vec<Operand>,
}

/// A value followed by fields: `$pod.metadata.name`.
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

/// The variables of the object and of the event.
const OBJECT: &str = "$";
const EVENT: &str = "$event";

impl Template {
    /// Parses a template.
    pub(crate) fn parse(source: &str) -> Result<Self, SyntaxError> {
        Ok(Self { source: source.to_owned(), nodes: parse::parse(source)? })
    }

    /// Renders an object, with the event about it.
    pub(crate) fn render(&self, object: &Value, event: &Value) -> Result<String, SyntaxError> {
        run::run(self, object, event)
    }
}

#[cfg(test)]
mod tests;
