//! The schema as text: one line per field, so that a new version of Kubernetes is a readable diff.

use super::join::{Schema, SchemaField, SchemaMessage};

/// Writes the file.
pub(super) fn write(schema: &Schema, version: &str) -> String {
    let mut out = format!(
        "# Written by `cargo xtask schema` from k8s.io/api {version} and its companions. Do not edit.\n\
         #\n\
         # package NAME [APIVERSION]\n\
         # NAME [kind] [atomic] [FORM]\n\
         #   NUMBER JSONNAME TYPE [OPTION…]\n\
         #\n\
         # Types are in Go's notation: `*int32` is written only if it is set, `int32` always.\n\
         # A FORM is the JSON of messages that are no objects there. `alias` is a kind of another package.\n\
         # A strategic merge patch merges lists with `merge`, by the field KEY of an item with `merge=KEY`; it replaces\n\
         # objects with `replace`. Clients list the fields of objects with `retainkeys` in their patches.\n\
         # Server-side apply merges lists as a `set` of scalars or by the fields of an item (`map=KEY,…`); it replaces\n\
         # whole lists, maps and objects that are `atomic`. A `granular` object is merged although its type is atomic.\n\
         # `default` is the value of a field that identifies items of a list, of items without it.\n"
    );
    for package in schema {
        out.push_str(&format!("\npackage {}", package.name));
        if let Some(api_version) = &package.api_version {
            out.push_str(&format!(" {api_version}"));
        }
        out.push('\n');
        for (name, target) in &package.aliases {
            out.push_str(&format!("alias {name} {target}\n"));
        }
        for message in &package.messages {
            write_message(&mut out, &format!("{}.", package.name), message);
        }
    }
    out
}

fn write_message(out: &mut String, package: &str, message: &SchemaMessage) {
    out.push_str(&message.name);
    if message.is_kind {
        out.push_str(" kind");
    }
    if message.is_atomic {
        out.push_str(" atomic");
    }
    if let Some(form) = message.form {
        out.push_str(&format!(" {form}"));
    }
    out.push('\n');
    for SchemaField { number, name, kind, options } in &message.fields {
        let kind = kind.replace(package, "");
        out.push_str(&format!("  {number} {name} {kind}"));
        for option in options {
            out.push_str(&format!(" {option}"));
        }
        out.push('\n');
    }
}
