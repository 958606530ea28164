//! Normalizes responses, by removing parts that vary.

use std::sync::LazyLock;

use regex_lite::Regex;
use serde_json::Value;

use super::run::Variables;
use crate::http::Ask;

/// A longer prefix is truncated, so that the generated name is no longer than a label.
const PREFIX_BYTES_MAX: usize = 58;

struct Patterns {
    version: Regex,
    time: Regex,
    micro_time: Regex,
    uid: Regex,
    age: Regex,
    said: Regex,
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let pattern = |text: &str| Regex::new(text).expect("a pattern");
    Patterns {
        version: pattern(r"^[1-9][0-9]*$"),
        time: pattern(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"),
        micro_time: pattern(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"),
        uid: pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
        age: pattern(r"^(\d+[smhd])+$"),
        said: pattern(r"(current: |resource version: \d+ \()\d+"),
    }
});

/// Removes the varying parts of responses.
#[derive(Default)]
pub(crate) struct Normal {
    /// Patterns for generated names, and their replacements.
    made_up: Vec<(Regex, String)>,
    /// Whether managedFields are compared.
    managers: bool,
}

impl Normal {
    /// Returns the rules of a topic. Only those about server-side apply compare managedFields: the fields of other
    /// objects differ by their defaults.
    pub(crate) fn of_topic(topic: &str) -> Self {
        Self { managers: topic.starts_with("apply"), ..Self::default() }
    }

    /// Registers a request. Names that the server generates for it keep their prefix.
    pub(crate) fn learn(&mut self, ask: &Ask) {
        // Most bodies are JSON; others have no generated names.
        let body: Value = serde_json::from_str(&ask.body).unwrap_or_default();
        if let Some(prefix) = body.pointer("/metadata/generateName").and_then(Value::as_str) {
            let prefix = &prefix[..prefix.len().min(PREFIX_BYTES_MAX)];
            let pattern = Regex::new(&format!(r"\b{prefix}[a-z0-9]{{5}}\b"));
            self.made_up.push((pattern.expect("a pattern"), format!("{prefix}<random>")));
        }
    }

    /// Returns a response in the form that is compared.
    pub(crate) fn form(&self, mut answer: Value, variables: &Variables) -> Value {
        self.reduce(&mut answer, variables);
        answer
    }

    fn reduce(&self, value: &mut Value, variables: &Variables) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.reduce(item, variables)),
            Value::Object(fields) => {
                if !self.managers {
                    fields.remove("managedFields");
                }
                // They are sorted by their times, which differ.
                if let Some(Value::Array(entries)) = fields.get_mut("managedFields") {
                    entries.sort_by_key(|entry| {
                        ["operation", "manager", "subresource"].map(|name| entry[name].to_string())
                    });
                }
                for (name, value) in fields.iter_mut() {
                    match value {
                        Value::String(text) => *text = self.plain(name, text, variables),
                        Value::Array(cells) if name == "cells" => {
                            for cell in cells {
                                self.timeless(cell);
                            }
                        }
                        other => self.reduce(other, variables),
                    }
                }
            }
            _ => {}
        }
    }

    fn plain(&self, field: &str, text: &str, variables: &Variables) -> String {
        let known = &*PATTERNS;
        match field {
            "resourceVersion" if known.version.is_match(text) => "<version>".to_owned(),
            "continue" if !text.is_empty() => "<continue>".to_owned(),
            "serverAddress" => "<address>".to_owned(),
            _ if known.time.is_match(text) => "<time>".to_owned(),
            _ if known.micro_time.is_match(text) => "<micro time>".to_owned(),
            "message" | "body" => self.spoken(text, variables),
            _ => self.anonymous(text),
        }
    }

    fn anonymous(&self, text: &str) -> String {
        let mut text = PATTERNS.uid.replace_all(text, "<uid>").into_owned();
        for (pattern, name) in &self.made_up {
            text = pattern.replace_all(&text, name.as_str()).into_owned();
        }
        text
    }

    /// Removes versions and uids from a message.
    fn spoken(&self, text: &str, variables: &Variables) -> String {
        let mut text = self.anonymous(text);
        text = PATTERNS.said.replace_all(&text, "$1<version>").into_owned();
        for (name, value) in variables {
            if value.bytes().all(|byte| byte.is_ascii_digit()) {
                // But not if they are part of another number.
                let whole = Regex::new(&format!(r"\b{value}\b")).expect("digits are a pattern");
                text = whole.replace_all(&text, format!("<{name}>")).into_owned();
            }
        }
        text
    }

    fn timeless(&self, cell: &mut Value) {
        let Some(text) = cell.as_str() else { return };
        *cell = match text {
            text if PATTERNS.age.is_match(text) => "<age>".into(),
            text if PATTERNS.time.is_match(text) => "<time>".into(),
            text => self.anonymous(text).into(),
        };
    }
}
