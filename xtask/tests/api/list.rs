//! The list of a crate's public items.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::{Fields, FnArg, ImplItem, Item, ItemImpl, Signature, TraitItem, Type, UseTree};

use crate::crates::{Crate, Module, is_public};
use crate::text::{is_hidden, marks, text};

/// Returns the lines of the list, sorted.
pub(crate) fn lines(source: &Crate) -> Vec<String> {
    let mut list = List { source, lines: BTreeSet::new(), types: BTreeMap::new() };
    list.module(&mut Vec::new(), &source.name, &mut BTreeSet::new());
    list.implementations(&source.root);
    list.lines.into_iter().collect()
}

struct List<'a> {
    source: &'a Crate,
    lines: BTreeSet<String>,
    /// The public types, with the path under which users know them.
    types: BTreeMap<String, String>,
}

impl List<'_> {
    /// Lists the public items of a module under a public path.
    fn module(&mut self, at: &mut Vec<String>, path: &str, seen: &mut BTreeSet<Vec<String>>) {
        if !seen.insert(at.clone()) {
            return;
        }
        let Some(module) = self.source.module(at) else { return };
        for item in &module.items {
            match item {
                Item::Use(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                    self.reexport(at, &item.tree, &mut Vec::new(), path, &marks(&item.attrs));
                }
                Item::Mod(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                    let path = format!("{path}::{}", item.ident);
                    self.add(&format!("{}mod {path}", marks(&item.attrs)));
                    at.push(item.ident.to_string());
                    self.module(at, &path, seen);
                    at.pop();
                }
                item => self.item(item, path, None, ""),
            }
        }
    }

    /// Lists what a `pub use` makes public.
    fn reexport(
        &mut self,
        at: &[String],
        tree: &UseTree,
        prefix: &mut Vec<String>,
        path: &str,
        mark: &str,
    ) {
        match tree {
            UseTree::Path(next) => {
                prefix.push(next.ident.to_string());
                self.reexport(at, &next.tree, prefix, path, mark);
                prefix.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.reexport(at, tree, prefix, path, mark);
                }
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.one(at, prefix, &name, &name, path, mark);
            }
            UseTree::Rename(rename) => {
                let (name, new) = (rename.ident.to_string(), rename.rename.to_string());
                self.one(at, prefix, &name, &new, path, mark);
            }
            UseTree::Glob(_) => match self.resolve(at, prefix) {
                Some(target) => self.module(&mut target.clone(), path, &mut BTreeSet::new()),
                None => self.add(&format!("{mark}use {}::* in {path}", prefix.join("::"))),
            },
        }
    }

    /// Lists one name of a `pub use`.
    fn one(
        &mut self,
        at: &[String],
        prefix: &[String],
        name: &str,
        new: &str,
        path: &str,
        mark: &str,
    ) {
        let source = self.source;
        let target = self.resolve(at, prefix);
        if let Some(module) = target.as_ref().and_then(|target| source.module(target)) {
            let mut found = false;
            for item in &module.items {
                if named(item).is_some_and(|ident| ident == name) {
                    found = true;
                    self.item(item, path, Some(new), mark);
                }
            }
            if found {
                return;
            }
            // The module re-exports it in turn.
            for item in &module.items {
                let Item::Use(item) = item else { continue };
                for (mut inner, last, alias) in flat(&item.tree) {
                    if alias == name {
                        let at = target.clone().unwrap_or_default();
                        inner.retain(|part| part != "self");
                        return self.one(&at, &inner, &last, new, path, mark);
                    }
                }
            }
        }
        let from: Vec<&str> = prefix.iter().map(String::as_str).chain([name]).collect();
        self.add(&format!("{mark}use {path}::{new} = {}", from.join("::")));
    }

    /// Returns the path from the root of a module that a `use` in `at` names, if it is one of ours.
    fn resolve(&self, at: &[String], prefix: &[String]) -> Option<Vec<String>> {
        let mut path = at.to_vec();
        let mut rest = prefix;
        match prefix.first().map(String::as_str) {
            Some("crate") => (path, rest) = (Vec::new(), &prefix[1..]),
            Some("self") => rest = &prefix[1..],
            _ => {}
        }
        while rest.first().is_some_and(|part| part == "super") {
            path.pop();
            rest = &rest[1..];
        }
        path.extend(rest.iter().cloned());
        self.source.module(&path).map(|_| path)
    }

    /// Lists an item under a path, perhaps with a new name.
    fn item(&mut self, item: &Item, path: &str, new: Option<&str>, mark: &str) {
        let Some(name) = named(item) else { return };
        let path = format!("{path}::{}", new.unwrap_or(&name));
        let marks = |attributes: &[syn::Attribute]| format!("{mark}{}", marks(attributes));
        match item {
            Item::Struct(item) if is_public(&item.vis) => {
                self.add(&format!("{}struct {path}{}", marks(&item.attrs), text(&item.generics)));
                self.fields(&path, &item.fields, false);
                self.a_type(&name, &path, &item.attrs);
            }
            Item::Enum(item) if is_public(&item.vis) => {
                self.add(&format!("{}enum {path}{}", marks(&item.attrs), text(&item.generics)));
                for variant in &item.variants {
                    let variant_path = format!("{path}::{}", variant.ident);
                    self.add(&format!("{}variant {variant_path}", marks(&variant.attrs)));
                    self.fields(&variant_path, &variant.fields, true);
                }
                self.a_type(&name, &path, &item.attrs);
            }
            Item::Trait(item) if is_public(&item.vis) => {
                let bounds = text(&item.supertraits);
                let colon = if bounds.is_empty() { "" } else { ": " };
                let generics = text(&item.generics);
                self.add(&format!("{}trait {path}{generics}{colon}{bounds}", marks(&item.attrs)));
                for member in &item.items {
                    self.trait_item(&path, member);
                }
                self.types.insert(name, path);
            }
            Item::Fn(item) if is_public(&item.vis) => {
                self.add(&format!("{}{}", marks(&item.attrs), function(&item.sig, &path)));
            }
            Item::Const(item) if is_public(&item.vis) => {
                self.add(&format!("{}const {path}: {}", marks(&item.attrs), text(&item.ty)));
            }
            Item::Static(item) if is_public(&item.vis) => {
                self.add(&format!("{}static {path}: {}", marks(&item.attrs), text(&item.ty)));
            }
            Item::Type(item) if is_public(&item.vis) => {
                let (generics, ty) = (text(&item.generics), text(&item.ty));
                self.add(&format!("{}type {path}{generics} = {ty}", marks(&item.attrs)));
            }
            _ => {}
        }
    }

    /// Remembers a type, and lists the traits that it derives.
    fn a_type(&mut self, name: &str, path: &str, attributes: &[syn::Attribute]) {
        self.types.insert(name.to_owned(), path.to_owned());
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
            let _ = attribute.parse_nested_meta(|derived| {
                self.add(&format!("impl {} for {path}", text(&derived.path)));
                Ok(())
            });
        }
    }

    /// Lists public fields; those of a variant are all public.
    fn fields(&mut self, path: &str, fields: &Fields, of_variant: bool) {
        for (number, field) in fields.iter().enumerate() {
            if of_variant || is_public(&field.vis) {
                let name = field.ident.as_ref().map_or(number.to_string(), ToString::to_string);
                self.add(&format!(
                    "{}field {path}::{name}: {}",
                    marks(&field.attrs),
                    text(&field.ty)
                ));
            }
        }
    }

    fn trait_item(&mut self, path: &str, item: &TraitItem) {
        match item {
            TraitItem::Fn(item) => {
                let provided = if item.default.is_some() { " (provided)" } else { "" };
                let path = format!("{path}::{}", item.sig.ident);
                self.add(&format!("{}{provided}", function(&item.sig, &path)));
            }
            TraitItem::Type(item) => {
                let bounds = text(&item.bounds);
                self.add(&format!("type {path}::{}: {bounds}", item.ident));
            }
            TraitItem::Const(item) => {
                self.add(&format!("const {path}::{}: {}", item.ident, text(&item.ty)));
            }
            _ => {}
        }
    }

    /// Lists the implementations for public types, in whichever module they are.
    fn implementations(&mut self, module: &Module) {
        for item in &module.items {
            if let Item::Impl(item) = item {
                self.implementation(item);
            }
        }
        for module in module.modules.values() {
            self.implementations(module);
        }
    }

    fn implementation(&mut self, item: &ItemImpl) {
        let Type::Path(of) = &*item.self_ty else { return };
        let Some(last) = of.path.segments.last() else { return };
        let Some(path) = self.types.get(&last.ident.to_string()).cloned() else { return };
        let generics = text(&item.generics.params);
        let bounds = item.generics.where_clause.as_ref().map(text).unwrap_or_default();
        let path_with = format!("{path}{}", text(&last.arguments));
        let generics = if generics.is_empty() { generics } else { format!("<{generics}>") };
        let marked = marks(&item.attrs);
        if let Some((implemented, _)) = &item.trait_ {
            let line =
                format!("{marked}impl{generics} {} for {path_with} {bounds}", text(implemented));
            return self.add(line.trim_end());
        }
        for member in &item.items {
            match member {
                ImplItem::Fn(member) if is_public(&member.vis) && !is_hidden(&member.attrs) => {
                    let marked = format!("{marked}{}", marks(&member.attrs));
                    let path = format!("{path_with}::{}", member.sig.ident);
                    let line = format!("{marked}{} {bounds}", function(&member.sig, &path));
                    self.add(line.trim_end());
                }
                ImplItem::Const(member) if is_public(&member.vis) => {
                    let name = format!("{path_with}::{}", member.ident);
                    self.add(&format!("{marked}const {name}: {}", text(&member.ty)));
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, line: &str) {
        self.lines.insert(line.trim_end_matches(',').to_owned());
    }
}

/// Returns a function's line: its path, arguments and result.
fn function(signature: &Signature, path: &str) -> String {
    let words = [
        signature.constness.as_ref().map(|_| "const "),
        signature.asyncness.as_ref().map(|_| "async "),
    ];
    let words: String = words.into_iter().flatten().collect();
    let arguments: Vec<String> = signature.inputs.iter().map(argument).collect();
    let generics = text(&signature.generics);
    let bounds = signature.generics.where_clause.as_ref().map(text).unwrap_or_default();
    let output = text(&signature.output);
    let line = format!("{words}fn {path}{generics}({}) {output} {bounds}", arguments.join(", "));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns an argument; its name is no part of the API.
fn argument(argument: &FnArg) -> String {
    match argument {
        FnArg::Receiver(receiver) => text(receiver).trim_start_matches("mut ").to_owned(),
        FnArg::Typed(typed) => text(&typed.ty),
    }
}

/// Returns the name that an item declares.
fn named(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Struct(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Const(item) => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_token_stream().to_string())
}

/// Returns the names of a `use`: the path, the name and the new name.
fn flat(tree: &UseTree) -> Vec<(Vec<String>, String, String)> {
    match tree {
        UseTree::Path(next) => {
            let mut all = flat(&next.tree);
            for (path, ..) in &mut all {
                path.insert(0, next.ident.to_string());
            }
            all
        }
        UseTree::Group(group) => group.items.iter().flat_map(flat).collect(),
        UseTree::Name(name) => vec![(Vec::new(), name.ident.to_string(), name.ident.to_string())],
        UseTree::Rename(name) => {
            vec![(Vec::new(), name.ident.to_string(), name.rename.to_string())]
        }
        UseTree::Glob(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(source: &str) -> Vec<String> {
        lines(&Crate::parse(source))
    }

    #[test]
    fn items_are_listed_under_their_public_paths() {
        let source = "
            mod inner {
                #[derive(Clone)]
                pub struct Thing<T> { pub a: u8, b: Vec<T> }
                impl<T: Send> Thing<T> {
                    pub async fn run(&mut self, limit: Option<&str>) -> Result<(), T> where T: Copy { loop {} }
                    fn hidden(&self) {}
                }
                impl<T> std::fmt::Display for Thing<T> {}
                pub(crate) struct Private;
                impl Private { pub fn no(&self) {} }
            }
            pub mod open { pub use super::inner::Thing as Renamed; pub const MAX: usize = 1; }
            pub use serde::Serialize;
        ";
        assert_eq!(list(source), [
            "const example::open::MAX: usize",
            "async fn example::open::Renamed<T>::run(&mut self, Option<&str>) -> Result<(), T> where T: Copy",
            "field example::open::Renamed::a: u8",
            "impl Clone for example::open::Renamed",
            "impl<T> std::fmt::Display for example::open::Renamed<T>",
            "mod example::open",
            "struct example::open::Renamed<T>",
            "use example::Serialize = serde::Serialize",
        ].into_iter().map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn features_and_provided_methods_are_part_of_it() {
        let source = "
            #[cfg(feature = \"client\")] pub use client::connect;
            mod client { pub fn connect(address: &str) -> bool { true } }
            #[non_exhaustive] pub enum Event { Added(u8), #[cfg(unix)] Gone { at: u64 } }
            pub trait Handler: Send { type Error: Into<String>; fn on(&self); fn off(&self) {} }
        ";
        assert_eq!(
            list(source),
            [
                "#[cfg(feature = \"client\")] fn example::connect(&str) -> bool",
                "#[cfg(unix)] variant example::Event::Gone",
                "#[non_exhaustive] enum example::Event",
                "field example::Event::Added::0: u8",
                "field example::Event::Gone::at: u64",
                "fn example::Handler::off(&self) (provided)",
                "fn example::Handler::on(&self)",
                "trait example::Handler: Send",
                "type example::Handler::Error: Into<String>",
                "variant example::Event::Added",
            ]
        );
    }
}
