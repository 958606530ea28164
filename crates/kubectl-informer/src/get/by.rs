//! `--by`: an index of the cache, and its contents.

use std::str::FromStr;

use kube_informer::{FieldPath, Index, SharedInformer, Untyped};
use serde_json::{Map, Value};

use crate::caches::Cache;
use crate::format::Output;
use crate::table::Table;

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

#[cfg(test)]
mod tests {
    use super::*;

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
