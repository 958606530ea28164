//! Columns of labels: kubectl's `-L` and `--show-labels`.

use clap::Args;
use serde_json::Value;

/// The columns of labels that follow the columns of a type.
#[derive(Args, Clone, Default, Debug)]
#[group(id = "labels")]
pub(crate) struct Options {
    /// Adds a column with the value of each of these labels, as in kubectl: `-L app,tier`. May be
    /// repeated.
    #[arg(short = 'L', long, value_name = "LABEL[,LABEL…]", value_delimiter = ',')]
    #[arg(help_heading = "Output")]
    label_columns: Vec<String>,

    /// Adds a last column with all labels.
    #[arg(long, help_heading = "Output")]
    show_labels: bool,
}

impl Options {
    /// Returns whether all labels are shown.
    pub(crate) fn shows_all(&self) -> bool {
        self.show_labels
    }

    /// Returns the titles of the columns. That of a label is its name without the prefix.
    pub(crate) fn titles(&self) -> impl Iterator<Item = String> {
        let name = |key: &str| key.rsplit('/').next().unwrap_or_default().to_uppercase();
        let all = self.show_labels.then(|| "LABELS".to_owned());
        self.keys().map(name).chain(all)
    }

    /// Returns an object's cell in each column. A missing label is empty, as in kubectl.
    pub(crate) fn cells(&self, object: &Value) -> impl Iterator<Item = String> {
        let labels = &object["metadata"]["labels"];
        let of = |key: &str| labels[key].as_str().unwrap_or_default().to_owned();
        self.keys().map(of).chain(self.show_labels.then(|| all(labels)))
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        // As in kubectl, `-L a,,b` has an empty column, and `-L ''` has none.
        let none = self.label_columns.iter().all(String::is_empty);
        self.label_columns.iter().filter(move |_| !none).map(String::as_str)
    }
}

/// Formats all labels in the order of their keys: `app=web,tier=front`.
fn all(labels: &Value) -> String {
    let labels = labels.as_object().filter(|labels| !labels.is_empty());
    let Some(labels) = labels else { return "<none>".to_owned() };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut each: Vec<_> = labels.iter().map(|(key, value)| (key, text(value))).collect();
    each.sort();
    let each: Vec<_> = each.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    each.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn titles_and_cells_are_those_of_kubectl() {
        let columns = ["tier", "app.kubernetes.io/name"].map(str::to_owned).to_vec();
        let options = Options { label_columns: columns, show_labels: true };
        assert!(options.titles().eq(["TIER", "NAME", "LABELS"]));
        let labels = json!({"tier": "front", "app.kubernetes.io/name": "web"});
        let object = json!({"metadata": {"labels": labels}});
        let cells = ["front", "web", "app.kubernetes.io/name=web,tier=front"];
        assert!(options.cells(&object).eq(cells));
        for none in [json!({}), json!({"metadata": {"labels": {}}}), Value::Null] {
            assert!(options.cells(&none).eq(["", "", "<none>"]), "{none}");
        }
    }
}
