//! Formats of events.

mod fit;
mod note;
mod text;
mod watch_event;

use std::str::FromStr;

use serde::Serialize;
use serde_json::Value;

use crate::custom_columns::Columns;
use crate::diff::{Diff, diff};
use crate::discovery::Type;
use crate::jsonpath::JsonPath;
use crate::labels;
use crate::path::Path;
use crate::record::Record;
use crate::template::Template;

pub(crate) use text::Columned;

/// The output format, chosen with `-o`.
#[derive(Clone, Debug)]
pub(crate) enum Output {
    /// A line for people.
    Text {
        /// Whether to add the columns of `kubectl get -o wide`.
        wide: bool,
    },
    Json,
    Yaml,
    Name,
    Template(Template),
    JsonPath(JsonPath),
    /// A line for people, with these columns instead of kubectl's.
    Columns(Columns),
}

impl FromStr for Output {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Output::Text { wide: false }),
            "wide" => Ok(Output::Text { wide: true }),
            "json" => Ok(Output::Json),
            "yaml" => Ok(Output::Yaml),
            "name" => Ok(Output::Name),
            "template" | "go-template" => {
                Err("a template follows: template='{{.metadata.name}}'".to_owned())
            }
            "jsonpath" => Err("a path follows: jsonpath='{.metadata.name}'".to_owned()),
            "custom-columns" => {
                Err("columns follow: custom-columns=NAME:.metadata.name".to_owned())
            }
            _ => expression(text).unwrap_or_else(|| Err(FORMS.to_owned())),
        }
    }
}

const FORMS: &str =
    "one of text, wide, json, yaml, name, template=…, jsonpath=… and custom-columns=… is expected";

fn expression(text: &str) -> Option<Result<Output, String>> {
    let (form, expression) = text.split_once('=')?;
    let output = match form {
        "template" | "go-template" => Template::parse(expression).map(Output::Template),
        "jsonpath" => JsonPath::parse(expression).map(Output::JsonPath),
        "custom-columns" => Columns::parse(expression).map(Output::Columns),
        _ => return None,
    };
    Some(output.map_err(|error| error.to_string()))
}

impl Output {
    /// Returns the format of `--watch-events`: JSON if the user named none.
    pub(crate) fn of_watch_events(self) -> Result<Self, String> {
        match self {
            Output::Text { wide: false } => Ok(Output::Json),
            Output::Json | Output::Yaml => Ok(self),
            _ => {
                Err("--watch-events prints JSON or YAML: give -o json, -o yaml or no -o".to_owned())
            }
        }
    }

    /// Returns an error if the format has no place for the labels that the user asked for.
    pub(crate) fn check(&self, labels: &labels::Options) -> Result<(), String> {
        let format = match self {
            Output::Text { .. } => return Ok(()),
            Output::Json => "json",
            Output::Yaml => "yaml",
            Output::Name => "name",
            Output::Template(_) => "template",
            Output::JsonPath(_) => "jsonpath",
            Output::Columns(_) => "custom-columns",
        };
        if labels.shows_all() {
            return Err(format!(
                "--show-labels option cannot be used with {format} printer\n\
                 it adds a column to -o text and -o wide"
            ));
        }
        Ok(())
    }
}

/// Formats an event as a line of JSON, with the state before an update on request.
pub(crate) fn event_json(record: &Record, old: bool) -> Result<String, String> {
    json_line(record, old, None)
}

/// A formatter of events.
pub(crate) struct Printer {
    output: Output,
    text: text::Text,
    extras: Extras,
}

/// Optional parts of the output.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Clone, Debug)]
pub(crate) struct Extras {
    pub(crate) colour: bool,
    pub(crate) headers: bool,
    /// Whether JSON and YAML include the state before an update.
    pub(crate) old: bool,
    /// Whether JSON and YAML have the form of Kubernetes' watches.
    pub(crate) watch_events: bool,
    /// Whether to show the changes of an update.
    pub(crate) diff: bool,
    /// The part of the object whose changes are shown.
    pub(crate) path: Option<Path>,
    /// The columns of labels.
    pub(crate) labels: labels::Options,
    /// The width of the terminal, if there is one.
    pub(crate) width: Option<usize>,
    /// Whether all objects are in one namespace, so that it need not be shown.
    pub(crate) one_namespace: bool,
}

impl Printer {
    pub(crate) fn new(output: Output, types: Vec<Columned>, extras: Extras) -> Self {
        let wide = matches!(output, Output::Text { wide: true });
        let own = if let Output::Columns(columns) = &output { Some(columns) } else { None };
        let text = text::Text::new(types, own, wide, extras.clone());
        Self { output, text, extras }
    }

    /// Formats an event, including its line ending. Returns `None` if nothing has changed in the
    /// part of the object to be shown.
    pub(crate) fn print(&mut self, record: &Record) -> Result<Option<String>, String> {
        let wanted = self.extras.diff || self.extras.path.is_some();
        let states = match wanted.then(|| record.old_value()).flatten() {
            Some(old) => Some((old?, record.value()?)),
            None => None,
        };
        let changes = states.map(|(old, new)| self.changes(old, new));
        let elsewhere = |diff: &Diff<'_>| diff.is_empty() && self.extras.path.is_some();
        if changes.as_ref().is_some_and(elsewhere) {
            return Ok(None);
        }
        let changes = changes.filter(|_| self.extras.diff);
        let text = match &self.output {
            Output::Text { .. } | Output::Columns(_) => self.text.line(record, changes.as_ref()),
            Output::Json if self.extras.watch_events => watch_event::json(record),
            Output::Yaml if self.extras.watch_events => watch_event::yaml(record),
            Output::Json => json_line(record, self.extras.old, changes.as_ref()),
            Output::Yaml => yaml_document(record, &self.extras, changes.as_ref()),
            Output::Name => {
                let name = record.watched.of.singular_name();
                Ok(format!("{name}/{}\n", record.object.name()))
            }
            Output::Template(template) => filled_in(template, record),
            Output::JsonPath(path) => found(path, record),
        };
        text.map(Some)
    }

    /// Shows changes from now on, or no longer. Returns which, or `None` if the format has no place
    /// for them.
    pub(crate) fn switch_diff(&mut self) -> Option<bool> {
        let form = &self.output;
        if self.extras.watch_events
            || matches!(form, Output::Name | Output::Template(_) | Output::JsonPath(_))
        {
            return None;
        }
        self.extras.diff = !self.extras.diff;
        Some(self.extras.diff)
    }

    /// Formats a bookmark of `--watch-events`: everything of the type up to this version has been
    /// printed. `listed` marks the end of the initial objects.
    pub(crate) fn bookmark(
        &self,
        of: &Type,
        version: &str,
        listed: bool,
    ) -> Result<String, String> {
        watch_event::bookmark(of, version, listed, matches!(self.output, Output::Json))
    }

    /// Adapts to the width of the terminal; `None` if there is none.
    pub(crate) fn resize(&mut self, width: Option<usize>) {
        self.extras.width = width;
        self.text.resize(width);
    }

    fn changes<'a>(&self, old: &'a Value, new: &'a Value) -> Diff<'a> {
        let diff = diff(old, new);
        match &self.extras.path {
            Some(path) => diff.under(path),
            None => diff,
        }
    }

    /// Makes room for the lines that follow, so that they are aligned.
    pub(crate) fn expect(&mut self, records: &[Record]) {
        if let Output::Text { .. } | Output::Columns(_) = self.output {
            self.text.expect(records);
        }
    }
}

/// The properties of an event, without its objects.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    r#type: &'a str,
    time: String,
    kind: &'a str,
    key: String,
    resource_version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_resource_version: Option<&'a str>,
    initial: bool,
    final_state_unknown: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<&'a Value>,
}

impl<'a> Envelope<'a> {
    fn new(record: &'a Record, changes: Option<&Diff<'_>>) -> Self {
        Self {
            r#type: record.happened.as_str(),
            time: format!("{:.3}", record.time),
            kind: &record.watched.of.kind,
            key: record.key(),
            resource_version: record.version(),
            old_resource_version: record.old_version(),
            initial: record.initial,
            final_state_unknown: record.final_state_unknown,
            diff: changes.map(Diff::to_json),
            object: None,
            old: None,
        }
    }
}

/// Formats an event as a line of JSON. Objects are copied from the server's bytes as they are.
fn json_line(record: &Record, old: bool, changes: Option<&Diff<'_>>) -> Result<String, String> {
    let envelope = serde_json::to_string(&Envelope::new(record, changes));
    let envelope = envelope.map_err(unwritable(record))?;
    let mut line = envelope.strip_suffix('}').unwrap_or(&envelope).to_owned();
    line.push_str(r#","object":"#);
    line.push_str(&record.json()?);
    if let Some(json) = old.then(|| record.old_json()).flatten() {
        line.push_str(r#","old":"#);
        line.push_str(&json?);
    }
    line.push_str("}\n");
    Ok(line)
}

fn yaml_document(
    record: &Record,
    extras: &Extras,
    changes: Option<&Diff<'_>>,
) -> Result<String, String> {
    let mut document = Envelope::new(record, changes);
    document.object = Some(record.value()?);
    document.old = extras.old.then(|| record.old_value()).flatten().transpose()?;
    let yaml = serde_saphyr::to_string(&document).map_err(unwritable(record))?;
    Ok(format!("---\n{}", ended(yaml)))
}

/// Renders a template, and adds a line ending if it has none, because another event follows.
fn filled_in(template: &Template, record: &Record) -> Result<String, String> {
    let event = serde_json::to_value(Envelope::new(record, None)).map_err(unwritable(record))?;
    let text = template.render(record.value()?, &event);
    text.map(ended).map_err(|error| format!("{}: {error}", record.object.key()))
}

fn found(path: &JsonPath, record: &Record) -> Result<String, String> {
    let text = path.render(record.value()?);
    text.map(ended).map_err(|error| format!("{}: {error}", record.object.key()))
}

fn ended(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn unwritable<E: std::fmt::Display>(record: &Record) -> impl Fn(E) -> String {
    move |error| format!("{} cannot be written: {error}", record.object.key())
}
