//! Objects as tables, as metadata, and in unsupported representations.

use anyhow::Result;
use serde_json::json;

use super::super::run::compare;
use super::super::script::Script;
use super::MAPS;

#[tokio::test]
async fn objects_are_represented_alike() -> Result<()> {
    let mut script = Script::new("representations");
    for name in ["a", "b"] {
        let map = json!({"metadata": {"name": name, "labels": {"x": "y"}}, "data": {"k": "v"}});
        script.post(&format!("scene-{name}"), MAPS, map);
    }
    let a = &format!("{MAPS}/a");
    let form =
        |kind: &str, version: &str| format!("application/json;as={kind};g=meta.k8s.io;v={version}");
    let (table, metadata) = (form("Table", "v1"), form("PartialObjectMetadata", "v1"));
    let list = form("PartialObjectMetadataList", "v1");
    script.get("table", MAPS).accept(&table);
    script.get("table-of-one", a).accept(&table);
    script.get("table-of-none", &format!("{MAPS}/none")).accept(&table);
    script.get("table-empty", "/api/v1/namespaces/<ns>/secrets").accept(&table);
    script.get("table-paged", &format!("{MAPS}?limit=1")).accept(&table);
    script.get("table-v1beta1", MAPS).accept(&form("Table", "v1beta1"));
    script.get("table-objects", &format!("{MAPS}?includeObject=Object")).accept(&table);
    script.get("table-nothing", &format!("{MAPS}?includeObject=None")).accept(&table);
    script.get("table-metadata", &format!("{MAPS}?includeObject=Metadata")).accept(&table);
    script.get("table-wrong", &format!("{MAPS}?includeObject=Nonsense")).accept(&table);
    script.get("table-or-json", MAPS).accept(&format!("{table},application/json"));
    script.get("json-or-table", MAPS).accept(&format!("application/json,{table}"));
    script
        .get("kubectl", MAPS)
        .accept(&format!("{table},{},application/json", form("Table", "v1beta1")));
    let more = json!({"metadata": {"name": "c"}, "data": {"k": "v"}});
    script.post("table-of-created", MAPS, more).accept(&table);
    script.merge("table-of-patched", a, json!({"data": {"l": "w"}})).accept(&table);
    script.delete("table-of-deleted", &format!("{MAPS}/c")).accept(&table);
    script.get("metadata", a).accept(&metadata);
    script.get("metadata-list", MAPS).accept(&list);
    script.get("metadata-list-paged", &format!("{MAPS}?limit=1")).accept(&list);
    script.get("metadata-v1beta1", a).accept(&form("PartialObjectMetadata", "v1beta1"));
    script.get("metadata-of-a-list", MAPS).accept(&metadata);
    script.get("metadata-list-of-one", a).accept(&list);
    script.merge("metadata-of-patched", a, json!({"data": {"m": "1"}})).accept(&metadata);
    script.get("metadata-or-json", MAPS).accept(&format!("{metadata},application/json"));
    let unknown = "application/json;as=Nonsense;g=meta.k8s.io;v=v1";
    script.get("as-unknown", MAPS).accept(unknown);
    script.get("as-unknown-or-json", MAPS).accept(&format!("{unknown},application/json"));
    script.get("as-unknown-version", MAPS).accept(&form("Table", "v9"));
    script.get("xml", MAPS).accept("application/xml");
    script.get("xml-of-none", &format!("{MAPS}/none")).accept("application/xml");
    script.get("xml-or-anything", MAPS).accept("application/xml,*/*");
    script.get("text", MAPS).accept("text/plain");
    script.get("anything", a).accept("*/*");
    script.get("any-application", a).accept("application/*");
    script.get("any-text", a).accept("text/*");
    script.get("json-with-quality", a).accept("application/json;q=0.5");
    script.get("json-with-charset", a).accept("application/json;charset=utf-8");
    script.get("nonsense", a).accept("nonsense");
    script.get("yaml", a).accept("application/yaml");
    script
        .get("protobuf-or-json", a)
        .accept("application/vnd.kubernetes.protobuf,application/json");
    script.get("cbor-or-json", a).accept("application/cbor,application/json");
    compare(script).await
}
