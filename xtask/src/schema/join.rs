//! Joins protobuf and Go declarations into one description of each message that kinds consist of.

use std::collections::{BTreeMap, BTreeSet};

use super::golang::{GoField, GoType};
use super::modules::{Package, short};
use super::proto::{Label, ProtoField, ProtoMessage};

/// Types with custom JSON marshalling, and the form of their JSON.
const FORMS: [(&str, &str); 10] = [
    ("Time", "time"),
    ("MicroTime", "microtime"),
    ("Quantity", "quantity"),
    ("IntOrString", "intorstring"),
    ("RawExtension", "raw"),
    ("FieldsV1", "raw"),
    ("JSON", "raw"),
    ("JSONSchemaPropsOrBool", "orbool"),
    ("JSONSchemaPropsOrArray", "orarray"),
    ("JSONSchemaPropsOrStringArray", "orarray"),
];

/// Sent in watches, but not a kind itself.
const WATCH_EVENT: &str = "meta/v1.WatchEvent";

/// Packages, sorted by name.
pub(super) type Schema = Vec<SchemaPackage>;

#[derive(Debug)]
pub(super) struct SchemaPackage {
    pub(super) name: String,
    /// `None` if the package has no kinds.
    pub(super) api_version: Option<String>,
    pub(super) messages: Vec<SchemaMessage>,
    /// Kinds that are aliases of another package's messages.
    pub(super) aliases: Vec<(String, String)>,
}

#[derive(Debug)]
pub(super) struct SchemaMessage {
    pub(super) name: String,
    pub(super) is_kind: bool,
    /// Whether server-side apply replaces it as a whole.
    pub(super) is_atomic: bool,
    pub(super) form: Option<&'static str>,
    pub(super) fields: Vec<SchemaField>,
    /// Why it could not be joined, which matters only if a kind refers to it.
    problem: Option<String>,
}

#[derive(Debug)]
pub(super) struct SchemaField {
    pub(super) number: u32,
    /// The name in JSON; for an inlined message, the name in protobuf.
    pub(super) name: String,
    /// In Go's notation: `*int32`, `[]core/v1.Volume`, `map[string]string`.
    pub(super) kind: String,
    pub(super) options: Vec<String>,
}

/// Joins both descriptions, and drops messages that no kind refers to.
pub(super) fn schema(packages: &[Package]) -> Result<Schema, String> {
    let types = packages.iter().map(|package| (&*package.name, package)).collect();
    let join = Join { packages: types, keys: map_keys(packages) };
    let mut schema: Schema = packages.iter().map(|package| join.package(package)).collect();
    schema.sort_by(|a, b| a.name.cmp(&b.name));
    let wanted = reachable(&schema)?;
    for package in &mut schema {
        package
            .messages
            .retain(|message| wanted.contains(&format!("{}.{}", package.name, message.name)));
    }
    schema.retain(|package| !package.messages.is_empty() || !package.aliases.is_empty());
    Ok(schema)
}

struct Join<'a> {
    packages: BTreeMap<&'a str, &'a Package>,
    /// The names of all fields that identify items of lists.
    keys: BTreeSet<&'a str>,
}

fn map_keys(packages: &[Package]) -> BTreeSet<&str> {
    let types = packages.iter().flat_map(|package| package.go.types.values());
    let fields = types.filter_map(|declared| match declared {
        GoType::Struct(fields) => Some(fields),
        _ => None,
    });
    let keys = fields.flatten().flat_map(|field| &field.markers.list_map_keys);
    keys.map(String::as_str).collect()
}

impl Join<'_> {
    fn package(&self, package: &Package) -> SchemaPackage {
        let messages = package.proto.messages.iter();
        let mut messages: Vec<_> = messages.map(|message| self.message(package, message)).collect();
        messages.sort_by(|a, b| a.name.cmp(&b.name));
        let version = package.name.rsplit('/').next().unwrap_or_default();
        let api_version = package.go.group.as_ref().map(|group| match &**group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        });
        let (name, aliases) = (package.name.clone(), self.aliases(package));
        SchemaPackage { name, api_version, messages, aliases }
    }

    fn message(&self, package: &Package, message: &ProtoMessage) -> SchemaMessage {
        let name = message.name.clone();
        let go = self.fields(package, &name);
        let is_kind = package.go.group.is_some() && go.is_some_and(has_type_meta);
        let (form, mut problem) = match form(package, &name) {
            Ok(form) => (form, None),
            Err(problem) => (None, Some(problem)),
        };
        let mut fields = Vec::new();
        // The code that reads other forms knows their content.
        if matches!(form, None | Some("list" | "orbool" | "orarray")) {
            for field in &message.fields {
                let numbered = |go: &&GoField| go.number() == Some(field.number);
                let go = go.and_then(|go| go.iter().find(numbered));
                match self.field(package, field, go, form.is_some()) {
                    Some(field) => fields.push(field),
                    None => problem = Some(format!("Go has no field {:?} of {name}", field.name)),
                }
            }
            fields.sort_by_key(|field| field.number);
        }
        let is_atomic = package.go.atomic.contains(&name);
        SchemaMessage { name, is_kind, is_atomic, form, fields, problem }
    }

    fn field(
        &self,
        package: &Package,
        field: &ProtoField,
        go: Option<&GoField>,
        special: bool,
    ) -> Option<SchemaField> {
        let kind = match field.kind.strip_prefix('.') {
            Some(full) => {
                let (package, name) = full.rsplit_once('.')?;
                format!("{}.{name}", short(package))
            }
            None if field.kind.starts_with(|c: char| c.is_ascii_uppercase()) => {
                format!("{}.{}", package.name, field.kind)
            }
            None => field.kind.clone(),
        };
        let Some(go) = go else {
            // Lists have no field in Go: the type itself is the list.
            return special.then(|| self.bare(field, &kind));
        };
        let inline = go.json_name().is_empty() && (go.embedded || go.has_option("inline"));
        let name = if inline || go.json_name().is_empty() { &*field.name } else { go.json_name() };
        let mut options = Vec::new();
        let named = ["omitempty", "omitzero"].into_iter().filter(|option| go.has_option(option));
        options.extend(named.map(str::to_owned));
        options.extend(inline.then(|| "inline".to_owned()));
        options.extend(patch_options(go));
        options.extend(self.apply_options(go));
        // Lists, too, are written unless they are nil.
        let pointer = go.kind.starts_with('*') || kind == "bytes" || self.is_list(&kind);
        Some(SchemaField {
            number: field.number,
            name: name.to_owned(),
            kind: shaped(field.label, pointer, &kind),
            options,
        })
    }

    /// Returns how server-side apply merges a field: `set`, `map=KEY,…`, `atomic` or `granular`. Items of lists are
    /// identified by the defaults of keys that they do not have.
    fn apply_options(&self, go: &GoField) -> Vec<String> {
        let markers = &go.markers;
        let list = markers.list_type.as_deref().map(|list| match list {
            "map" => format!("map={}", markers.list_map_keys.join(",")),
            other => other.to_owned(),
        });
        let default = markers.default.as_ref().filter(|_| self.keys.contains(go.json_name()));
        let default = default.map(|text| format!("default={text}"));
        list.into_iter().chain(markers.map_type.clone()).chain(default).collect()
    }

    fn bare(&self, field: &ProtoField, kind: &str) -> SchemaField {
        let kind = shaped(field.label, self.is_list(kind), kind);
        SchemaField { number: field.number, name: field.name.clone(), kind, options: Vec::new() }
    }

    fn is_list(&self, kind: &str) -> bool {
        let found = kind
            .rsplit_once('.')
            .and_then(|(package, name)| self.packages.get(package)?.go.types.get(name));
        found == Some(&GoType::Slice)
    }

    /// Returns the fields of a Go type.
    fn fields(&self, package: &Package, name: &str) -> Option<&[GoField]> {
        match self.packages.get(&*package.name)?.go.types.get(name)? {
            GoType::Struct(fields) => Some(fields),
            GoType::Like { package, name } => self.fields(self.packages.get(&**package)?, name),
            GoType::Slice | GoType::Alias { .. } => None,
        }
    }

    /// Returns the kinds that are declared as another package's.
    fn aliases(&self, package: &Package) -> Vec<(String, String)> {
        let declared = package.go.types.iter().filter_map(|(alias, declared)| match declared {
            GoType::Alias { package, name } => Some((alias, self.packages.get(&**package)?, name)),
            _ => None,
        });
        declared
            .filter(|(_, other, name)| {
                let in_proto = other.proto.messages.iter().any(|message| message.name == **name);
                in_proto && self.fields(other, name).is_some_and(has_type_meta)
            })
            .map(|(alias, other, name)| (alias.clone(), format!("{}.{name}", other.name)))
            .collect()
    }
}

/// Returns the form of a type's JSON, or `None` for an object of its fields.
fn form(package: &Package, name: &str) -> Result<Option<&'static str>, String> {
    if package.go.types.get(name) == Some(&GoType::Slice) {
        return Ok(Some("list"));
    }
    if !package.go.marshalers.contains(name) {
        return Ok(None);
    }
    match FORMS.iter().find(|(known, _)| *known == name) {
        Some((_, form)) => Ok(Some(form)),
        None => Err(format!("{name} writes its own JSON: say in FORMS how")),
    }
}

/// Returns how a strategic merge patch treats a field: `merge` or `merge=KEY`, `replace`, `retainkeys`.
fn patch_options(go: &GoField) -> Vec<String> {
    let strategies = go.patch_strategy.as_deref().unwrap_or_default().split(',');
    let strategies = strategies.filter(|strategy| !strategy.is_empty());
    strategies
        .map(|strategy| match (strategy, &go.patch_merge_key) {
            ("merge", Some(key)) => format!("merge={key}"),
            (other, _) => other.to_ascii_lowercase(),
        })
        .collect()
}

fn has_type_meta(fields: &[GoField]) -> bool {
    fields.iter().any(|field| field.embedded && field.kind.rsplit('.').next() == Some("TypeMeta"))
}

fn shaped(label: Label, pointer: bool, kind: &str) -> String {
    match label {
        Label::Optional if pointer => format!("*{kind}"),
        Label::Optional => kind.to_owned(),
        Label::Repeated => format!("[]{kind}"),
        Label::Map => format!("map[string]{kind}"),
    }
}

/// Returns the messages that kinds consist of.
fn reachable(schema: &Schema) -> Result<BTreeSet<String>, String> {
    let mut all = BTreeMap::new();
    let mut queue = vec![WATCH_EVENT.to_owned()];
    for package in schema {
        for message in &package.messages {
            let name = format!("{}.{}", package.name, message.name);
            queue.extend(message.is_kind.then(|| name.clone()));
            all.insert(name, message);
        }
    }
    let mut found = BTreeSet::new();
    while let Some(name) = queue.pop() {
        let message = all.get(&name).ok_or_else(|| format!("there is no message {name}"))?;
        if let Some(problem) = &message.problem {
            return Err(format!("{name}: {problem}"));
        }
        if found.insert(name) {
            let kinds = message
                .fields
                .iter()
                .map(|field| field.kind.rsplit(['*', ']']).next().unwrap_or_default());
            queue.extend(kinds.filter(|kind| kind.contains('.')).map(str::to_owned));
        }
    }
    Ok(found)
}
