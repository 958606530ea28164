//! `CustomResourceDefinition`s: the resources that they define, and the fields that the server
//! sets.
//!
//! Everything here accepts arbitrary JSON. Missing values and those of the wrong type count as
//! empty.

mod names;
mod validate;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};

pub(crate) use validate::{validate, validate_update};

use super::scale::ScalePaths;
use super::{NameRule, PrinterColumn, Resource, Text};
use crate::apply::Schema;

/// The group and plural of the definitions themselves.
pub(crate) const GROUP: &str = "apiextensions.k8s.io";
pub(crate) const PLURAL: &str = "customresourcedefinitions";

/// Returns the group and plural of the defined resource.
pub(crate) fn names(crd: &Value) -> Option<(&str, &str)> {
    Some((crd["spec"]["group"].as_str()?, crd["spec"]["names"]["plural"].as_str()?))
}

/// Returns the table of a resource's objects.
pub(crate) fn table(group: &str, plural: &str) -> Arc<str> {
    format!("{plural}.{group}").into()
}

/// Returns the resources that a definition defines: one for each served version.
pub(crate) fn resources(crd: &Value) -> Vec<Resource> {
    let spec = &crd["spec"];
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    if group.is_empty() || plural.is_empty() {
        return Vec::new();
    }
    let table = table(group, plural);
    list(&spec["versions"])
        .iter()
        .filter(|version| version["served"] == true && !text(&version["name"]).is_empty())
        .map(|version| resource(spec, version, &table))
        .collect()
}

fn resource(spec: &Value, version: &Value, table: &Arc<str>) -> Resource {
    let names = &spec["names"];
    let kind = text(&names["kind"]);
    Resource {
        group: owned(&spec["group"]),
        version: owned(&version["name"]),
        kind: owned(&names["kind"]),
        list_kind: Cow::Owned(list_kind(names, kind)),
        plural: owned(&names["plural"]),
        singular: Cow::Owned(singular(names, kind)),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        status: version["subresources"]["status"].is_object(),
        scale: ScalePaths::custom(&version["subresources"]["scale"]),
        generation: true,
        unconditional_update: false,
        name_rule: NameRule::Subdomain,
        selectable: list(&version["selectableFields"]).iter().filter_map(selectable).collect(),
        columns: columns(version),
        custom: true,
        stored: true,
        schema: Some(Arc::new(schema(spec, version))),
        table: Arc::clone(table),
    }
}

/// Returns the schema of one version of a definition.
fn schema(spec: &Value, version: &Value) -> Schema {
    let preserve_unknown = spec["preserveUnknownFields"] == true;
    Schema::of_definition(&version["schema"]["openAPIV3Schema"], preserve_unknown)
}

/// Returns the printer columns of one version of a definition.
pub(crate) fn columns(version: &Value) -> Vec<PrinterColumn> {
    list(&version["additionalPrinterColumns"]).iter().map(column).collect()
}

fn selectable(field: &Value) -> Option<Text> {
    let path = field["jsonPath"].as_str()?;
    let path = path.strip_prefix('.').unwrap_or(path);
    (!path.is_empty()).then(|| Cow::Owned(path.to_owned()))
}

fn column(column: &Value) -> PrinterColumn {
    let text = |key: &str| text(&column[key]).to_owned();
    PrinterColumn {
        name: text("name"),
        kind: text("type"),
        format: text("format"),
        description: text("description"),
        priority: column["priority"].as_i64().and_then(|n| i32::try_from(n).ok()).unwrap_or(0),
        json_path: text("jsonPath"),
    }
}

fn stored_as(spec: &Value) -> Option<&str> {
    let stored = list(&spec["versions"]).iter().find(|version| version["storage"] == true)?;
    stored["name"].as_str()
}

/// Sets the defaults of a definition.
pub(crate) fn prepare(crd: &mut Map<String, Value>) {
    let Some(Value::Object(spec)) = crd.get_mut("spec") else { return };
    if let Some(Value::Object(names)) = spec.get_mut("names") {
        let given = Value::Object(std::mem::take(names));
        let kind = text(&given["kind"]);
        let singular = singular(&given, kind);
        let list_kind = (!kind.is_empty()).then(|| list_kind(&given, kind));
        if let Value::Object(given) = given {
            *names = given;
        }
        names.insert("singular".to_owned(), singular.into());
        if let Some(list_kind) = list_kind {
            names.insert("listKind".to_owned(), list_kind.into());
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
        spec.remove("preserveUnknownFields");
    }
    for version in spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(version) = version {
            version.entry("served").or_insert(Value::Bool(false));
            version.entry("storage").or_insert(Value::Bool(false));
        }
    }
}

fn singular(names: &Value, kind: &str) -> String {
    match text(&names["singular"]) {
        "" => kind.to_lowercase(),
        given => given.to_owned(),
    }
}

fn list_kind(names: &Value, kind: &str) -> String {
    match text(&names["listKind"]) {
        "" => format!("{kind}List"),
        given => given.to_owned(),
    }
}

/// Returns the status of an established definition. Here, definitions are established immediately.
pub(crate) fn established_status(spec: &Value, now: &str) -> Value {
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": "True",
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        })
    };
    let mut status = json!({
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition(
                "Established",
                "InitialNamesAccepted",
                "the initial names have been accepted",
            ),
        ],
    });
    refresh_status(&mut status, spec);
    status
}

/// Updates the status of an established definition after a change of its `spec`.
///
/// Stored versions remain listed: only the administrator can remove them, after migrating the
/// objects.
pub(crate) fn refresh_status(status: &mut Value, spec: &Value) {
    if !status.is_object() {
        *status = json!({});
    }
    status["acceptedNames"] = match &spec["names"] {
        Value::Null => json!({}),
        names => names.clone(),
    };
    let mut stored = list(&status["storedVersions"]).to_vec();
    stored.extend(
        stored_as(spec)
            .map(Value::from)
            .filter(|version| !list(&status["storedVersions"]).contains(version)),
    );
    status["storedVersions"] = Value::Array(stored);
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn owned(value: &Value) -> Text {
    Cow::Owned(text(value).to_owned())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn texts(value: &Value) -> Vec<Text> {
    list(value).iter().filter(|item| item.is_string()).map(owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn widgets() -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
                "versions": [
                    {
                        "name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                        "subresources": {"status": {}},
                        "selectableFields": [{"jsonPath": ".spec.color"}],
                        "additionalPrinterColumns": [
                            {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
                            {"name": "Age", "type": "date", "jsonPath": ".a.b", "priority": 1},
                        ],
                    },
                    {
                        "name": "v1beta1", "served": true, "storage": false,
                        "schema": {"openAPIV3Schema": {"type": "object", "title": "old"}},
                    },
                    {
                        "name": "v1alpha1", "served": false, "storage": false,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    },
                ],
            },
        })
    }

    #[test]
    fn each_served_version_is_a_resource() {
        let resources = resources(&widgets());
        let [v1, beta] = &resources[..] else { panic!("two versions are served: {resources:?}") };
        assert_eq!(v1.api_version(), "example.com/v1");
        assert_eq!((&*v1.kind, &*v1.list_kind, &*v1.singular), ("Widget", "WidgetList", "widget"));
        assert_eq!(v1.short_names, ["wd"]);
        assert!(v1.namespaced && v1.status && v1.custom && v1.generation);
        assert!(!v1.unconditional_update);
        assert_eq!(*v1.selectable, ["spec.color"]);
        assert_eq!(v1.columns.len(), 2);
        assert_eq!(v1.columns[1].priority, 1);
        assert_eq!(&*beta.version, "v1beta1");
        assert!(!beta.status && beta.columns.is_empty());
        assert_eq!(&*v1.table, "widgets.example.com");
        assert_eq!(v1.table, beta.table);
    }

    #[test]
    fn names_that_are_left_out_are_persisted() {
        let Value::Object(mut crd) = widgets() else { panic!("an object") };
        crd["spec"]["preserveUnknownFields"] = json!(false);
        prepare(&mut crd);
        let spec = &crd["spec"];
        assert_eq!(spec["names"]["singular"], "widget");
        assert_eq!(spec["names"]["listKind"], "WidgetList");
        assert_eq!(spec["names"]["plural"], "widgets");
        assert_eq!(spec["conversion"], json!({"strategy": "None"}));
        assert_eq!(spec.get("preserveUnknownFields"), None);
    }

    #[test]
    fn names_that_are_given_are_kept() {
        let Value::Object(mut crd) = widgets() else { panic!("an object") };
        crd["spec"]["names"]["singular"] = json!("one");
        crd["spec"]["names"]["listKind"] = json!("Many");
        crd["spec"]["conversion"] = json!({"strategy": "Webhook"});
        prepare(&mut crd);
        assert_eq!(crd["spec"]["names"]["singular"], "one");
        assert_eq!(crd["spec"]["names"]["listKind"], "Many");
        assert_eq!(crd["spec"]["conversion"]["strategy"], "Webhook");
    }

    #[test]
    fn a_definition_is_established_at_once() {
        let crd = widgets();
        let status = established_status(&crd["spec"], "2026-01-01T00:00:00Z");
        assert_eq!(status["acceptedNames"], crd["spec"]["names"]);
        assert_eq!(status["storedVersions"], json!(["v1"]));
        for (at, kind) in ["NamesAccepted", "Established"].into_iter().enumerate() {
            let condition = &status["conditions"][at];
            assert_eq!(condition["type"], kind);
            assert_eq!(condition["status"], "True");
            assert_eq!(condition["lastTransitionTime"], "2026-01-01T00:00:00Z");
        }
    }

    #[test]
    fn versions_once_stored_stay_listed() {
        let mut crd = widgets();
        let mut status = established_status(&crd["spec"], "");
        crd["spec"]["versions"][0]["storage"] = json!(false);
        crd["spec"]["versions"][1]["storage"] = json!(true);
        assert_eq!(stored_as(&crd["spec"]), Some("v1beta1"));
        refresh_status(&mut status, &crd["spec"]);
        refresh_status(&mut status, &crd["spec"]);
        assert_eq!(status["storedVersions"], json!(["v1", "v1beta1"]));
    }

    #[test]
    fn nonsense_defines_nothing_and_does_not_panic() {
        let nonsense = [
            json!(null),
            json!(7),
            json!({"spec": []}),
            json!({"spec": {"names": "x", "versions": {}, "group": 1}}),
            json!({"spec": {"names": {"plural": 1}, "versions": [1, null, {"served": "yes"}]}}),
            json!({"metadata": 3, "spec": {"versions": [[], {"schema": 1, "name": 2}]}}),
        ];
        for crd in nonsense {
            assert!(resources(&crd).is_empty());
            assert!(!validate(&crd).is_empty());
            assert!(!validate_update(&crd, &crd).is_empty());
            assert_eq!(stored_as(&crd["spec"]), None);
            established_status(&crd, "");
            established_status(&crd["spec"], "");
            if let Value::Object(mut crd) = crd {
                prepare(&mut crd);
            }
        }
    }
}
