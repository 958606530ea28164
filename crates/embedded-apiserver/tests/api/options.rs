//! Options of any request: `timeout`, `pretty`, bodies in YAML.

use embedded_apiserver::ApiServer;
use serde_json::json;

use crate::harness::{Client, MAPS, map};

#[tokio::test(start_paused = true)]
async fn an_invalid_timeout_is_refused() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for path in [MAPS, "/version", "/nothing", "/api/v1/nothing"] {
        let status = client.get(&format!("{path}?timeout=nonsense")).await.failed(400);
        let why =
            r#"invalid timeout specified in the request URL - time: invalid duration "nonsense""#;
        assert_eq!(status["message"], why, "{path}");
        assert_eq!(status["reason"], "BadRequest");
    }
    for valid in ["", "30s", "0", "1h1.5m"] {
        client.get(&format!("{MAPS}?timeout={valid}")).await.ok();
    }
    // A watch has its own.
    client.watch(&format!("{MAPS}?watch=1&timeout=nonsense")).await;
    let long = "9".repeat(10_000);
    let refused = client.get(&format!("{MAPS}?timeout={long}")).await;
    assert_eq!(refused.code, 400);
    assert!(refused.body.len() < 4_000, "{}", refused.body.len());
}

#[tokio::test(start_paused = true)]
async fn pretty_responses_are_indented() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(MAPS, map("a")).await.ok();
    let path = format!("{MAPS}/a");
    let compact = client.get(&path).await.ok();
    for pretty in ["pretty", "pretty=1", "pretty=true"] {
        let answer = client.get(&format!("{path}?{pretty}")).await;
        assert!(answer.body.starts_with(b"{\n  \""), "{:?}", answer.body);
        assert_eq!(answer.ok(), compact);
        let none = client.get(&format!("{MAPS}/none?{pretty}")).await;
        assert!(none.body.starts_with(b"{\n  \""), "{:?}", none.body);
    }
    for plain in ["", "pretty=false", "pretty=0", "pretty=x"] {
        let answer = client.get(&format!("{path}?{plain}")).await;
        assert!(!answer.body.contains(&b'\n'), "{plain}");
    }
    let list = format!("{MAPS}?pretty=1");
    let list = client.request("GET", &list, &[("accept-encoding", "gzip")], "").await.ok();
    assert_eq!(list["items"][0]["metadata"]["name"], "a");
    // The events of a watch stay lines.
    let mut watch = client.watch(&format!("{MAPS}?watch=1&pretty=1")).await;
    assert_eq!(watch.next().await.unwrap().kind, "ADDED");
}

#[tokio::test(start_paused = true)]
async fn objects_can_be_sent_as_yaml() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let yaml = [("content-type", "application/yaml")];
    let body = "kind: ConfigMap\nmetadata:\n  name: a\ndata:\n  colour: blue\n";
    let made = client.request("POST", MAPS, &yaml, body).await.ok();
    assert_eq!(made["data"]["colour"], "blue");
    let path = format!("{MAPS}/a");
    let changed = client.request("PUT", &path, &yaml, "metadata: {name: a}").await.ok();
    assert_eq!(changed.get("data"), None);
    let secret = "metadata: {name: b}\ndata: {password: [hunter2";
    let refused = client.request("POST", MAPS, &yaml, secret).await;
    assert_eq!(refused.failed(400)["reason"], "BadRequest");
    assert!(!refused.message().contains("hunter2"), "{}", refused.message());
    let options = "kind: DeleteOptions\npreconditions: {uid: other}";
    client.request("DELETE", &path, &yaml, options).await.failed(409);
    client.request("DELETE", &path, &yaml, "").await.ok();
}

#[tokio::test(start_paused = true)]
async fn aliases_in_yaml_do_not_multiply() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..10 {
        let alias = vec![format!("*a{}", level - 1); 10].join(",");
        bomb.push_str(&format!("a{level}: &a{level} [{alias}]\n"));
    }
    let yaml = [("content-type", "application/yaml")];
    client.request("POST", MAPS, &yaml, bomb).await.failed(400);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_of_a_creation_accepts_a_version() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let versioned = json!({"metadata": {"name": "a", "resourceVersion": "5"}});
    let made = client.post(&format!("{MAPS}?dryRun=All"), versioned.clone()).await;
    assert_eq!((made.code, &made.ok()["metadata"]["resourceVersion"]), (201, &json!("5")));
    client.post(MAPS, versioned).await.failed(400);
    client.get(&format!("{MAPS}/a")).await.failed(404);
}
