//! The text of an object, and the difference between two of its states, as the page shows them.

use serde::Serialize;
use serde_json::Value;

/// The number of characters that are shown of one value. An annotation may have a megabyte.
const VALUE_CHARS_MAX: usize = 400;

/// The number of differences that are shown of one update.
const CHANGES_MAX: usize = 60;

/// The number of characters that are shown of an object.
const OBJECT_CHARS_MAX: usize = 200_000;

/// The annotation in which `kubectl apply` repeats the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Fields that change with every update and say nothing about it.
const NOISE: [&[&str]; 2] = [&["metadata", "resourceVersion"], &["metadata", "managedFields"]];

/// A difference between two states.
#[derive(Serialize, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) old: Option<String>,
    pub(crate) new: Option<String>,
}

/// The differences between two states, and how many more there are.
#[derive(Serialize, Debug, Default, PartialEq)]
pub(crate) struct Changes {
    pub(crate) changes: Vec<Change>,
    pub(crate) more: usize,
}

/// Decides which values of an object are shown.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    /// Whether the object is a Secret whose values are hidden.
    pub(crate) hides_data: bool,
}

impl Shown {
    fn hides(self, path: &[String]) -> bool {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        self.hides_data
            && matches!(
                path.as_slice(),
                ["data" | "stringData", ..] | ["metadata", "annotations", LAST_APPLIED]
            )
    }

    fn value(self, path: &[String], value: &Value) -> String {
        if self.hides(path) {
            return hidden(value);
        }
        match value {
            Value::String(text) => shortened(text),
            other => shortened(&self.concealed(path, other).to_string()),
        }
    }

    /// Returns a value without what is hidden below it, and with long texts shortened.
    fn concealed(self, path: &[String], value: &Value) -> Value {
        let below = |name: &str| [path, &[name.to_owned()]].concat();
        match value {
            // The names of a Secret's values are shown.
            Value::Object(fields) => fields
                .iter()
                .map(|(name, field)| (name.clone(), self.concealed(&below(name), field)))
                .collect(),
            value if self.hides(path) => hidden(value).into(),
            Value::Array(items) => items.iter().map(|item| self.concealed(path, item)).collect(),
            Value::String(text) => shortened(text).into(),
            other => other.clone(),
        }
    }

    /// Returns the text of an object.
    pub(crate) fn text(self, object: &Value) -> String {
        let text = format!("{:#}", self.concealed(&[], object));
        match text.char_indices().nth(OBJECT_CHARS_MAX) {
            Some((end, _)) => format!("{}\n… {} bytes in all", &text[..end], text.len()),
            None => text,
        }
    }

    /// Returns the differences between two states.
    pub(crate) fn changes(self, old: &Value, new: &Value) -> Changes {
        let mut found = Changes::default();
        self.compare(&mut Vec::new(), Some(old), Some(new), &mut found);
        found
    }

    fn compare(
        self,
        path: &mut Vec<String>,
        old: Option<&Value>,
        new: Option<&Value>,
        found: &mut Changes,
    ) {
        if old == new || NOISE.iter().any(|noise| path == noise) {
            return;
        }
        match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                let added = new.keys().filter(|name| !old.contains_key(*name));
                for name in old.keys().chain(added) {
                    path.push(name.clone());
                    self.compare(path, old.get(name), new.get(name), found);
                    path.pop();
                }
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) => {
                for (name, old, new) in pairs(old, new) {
                    path.push(format!("[{name}]"));
                    self.compare(path, old, new, found);
                    path.pop();
                }
            }
            _ if found.changes.len() >= CHANGES_MAX => found.more += 1,
            (old, new) => found.changes.push(Change {
                path: joined(path),
                old: old.map(|value| self.value(path, value)),
                new: new.map(|value| self.value(path, value)),
            }),
        }
    }
}

/// Pairs the items of two lists by their names, or, if not all items have different names, by their positions.
fn pairs<'a>(
    old: &'a [Value],
    new: &'a [Value],
) -> Vec<(String, Option<&'a Value>, Option<&'a Value>)> {
    let (Some(old_names), Some(new_names)) = (names(old), names(new)) else {
        let longest = old.len().max(new.len());
        return (0..longest).map(|at| (at.to_string(), old.get(at), new.get(at))).collect();
    };
    let of = |names: &[&str], items: &'a [Value], name: &str| {
        names.iter().position(|known| *known == name).and_then(|at| items.get(at))
    };
    let added = new_names.iter().filter(|name| !old_names.contains(name));
    let all = old_names.iter().chain(added);
    all.map(|name| ((*name).to_owned(), of(&old_names, old, name), of(&new_names, new, name)))
        .collect()
}

fn names(items: &[Value]) -> Option<Vec<&str>> {
    let name = |item: &'_ Value| {
        ["name", "type", "uid"].iter().find(|field| item[**field].is_string()).copied()
    };
    let names: Option<Vec<&str>> =
        items.iter().map(|item| name(item).and_then(|field| item[field].as_str())).collect();
    let names = names?;
    let unique = names.iter().enumerate().all(|(at, name)| !names[..at].contains(name));
    unique.then_some(names)
}

fn joined(path: &[String]) -> String {
    let mut text = String::new();
    for step in path {
        if !text.is_empty() && !step.starts_with('[') {
            text.push('.');
        }
        text.push_str(step);
    }
    shortened(&text)
}

fn hidden(value: &Value) -> String {
    let bytes = value.as_str().map_or_else(|| value.to_string().len(), str::len);
    format!("(hidden, {bytes} bytes)")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}… ({} bytes in all)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OPEN: Shown = Shown { hides_data: false };
    const SECRET: Shown = Shown { hides_data: true };

    fn lines(shown: Shown, old: &Value, new: &Value) -> Vec<String> {
        let value = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
        let changes = shown.changes(old, new).changes.into_iter();
        changes.map(|c| format!("{}: {} → {}", c.path, value(c.old), value(c.new))).collect()
    }

    #[test]
    fn only_differences_are_listed() {
        let old =
            json!({"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"n": 1, "x": "y"}});
        let new =
            json!({"metadata": {"name": "a", "resourceVersion": "2"}, "spec": {"n": 2}, "k": [1]});
        assert_eq!(
            lines(OPEN, &old, &new),
            ["spec.n: 1 → 2", "spec.x: y → nothing", "k: nothing → [1]"]
        );
        assert_eq!(OPEN.changes(&new, &new), Changes::default());
    }

    #[test]
    fn items_of_lists_are_compared_by_name() {
        let of = |items: Value| json!({"c": items});
        let old =
            of(json!([{"type": "Ready", "status": "False"}, {"type": "Live", "status": "True"}]));
        let new =
            of(json!([{"type": "Live", "status": "True"}, {"type": "Ready", "status": "True"}]));
        assert_eq!(lines(OPEN, &old, &new), ["c[Ready].status: False → True"]);
        assert_eq!(
            lines(OPEN, &of(json!([1, 2])), &of(json!([1, 3, 4]))),
            ["c[1]: 2 → 3", "c[2]: nothing → 4"]
        );
    }

    #[test]
    fn values_of_secrets_are_hidden_but_changes_are_not() {
        let of = |value: &str| {
            json!({
                "kind": "Secret", "data": {"password": value},
                "metadata": {"annotations": {LAST_APPLIED: format!("{{\"data\":\"{value}\"}}")}},
            })
        };
        let (old, new) = (of("aHVudGVyMQ=="), of("aHVudGVyMg=="));
        let changed = lines(SECRET, &old, &new);
        assert_eq!(changed[0], "data.password: (hidden, 12 bytes) → (hidden, 12 bytes)");
        assert_eq!(changed.len(), 2);
        let added = SECRET.changes(&json!({}), &new);
        let all = format!("{changed:?} {added:?} {}", SECRET.text(&new));
        assert!(!all.contains("aHVud"), "{all}");
        assert!(SECRET.text(&new).contains("\"password\": \"(hidden, 12 bytes)\""));
        assert!(OPEN.text(&new).contains("aHVudGVyMg=="));
    }

    #[test]
    fn long_values_and_objects_are_shortened() {
        let object = json!({"metadata": {"annotations": {"large": "é".repeat(500_000)}}});
        assert!(OPEN.text(&object).len() < 2000);
        assert!(OPEN.text(&object).contains("(1000000 bytes in all)"));
        let many: Value = (0..50_000)
            .map(|n| (n.to_string(), json!(n)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        assert!(OPEN.text(&many).len() < OBJECT_CHARS_MAX + 100);
        let changes = OPEN.changes(&json!({}), &many);
        assert_eq!((changes.changes.len(), changes.more), (CHANGES_MAX, 50_000 - CHANGES_MAX));
    }
}
