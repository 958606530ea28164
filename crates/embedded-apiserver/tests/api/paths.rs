//! Paths and methods, and the requests that they stand for.

use embedded_apiserver::ApiServer;
use serde_json::json;

use crate::harness::{Client, MAPS, definition, failure, map, names};

fn not_allowed() -> serde_json::Value {
    let message = "the server does not allow this method on the requested resource";
    failure(405, "MethodNotAllowed", message, json!({}))
}

fn not_found() -> serde_json::Value {
    failure(404, "NotFound", "the server could not find the requested resource", json!({}))
}

#[tokio::test(start_paused = true)]
async fn methods_that_a_path_has_not_are_405() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    server.create(map("a")).unwrap();
    let named = format!("{MAPS}/a");
    for (method, path) in [
        ("PUT", MAPS),
        ("PATCH", MAPS),
        ("POST", &named),
        ("POST", "/api/v1/configmaps"),
        // A single request cannot delete a collection in all namespaces, nor namespaces.
        ("DELETE", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/namespaces"),
        ("POST", "/api/v1/namespaces/default/status"),
        ("DELETE", "/api/v1/namespaces/default/status"),
        ("HEAD", MAPS),
        ("OPTIONS", MAPS),
        ("POST", "/version"),
        ("POST", "/apis"),
    ] {
        let answer = client.request(method, path, &[], "{}").await;
        assert_eq!(answer.code, 405, "{method} {path}");
        assert_eq!(answer.json(), not_allowed(), "{method} {path}");
    }
    assert_eq!(server.count("configmaps", ""), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_built_in_group_does_not_have_is_a_404_with_a_status() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    server.create(map("a")).unwrap();
    for path in [
        "/api/v1/foos",
        "/api/v2/pods",
        "/apis/apps/v1/foos",
        "/apis/apps/v9/deployments",
        "/api/v1/namespaces/default/foos",
        "/api/v1/namespaces/default/configmaps/a/foo",
        "/api/v1/namespaces/default/configmaps/a/status",
        "/api/v1/namespaces/default/configmaps/a/status/x",
        "/api/v1/configmaps/a",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces/default/nodes/x",
    ] {
        let answer = client.get(path).await;
        assert_eq!(answer.code, 404, "{path}");
        assert_eq!(answer.json(), not_found(), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_that_is_unknown_as_a_whole_is_a_404_without_one() {
    let server = ApiServer::start();
    server.create(definition("widgets", "Widget")).unwrap();
    let client = Client::of(&server);
    for (method, path) in [
        ("GET", "/apis/foo/v1/bars"),
        ("POST", "/apis/foo/v1/bars"),
        ("GET", "/apis/tests.example.com/v1/others"),
        ("GET", "/apis/tests.example.com/v9/widgets"),
        ("GET", "/foo"),
        ("DELETE", "/foo"),
    ] {
        let answer = client.request(method, path, &[], "").await;
        assert_eq!((answer.code, &*answer.body), (404, &b"404 page not found\n"[..]), "{path}");
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slash_at_the_end_changes_nothing() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    server.create(map("a")).unwrap();
    for path in [&format!("{MAPS}/"), &format!("{MAPS}//"), "/api/v1/configmaps/"] {
        assert_eq!(names(&client.get(path).await.ok()), ["a"], "{path}");
    }
    assert_eq!(client.get(&format!("{MAPS}/a/")).await.ok()["metadata"]["name"], "a");
    let namespace = client.get("/api/v1/namespaces/default/").await.ok();
    assert_eq!(namespace["kind"], "Namespace");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_and_its_status_are_not_in_the_namespace() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let whole = client.get("/api/v1/namespaces/default").await.ok();
    assert_eq!(client.get("/api/v1/namespaces/default/status").await.ok(), whole);
    let phase = json!({"status": {"phase": "Terminating"}, "metadata": {"labels": {"x": "y"}}});
    let changed = client.merge("/api/v1/namespaces/default/status", phase).await.ok();
    assert_eq!(changed["status"]["phase"], "Terminating");
    // Most kinds accept metadata together with the status.
    let labels = json!({"kubernetes.io/metadata.name": "default", "x": "y"});
    assert_eq!(changed["metadata"]["labels"], labels);
}

#[tokio::test(start_paused = true)]
async fn unknown_parameters_and_those_of_other_verbs_are_ignored() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let made = client.post(&format!("{MAPS}?watch&nonsense=3&pretty=false"), map("a")).await;
    assert_eq!(made.code, 201);
    let got = client.get(&format!("{MAPS}/a?watch=1&timeoutSeconds=1&limit=1")).await.ok();
    assert_eq!(got, made.json());
    let listed = client.get(&format!("{MAPS}?watch=false&dryRun=x&foo")).await.ok();
    assert_eq!(names(&listed), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn numbers_that_are_none_are_refused() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for parameter in ["limit", "timeoutSeconds"] {
        let answer = client.get(&format!("{MAPS}?{parameter}=x")).await;
        let message = "strconv.ParseInt: parsing \"x\": invalid syntax";
        assert_eq!(answer.json(), failure(400, "BadRequest", message, json!(null)));
    }
}
