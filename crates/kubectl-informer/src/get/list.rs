//! Prints objects as kubectl does: as a `List`, or as one object. Only one object at a time is in
//! memory as a tree.

use std::io::{self, Write};

use kube_informer::{Object, Untyped};
use serde::ser::{Error as _, SerializeSeq as _};
use serde::{Serialize, Serializer};
use serde_json::ser::PrettyFormatter;
use serde_json::{Value, json};

use crate::discovery::Type;
use crate::record;
use crate::syntax::SyntaxError;

/// Objects with their types.
pub(super) struct Items<'a>(pub(super) Vec<(&'a Type, &'a Object<Untyped>)>);

/// A `List`, with its fields in alphabetical order, as in kubectl.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    api_version: &'a str,
    items: &'a Items<'a>,
    kind: &'a str,
    metadata: Value,
}

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for (of, object) in &self.0 {
            seq.serialize_element(&value(of, object).map_err(S::Error::custom)?)?;
        }
        seq.end()
    }
}

impl Items<'_> {
    /// Writes JSON. If a single object was requested and does not exist, writes nothing. The inner
    /// error is that of the output.
    pub(super) fn json(
        &self,
        out: &mut impl Write,
        single: bool,
    ) -> Result<io::Result<()>, String> {
        let mut json = serde_json::Serializer::with_formatter(
            &mut *out,
            PrettyFormatter::with_indent(b"    "),
        );
        let done = match self.0.as_slice() {
            [] if single => return Ok(Ok(())),
            [(of, object)] if single => value(of, object)?.serialize(&mut json),
            _ => List { api_version: "v1", items: self, kind: "List", metadata: metadata() }
                .serialize(&mut json),
        };
        match done {
            Ok(()) => Ok(out.write_all(b"\n")),
            Err(error) if error.is_io() => Ok(Err(error.into())),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Renders all objects as one text. As in kubectl, `.` is the single object that was requested,
    /// or the list with its `items`.
    pub(super) fn one_text(
        &self,
        out: &mut impl Write,
        single: bool,
        render: impl FnOnce(&Value) -> Result<String, SyntaxError>,
    ) -> Result<io::Result<()>, String> {
        let value = match self.0.as_slice() {
            [] if single => return Ok(Ok(())),
            [(of, object)] if single => value(of, object)?,
            _ => json!({"apiVersion": "v1", "items": self, "kind": "List", "metadata": metadata()}),
        };
        let text = render(&value).map_err(|error| error.to_string())?;
        Ok(out.write_all(text.as_bytes()))
    }

    /// Writes YAML, under the same rules as [`json`](Self::json).
    pub(super) fn yaml(
        &self,
        out: &mut impl Write,
        single: bool,
    ) -> Result<io::Result<()>, String> {
        match self.0.as_slice() {
            [] if single => return Ok(Ok(())),
            [(of, object)] if single => {
                return Ok(out.write_all(yaml(&value(of, object)?)?.as_bytes()));
            }
            [] => return Ok(out.write_all(b"apiVersion: v1\nitems: []\n").and_then(|()| end(out))),
            _ => {}
        }
        if let Err(error) = out.write_all(b"apiVersion: v1\nitems:\n") {
            return Ok(Err(error));
        }
        for (of, object) in &self.0 {
            let mut text = String::new();
            let yaml = yaml(&value(of, object)?)?;
            // Not `lines`, which would remove carriage returns.
            for (number, line) in yaml.strip_suffix('\n').unwrap_or(&yaml).split('\n').enumerate() {
                let indent = match (number, line) {
                    (0, _) => "- ",
                    (_, "") => "",
                    _ => "  ",
                };
                text.push_str(&format!("{indent}{line}\n"));
            }
            if let Err(error) = out.write_all(text.as_bytes()) {
                return Ok(Err(error));
            }
        }
        Ok(end(out))
    }
}

fn end(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"kind: List\nmetadata:\n  resourceVersion: \"\"\n")
}

fn metadata() -> Value {
    json!({"resourceVersion": ""})
}

/// Returns an object with its kind and version.
pub(super) fn value(of: &Type, object: &Object<Untyped>) -> Result<Value, String> {
    record::parsed(&record::complete(object, of)?)
}

/// Serializes to YAML with a final line ending. As in kubectl, long strings are not folded.
fn yaml(value: &Value) -> Result<String, String> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let mut text = serde_saphyr::to_string_with_options(value, options)
        .map_err(|error| format!("an object cannot be written as YAML: {error}"))?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}
