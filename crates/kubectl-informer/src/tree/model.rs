//! The tree, as rows of a table.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use embedded_apiserver::Columns;
use jiff::Timestamp;
use kube_informer::{Object, Untyped};

use crate::cells::{keep_ends, one_line, width};
use crate::discovery::Type;
use crate::record;
use crate::table::Table;

/// Limits on the size of a tree. More would not fit any screen.
const NODES_MAX: usize = 1000;
const DEPTH_MAX: usize = 20;

/// The number of columns of a name that are shown on any terminal.
const NAME_MIN: usize = 16;

const TITLES: [&str; 4] = ["NAME", "READY", "STATUS", "AGE"];

/// An object in the tree.
#[derive(Clone)]
pub(super) struct Owned {
    pub(super) of: Arc<Type>,
    pub(super) object: Object<Untyped>,
}

/// A line of the tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Row {
    /// The lines that connect it with its owner.
    branch: String,
    name: String,
    ready: String,
    status: String,
    age: String,
}

/// The columns of the types in a tree, by the types' names.
pub(super) type ColumnsOf = HashMap<String, Columns>;

/// Returns all objects of the tree below an owner, each with the lines that connect it with its
/// owner. `owned` returns the objects that an object owns, by its uid.
pub(super) fn grow(
    root: Owned,
    owned: impl Fn(&str) -> Vec<Owned>,
) -> (Vec<(String, Owned)>, usize) {
    let mut seen = HashSet::from([root.object.uid().to_owned()]);
    let mut grown = Growing { nodes: Vec::new(), left_out: 0, owned, seen: &mut seen };
    grown.add(String::new(), "", root, 0);
    (grown.nodes, grown.left_out)
}

struct Growing<'a, F> {
    nodes: Vec<(String, Owned)>,
    /// The number of objects for which there was no room. Those that they own are not counted.
    left_out: usize,
    owned: F,
    /// The uids of all objects so far. An object with several owners is shown below the first, and
    /// owners in a circle end.
    seen: &'a mut HashSet<String>,
}

impl<F: Fn(&str) -> Vec<Owned>> Growing<'_, F> {
    /// Adds an object and everything that it owns. `indent` continues the lines to those that follow.
    fn add(&mut self, branch: String, indent: &str, node: Owned, depth: usize) {
        let mut children = (self.owned)(node.object.uid());
        children.retain(|child| self.seen.insert(child.object.uid().to_owned()));
        children.sort_by(|a, b| {
            let place = |it: &Owned| (it.of.kind.clone(), it.object.key().as_str().to_owned());
            place(a).cmp(&place(b))
        });
        self.nodes.push((branch, node));
        let count = children.len();
        for (at, child) in children.into_iter().enumerate() {
            if self.nodes.len() >= NODES_MAX || depth >= DEPTH_MAX {
                self.left_out += count - at;
                return;
            }
            let (mark, below) = if at + 1 == count { ("└─", "  ") } else { ("├─", "│ ") };
            let branch = format!("{indent}{mark}");
            self.add(branch, &format!("{indent}{below}"), child, depth + 1);
        }
    }
}

impl Row {
    /// Returns the row of an object, with those of kubectl's columns that most types have.
    pub(super) fn new(branch: &str, node: &Owned, columns: &ColumnsOf, now: Timestamp) -> Self {
        let value = record::complete(&node.object, &node.of).and_then(|json| record::parsed(&json));
        let value = value.unwrap_or_default();
        let columns = columns.get(&node.of.name());
        let cells = columns.map(|columns| columns.cells(&value, now)).unwrap_or_default();
        let cell = |titles: &[&str]| {
            let mut each = columns?.definitions().zip(&cells);
            let (_, cell) = each.find(|(column, _)| titles.contains(&column.name))?;
            Some(one_line(cell))
        };
        Self {
            branch: branch.to_owned(),
            name: one_line(&format!("{}/{}", node.of.kind, node.object.name())),
            ready: cell(&["Ready", "Completions"]).unwrap_or_default(),
            status: match node.object.deletion_timestamp() {
                Some(_) => "Terminating".to_owned(),
                None => cell(&["Status"]).unwrap_or_default(),
            },
            age: cell(&["Age"]).unwrap_or_default(),
        }
    }

    /// Marks a row whose object no longer exists.
    pub(super) fn deleted(mut self) -> Self {
        (self.ready, self.age) = (String::new(), String::new());
        "deleted".clone_into(&mut self.status);
        self
    }

    /// Returns whether the rows differ in anything but their age.
    pub(super) fn differs(&self, other: &Self) -> bool {
        Self { age: String::new(), ..self.clone() } != Self { age: String::new(), ..other.clone() }
    }
}

/// Formats rows as a table that fits a width. Names give way.
pub(super) fn text(
    rows: &[Row],
    left_out: usize,
    width_max: Option<usize>,
    titled: bool,
) -> String {
    let widest = |cell: fn(&Row) -> &String, title: &str| {
        rows.iter().map(|row| width(cell(row))).max().unwrap_or(0).max(title.len())
    };
    let rest = widest(|row| &row.ready, "READY")
        + widest(|row| &row.status, "STATUS")
        + widest(|row| &row.age, "AGE")
        + 3 * crate::table::GAP;
    let mut table = Table::plain(&TITLES);
    for row in rows {
        let room = width_max.map_or(usize::MAX, |width_max| {
            width_max.saturating_sub(rest + width(&row.branch)).max(NAME_MIN)
        });
        let name = format!("{}{}", row.branch, keep_ends(&row.name, room));
        table.push(&[name, row.ready.clone(), row.status.clone(), row.age.clone()]);
    }
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = table.write(&mut out, titled);
    let lines = String::from_utf8_lossy(&out).into_owned();
    let mut text = String::with_capacity(lines.len());
    for line in lines.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if left_out > 0 {
        text.push_str(&format!("… and {left_out} more\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, uid: &str, owners: &[&str]) -> Owned {
        let owners: Vec<_> = owners.iter().map(|uid| json!({"uid": uid})).collect();
        let metadata =
            json!({"name": uid, "namespace": "n", "uid": uid, "ownerReferences": owners});
        let json = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata}).to_string();
        let of = Type {
            group: String::new(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            singular: String::new(),
            short_names: Vec::new(),
            categories: Vec::new(),
            verbs: Vec::new(),
            namespaced: true,
        };
        Owned { of: Arc::new(of), object: Object::from_json(json).unwrap() }
    }

    fn grown(objects: &[Owned]) -> (Vec<Row>, usize) {
        let mut by_owner: HashMap<String, Vec<Owned>> = HashMap::new();
        for object in objects {
            for owner in object.object.owner_references() {
                by_owner.entry(owner.uid.to_string()).or_default().push(object.clone());
            }
        }
        let owned = |uid: &str| by_owner.get(uid).cloned().unwrap_or_default();
        let (nodes, left_out) = grow(objects[0].clone(), owned);
        let columns = ColumnsOf::new();
        let row = |(branch, node): &(String, Owned)| {
            Row::new(branch, node, &columns, Timestamp::UNIX_EPOCH)
        };
        (nodes.iter().map(row).collect(), left_out)
    }

    #[test]
    fn branches_lead_to_the_owner() {
        let (rows, left_out) = grown(&[
            object("Deployment", "web", &[]),
            object("Set", "web-1", &["web"]),
            object("Pod", "web-1-b", &["web-1"]),
            object("Pod", "web-1-a", &["web-1"]),
            object("Set", "web-2", &["web"]),
            object("Pod", "web-2-a", &["web-2", "web-1"]),
            object("Pod", "other", &["db"]),
        ]);
        let expected = "\
            NAME              READY   STATUS   AGE\n\
            Deployment/web\n\
            ├─Set/web-1\n\
            │ ├─Pod/web-1-a\n\
            │ ├─Pod/web-1-b\n\
            │ └─Pod/web-2-a\n\
            └─Set/web-2\n";
        assert_eq!((text(&rows, left_out, None, true).as_str(), left_out), (expected, 0));
        let narrow = text(&[rows[0].clone()], 3, Some(30), false);
        assert_eq!(narrow, "Deployment/web\n… and 3 more\n");
        let cut = Row { name: "Deployment/a-name-that-is-long".to_owned(), ..rows[0].clone() };
        assert_eq!(text(&[cut], 0, Some(30), false), "Deploym…-is-long\n");
    }

    #[test]
    fn circles_and_crowds_end() {
        let (rows, left_out) =
            grown(&[object("A", "a", &["b"]), object("A", "b", &["a"]), object("A", "c", &["c"])]);
        assert_eq!((rows.len(), left_out), (2, 0));
        let mut many = vec![object("A", "root", &[])];
        many.extend((0..NODES_MAX + 4).map(|n| object("B", &format!("b{n}"), &["root"])));
        let (rows, left_out) = grown(&many);
        assert_eq!((rows.len(), left_out), (NODES_MAX, 5));
        let deep = |n: usize| object("A", &n.to_string(), &[&n.wrapping_sub(1).to_string()]);
        let (rows, left_out) = grown(&(0..100).map(deep).collect::<Vec<_>>());
        assert_eq!((rows.len(), left_out), (DEPTH_MAX + 1, 1));
    }
}
