//! A server with config maps, and their states as objects.

use embedded_apiserver::{ApiServer, RequestRecord};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::Object;
use serde_json::{Value, json};

pub(crate) fn server() -> ApiServer {
    ApiServer::builder().seed(7).build()
}

pub(crate) fn create(server: &ApiServer, name: &str) -> Object<ConfigMap> {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "default", "name": name},
    });
    object(&server.create(map).expect("it is new"))
}

pub(crate) fn object<K>(json: &Value) -> Object<K> {
    Object::from_json(json.to_string()).expect("an object")
}

/// Returns the newest state, as an up-to-date cache has it.
pub(crate) fn read(server: &ApiServer, name: &str) -> Option<Object<ConfigMap>> {
    server.get("configmaps", "default", name).map(|found| object(&found))
}

pub(crate) fn finalizers(server: &ApiServer, name: &str) -> Vec<String> {
    read(server, name).expect("it is there").finalizers()
}

/// Replaces the finalizers, as another writer does.
pub(crate) fn set_finalizers(server: &ApiServer, name: &str, finalizers: &[&str]) {
    let mut map = server.get("configmaps", "default", name).expect("it is there");
    map["metadata"]["finalizers"] = json!(finalizers);
    server.update(map).expect("it can be changed");
}

pub(crate) fn delete(server: &ApiServer, name: &str) {
    server.delete("configmaps", "default", name).expect("it is there");
}

/// Returns the methods of all requests.
pub(crate) fn requests(server: &ApiServer) -> Vec<String> {
    let verb = |request: &RequestRecord| format!("{:?}", request.verb.expect("a verb"));
    server.requests().iter().map(verb).collect()
}
