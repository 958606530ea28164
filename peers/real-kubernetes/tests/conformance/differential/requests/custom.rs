//! Custom resources: definitions, the objects that they serve, and their deletion.

use anyhow::Result;
use serde_json::{Value, json};

use super::super::run::compare;
use super::super::script::Script;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [
                {
                    "name": "v1", "served": true, "storage": true,
                    "subresources": {"status": {}},
                    "selectableFields": [{"jsonPath": ".spec.colour"}],
                    "additionalPrinterColumns": [
                        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour"},
                        {"name": "Count", "type": "integer", "jsonPath": ".spec.count", "priority": 1},
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    ],
                    "schema": {"openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                                "properties": {"colour": {"type": "string"}, "count": {"type": "integer"}},
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        },
                    }},
                },
                {
                    "name": "v1beta1", "served": true, "storage": false,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                },
            ],
        },
    })
}

fn widget(name: &str, colour: &str) -> Value {
    json!({
        "apiVersion": "custom.example.com/v1", "kind": "Widget",
        "metadata": {"name": name}, "spec": {"colour": colour, "count": 1}, "status": {"x": 1},
    })
}

const ALL: &str = "/apis/custom.example.com/v1/namespaces/<ns>/widgets";
const A: &str = "/apis/custom.example.com/v1/namespaces/<ns>/widgets/a";
const BETA: &str = "/apis/custom.example.com/v1beta1/namespaces/<ns>/widgets";

#[tokio::test]
async fn custom_resources_are_served_alike() -> Result<()> {
    let mut script = Script::new("custom");
    let definition_path = &format!("{DEFINITIONS}/widgets.custom.example.com");
    script.get("before", ALL);
    script.post("define", DEFINITIONS, definition("custom.example.com"));
    script.post("define-again", DEFINITIONS, definition("custom.example.com"));
    script.once_there("served", ALL).save("start", "/metadata/resourceVersion");
    script.once_there("definition", definition_path).with("/status/conditions/1");
    script.once_there("group", "/apis/custom.example.com").with("/versions/1");
    script.once_there("version", "/apis/custom.example.com/v1").with("/resources/1");
    script.get("unknown-resource", "/apis/custom.example.com/v1/namespaces/<ns>/gadgets");
    script.get("unknown-version", "/apis/custom.example.com/v9/namespaces/<ns>/widgets");
    creates(&mut script);
    reads(&mut script);
    changes(&mut script);
    script.watch("watch", &format!("{ALL}?watch=1&resourceVersion=<start>"), 6);
    script.delete("delete", A);
    script.delete("delete-gone", A);
    script.delete("delete-all", ALL);
    script.delete("undefine", definition_path);
    script.once_gone("after", ALL);
    script.once_gone("definition-gone", definition_path);
    script.once_gone("group-gone", "/apis/custom.example.com");
    compare(script).await
}

fn creates(script: &mut Script) {
    script.post("create", ALL, widget("a", "red")).save("first", "/metadata/resourceVersion");
    script.post("create-b", ALL, widget("b", "blue"));
    script.post("create-again", ALL, widget("a", "red"));
    let mut with = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut widget = widget("c", "green");
        change(&mut widget);
        script.post(name, ALL, widget);
    };
    with("create-generated", &|it| it["metadata"] = json!({"generateName": "gen-"}));
    let without = |it: &mut Value, field: &str| drop(it.as_object_mut().map(|it| it.remove(field)));
    with("without-kind", &|it| without(it, "kind"));
    with("without-version", &|it| without(it, "apiVersion"));
    with("another-kind", &|it| it["kind"] = "Gadget".into());
    with("another-version", &|it| it["apiVersion"] = "custom.example.com/v1beta1".into());
    with("another-group", &|it| it["apiVersion"] = "other.example.com/v1".into());
    with("without-name", &|it| it["metadata"] = json!({}));
    with("bad-metadata", &|it| it["metadata"] = json!({"name": "C_", "labels": {"a b": "c"}}));
    let mut wrong = widget("w", "");
    wrong["spec"]["colour"] = 5.into();
    script.post("wrong-type", &format!("{ALL}?dryRun=All"), wrong);
    script.post("as-protobuf", ALL, json!({})).content_type("application/vnd.kubernetes.protobuf");
    script.post("as-text", ALL, json!({})).content_type("text/plain");
}

fn reads(script: &mut Script) {
    script.get("get", A);
    script.get("none", &format!("{ALL}/none"));
    script.get("get-v1beta1", &format!("{BETA}/a"));
    script.get("list", ALL);
    script.get("list-everywhere", "/apis/custom.example.com/v1/widgets");
    script.get("list-v1beta1", BETA);
    script.get("select-field", &format!("{ALL}?fieldSelector=spec.colour%3Dred"));
    script.get("select-unknown-field", &format!("{ALL}?fieldSelector=spec.count%3D1"));
    script.get("table", ALL).accept("application/json;as=Table;g=meta.k8s.io;v=v1");
    let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    script.get("metadata", A).accept(metadata);
    script.get("protobuf", A).accept("application/vnd.kubernetes.protobuf");
    script.get("xml", A).accept("application/xml");
    script.get("unknown-subresource", &format!("{A}/scale"));
}

fn changes(script: &mut Script) {
    script.merge("patch", A, json!({"spec": {"count": 2}}));
    script.merge("patch-status-here", A, json!({"status": {"x": 3}}));
    script.merge("patch-label", A, json!({"metadata": {"labels": {"l": "1"}}}));
    let both = json!({"status": {"x": 2}, "spec": {"count": 9}});
    script.merge("patch-status", &format!("{A}/status"), both);
    script.merge("status-of-v1beta1", &format!("{BETA}/a/status"), json!({}));
    script.merge("strategic", A, json!({})).content_type("application/strategic-merge-patch+json");
    script.merge("nonsense-patch", A, json!({})).content_type("application/x-patch");
    let mut stale = widget("a", "green");
    stale["metadata"]["resourceVersion"] = "<first>".into();
    script.put("conflict", A, stale);
    script.put("without-resource-version", A, widget("a", "green"));
    script.send("put-collection", "PUT", ALL).json(json!({}));
}

#[tokio::test]
async fn definitions_are_checked_alike() -> Result<()> {
    let mut script = Script::new("definitions");
    let good = definition("definitions.example.com");
    let mut with = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut definition = good.clone();
        change(&mut definition);
        script.post(name, DEFINITIONS, definition);
    };
    with("wrong-name", &|it| it["metadata"]["name"] = "gadgets.definitions.example.com".into());
    with("no-group", &|it| it["spec"]["group"] = "".into());
    with("no-versions", &|it| it["spec"]["versions"] = json!([]));
    with("no-names", &|it| it["spec"]["names"] = json!({}));
    with("no-scope", &|it| it["spec"]["scope"] = json!(""));
    with("wrong-scope", &|it| it["spec"]["scope"] = json!("Galactic"));
    with("no-storage", &|it| it["spec"]["versions"][0]["storage"] = false.into());
    with("two-storages", &|it| it["spec"]["versions"][1]["storage"] = true.into());
    with("same-version-twice", &|it| it["spec"]["versions"][1]["name"] = "v1".into());
    with("bad-version", &|it| it["spec"]["versions"][1]["name"] = "V 1".into());
    with("no-schema", &|it| {
        drop(it["spec"]["versions"][0].as_object_mut().map(|version| version.remove("schema")));
    });
    with("bad-kind", &|it| it["spec"]["names"]["kind"] = "W idget".into());
    with("bad-plural", &|it| it["spec"]["names"]["plural"] = "Widgets".into());
    with("no-spec", &|it| drop(it.as_object_mut().map(|it| it.remove("spec"))));
    with("kubernetes-group", &|it| {
        it["spec"]["group"] = "x.k8s.io".into();
        it["metadata"]["name"] = "widgets.x.k8s.io".into();
    });
    with("bad-column", &|it| {
        it["spec"]["versions"][0]["additionalPrinterColumns"][0]["type"] = "text".into();
    });
    with("bad-path", &|it| {
        it["spec"]["versions"][0]["additionalPrinterColumns"][0]["jsonPath"] = "spec".into();
    });
    compare(script).await
}
