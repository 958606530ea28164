//! `--by`: an index of the cache, and its contents.

use std::collections::BTreeSet;
use std::str::FromStr;

use kube_informer::{FieldPath, Index, SharedInformer, Untyped};
use serde_json::{Map, Value};

use crate::caches::Cache;
use crate::discovery::nearest::nearest;
use crate::format::Output;
use crate::table::Table;

/// The number of objects of each type whose fields are suggested for a mistyped one.
const SUGGESTED_FROM: usize = 50;

/// The number of fields of an object that are suggested at most, and how deep they are.
const FIELDS_MAX: usize = 1000;
const DEPTH_MAX: usize = 12;

/// A field and the requested value.
#[derive(Clone, Debug)]
pub(super) struct By {
    field: String,
    path: FieldPath,
    pub(super) value: Option<String>,
}

impl FromStr for By {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (field, value) = match text.split_once('=') {
            Some((field, value)) => (field, Some(value.to_owned())),
            None => (text, None),
        };
        // jq and kubectl's JSONPath write it as `.spec.nodeName`.
        let field = field.strip_prefix('.').unwrap_or(field).to_owned();
        let path = FieldPath::parse(&field).map_err(|error| error.to_string())?;
        Ok(Self { field, path, value })
    }
}

/// The values of a type's field, and the number of objects with each.
pub(super) type Counts = Vec<(String, usize)>;

impl By {
    pub(super) fn index(
        &self,
        informer: &SharedInformer<Untyped>,
    ) -> Result<Index<Untyped>, String> {
        informer.index_by_field(self.path.clone()).map_err(|error| error.to_string())
    }

    /// Returns the values in each index, the most frequent first.
    pub(super) fn counts(caches: &[Cache], indexes: &[Index<Untyped>]) -> Vec<(String, Counts)> {
        let each = caches.iter().zip(indexes).map(|(cache, index)| {
            let values = index.values();
            let counted = values.iter().map(|it| (it.to_string(), index.keys(it).len()));
            let mut counts: Counts = counted.filter(|(_, count)| *count > 0).collect();
            counts.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
            (cache.of.name(), counts)
        });
        each.collect()
    }

    /// Returns a message if there are objects, but none of them has the field: it may be mistyped.
    pub(super) fn doubt(&self, caches: &[Cache], indexes: &[Index<Untyped>]) -> Option<String> {
        let has_objects = caches.iter().any(|cache| !cache.informer.lister().is_empty());
        if !has_objects || indexes.iter().any(|index| !index.values().is_empty()) {
            return None;
        }
        let mut fields = BTreeSet::new();
        for cache in caches {
            for object in cache.informer.lister().list().iter().take(SUGGESTED_FROM) {
                let json = object.to_json().unwrap_or_default();
                let value = serde_json::from_slice(&json).unwrap_or_default();
                add_fields(&value, "", DEPTH_MAX, &mut fields);
            }
        }
        let meant = nearest(&self.field, fields.into_iter());
        let hint = meant.map(|field| format!("; did you mean {field}?")).unwrap_or_default();
        Some(format!("no object has the field {}{hint}", self.field))
    }

    pub(super) fn print(
        &self,
        counts: &[(String, Counts)],
        output: &Output,
        titled: bool,
    ) -> Result<String, String> {
        let mut out = Vec::new();
        let written = match output {
            Output::Text { .. } => counts.iter().try_for_each(|(of, counts)| {
                let mut table = Table::plain(&[&self.field.to_uppercase(), &of.to_uppercase()]);
                for (value, count) in counts {
                    table.push(&[value.clone(), count.to_string()]);
                }
                table.write(&mut out, titled)
            }),
            Output::Json => {
                let each = counts.iter().map(|(of, counts)| {
                    let counts =
                        counts.iter().map(|(value, count)| (value.clone(), (*count).into()));
                    (of.clone(), Value::Object(counts.collect()))
                });
                let all = Value::Object(each.collect::<Map<_, _>>());
                out.extend(format!("{all:#}\n").into_bytes());
                Ok(())
            }
            _ => {
                return Err("--by without a value is shown as -o text or json: give a value, \
                            --by FIELD=VALUE, to see objects"
                    .to_owned());
            }
        };
        written.map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }
}

/// Adds the paths of all fields, as `--by` accepts them.
fn add_fields(value: &Value, path: &str, depth: usize, fields: &mut BTreeSet<String>) {
    if depth == 0 || fields.len() >= FIELDS_MAX {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                // A name that is no word, such as that of most labels, is quoted in a path.
                let path = match name.chars().all(|c| c.is_ascii_alphanumeric()) {
                    true if path.is_empty() => name.clone(),
                    true => format!("{path}.{name}"),
                    false => format!("{path}['{name}']"),
                };
                add_fields(member, &path, depth - 1, fields);
            }
        }
        Value::Array(items) => {
            for item in items {
                add_fields(item, &format!("{path}[*]"), depth - 1, fields);
            }
        }
        _ => _ = fields.insert(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_fields_are_paths_that_can_be_asked_for() {
        let object = serde_json::json!({
            "metadata": {"labels": {"app": "web", "app.kubernetes.io/name": "web"}},
            "spec": {"nodeName": "a", "containers": [{"image": "nginx"}, {"image": "redis"}]},
        });
        let mut fields = BTreeSet::new();
        add_fields(&object, "", DEPTH_MAX, &mut fields);
        let expected = [
            "metadata.labels.app",
            "metadata.labels['app.kubernetes.io/name']",
            "spec.containers[*].image",
            "spec.nodeName",
        ];
        assert!(fields.iter().eq(expected), "{fields:?}");
        assert!(fields.iter().all(|field| field.parse::<By>().is_ok()));
        let deep = (0..100).fold(Value::from(1), |inner, _| serde_json::json!({"a": inner}));
        add_fields(&deep, "", DEPTH_MAX, &mut fields);
        assert_eq!(fields.len(), 4, "bounded");
    }

    #[test]
    fn a_field_and_a_value_that_may_have_anything_in_it() {
        let by: By = ".spec.nodeName=a=b".parse().unwrap();
        assert_eq!((by.field.as_str(), by.value.as_deref()), ("spec.nodeName", Some("a=b")));
        let by: By = "spec.nodeName=".parse().unwrap();
        assert_eq!(by.value.as_deref(), Some(""));
        let by: By = "metadata.labels['a.b/c']".parse().unwrap();
        assert_eq!(by.value, None);
        for wrong in ["", "=x", "a[", "a..b=c"] {
            assert!(wrong.parse::<By>().is_err(), "{wrong}");
        }
    }
}
