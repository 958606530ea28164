//! Validation of a `CustomResourceDefinition`, with Kubernetes' wording and order of errors.

use serde_json::Value;

use super::names::{group, label, names};
use super::{list, stored_as, text};
use crate::kinds::scale::is_path_under;
use crate::status::FieldError;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Validates a definition after `prepare` has set its defaults.
pub(crate) fn validate(crd: &Value) -> Vec<FieldError> {
    let mut errors = object_name(crd);
    errors.extend(spec_errors(&crd["spec"]));
    if stored_as(&crd["spec"]).is_none() {
        let detail = "must have at least one stored version";
        errors.push(FieldError::invalid("status.storedVersions", Value::Null, detail));
    }
    errors.extend(approval(crd));
    if crd["spec"]["preserveUnknownFields"] == true {
        errors.push(FieldError::invalid(
            "spec.preserveUnknownFields",
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
             spec.versions[*].schema instead",
        ));
    }
    errors
}

/// Validates a definition that replaces `old`, the stored one with its status.
pub(crate) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = validate(new);
    let (was, is) = (&old["spec"], &new["spec"]);
    let fixed = [
        ("spec.scope", &was["scope"], &is["scope"]),
        ("spec.names.kind", &was["names"]["kind"], &is["names"]["kind"]),
        ("spec.group", &was["group"], &is["group"]),
        ("spec.names.plural", &was["names"]["plural"], &is["names"]["plural"]),
    ];
    for (field, was, is) in fixed {
        if was != is {
            errors.push(FieldError::invalid(field, is.clone(), "field is immutable"));
        }
    }
    for (at, stored) in list(&old["status"]["storedVersions"]).iter().enumerate() {
        if !list(&is["versions"]).iter().any(|version| version["name"] == *stored) {
            let name = text(stored);
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {name} and removes {name} from status.storedVersions"
            );
            let field = format!("status.storedVersions[{at}]");
            errors.push(FieldError::invalid(field, name, detail));
        }
    }
    errors
}

/// Checks that the name is `plural.group`. Its syntax is validated as for any other kind.
fn object_name(crd: &Value) -> Vec<FieldError> {
    let name = text(&crd["metadata"]["name"]);
    let spec = &crd["spec"];
    let wanted = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    if name.is_empty() || name == wanted {
        return Vec::new();
    }
    let detail = r#"must be spec.names.plural+"."+spec.group"#;
    vec![FieldError::invalid("metadata.name", name, detail)]
}

fn spec_errors(spec: &Value) -> Vec<FieldError> {
    let mut errors: Vec<_> = group(text(&spec["group"])).into_iter().collect();
    match text(&spec["scope"]) {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => {
            let supported = ["Cluster", "Namespaced"];
            errors.push(FieldError::not_supported("spec.scope", other, &supported));
        }
    }
    errors.extend(versions(&spec["versions"]));
    errors.extend(names(&spec["names"]));
    errors
}

fn versions(all: &Value) -> Vec<FieldError> {
    let versions = list(all);
    let mut errors = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let field = format!("spec.versions[{at}].schema.openAPIV3Schema");
            errors.push(FieldError::required(field, ""));
        }
    }
    for (at, version) in versions.iter().enumerate() {
        let name = text(&version["name"]);
        errors.extend(label(&format!("spec.versions[{at}].name"), name, name, ""));
    }
    let mut distinct: Vec<_> = versions.iter().map(|version| text(&version["name"])).collect();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() != versions.len() {
        let detail = "must contain unique version names";
        errors.push(FieldError::invalid("spec.versions", all.clone(), detail));
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", all.clone(), detail));
    }
    errors.extend(schemas(versions));
    errors.extend(columns(versions));
    errors.extend(scales(versions));
    errors
}

/// Returns the attributes that all versions share. Kubernetes reports these at the definition's
/// top-level field, even if there is only one version.
fn shared<'a>(
    versions: &'a [Value],
    field: &'a str,
    whole: &'a str,
) -> impl Iterator<Item = (String, &'a Value)> {
    let common = versions.iter().all(|version| version[field] == versions[0][field]);
    let count = if common { 1 } else { versions.len() };
    versions.iter().take(count).enumerate().map(move |(at, version)| {
        let path =
            if common { format!("spec.{whole}") } else { format!("spec.versions[{at}].{field}") };
        (path, &version[field])
    })
}

fn schemas(versions: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (path, schema) in shared(versions, "schema", "validation") {
        let root = &schema["openAPIV3Schema"];
        let untyped = root["x-kubernetes-preserve-unknown-fields"] == true
            || root["x-kubernetes-int-or-string"] == true;
        let field = format!("{path}.openAPIV3Schema.type");
        match text(&root["type"]) {
            "object" => {}
            "" if untyped || !root.is_object() => {}
            "" => errors.push(FieldError::required(field, "must not be empty at the root")),
            other => errors.push(FieldError::invalid(field, other, "must be object at the root")),
        }
    }
    errors
}

fn columns(versions: &[Value]) -> Vec<FieldError> {
    let field = "additionalPrinterColumns";
    let mut errors = Vec::new();
    for (path, columns) in shared(versions, field, field) {
        for (at, column) in list(columns).iter().enumerate() {
            errors.extend(column_errors(&format!("{path}[{at}]"), column));
        }
    }
    errors
}

fn scales(versions: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (path, subresources) in shared(versions, "subresources", "subresources") {
        let scale = &subresources["scale"];
        if !scale.is_object() {
            continue;
        }
        let mut check = |name: &str, required: bool, roots: &[&str], detail: &str| {
            let (field, given) = (format!("{path}.scale.{name}"), text(&scale[name]));
            if !given.is_empty() && !is_path_under(given, roots) {
                errors.push(FieldError::invalid(field, given, detail));
            } else if given.is_empty() && required {
                errors.push(FieldError::required(field, ""));
            }
        };
        check("specReplicasPath", true, &[".spec."], "should be a json path under .spec");
        check("statusReplicasPath", true, &[".status."], "should be a json path under .status");
        let roots = [".spec.", ".status."];
        let detail = "should be a json path under either .spec or .status";
        check("labelSelectorPath", false, &roots, detail);
    }
    errors
}

fn column_errors(path: &str, column: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(&column["name"]).is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    }
    let kind = text(&column["type"]);
    let detail = format!("must be one of {}", COLUMN_TYPES.join(","));
    if kind.is_empty() {
        errors.push(FieldError::required(format!("{path}.type"), detail));
    } else if !COLUMN_TYPES.contains(&kind) {
        errors.push(FieldError::invalid(format!("{path}.type"), kind, detail));
    }
    let json_path = text(&column["jsonPath"]);
    let field = format!("{path}.JSONPath");
    if json_path.is_empty() {
        errors.push(FieldError::required(field, ""));
    } else if !json_path.starts_with('.') {
        let detail = "must be a simple json path starting with .";
        errors.push(FieldError::invalid(field, json_path, detail));
    }
    errors
}

/// Checks that a definition in one of Kubernetes' protected groups is approved.
fn approval(crd: &Value) -> Option<FieldError> {
    let group = text(&crd["spec"]["group"]);
    let protected = ["k8s.io", "kubernetes.io"].into_iter().any(|domain| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let given = text(&crd["metadata"]["annotations"][APPROVAL]);
    let approved = given.starts_with("unapproved")
        || given.split_once("://").is_some_and(|(scheme, host)| {
            !scheme.is_empty() && !host.is_empty() && !host.starts_with('/')
        });
    if !protected || approved {
        return None;
    }
    let field = format!("metadata.annotations[{APPROVAL}]");
    let must = format!("protected groups must have approval annotation {APPROVAL:?}");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    Some(match given {
        "" => FieldError::required(field, format!("{must}, {see}")),
        given => {
            let form = r#"with either a URL or a reason starting with "unapproved""#;
            FieldError::invalid(field, given, format!("{must} {form}, {see}"))
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{established_status, prepare, tests::widgets};
    use super::*;

    fn prepared(change: impl FnOnce(&mut Value)) -> Value {
        let mut crd = widgets();
        change(&mut crd);
        let Value::Object(mut crd) = crd else { panic!("an object") };
        prepare(&mut crd);
        Value::Object(crd)
    }

    fn messages(change: impl FnOnce(&mut Value)) -> Vec<String> {
        validate(&prepared(change)).iter().map(ToString::to_string).collect()
    }

    fn only(change: impl FnOnce(&mut Value)) -> String {
        let messages = messages(change);
        assert_eq!(messages.len(), 1, "{messages:#?}");
        messages.into_iter().next().unwrap_or_default()
    }

    #[test]
    fn a_good_definition_passes() {
        assert_eq!(messages(|_| {}), [""; 0]);
    }

    #[test]
    fn the_name_is_made_of_plural_and_group() {
        assert_eq!(
            only(|crd| crd["metadata"]["name"] = json!("widget.example.com")),
            "metadata.name: Invalid value: \"widget.example.com\": must be \
             spec.names.plural+\".\"+spec.group"
        );
    }

    #[test]
    fn group_plural_kind_and_scope_are_required() {
        let missing = messages(|crd| {
            crd["metadata"]["name"] = json!("");
            crd["spec"]["names"] = json!({});
            crd["spec"]["group"] = json!("");
            crd["spec"]["scope"] = json!("");
        });
        let fields = ["group", "scope", "names.plural", "names.singular", "names.kind"];
        let mut wanted: Vec<_> =
            fields.iter().map(|field| format!("spec.{field}: Required value")).collect();
        wanted.push("spec.names.listKind: Required value".to_owned());
        assert_eq!(missing, wanted);
    }

    #[test]
    fn a_scope_is_one_of_two() {
        assert_eq!(
            only(|crd| crd["spec"]["scope"] = json!("Everywhere")),
            "spec.scope: Unsupported value: \"Everywhere\": supported values: \"Cluster\", \
             \"Namespaced\""
        );
    }

    #[test]
    fn a_group_is_a_domain() {
        let rename = |group: &str| {
            let group = group.to_owned();
            only(move |crd| {
                crd["metadata"]["name"] = json!(format!("widgets.{group}"));
                crd["spec"]["group"] = json!(group);
            })
        };
        assert_eq!(
            rename("example"),
            "spec.group: Invalid value: \"example\": should be a domain with at least one dot"
        );
        assert!(rename("Example.com").contains("a lowercase RFC 1123 subdomain must consist"));
        assert!(rename("x.k8s.io").starts_with(
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups"
        ));
    }

    #[test]
    fn exactly_one_version_is_stored() {
        let two = only(|crd| crd["spec"]["versions"][1]["storage"] = json!(true));
        assert!(two.ends_with("must have exactly one version marked as storage version"), "{two}");
        let none = messages(|crd| crd["spec"]["versions"] = json!([]));
        assert_eq!(
            none,
            [
                "spec.versions: Invalid value: []: must have exactly one version marked as storage \
                 version",
                "status.storedVersions: Invalid value: null: must have at least one stored version"
            ]
        );
    }

    #[test]
    fn version_names_are_unique_labels() {
        let twice = only(|crd| crd["spec"]["versions"][1]["name"] = json!("v1"));
        assert!(twice.ends_with("must contain unique version names"), "{twice}");
        let digit = only(|crd| crd["spec"]["versions"][1]["name"] = json!("1"));
        assert!(
            digit.starts_with(
                "spec.versions[1].name: Invalid value: \"1\": a DNS-1035 label must consist of \
                 lower case alphanumeric characters or '-', start with an alphabetic character"
            ),
            "{digit}"
        );
    }

    #[test]
    fn every_version_has_a_schema_of_an_object() {
        assert_eq!(
            only(|crd| crd["spec"]["versions"][0]["schema"] = json!(null)),
            "spec.versions[0].schema.openAPIV3Schema: Required value"
        );
        assert_eq!(
            only(|crd| crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"] = json!({})),
            "spec.versions[1].schema.openAPIV3Schema.type: Required value: must not be empty at \
             the root"
        );
        assert_eq!(
            only(|crd| {
                let version = &mut crd["spec"]["versions"][0];
                version["schema"]["openAPIV3Schema"]["type"] = json!("array");
                crd["spec"]["versions"] = json!([version.take()]);
            }),
            "spec.validation.openAPIV3Schema.type: Invalid value: \"array\": must be object at the \
             root"
        );
    }

    #[test]
    fn printer_columns_have_a_known_type() {
        let path = |crd: &mut Value, to: &str| {
            crd["spec"]["versions"][0]["additionalPrinterColumns"][0]["type"] = json!(to);
        };
        assert_eq!(
            only(|crd| path(crd, "text")),
            "spec.versions[0].additionalPrinterColumns[0].type: Invalid value: \"text\": must be \
             one of boolean,date,integer,number,string"
        );
    }

    #[test]
    fn kinds_may_have_mixed_case() {
        let bad = messages(|crd| crd["spec"]["names"]["kind"] = json!("Wid_get"));
        let prefix = "spec.names.kind: Invalid value: \"Wid_get\": may have mixed case, but should";
        assert!(bad.iter().any(|message| message.starts_with(prefix)), "{bad:#?}");
    }

    #[test]
    fn what_an_established_definition_is_about_cannot_change() {
        let mut old = prepared(|_| {});
        old["status"] = established_status(&old["spec"], "");
        assert!(validate_update(&old, &old).is_empty());
        let scope = prepared(|crd| crd["spec"]["scope"] = json!("Cluster"));
        assert_eq!(
            validate_update(&scope, &old)[0].to_string(),
            "spec.scope: Invalid value: \"Cluster\": field is immutable"
        );
        let gone = prepared(|crd| {
            let mut kept = crd["spec"]["versions"][1].take();
            kept["storage"] = json!(true);
            crd["spec"]["versions"] = json!([kept]);
        });
        let errors = validate_update(&gone, &old);
        assert!(errors[0].to_string().starts_with(
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was"
        ));
    }
}
