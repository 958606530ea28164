//! A small living cluster.

use std::time::Duration;

use embedded_apiserver::ApiServer;
use serde_json::json;

pub(crate) fn cluster(_seed: Option<u64>) -> ApiServer {
    let server = ApiServer::builder().pods_run(true).build();
    for name in ["web-1", "web-2"] {
        let _ = server.create(json!({"apiVersion":"v1","kind":"Pod","metadata":{"name":name,"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"nginx"}]}}));
    }
    server
}

pub(crate) async fn live(server: &ApiServer) {
    let mut n = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        n += 1;
        let name = format!("job-{n}");
        let _ = server.create(json!({"apiVersion":"v1","kind":"Pod","metadata":{"name":name},"spec":{"containers":[{"name":"c","image":"nginx"}]}}));
    }
}
