//! A transform that changes labels, and a check that all readers of labels agree on the result.

use std::collections::BTreeMap;

use kube_informer::{Object, Selector};
use serde_json::Value;

use super::informers::Informer;

/// Sets the label `tier` from `app`, and then `app` from the node.
pub(crate) fn relabel(object: &mut Value) {
    let node = object["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
    let labels = &mut object["metadata"]["labels"];
    if !labels.is_object() {
        *labels = Value::Object(serde_json::Map::new());
    }
    if let Some(app) = labels["app"].as_str().map(str::to_owned) {
        labels["tier"] = format!("{app}-tier").into();
    }
    let app = match &*node {
        "n1" => Value::from("web"),
        "n2" => Value::from("db"),
        _ => return,
    };
    labels["app"] = app;
}

/// Returns the labels in the body of an object.
pub(crate) fn labels_of_body(object: &Object) -> BTreeMap<String, String> {
    object.field("metadata.labels").ok().flatten().unwrap_or_default()
}

/// T-4: checks that labels, selectors and decoded objects agree.
pub(crate) fn check_labels(informer: &Informer) {
    let (lister, name) = (informer.handle.lister(), informer.handle.name());
    let list = lister.list();
    for object in &list {
        let labels: BTreeMap<String, String> =
            object.labels().iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        assert_eq!(labels, labels_of_body(object), "T-4: {} in {name}", object.key());
    }
    for selector in ["app=web", "tier=db-tier", "app notin (mail),tier", "!app"] {
        let matches = selector.parse::<Selector>().expect("it is one");
        let found = lister.select(&matches).len();
        let has = |labels: &BTreeMap<String, String>| {
            let (app, tier) = (labels.get("app").map(String::as_str), labels.get("tier"));
            match selector {
                "app=web" => app == Some("web"),
                "tier=db-tier" => tier.is_some_and(|tier| tier == "db-tier"),
                "!app" => app.is_none(),
                _ => app != Some("mail") && tier.is_some(),
            }
        };
        let expected = list.iter().map(labels_of_body).filter(has).count();
        assert_eq!(found, expected, "T-4: {selector} in {name}");
    }
}
