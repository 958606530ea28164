//! Parses the subset of `generated.proto` that go-to-protobuf writes: messages with fields, no enums, nothing nested.

/// One `generated.proto`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ProtoFile {
    pub(super) package: String,
    pub(super) messages: Vec<ProtoMessage>,
}

#[derive(Debug, PartialEq)]
pub(super) struct ProtoMessage {
    pub(super) name: String,
    pub(super) fields: Vec<ProtoField>,
}

#[derive(Debug, PartialEq)]
pub(super) struct ProtoField {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) label: Label,
    /// A scalar, the name of a message in this file, or a full name with a leading dot.
    pub(super) kind: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Optional,
    Repeated,
    /// Keys are always strings.
    Map,
}

/// Parses a file. An unknown line is an error, so that nothing is silently left out.
pub(super) fn parse(text: &str) -> Result<ProtoFile, String> {
    let mut file = ProtoFile::default();
    let mut open = false;
    let mut in_comment = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if in_comment || line.starts_with("/*") {
            in_comment = !line.ends_with("*/");
            continue;
        }
        let understood = match line {
            "" => true,
            "}" => std::mem::take(&mut open),
            _ if line.starts_with("//") => true,
            _ if open => inside(line, &mut file),
            _ => outside(line, &mut file, &mut open),
        };
        if !understood {
            return Err(format!("line {} is not understood: {line}", number + 1));
        }
    }
    Ok(file)
}

fn outside(line: &str, file: &mut ProtoFile, open: &mut bool) -> bool {
    if let Some(package) = line.strip_prefix("package ") {
        package.trim_end_matches(';').clone_into(&mut file.package);
        return true;
    }
    if let Some(name) = line.strip_prefix("message ").and_then(|rest| rest.strip_suffix(" {")) {
        file.messages.push(ProtoMessage { name: name.to_owned(), fields: Vec::new() });
        *open = true;
        return true;
    }
    ["syntax ", "option ", "import "].iter().any(|word| line.starts_with(word))
}

fn inside(line: &str, file: &mut ProtoFile) -> bool {
    match (field(line), file.messages.last_mut()) {
        (Some(field), Some(message)) => {
            message.fields.push(field);
            true
        }
        _ => false,
    }
}

/// Parses `optional string nodeName = 10;`, `repeated Volume volumes = 1;`, `map<string, string> labels = 11;`.
fn field(line: &str) -> Option<ProtoField> {
    let (before, number) = line.strip_suffix(';')?.split_once(" = ")?;
    let number = number.parse().ok()?;
    let (kind, name) = before.rsplit_once(' ')?;
    let (label, kind) = if let Some(kind) = kind.strip_prefix("optional ") {
        (Label::Optional, kind)
    } else if let Some(kind) = kind.strip_prefix("repeated ") {
        (Label::Repeated, kind)
    } else {
        (Label::Map, kind.strip_prefix("map<string, ")?.strip_suffix('>')?)
    };
    Some(ProtoField { number, name: name.to_owned(), label, kind: kind.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_shapes() {
        let text = "/*\nCopyright\n*/\nsyntax = \"proto2\";\n\npackage k8s.io.api.core.v1;\n\n// A {\nmessage A {\n  // optional int32 no = 9;\n  optional string name = 1;\n  repeated .k8s.io.B b = 2;\n  map<string, bytes> data = 3;\n}\n";
        let file = parse(text).unwrap();
        assert_eq!(file.package, "k8s.io.api.core.v1");
        let [message] = &*file.messages else { panic!("{file:?}") };
        let fields = message.fields.iter();
        let fields: Vec<_> = fields.map(|f| (f.number, &*f.name, f.label, &*f.kind)).collect();
        assert_eq!(
            fields,
            [
                (1, "name", Label::Optional, "string"),
                (2, "b", Label::Repeated, ".k8s.io.B"),
                (3, "data", Label::Map, "bytes"),
            ]
        );
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let problem = parse("message A {\n  oneof b {\n").unwrap_err();
        assert_eq!(problem, "line 2 is not understood: oneof b {");
        assert!(parse("enum A {\n").is_err());
        assert!(parse("message A {\n  map<int32, string> b = 1;\n").is_err());
    }
}
