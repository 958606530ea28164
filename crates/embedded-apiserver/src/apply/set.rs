//! Sets of field paths: the fields that a manager owns.
//!
//! A path is a list of elements, such as `.spec`, `.containers` and `[name="web"]`. A set may contain a path without
//! the paths below it: an item of a list whose fields have other owners.

mod json;

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Number, Value};

use crate::quote::quoted;

/// An element of a path. The order is that of Kubernetes: fields, keys, values, indices.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Element {
    /// A field of an object, or a key of a map.
    Field(Box<str>),
    /// An item of a list, by the fields that identify it, which are sorted by name.
    Key(Vec<(Box<str>, Scalar)>),
    /// An item of a list of scalars.
    Value(Scalar),
    /// An item of a list, by its position.
    Index(i64),
}

impl Element {
    pub(crate) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }
}

/// A value in a path. Integers equal floats of the same value, as in Kubernetes.
#[derive(Debug, Clone)]
pub(crate) struct Scalar(pub(crate) Value);

impl Scalar {
    /// Returns the position of the value's type in the order.
    fn rank(&self) -> u8 {
        match self.0 {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
            (Value::String(a), Value::String(b)) => a.cmp(b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            // Lists and maps are in no path that a schema allows. Their texts order them well enough.
            (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => {
                self.0.to_string().cmp(&other.0.to_string())
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// Compares numbers by their exact values. Rounding would make the order inconsistent.
fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    let float = |n: &Number| n.as_f64().unwrap_or_default();
    let whole = |n: &Number| {
        let float = float(n);
        // Such floats convert to integers without loss.
        let fits = float.fract() == 0.0 && float.abs() < 1e30;
        n.as_i128().or_else(|| fits.then_some(float as i128))
    };
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => float(a).total_cmp(&float(b)),
    }
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::String(text) => f.write_str(&quoted(text)),
            other => write!(f, "{other}"),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}{name}={value}", if at == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl fmt::Debug for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A set of paths, as a tree.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Set {
    /// Sorted by element. A node is a member or has children.
    nodes: Vec<Node>,
}

#[derive(Clone, PartialEq, Eq)]
struct Node {
    element: Element,
    tree: Tree,
}

/// The part of a set at and below a path.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Whether the path itself is in the set.
    pub(crate) member: bool,
    pub(crate) below: Set,
}

impl Tree {
    pub(crate) fn leaf() -> Self {
        Self { member: true, below: Set::default() }
    }

    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }

    fn union(&self, other: &Self) -> Self {
        Self { member: self.member || other.member, below: self.below.union(&other.below) }
    }
}

impl Set {
    /// Returns the set of these paths of fields.
    pub(crate) fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<Element> = path.iter().map(|name| Element::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    /// Collects the parts below the elements of an object or a list, in any order.
    pub(crate) fn collect(parts: impl IntoIterator<Item = (Element, Tree)>) -> Self {
        let parts = parts.into_iter().filter(|(_, tree)| !tree.is_empty());
        let mut nodes: Vec<Node> = parts.map(|(element, tree)| Node { element, tree }).collect();
        if !nodes.is_sorted_by(|a, b| a.element < b.element) {
            nodes.sort_by(|a, b| a.element.cmp(&b.element));
            nodes.dedup_by(|from, into| {
                let same = from.element == into.element;
                if same {
                    into.tree = into.tree.union(&from.tree);
                }
                same
            });
        }
        Self { nodes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(crate) fn insert(&mut self, path: &[Element]) {
        let Some((first, rest)) = path.split_first() else { return };
        let at = match self.find(first) {
            Ok(at) => at,
            Err(at) => {
                self.nodes.insert(at, Node { element: first.clone(), tree: Tree::default() });
                at
            }
        };
        let tree = &mut self.nodes[at].tree;
        if rest.is_empty() { tree.member = true } else { tree.below.insert(rest) }
    }

    fn find(&self, element: &Element) -> Result<usize, usize> {
        self.nodes.binary_search_by(|node| node.element.cmp(element))
    }

    /// Returns the part of the set at and below an element.
    pub(crate) fn at(&self, element: &Element) -> Option<&Tree> {
        self.find(element).ok().map(|at| &self.nodes[at].tree)
    }

    /// Returns whether the set contains a path.
    pub(crate) fn has(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.at(last).is_some_and(|tree| tree.member),
            [first, rest @ ..] => self.at(first).is_some_and(|tree| tree.below.has(rest)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Element, &Tree)> {
        self.nodes.iter().map(|node| (&node.element, &node.tree))
    }

    /// Returns all paths, each path before those below it.
    pub(crate) fn paths(&self) -> Vec<Vec<Element>> {
        let mut paths = Vec::new();
        self.visit(&mut Vec::new(), &mut paths);
        paths
    }

    /// Adds the members at one level before the paths below them, the order in which Kubernetes lists conflicts.
    fn visit(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Vec<Element>>) {
        for node in self.nodes.iter().filter(|node| node.tree.member) {
            paths.push(prefix.iter().chain([&node.element]).cloned().collect());
        }
        for node in &self.nodes {
            prefix.push(node.element.clone());
            node.tree.below.visit(prefix, paths);
            prefix.pop();
        }
    }

    /// Merges two sorted lists of nodes. `both` returns what remains of an element that both sets have.
    fn zip(
        &self,
        other: &Self,
        keep_left: bool,
        keep_right: bool,
        both: impl Fn(&Tree, &Tree) -> Tree,
    ) -> Self {
        let mut nodes = Vec::with_capacity(self.nodes.len());
        let (mut left, mut right) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => return Self { nodes },
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => a.element.cmp(&b.element),
            };
            match order {
                Ordering::Less => nodes.extend(left.next().filter(|_| keep_left).cloned()),
                Ordering::Greater => nodes.extend(right.next().filter(|_| keep_right).cloned()),
                Ordering::Equal => {
                    if let (Some(a), Some(b)) = (left.next(), right.next()) {
                        let tree = both(&a.tree, &b.tree);
                        if !tree.is_empty() {
                            nodes.push(Node { element: a.element.clone(), tree });
                        }
                    }
                }
            }
        }
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        self.zip(other, true, true, Tree::union)
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.zip(other, false, false, |a, b| Tree {
            member: a.member && b.member,
            below: a.below.intersection(&b.below),
        })
    }

    /// Returns the paths that are not in the other set.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.zip(other, true, false, |a, b| Tree {
            member: a.member && !b.member,
            below: a.below.difference(&b.below),
        })
    }

    /// Returns the paths that are neither in the other set nor below a path in it.
    pub(crate) fn without(&self, other: &Self) -> Self {
        self.zip(other, true, false, |a, b| {
            if b.member {
                return Tree::default();
            }
            Tree { member: a.member, below: a.below.without(&b.below) }
        })
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

/// Returns a path as errors show it: `.spec.containers[name="web"].image`.
pub(crate) fn path_text(path: &[Element]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn element() -> impl Strategy<Value = Element> {
        let scalar = prop_oneof![
            (0..3_i64).prop_map(|n| Scalar(json!(n))),
            "[a-c\"]{0,2}".prop_map(|text| Scalar(text.into())),
            any::<bool>().prop_map(|flag| Scalar(flag.into())),
        ]
        .boxed();
        prop_oneof![
            4 => "[a-c.\"]{0,2}".prop_map(|name| Element::Field(name.into())),
            1 => prop::collection::btree_map("[ab]", scalar.clone(), 1..3)
                .prop_map(|key| Element::Key(key.into_iter().map(|(k, v)| (k.into(), v)).collect())),
            1 => scalar.prop_map(Element::Value),
            1 => (0..3_i64).prop_map(Element::Index),
        ]
    }

    pub(crate) fn set() -> impl Strategy<Value = Set> {
        prop::collection::vec(prop::collection::vec(element(), 1..4), 0..12).prop_map(|paths| {
            let mut set = Set::default();
            for path in paths {
                set.insert(&path);
            }
            set
        })
    }

    fn paths(set: &Set) -> std::collections::BTreeSet<Vec<Element>> {
        set.paths().into_iter().collect()
    }

    proptest! {
        #[test]
        fn operations_are_those_of_sets_of_paths(a in set(), b in set()) {
            let (left, right) = (paths(&a), paths(&b));
            prop_assert_eq!(paths(&a.union(&b)), left.union(&right).cloned().collect());
            prop_assert_eq!(paths(&a.intersection(&b)), left.intersection(&right).cloned().collect());
            prop_assert_eq!(paths(&a.difference(&b)), left.difference(&right).cloned().collect());
            let below = |path: &[Element]| (1..=path.len()).any(|end| right.contains(&path[..end]));
            let outside = left.iter().filter(|path| !below(path)).cloned().collect();
            prop_assert_eq!(paths(&a.without(&b)), outside);
        }

        #[test]
        fn equal_sets_are_equal_trees(a in set(), b in set()) {
            prop_assert_eq!(a.union(&b), b.union(&a));
            prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
            prop_assert!(a.paths().iter().all(|path| a.has(path)));
            prop_assert!(a.difference(&a).is_empty() && a.without(&a).is_empty());
        }
    }
}
