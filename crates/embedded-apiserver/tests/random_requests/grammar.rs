//! Random requests. Most are nearly valid, because completely invalid ones are rejected early.

use bytes::Bytes;
use fastrand::Rng;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use super::objects;

/// The collections, and the kinds of their objects.
pub(crate) const COLLECTIONS: [(&str, &str, &str); 14] = [
    ("/api/v1/namespaces/default/configmaps", "v1", "ConfigMap"),
    ("/api/v1/namespaces/default/pods", "v1", "Pod"),
    ("/api/v1/namespaces/kube-system/secrets", "v1", "Secret"),
    ("/api/v1/namespaces/default/services", "v1", "Service"),
    ("/api/v1/namespaces/default/events", "v1", "Event"),
    ("/apis/events.k8s.io/v1/namespaces/default/events", "events.k8s.io/v1", "Event"),
    ("/api/v1/namespaces", "v1", "Namespace"),
    ("/api/v1/nodes", "v1", "Node"),
    ("/apis/apps/v1/namespaces/default/deployments", "apps/v1", "Deployment"),
    ("/apis/batch/v1/namespaces/default/jobs", "batch/v1", "Job"),
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases", "coordination.k8s.io/v1", "Lease"),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
    ),
    (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
    ),
    ("/apis/e.io/v1/foos", "e.io/v1", "Foo"),
];

const NAMES: [&str; 5] = ["a", "b", "foos.e.io", "default", "a.b"];

pub(crate) fn pick<'a, T: ?Sized>(rng: &mut Rng, from: &[&'a T]) -> &'a T {
    from[rng.usize(..from.len())]
}

pub(crate) fn one_in(rng: &mut Rng, n: u32) -> bool {
    rng.u32(..n) == 0
}

/// Returns a request and its description.
pub(crate) fn request(rng: &mut Rng) -> Option<(Request<Full<Bytes>>, String)> {
    let (collection, api_version, kind) = COLLECTIONS[rng.usize(..COLLECTIONS.len())];
    let methods = ["GET", "GET", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE"];
    let odd = ["HEAD", "OPTIONS", "TRACE", "CONNECT", "FOO"];
    let method = if one_in(rng, 30) { pick(rng, &odd) } else { pick(rng, &methods) };
    let name = pick(rng, &NAMES);
    let named = !matches!(method, "POST") && rng.u8(..4) > 0 && (method != "GET" || rng.bool());
    let mut uri = match rng.u8(..20) {
        0 => garbage_path(rng),
        1 => plain_path(rng).to_owned(),
        2 => collection.replacen("v1/", "v1/watch/", 1),
        3 => collection.replace("/namespaces/default", ""),
        _ if named => format!("{collection}/{name}"),
        _ => collection.to_owned(),
    };
    if named && one_in(rng, 5) {
        uri.push_str(pick(rng, &["/status", "/status", "/scale", "/finalize", "/", "/x/y"]));
    }
    if rng.bool() {
        uri.push('?');
        uri.push_str(&query(rng));
    }
    let (content_type, body) = body(rng, method, api_version, kind, name);
    let shown = String::from_utf8_lossy(&body[..body.len().min(2000)]).into_owned();
    let shown = format!("{method} {uri} {content_type} {shown}");
    let mut request = Request::builder().method(method).uri(&uri);
    if !content_type.is_empty() {
        request = request.header("content-type", content_type);
    }
    if one_in(rng, 3) {
        request = request.header("accept", accept(rng));
    }
    if one_in(rng, 10) {
        request = request.header("accept-encoding", "gzip");
    }
    // A request that the HTTP library rejects never reaches the server.
    Some((request.body(Full::new(body.into())).ok()?, shown))
}

fn plain_path(rng: &mut Rng) -> &'static str {
    let paths = [
        "/",
        "/api",
        "/apis",
        "/api/v1",
        "/apis/apps",
        "/apis/apps/v1",
        "/apis/e.io",
        "/apis/e.io/v1",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/api/v1",
        "/openapi/v3/apis/e.io/v1",
        "/version",
        "/healthz",
        "/readyz?verbose",
        "/livez/ping",
        "/metrics",
        "/api/v2",
        "/apis/none/v1/x",
        "",
    ];
    pick(rng, &paths)
}

fn garbage_path(rng: &mut Rng) -> String {
    let segments = [
        "api",
        "apis",
        "v1",
        "namespaces",
        "default",
        "pods",
        "watch",
        "status",
        "",
        ".",
        "..",
        "%00",
        "%ff",
        "%zz",
        "%2f",
        "%2e%2e",
        "a%0ab",
        "\u{e4}",
        "apps",
        "*",
        "-",
        "x",
        "foos",
        "e.io",
    ];
    if one_in(rng, 20) {
        return format!("/api/v1/pods/{}", "x".repeat(rng.usize(..70_000)));
    }
    (0..rng.usize(..9)).flat_map(|_| ["/", pick(rng, &segments)]).collect()
}

fn query(rng: &mut Rng) -> String {
    let names = [
        "watch",
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "allowWatchBookmarks",
        "sendInitialEvents",
        "timeoutSeconds",
        "dryRun",
        "gracePeriodSeconds",
        "propagationPolicy",
        "includeObject",
        "fieldManager",
        "pretty",
        "x",
        "",
    ];
    let values = [
        "",
        "0",
        "1",
        "true",
        "false",
        "-1",
        "9223372036854775807",
        "9223372036854775808",
        "1e3",
        "7",
        "18446744073709551615",
        "Exact",
        "NotOlderThan",
        "All",
        "Foreground",
        "Orphan",
        "Object",
        "Metadata",
        "None",
        "a%3Db",
        "a+in+(b,c)",
        "a,!b",
        "metadata.name%3Da",
        "status.phase%3DRunning",
        "spec.x%3D1",
        "%2C",
        "%3D",
        "((",
        "%ff",
        "%00",
        "a%3D%3D%3D",
        "%C3%A4",
        // Continue tokens: version 3 from "default/", version 0, not JSON.
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Mywic3RhcnQiOiJkZWZhdWx0LyJ9",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiIvIn0",
        "AAAA",
        // The same for namespace "zzz" at the latest version, with a count.
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0Ijoienp6L2EiLCJsZWZ0IjowfQ",
    ];
    let mut parts: Vec<String> = (0..rng.usize(1..4))
        .map(|_| format!("{}={}", pick(rng, &names), pick(rng, &values)))
        .collect();
    if one_in(rng, 50) {
        parts.push(format!("labelSelector={}", "a,".repeat(rng.usize(..20_000))));
    }
    parts.join("&")
}

fn accept(rng: &mut Rng) -> String {
    let values = [
        "application/json",
        "*/*",
        "application/*;q=0.1",
        "text/html",
        "application/yaml",
        ",,",
        ";;=",
        "application/vnd.kubernetes.protobuf",
        "application/vnd.kubernetes.protobuf,application/json",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
        "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
        "application/json;as=Foo;v=v9;g=x",
        "application/json;stream=watch",
    ];
    if one_in(rng, 30) {
        return "application/json,".repeat(rng.usize(..1000));
    }
    pick(rng, &values).to_owned()
}

fn body(
    rng: &mut Rng,
    method: &str,
    api_version: &str,
    kind: &str,
    name: &str,
) -> (&'static str, Vec<u8>) {
    const MERGE: &str = "application/merge-patch+json";
    const JSON_PATCH: &str = "application/json-patch+json";
    let object = || objects::valid(api_version, kind, name);
    let (content_type, body) = match method {
        "PATCH" if rng.bool() => (JSON_PATCH, objects::json_patch(rng)),
        "PATCH" => (MERGE, objects::merge_patch(rng)),
        "POST" | "PUT" if one_in(rng, 3) => ("application/json", object()),
        "POST" | "PUT" => ("application/json", objects::mutated(rng, object())),
        "DELETE" if rng.bool() => ("application/json", objects::delete_options(rng)),
        _ => ("", Value::Null),
    };
    let odd = [
        "",
        "text/plain",
        "application/json; charset=utf-8",
        MERGE,
        JSON_PATCH,
        "application/yaml",
        "application/apply-patch+yaml",
        "application/strategic-merge-patch+json",
        "a/b/c",
    ];
    let protobuf = kube_schema::to_vec(&body).ok();
    let protobuf = protobuf.filter(|_| content_type == "application/json" && one_in(rng, 4));
    let (content_type, mut bytes) = match protobuf {
        Some(bytes) => (kube_schema::MEDIA_TYPE, bytes),
        None if body.is_null() => (content_type, Vec::new()),
        None => (content_type, body.to_string().into_bytes()),
    };
    let content_type = if one_in(rng, 20) { pick(rng, &odd) } else { content_type };
    match rng.u8(..40) {
        0 => bytes = (0..rng.usize(..300)).map(|_| rng.u8(..)).collect(),
        1 => bytes = objects::deep_text(rng),
        2 => bytes = objects::any(rng, 4).to_string().into_bytes(),
        3 if !bytes.is_empty() => {
            let at = rng.usize(..bytes.len());
            bytes[at] = rng.u8(..);
        }
        4 => bytes.truncate(rng.usize(..=bytes.len())),
        5 => {
            let number = objects::number(rng);
            bytes = format!(r#"{{"metadata":{{"name":"a"}},"x":{number}}}"#).into();
        }
        6 if one_in(rng, 5) => {
            // The last two are too large: as an object, and as a request.
            let len = [10, 10_000, 1_600_000, 3_200_000][rng.usize(..4)];
            bytes = json!({"metadata": {"name": name}, "data": {"x": "y".repeat(len)}})
                .to_string()
                .into();
        }
        _ => {}
    }
    (content_type, bytes)
}
