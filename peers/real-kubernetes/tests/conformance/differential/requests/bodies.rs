//! Invalid bodies.

use anyhow::Result;
use serde_json::json;

use super::super::run::compare;
use super::super::script::Script;
use super::MAPS;

#[tokio::test]
async fn bodies_are_refused_alike() -> Result<()> {
    let mut script = Script::new("bodies");
    let mut raw = |name: &str, body: &str| {
        script.post(name, MAPS, json!({})).text(body);
    };
    raw("empty", "");
    raw("no-json", "{");
    raw("words", "hello");
    raw("a-number", "5");
    raw("a-list", "[]");
    raw("null", "null");
    raw("nothing-in-it", "{}");
    raw("more-than-one", r#"{"metadata":{"name":"x1"}} {"metadata":{"name":"x2"}}"#);
    raw("comma", r#"{"metadata":{"name":"x3"},}"#);
    raw("twice", r#"{"metadata":{"name":"x4"},"metadata":{"name":"x5"}}"#);
    raw("another-kind", r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x6"}}"#);
    raw("unknown-kind", r#"{"kind":"Nonsense","apiVersion":"v1","metadata":{"name":"x7"}}"#);
    raw("another-version", r#"{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"x8"}}"#);
    raw("another-group", r#"{"kind":"ConfigMap","apiVersion":"apps/v1","metadata":{"name":"x9"}}"#);
    raw("only-kind", r#"{"kind":"ConfigMap","metadata":{"name":"x10"}}"#);
    raw("only-version", r#"{"apiVersion":"v1","metadata":{"name":"x11"}}"#);
    raw("wrong-version", r#"{"kind":"ConfigMap","apiVersion":"a/b/c","metadata":{"name":"x12"}}"#);
    raw("kind-is-a-number", r#"{"kind":1,"metadata":{"name":"x13"}}"#);
    raw("metadata-is-a-text", r#"{"metadata":"text"}"#);
    raw("metadata-is-a-list", r#"{"metadata":[]}"#);
    raw("name-is-a-number", r#"{"metadata":{"name":1}}"#);
    raw("labels-are-a-list", r#"{"metadata":{"name":"x14","labels":[]}}"#);
    raw("label-is-a-number", r#"{"metadata":{"name":"x15","labels":{"a":1}}}"#);
    raw("finalizers-are-a-text", r#"{"metadata":{"name":"x16","finalizers":"f"}}"#);
    raw("data-are-numbers", r#"{"metadata":{"name":"x17"},"data":{"a":1}}"#);
    raw("data-are-a-list", r#"{"metadata":{"name":"x18"},"data":[]}"#);
    raw("unknown-fields", r#"{"metadata":{"name":"x19"},"colour":"blue"}"#);
    let mut typed = |name: &str, content_type: &str| {
        let map = json!({"metadata": {"name": name}});
        script.post(name, MAPS, map).content_type(content_type);
    };
    typed("as-json-with-charset", "application/json; charset=utf-8");
    typed("as-text", "text/plain");
    typed("as-xml", "application/xml");
    typed("as-a-patch", "application/merge-patch+json");
    typed("as-protobuf", "application/vnd.kubernetes.protobuf");
    typed("as-yaml", "application/yaml");
    typed("as-anything", "*/*");
    typed("as-nonsense", "nonsense");
    let strict = format!("{MAPS}?fieldValidation=Strict");
    script.post("strict", &strict, json!({"metadata": {"name": "strict"}, "colour": "blue"}));
    script.post("strict-fine", &strict, json!({"metadata": {"name": "strict-fine"}}));
    let wrong = format!("{MAPS}?fieldValidation=Loose");
    script.post("validation-unknown", &wrong, json!({"metadata": {"name": "loose"}}));
    let large = json!({"metadata": {"name": "large"}, "data": {"a": "x".repeat(1_100_000)}});
    script.post("large", MAPS, large);
    let larger = json!({"metadata": {"name": "larger"}, "data": {"a": "x".repeat(3_500_000)}});
    script.post("larger", MAPS, larger);
    compare(script).await
}
