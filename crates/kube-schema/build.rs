//! Turns `schema.txt` into the static tables of `src/table.rs`, so that a program starts with them ready.
//!
//! The file is ours and is checked where it is written: a mistake in it ends the build.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const SCHEMA: &str = "schema.txt";

fn main() {
    println!("cargo::rerun-if-changed={SCHEMA}");
    println!("cargo::rerun-if-changed=build.rs");
    let text = fs::read_to_string(SCHEMA).expect("schema.txt is beside the build script");
    let out = env::var_os("OUT_DIR").expect("cargo says where to write");
    fs::write(Path::new(&out).join("tables.rs"), tables(&text))
        .expect("cargo's directory is writable");
}

/// A message as it stands in the file.
struct Message<'a> {
    package: &'a str,
    name: &'a str,
    form: &'a str,
    atomic: bool,
    fields: Vec<Field<'a>>,
}

struct Field<'a> {
    number: &'a str,
    name: &'a str,
    kind: &'a str,
    options: Vec<&'a str>,
}

/// Names, each once, in one text: an offset is smaller than a pointer, and needs no relocation when a program starts.
#[derive(Default)]
struct Names<'a> {
    text: String,
    known: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    fn name(&mut self, name: &'a str) -> String {
        let at = *self.known.entry(name).or_insert_with(|| {
            let at = self.text.len();
            self.text.push_str(name);
            at
        });
        format!("Name {{ at: {at}, len: {} }}", name.len())
    }
}

fn tables(text: &str) -> String {
    let (messages, kinds) = parse(text);
    let index: BTreeMap<String, usize> = messages
        .iter()
        .enumerate()
        .map(|(at, message)| (format!("{}.{}", message.package, message.name), at))
        .collect();
    let mut names = Names::default();
    let (mut all_messages, mut all_fields, mut first) = (String::new(), String::new(), 0);
    for message in &messages {
        let (package, name) = (names.name(message.package), names.name(message.name));
        let (form, count) = (form(message.form), message.fields.len());
        assert!(count <= 64, "{}: a reader marks fields in 64 bits", message.name);
        let _ = writeln!(
            all_messages,
            "MessageRow {{ package: {package}, name: {name}, first: {first}, count: {count}, form: Form::{form}, atomic: {} }},",
            message.atomic
        );
        for field in &message.fields {
            let _ = writeln!(all_fields, "{},", row(field, message.package, &index, &mut names));
        }
        first += count;
    }
    let mut all_kinds = String::new();
    for ((api_version, kind), target) in &kinds {
        let (api_version, kind) = (names.name(api_version), names.name(kind));
        let at = index[target];
        let _ = writeln!(
            all_kinds,
            "KindRow {{ api_version: {api_version}, kind: {kind}, message: {at} }},"
        );
    }
    format!(
        "static NAMES: &str = {:?};\n\
         static MESSAGES: [MessageRow; {}] = [\n{all_messages}];\n\
         static FIELDS: [Field; {first}] = [\n{all_fields}];\n\
         static KINDS: [KindRow; {}] = [\n{all_kinds}];\n",
        names.text,
        messages.len(),
        kinds.len(),
    )
}

/// Messages in the order of the file; by apiVersion and kind, the messages of kinds.
type Parsed<'a> = (Vec<Message<'a>>, BTreeMap<(&'a str, &'a str), String>);

fn parse(text: &str) -> Parsed<'_> {
    let (mut messages, mut kinds) = (Vec::<Message<'_>>::new(), BTreeMap::new());
    let (mut package, mut api_version) = ("", "");
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        let mut next = || words.next().unwrap_or_default();
        if line.starts_with(' ') {
            let (name, kind) = (next(), next());
            let options = words.collect();
            let message = messages.last_mut().expect("a field is of a message");
            message.fields.push(Field { number: first, name, kind, options });
        } else if first == "package" {
            (package, api_version) = (next(), next());
        } else if first == "alias" {
            kinds.insert((api_version, next()), next().to_owned());
        } else {
            let rest: Vec<&str> = words.collect();
            if rest.contains(&"kind") {
                kinds.insert((api_version, first), format!("{package}.{first}"));
            }
            let atomic = rest.contains(&"atomic");
            let form = rest.into_iter().find(|word| !matches!(*word, "kind" | "atomic"));
            let form = form.unwrap_or_default();
            messages.push(Message { package, name: first, form, atomic, fields: Vec::new() });
        }
    }
    (messages, kinds)
}

fn form(word: &str) -> &'static str {
    match word {
        "" => "Object",
        "list" => "List",
        "time" => "Time",
        "microtime" => "MicroTime",
        "quantity" => "Quantity",
        "intorstring" => "IntOrString",
        "raw" => "Raw",
        "orbool" => "OrBool",
        "orarray" => "OrArray",
        other => panic!("{SCHEMA}: there is no form {other:?}"),
    }
}

fn row<'a>(
    field: &Field<'a>,
    package: &str,
    index: &BTreeMap<String, usize>,
    names: &mut Names<'a>,
) -> String {
    let (shape, kind) = if let Some(kind) = field.kind.strip_prefix("map[string]") {
        ("Map", kind)
    } else if let Some(kind) = field.kind.strip_prefix("[]") {
        ("List", kind)
    } else if let Some(kind) = field.kind.strip_prefix('*') {
        ("Optional", kind)
    } else {
        ("Always", field.kind)
    };
    let kind = match kind {
        "string" => "Type::String".to_owned(),
        "bool" => "Type::Bool".to_owned(),
        "int32" => "Type::Int32".to_owned(),
        "int64" => "Type::Int64".to_owned(),
        "double" => "Type::Double".to_owned(),
        "bytes" => "Type::Bytes".to_owned(),
        _ => {
            let full =
                if kind.contains('.') { kind.to_owned() } else { format!("{package}.{kind}") };
            format!("Type::Message(Message({}))", index[&full])
        }
    };
    let (name, number) = (names.name(field.name), field.number);
    let has = |option: &str| field.options.contains(&option);
    // Go's `omitempty` never leaves out a struct.
    let is_struct = shape == "Always" && kind.starts_with("Type::Message");
    let (omits_zero, inline) = (has("omitzero") || !is_struct && has("omitempty"), has("inline"));
    let (strategy, key) = patching(&field.options);
    let merge_key = names.name(key);
    let (merge, detail) = merging(&field.options);
    let detail = names.name(detail);
    format!(
        "Field {{ name: {name}, number: {number}, kind: {kind}, shape: Shape::{shape}, omits_zero: {omits_zero}, inline: {inline}, \
         strategy: PatchStrategy::{strategy}, merge_key: {merge_key}, \
         merge: Merge::{merge}, detail: {detail} }}"
    )
}

/// The strategy of a field in strategic merge patches, and its merge key: empty if there is none.
fn patching<'a>(options: &[&'a str]) -> (&'static str, &'a str) {
    let merge = options.iter().find_map(|option| option.strip_prefix("merge"));
    match merge {
        Some(key) => ("Merge", key.trim_start_matches('=')),
        None if options.contains(&"replace") => ("Replace", ""),
        None => ("Default", ""),
    }
}

/// How server-side apply merges a field, and the keys or the default that belong to it.
fn merging<'a>(options: &[&'a str]) -> (&'static str, &'a str) {
    let found = options.iter().find_map(|option| match *option {
        "atomic" => Some(("Atomic", "")),
        "granular" => Some(("Granular", "")),
        "set" => Some(("Set", "")),
        other => other
            .strip_prefix("map=")
            .map(|keys| ("Map", keys))
            .or_else(|| other.strip_prefix("default=").map(|text| ("Default", text))),
    });
    found.unwrap_or(("Unmarked", ""))
}
