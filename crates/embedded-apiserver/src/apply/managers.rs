//! `metadata.managedFields`: which manager owns which fields.

use std::fmt;

use serde_json::Value;

use super::Object;
use super::set::Set;
use crate::quote::quoted;

/// The operation by which a manager came to own fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// The author of a write: a manager, the version of the API that it used, and the subresource that it wrote to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    pub(crate) api_version: String,
    /// Empty for writes to the object itself.
    pub(crate) subresource: String,
}

impl Author {
    /// Returns the author of a write by a part of the control plane.
    pub(crate) fn server(manager: &str, api_version: &str, subresource: &str) -> Self {
        Self {
            manager: manager.to_owned(),
            operation: Operation::Update,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// Returns whether two entries have the same author. A manager that applies has one entry, whatever version it uses.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }
}

impl fmt::Display for Author {
    /// Writes the author as conflicts name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quoted(&self.manager))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", quoted(&self.subresource))?;
        }
        match self.operation {
            Operation::Update => write!(f, " using {}", self.api_version),
            Operation::Apply => Ok(()),
        }
    }
}

/// An entry of `managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) author: Author,
    /// The time of the last change, in RFC 3339.
    pub(crate) time: Option<String>,
    pub(crate) fields: Set,
}

/// Update managers that an object keeps. The oldest are merged into one. Kubernetes has the same limit.
pub(crate) const UPDATERS_MAX: usize = 10;

/// The manager of the fields of merged managers.
const MERGED_UPDATERS: &str = "ancient-changes";

/// All managers of an object. Authors are distinct, and no set is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Managers(pub(crate) Vec<Entry>);

/// `managedFields` of a client that are invalid. A real server falls back to the stored ones.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidManagers;

impl Managers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a manager has applied a configuration.
    pub(crate) fn has_applied(&self) -> bool {
        self.0.iter().any(|entry| entry.author.operation == Operation::Apply)
    }

    /// Removes and returns the entry of an author.
    pub(crate) fn take(&mut self, author: &Author) -> Option<Entry> {
        let at = self.0.iter().position(|entry| entry.author.is_same_as(author))?;
        Some(self.0.remove(at))
    }

    /// Returns whether both have the same entries, apart from their times.
    pub(crate) fn equals_but_for_times(&self, other: &Self) -> bool {
        let same = |a: &Entry, b: &Entry| a.author == b.author && a.fields == b.fields;
        self.0.len() == other.0.len() && self.0.iter().all(|a| other.0.iter().any(|b| same(a, b)))
    }

    /// Merges the entries of the oldest managers that updated the object, if there are too many of them.
    pub(crate) fn cap(&mut self) {
        let is_update = |entry: &Entry| entry.author.operation == Operation::Update;
        let mut left = self.0.iter().filter(|entry| is_update(entry)).count();
        if left <= UPDATERS_MAX {
            return;
        }
        let mut oldest: Vec<Author> = Vec::with_capacity(left);
        self.sort();
        oldest.extend(
            self.0.iter().filter(|entry| is_update(entry)).map(|entry| entry.author.clone()),
        );
        // The first entry of each version waits for a second one.
        let mut first: Vec<Author> = Vec::new();
        for author in oldest {
            if left <= UPDATERS_MAX {
                break;
            }
            let Some(waiting) = first.iter().find(|other| other.api_version == author.api_version)
            else {
                first.push(author);
                continue;
            };
            let bucket = Author {
                manager: MERGED_UPDATERS.to_owned(),
                operation: Operation::Update,
                api_version: author.api_version.clone(),
                subresource: String::new(),
            };
            let merged = self.take(&bucket).or_else(|| self.take(waiting));
            let (Some(merged), Some(entry)) = (merged, self.take(&author)) else { continue };
            let fields = merged.fields.union(&entry.fields);
            self.0.push(Entry { author: bucket, time: entry.time, fields });
            left -= 1;
        }
    }

    /// Sorts the entries as a real server does.
    fn sort(&mut self) {
        self.0.sort_by(|a, b| {
            let key = |entry: &'_ Entry| (entry.author.operation, entry.time.clone());
            let (x, y) = (&a.author, &b.author);
            key(a)
                .cmp(&key(b))
                .then_with(|| x.manager.cmp(&y.manager))
                .then_with(|| x.api_version.cmp(&y.api_version))
                .then_with(|| x.subresource.cmp(&y.subresource))
        });
    }

    /// Returns the JSON of `managedFields`.
    pub(crate) fn to_json(&self) -> String {
        let mut sorted = self.clone();
        sorted.sort();
        let mut out = String::from("[");
        for (at, entry) in sorted.0.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            entry.write_json(&mut out);
        }
        out.push(']');
        out
    }

    /// Reads `managedFields`.
    pub(crate) fn from_json(entries: &[Value]) -> Result<Self, InvalidManagers> {
        let mut managers = Self::default();
        for entry in entries {
            let entry = Entry::from_json(entry)?;
            // As in a map, the last of several entries of an author counts.
            managers.take(&entry.author);
            managers.0.push(entry);
        }
        Ok(managers)
    }
}

impl Entry {
    fn write_json(&self, out: &mut String) {
        let author = &self.author;
        let mut member = |name: &str, text: &str| {
            out.push_str(if out.ends_with(['[', ',']) { "{\"" } else { ",\"" });
            out.push_str(name);
            out.push_str("\":");
            out.push_str(&Value::from(text).to_string());
        };
        member("manager", &author.manager);
        member("operation", author.operation.as_str());
        member("apiVersion", &author.api_version);
        if let Some(time) = &self.time {
            member("time", time);
        }
        member("fieldsType", "FieldsV1");
        if !author.subresource.is_empty() {
            member("subresource", &author.subresource);
        }
        out.push_str(",\"fieldsV1\":");
        self.fields.write_json(out);
        out.push('}');
    }

    fn from_json(entry: &Value) -> Result<Self, InvalidManagers> {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let operation = match entry["operation"].as_str() {
            Some("Apply") => Operation::Apply,
            Some("Update") => Operation::Update,
            _ => return Err(InvalidManagers),
        };
        let api_version = text("apiVersion");
        if api_version.is_empty() || entry["fieldsType"] != "FieldsV1" {
            return Err(InvalidManagers);
        }
        let empty = Object::new();
        let fields = entry["fieldsV1"].as_object().unwrap_or(&empty);
        Ok(Self {
            author: Author {
                manager: text("manager"),
                operation,
                api_version,
                subresource: text("subresource"),
            },
            time: entry["time"].as_str().map(str::to_owned),
            fields: Set::from_json(fields).map_err(|_| InvalidManagers)?,
        })
    }
}
