//! How events are shown.

mod text;

use std::str::FromStr;

use serde::Serialize;
use serde_json::Value;

use crate::record::Record;

pub(crate) use text::Columned;

/// What `-o` chooses.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Output {
    /// A line for people.
    Text {
        /// With the columns that `kubectl get -o wide` has in addition.
        wide: bool,
    },
    Json,
    Yaml,
    Name,
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
            _ => Err("text, wide, json, yaml, name or template=… are".to_owned()),
        }
    }
}

/// Makes text of events.
pub(crate) struct Printer {
    output: Output,
    text: text::Text,
    old: bool,
}

/// What else to show of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extras {
    pub(crate) colour: bool,
    pub(crate) headers: bool,
    /// The state before an update, in JSON and YAML.
    pub(crate) old: bool,
}

impl Printer {
    pub(crate) fn new(output: Output, types: Vec<Columned>, extras: Extras) -> Self {
        let wide = output == Output::Text { wide: true };
        Self { output, text: text::Text::new(types, wide, extras), old: extras.old }
    }

    /// The text of an event, with the end of its line.
    pub(crate) fn print(&mut self, record: &Record) -> Result<String, String> {
        match self.output {
            Output::Text { .. } => self.text.line(record),
            Output::Json => json_line(record, self.old),
            Output::Yaml => yaml_document(record, self.old),
            Output::Name => {
                let name = record.watched.of.singular_name();
                Ok(format!("{name}/{}\n", record.object.name()))
            }
        }
    }

    /// Makes room for lines that are about to come, so that they are aligned.
    pub(crate) fn expect(&mut self, records: &[Record]) {
        if let Output::Text { .. } = self.output {
            self.text.expect(records);
        }
    }
}

/// What the event is, without its objects.
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
    object: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Value>,
}

impl<'a> Envelope<'a> {
    fn new(record: &'a Record) -> Self {
        Self {
            r#type: record.happened.as_str(),
            time: format!("{:.3}", record.time),
            kind: &record.watched.of.kind,
            key: record.key(),
            resource_version: record.version(),
            old_resource_version: record.old_version(),
            initial: record.initial,
            final_state_unknown: record.final_state_unknown,
            object: None,
            old: None,
        }
    }
}

/// Objects go from the server's bytes to the line as they are.
fn json_line(record: &Record, old: bool) -> Result<String, String> {
    let envelope = serde_json::to_string(&Envelope::new(record)).map_err(unwritable(record))?;
    let mut line = envelope.strip_suffix('}').unwrap_or(&envelope).to_owned();
    line.push_str(r#","object":"#);
    line.push_str(&record.json()?);
    if let Some(json) = record.old_json().filter(|_| old) {
        line.push_str(r#","old":"#);
        line.push_str(&json?);
    }
    line.push_str("}\n");
    Ok(line)
}

fn yaml_document(record: &Record, old: bool) -> Result<String, String> {
    let mut document = Envelope::new(record);
    document.object = Some(record.value()?);
    document.old = record.old_value().filter(|_| old).transpose()?;
    let yaml = serde_saphyr::to_string(&document).map_err(unwritable(record))?;
    Ok(format!("---\n{}\n", yaml.trim_end()))
}

fn unwritable<E: std::fmt::Display>(record: &Record) -> impl Fn(E) -> String {
    move |error| format!("{} cannot be written: {error}", record.key())
}
