//! A crate's modules, parsed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use syn::{Item, ItemMod, Visibility};

/// A module: its items, and its modules by name.
#[derive(Default)]
pub(crate) struct Module {
    pub(crate) items: Vec<Item>,
    pub(crate) modules: BTreeMap<String, Module>,
}

pub(crate) struct Crate {
    /// The name in paths, such as `kube_informer`.
    pub(crate) name: String,
    pub(crate) root: Module,
}

impl Crate {
    /// Reads a crate from its directory.
    pub(crate) fn read(directory: &Path) -> Self {
        let name = directory.file_name().unwrap().to_string_lossy().replace('-', "_");
        let text = fs::read_to_string(directory.join("src/lib.rs")).unwrap();
        let items = syn::parse_file(&text).unwrap().items;
        Self { name, root: module(items, &|path| read(&directory.join("src").join(path)), "") }
    }

    /// Parses a crate with a single file.
    pub(crate) fn parse(text: &str) -> Self {
        let items = syn::parse_file(text).unwrap().items;
        Self { name: "example".to_owned(), root: module(items, &|path| panic!("{path}"), "") }
    }

    /// Finds a module by its path from the root.
    pub(crate) fn module(&self, path: &[String]) -> Option<&Module> {
        path.iter().try_fold(&self.root, |module, name| module.modules.get(name))
    }
}

fn read(path: &Path) -> Vec<Item> {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())).items
}

/// Puts a module together. Its own modules are in `{path}name.rs`, or inline.
fn module(items: Vec<Item>, read: &dyn Fn(&str) -> Vec<Item>, path: &str) -> Module {
    let mut module = Module::default();
    for mut item in items {
        if let Item::Mod(ItemMod { ident, content, attrs, .. }) = &mut item {
            if attrs.iter().any(is_test) {
                continue;
            }
            let name = ident.to_string();
            let inside = content.take().map(|(_, items)| items);
            let inside = inside.unwrap_or_else(|| read(&format!("{path}{name}.rs")));
            module
                .modules
                .insert(name.clone(), self::module(inside, read, &format!("{path}{name}/")));
        }
        module.items.push(item);
    }
    module
}

/// Returns whether an attribute is `#[cfg(test)]`.
fn is_test(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
}

pub(crate) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}
