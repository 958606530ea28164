//! Parses Go's type declarations as far as the schema needs them: structs with their tags, and list types.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::short;

/// The declarations of one package.
#[derive(Debug, Default)]
pub(super) struct GoPackage {
    /// The constant `GroupName`: packages without it have no kinds.
    pub(super) group: Option<String>,
    pub(super) types: BTreeMap<String, GoType>,
    /// Types with custom JSON marshalling.
    pub(super) marshalers: BTreeSet<String>,
    /// Types that server-side apply never merges: `+structType=atomic`.
    pub(super) atomic: BTreeSet<String>,
}

#[derive(Debug, PartialEq)]
pub(super) enum GoType {
    Struct(Vec<GoField>),
    Slice,
    /// Has the fields of a type in the package that it was declared from: `type List metav1.List`.
    Like {
        package: String,
        name: String,
    },
    /// Another name of that type: `type PartialObjectMetadata = v1.PartialObjectMetadata`.
    Alias {
        package: String,
        name: String,
    },
}

#[derive(Debug, PartialEq)]
pub(super) struct GoField {
    /// The type, as it is written.
    pub(super) kind: String,
    /// Whether the field is embedded, so that it is named after its type.
    pub(super) embedded: bool,
    pub(super) json: Option<String>,
    pub(super) protobuf: Option<String>,
    /// How a strategic merge patch treats the field: `merge`, `replace`, `retainKeys`, or two of them.
    pub(super) patch_strategy: Option<String>,
    /// The field that identifies the items of a list in such a patch.
    pub(super) patch_merge_key: Option<String>,
    /// How server-side apply treats the field.
    pub(super) markers: Markers,
}

/// The markers in the comment of a field or a type that say how server-side apply merges it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Markers {
    /// `atomic`, `set` or `map`.
    pub(super) list_type: Option<String>,
    /// The fields that identify the items of a list of type `map`.
    pub(super) list_map_keys: Vec<String>,
    /// `atomic` or `granular`, of a map or of a struct.
    pub(super) map_type: Option<String>,
    /// The default, if it is a text.
    pub(super) default: Option<String>,
}

impl Markers {
    /// Reads a line of a comment. A blank line ends the comment.
    fn read(&mut self, line: &str) {
        let Some(comment) = line.trim().strip_prefix("//") else {
            *self = Self::default();
            return;
        };
        let Some((name, value)) = comment.trim().split_once('=') else { return };
        match name {
            "+listType" => self.list_type = Some(value.to_owned()),
            "+listMapKey" => self.list_map_keys.push(value.to_owned()),
            "+mapType" | "+structType" => self.map_type = Some(value.to_owned()),
            "+default" => {
                let text = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                self.default = text.map(str::to_owned);
            }
            _ => {}
        }
    }
}

impl GoField {
    pub(super) fn number(&self) -> Option<u32> {
        self.protobuf.as_ref()?.split(',').nth(1)?.parse().ok()
    }

    pub(super) fn json_name(&self) -> &str {
        self.json.as_deref().and_then(|json| json.split(',').next()).unwrap_or_default()
    }

    pub(super) fn has_option(&self, option: &str) -> bool {
        self.json.as_deref().is_some_and(|json| json.split(',').skip(1).any(|word| word == option))
    }
}

/// Adds the declarations of a file.
pub(super) fn read(text: &str, package: &mut GoPackage) {
    let imports = imports(text);
    let mut lines = text.lines();
    let mut markers = Markers::default();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("type ").and_then(|rest| rest.split(' ').next())
            && markers.map_type.as_deref() == Some("atomic")
        {
            package.atomic.insert(name.to_owned());
        }
        markers.read(line);
        let line = line.split("//").next().unwrap_or_default().trim_end();
        if let Some(group) = line.strip_prefix("const GroupName = ") {
            package.group = Some(group.trim_matches('"').to_owned());
        } else if let Some(receiver) =
            line.strip_prefix("func (").filter(|rest| rest.contains(") MarshalJSON("))
        {
            let receiver = receiver.split(')').next().unwrap_or_default();
            let name = receiver.rsplit([' ', '*']).next().unwrap_or_default();
            package.marshalers.insert(name.to_owned());
        } else if let Some((name, rest)) =
            line.strip_prefix("type ").and_then(|rest| rest.split_once(' '))
        {
            let declared = match rest {
                "struct {" => Some(GoType::Struct(fields(&mut lines))),
                // `type Patch struct{}`
                _ if rest.starts_with("struct") => Some(GoType::Struct(Vec::new())),
                _ if rest.starts_with("[]") => Some(GoType::Slice),
                _ => other(rest, &imports),
            };
            package.types.extend(declared.map(|declared| (name.to_owned(), declared)));
        }
    }
}

/// Parses a type that is declared as another package's.
fn other(declaration: &str, imports: &BTreeMap<String, String>) -> Option<GoType> {
    let (alias, target) = match declaration.strip_prefix("= ") {
        Some(target) => (true, target),
        None => (false, declaration),
    };
    let (package, name) = target.split_once('.')?;
    let (package, name) = (imports.get(package)?.clone(), name.to_owned());
    Some(if alias { GoType::Alias { package, name } } else { GoType::Like { package, name } })
}

/// Returns the packages of imports, by their local names.
fn imports(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in text.lines().take_while(|line| !line.starts_with("type ")) {
        let line = line.trim().trim_start_matches("import ");
        let Some((before, path)) = line.trim_end_matches('"').split_once('"') else { continue };
        let name = match before.trim() {
            "" => path.rsplit('/').next().unwrap_or_default(),
            name => name,
        };
        found.insert(name.to_owned(), short(&path.replace('/', ".")));
    }
    found
}

/// Parses the fields of a struct, up to its closing brace.
fn fields<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Vec<GoField> {
    let mut found = Vec::new();
    let mut markers = Markers::default();
    for line in lines.take_while(|line| !line.starts_with('}')) {
        let line = line.trim();
        if line.is_empty() || line.starts_with("//") {
            markers.read(line);
            continue;
        }
        let mut parts = line.splitn(3, '`');
        let declaration = parts.next().unwrap_or_default();
        let tags = parts.next().unwrap_or_default();
        let mut words = declaration.split_whitespace();
        let (first, second) = (words.next().unwrap_or_default(), words.next());
        found.push(GoField {
            kind: second.unwrap_or(first).to_owned(),
            embedded: second.is_none(),
            json: tag(tags, "json:\""),
            protobuf: tag(tags, "protobuf:\""),
            patch_strategy: tag(tags, "patchStrategy:\""),
            patch_merge_key: tag(tags, "patchMergeKey:\""),
            markers: std::mem::take(&mut markers),
        });
    }
    found
}

fn tag(tags: &str, opening: &str) -> Option<String> {
    let (_, rest) = tags.split_once(opening)?;
    Some(rest.split('"').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "package v1\n\nimport (\n\tmetav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n)\n\nconst GroupName = \"g.k8s.io\"\n\n// A\n// +structType=atomic\ntype A struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\n\t// type B struct {\n\tNode *string `json:\"node,omitempty\" protobuf:\"bytes,10,opt,name=node\"`\n\n\t// +listType=map\n\t// +listMapKey=name\n\t// +listMapKey=port\n\tItems []Item `json:\"items\" patchStrategy:\"merge,retainKeys\" patchMergeKey:\"name\" protobuf:\"bytes,11,rep,name=items\"`\n}\n\ntype Extra []string // more\n\ntype List metav1.List\n\ntype Rule = metav1.Rule\n\ntype Word string\n\nfunc (a *A) MarshalJSON() ([]byte, error) {\n}\n";

    #[test]
    fn structs_have_their_tags() {
        let mut package = GoPackage::default();
        read(FILE, &mut package);
        let GoType::Struct(fields) = &package.types["A"] else { panic!("{package:?}") };
        let [meta, node, items] = &**fields else { panic!("{fields:?}") };
        assert!(meta.embedded && meta.kind == "metav1.TypeMeta" && meta.has_option("inline"));
        assert_eq!((meta.json_name(), meta.number()), ("", None));
        assert_eq!((node.json_name(), node.number(), &*node.kind), ("node", Some(10), "*string"));
        assert!(node.has_option("omitempty") && !node.embedded);
        assert_eq!((&node.patch_strategy, &node.patch_merge_key), (&None, &None));
        assert_eq!(items.patch_strategy.as_deref(), Some("merge,retainKeys"));
        assert_eq!(items.patch_merge_key.as_deref(), Some("name"));
        assert_eq!(node.markers, Markers::default());
        assert_eq!(items.markers.list_type.as_deref(), Some("map"));
        assert_eq!(items.markers.list_map_keys, ["name", "port"]);
    }

    #[test]
    fn other_declarations() {
        let mut package = GoPackage::default();
        read(FILE, &mut package);
        assert_eq!(package.group.as_deref(), Some("g.k8s.io"));
        assert!(package.marshalers.contains("A"));
        assert!(package.atomic.contains("A") && package.atomic.len() == 1);
        assert_eq!(package.types["Extra"], GoType::Slice);
        let there = |name: &str| (String::from("meta/v1"), name.to_owned());
        let (package_name, name) = there("List");
        assert_eq!(package.types["List"], GoType::Like { package: package_name, name });
        let (package_name, name) = there("Rule");
        assert_eq!(package.types["Rule"], GoType::Alias { package: package_name, name });
        assert!(!package.types.contains_key("Word"));
    }
}
