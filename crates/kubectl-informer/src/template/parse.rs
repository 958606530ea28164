//! Parses templates.

use super::function::Function;
use super::lex::{self, Kind, Token};
use super::{Base, Command, EVENT, Node, OBJECT, Operand, Pipe};
use crate::syntax::SyntaxError;

/// The limit on the nesting of actions and parentheses, because rendering is recursive.
const MAX_DEPTH: usize = 64;

type Result<T> = std::result::Result<T, SyntaxError>;
/// Nodes, and the action that ended them with its position, unless the template ended.
type Nodes = (Vec<Node>, Option<(usize, End)>);

pub(super) fn parse(source: &str) -> Result<Vec<Node>> {
    let mut parser = Parser {
        source,
        tokens: lex::tokens(source)?,
        next: 0,
        variables: vec![OBJECT.to_owned(), EVENT.to_owned()],
        depth: 0,
        loops: 0,
    };
    match parser.nodes()? {
        (nodes, None) => Ok(nodes),
        (_, Some((at, end))) => {
            let problem =
                format!("{{{{{}}}}} without {{{{if}}}}, {{{{range}}}} or {{{{with}}}}", end.word());
            Err(SyntaxError::new(source, at, problem))
        }
    }
}

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    /// The index of the next token.
    next: usize,
    /// The variables in scope.
    variables: Vec<String>,
    depth: usize,
    loops: usize,
}

/// The action that ended a list of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    End,
    Else,
}

impl End {
    fn word(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Else => "else",
        }
    }
}

impl Parser<'_> {
    fn error(&self, at: usize, problem: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.source, at, problem)
    }

    /// Returns the kind of the next token without consuming it.
    fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.next).map(|token| &token.kind)
    }

    /// Returns the position of the next token.
    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.source.len(), |token| token.at)
    }

    fn take(&mut self, kind: &Kind) -> bool {
        let found = self.peek() == Some(kind);
        self.next += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Kind::Word(is)) if is == word);
        self.next += usize::from(found);
        found
    }

    fn close(&mut self, after: &str) -> Result<()> {
        let at = self.at();
        if self.take(&Kind::Close) {
            return Ok(());
        }
        Err(self.error(at, format!("expected }}}} after {after}")))
    }

    /// Parses nodes up to the end of the template, or up to `{{end}}` or `{{else`, and returns the
    /// position of that. After `else`, its `}}` has not been consumed yet.
    fn nodes(&mut self) -> Result<Nodes> {
        let mut nodes = Vec::new();
        while let Some(token) = self.tokens.get(self.next) {
            self.next += 1;
            let at = token.at;
            if let Kind::Text(text) = &token.kind {
                nodes.push(Node::Text(text.clone()));
            } else if self.word("end") {
                self.close("end")?;
                return Ok((nodes, Some((at, End::End))));
            } else if self.word("else") {
                return Ok((nodes, Some((at, End::Else))));
            } else {
                nodes.push(self.action()?);
            }
        }
        Ok((nodes, None))
    }

    /// Parses an action after its `{{`.
    fn action(&mut self) -> Result<Node> {
        let at = self.at();
        if self.word("if") || self.word("with") || self.word("range") {
            return self.block(at);
        }
        for (word, node) in [("break", Node::Break), ("continue", Node::Continue)] {
            if self.word(word) {
                if self.loops == 0 {
                    return Err(self.error(at, format!("{{{{{word}}}}} outside of {{{{range}}}}")));
                }
                self.close(word)?;
                return Ok(node);
            }
        }
        if self.word("define") || self.word("template") || self.word("block") {
            return Err(self.error(at, "templates within templates are not supported"));
        }
        let pipe = self.pipe("an action", 1)?;
        self.close("the value")?;
        Ok(Node::Pipe(pipe))
    }

    fn deeper(&mut self, at: usize) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(at, format!("more than {MAX_DEPTH} levels within each other")));
        }
        Ok(())
    }

    /// Parses `if`, `with` or `range`, after the keyword at this position.
    fn block(&mut self, at: usize) -> Result<Node> {
        self.deeper(at)?;
        let known = self.variables.len();
        let word = self.source[at..].split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        let is_range = word == "range";
        let pipe = self.pipe(word, if is_range { 2 } else { 1 })?;
        self.close(word)?;
        self.loops += usize::from(is_range);
        let known_inside = self.variables.len();
        let (then, end) = self.nodes()?;
        self.variables.truncate(known_inside);
        self.loops -= usize::from(is_range);
        let otherwise = self.otherwise(at, word, end)?;
        self.variables.truncate(known);
        self.depth -= 1;
        Ok(match word {
            "if" => Node::If { pipe, then, otherwise },
            "with" => Node::With { pipe, then, otherwise },
            _ => Node::Range { pipe, body: then, otherwise },
        })
    }

    /// Parses the `else` branch, if there is one.
    fn otherwise(&mut self, at: usize, word: &str, end: Option<(usize, End)>) -> Result<Vec<Node>> {
        match end {
            None => Err(self.error(at, format!("{{{{{word}}}}} without {{{{end}}}}"))),
            Some((_, End::End)) => Ok(Vec::new()),
            Some((_, End::Else)) => {
                let at = self.at();
                // `{{else if …}}` has no `{{end}}` of its own.
                if word != "range" && self.word(word) {
                    return Ok(vec![self.block(at)?]);
                }
                self.close("else")?;
                match self.nodes()? {
                    (nodes, Some((_, End::End))) => Ok(nodes),
                    (_, Some((at, End::Else))) => Err(self.error(at, "a second {{else}}")),
                    (_, None) => Err(self.error(at, "{{else}} without {{end}}")),
                }
            }
        }
    }

    /// Parses commands, and the variables that the value is assigned to.
    fn pipe(&mut self, context: &str, variables_max: usize) -> Result<Pipe> {
        let at = self.at();
        let (variables, declares) = self.declarations(variables_max)?;
        let mut commands: Vec<Command> = Vec::new();
        loop {
            let at = self.at();
            let Some(command) = self.command()? else {
                return Err(self.error(at, format!("a value is missing in {context}")));
            };
            let runs = matches!(command.first.base, Base::Function(_));
            if !commands.is_empty() && !runs {
                return Err(self.error(at, "only functions can follow a |"));
            }
            commands.push(command);
            if !self.take(&Kind::Sign("|")) {
                break;
            }
        }
        if declares {
            self.variables.extend(variables.iter().cloned());
        }
        Ok(Pipe { at, variables, declares, commands })
    }

    /// Parses `$x :=`, `$x =` or `$i, $x :=`. Only the token after the variables tells whether this
    /// is a declaration.
    fn declarations(&mut self, max: usize) -> Result<(Vec<String>, bool)> {
        let at = self.at();
        let mut names = Vec::new();
        let mut ahead = self.tokens[self.next..].iter().map(|token| &token.kind);
        let declares = loop {
            let Some(Kind::Variable(name)) = ahead.next() else { return Ok((Vec::new(), false)) };
            names.push(name.clone());
            match ahead.next() {
                Some(Kind::Sign(",")) => {}
                Some(Kind::Sign(":=")) => break true,
                Some(Kind::Sign("=")) => break false,
                _ => return Ok((Vec::new(), false)),
            }
        };
        if names.len() > max {
            return Err(self.error(at, "too many variables").hint(
                "two are set by range only: {{range $index, $element := .spec.containers}}",
            ));
        }
        if let Some(name) = names.iter().find(|name| !declares && !self.variables.contains(name)) {
            let problem = format!("the variable {name} is not known here");
            return Err(self.error(at, problem).hint(format!("set it first: {name} := …")));
        }
        // Each name is followed by a sign.
        self.next += 2 * names.len();
        Ok((names, declares))
    }

    fn command(&mut self) -> Result<Option<Command>> {
        let Some(first) = self.operand()? else { return Ok(None) };
        let mut arguments = Vec::new();
        loop {
            let (at, apart) = self.tokens.get(self.next).map_or((0, true), |t| (t.at, t.apart));
            let Some(argument) = self.operand()? else { break };
            if !apart {
                return Err(self.error(at, "a space is missing here"));
            }
            arguments.push(argument);
        }
        if let (Base::Function(function), true) = (first.base.clone(), first.fields.is_empty()) {
            // The pipe may add one more argument.
            if arguments.len() > function.most() {
                let problem = format!("{} takes {}", function.name(), function.takes());
                return Err(self.error(first.at, problem));
            }
        } else if let Some(argument) = arguments.first() {
            return Err(self.error(argument.at, "a value before this one is no function").hint(
                "put function calls that are arguments into parentheses: {{eq (len .items) 3}}",
            ));
        }
        Ok(Some(Command { first, arguments }))
    }

    fn operand(&mut self) -> Result<Option<Operand>> {
        let at = self.at();
        let base = match self.peek() {
            Some(Kind::Dot) => Base::Dot,
            // The field itself is parsed below.
            Some(Kind::Field(_)) => {
                return Ok(Some(Operand { at, base: Base::Dot, fields: self.fields(true) }));
            }
            Some(Kind::Variable(name)) => {
                let name = name.clone();
                if !self.variables.contains(&name) {
                    let problem = format!("the variable {name} is not known here");
                    return Err(self.error(at, problem).hint(format!("set it first: {name} := …")));
                }
                Base::Variable(name)
            }
            Some(Kind::Literal(value)) => Base::Literal(value.clone()),
            Some(Kind::Word(name)) => {
                let name = name.clone();
                let function = Function::named(&name);
                Base::Function(
                    function.map_err(|(problem, hint)| self.error(at, problem).hint(hint))?,
                )
            }
            Some(Kind::Sign("(")) => {
                self.next += 1;
                return self.parentheses(at).map(Some);
            }
            _ => return Ok(None),
        };
        self.next += 1;
        let fields = if matches!(base, Base::Literal(_) | Base::Function(_)) {
            Vec::new()
        } else {
            self.fields(false)
        };
        Ok(Some(Operand { at, base, fields }))
    }

    fn parentheses(&mut self, at: usize) -> Result<Operand> {
        self.deeper(at)?;
        let pipe = self.pipe("parentheses", 0)?;
        if !self.take(&Kind::Sign(")")) {
            return Err(self.error(at, "this ( is not closed with )"));
        }
        self.depth -= 1;
        Ok(Operand { at, base: Base::Pipe(Box::new(pipe)), fields: self.fields(false) })
    }

    /// Parses the fields that follow directly.
    fn fields(&mut self, mut first: bool) -> Vec<String> {
        let mut fields = Vec::new();
        while let Some(Token { kind: Kind::Field(name), apart, .. }) = self.tokens.get(self.next) {
            if *apart && !first {
                break;
            }
            first = false;
            fields.push(name.clone());
            self.next += 1;
        }
        fields
    }
}
