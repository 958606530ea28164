//! The scene of a behaviour: one of the servers, and a namespace that no other test uses.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::http::{Answer, Ask, Event, Http, JSON, JSON_PATCH, MERGE_PATCH, User, Watch};
use crate::servers::{Embedded, real};

pub(crate) struct Scene {
    pub(crate) http: Http,
    pub(crate) namespace: String,
    /// The path of the config maps in the namespace.
    pub(crate) maps: String,
}

/// Runs a behaviour on its own embedded server.
pub(crate) async fn on_embedded(
    name: &str,
    behaviour: impl AsyncFnOnce(Scene) -> Result<()>,
) -> Result<()> {
    let embedded = Embedded::start().await?;
    behaviour(Scene::new(embedded.http.clone(), name).await?).await
}

/// Runs a behaviour on the real server, if it is available.
pub(crate) async fn on_real(
    name: &str,
    behaviour: impl AsyncFnOnce(Scene) -> Result<()>,
) -> Result<()> {
    let Some(http) = real().await? else { return Ok(()) };
    behaviour(Scene::new(http, name).await?).await
}

impl Scene {
    async fn new(http: Http, name: &str) -> Result<Self> {
        // Names of namespaces are shorter than the names of some behaviours, whose ends differ.
        let name = name.replace('_', "-");
        let end = name.char_indices().rev().nth(50).map_or(0, |(at, _)| at);
        let namespace = format!("b-{}", name[end..].trim_matches('-'));
        let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
        let scene = Self { http, namespace, maps };
        let object = json!({"metadata": {"name": scene.namespace}});
        scene.post("/api/v1/namespaces", object).await?.ok()?;
        Ok(scene)
    }

    /// Returns the path of a config map.
    pub(crate) fn map(&self, name: &str) -> String {
        format!("{}/{name}", self.maps)
    }

    /// Returns the path of a namespaced resource.
    pub(crate) fn path(&self, api: &str, resource: &str) -> String {
        format!("{api}/namespaces/{}/{resource}", self.namespace)
    }

    /// Creates a config map.
    pub(crate) async fn create(&self, name: &str) -> Result<Value> {
        self.post(&self.maps, json!({"metadata": {"name": name}})).await?.ok()
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Answer> {
        self.http.send(&Ask::new("GET", path)).await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Result<Answer> {
        let mut ask = Ask::new("GET", path);
        ask.headers.push(("accept", accept.to_owned()));
        self.http.send(&ask).await
    }

    pub(crate) async fn get_by(&self, path: &str, user: User) -> Result<Answer> {
        self.http.send(&Ask { user, ..Ask::new("GET", path) }).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Result<Answer> {
        self.write("POST", path, JSON, body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Result<Answer> {
        self.write("PUT", path, JSON, body.to_string()).await
    }

    pub(crate) async fn merge(&self, path: &str, body: Value) -> Result<Answer> {
        self.write("PATCH", path, MERGE_PATCH, body.to_string()).await
    }

    pub(crate) async fn json_patch(&self, path: &str, body: Value) -> Result<Answer> {
        self.write("PATCH", path, JSON_PATCH, body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Answer> {
        self.http.send(&Ask::new("DELETE", path)).await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: Value) -> Result<Answer> {
        self.write("DELETE", path, JSON, options.to_string()).await
    }

    pub(crate) async fn write(
        &self,
        method: &'static str,
        path: &str,
        content_type: &str,
        body: String,
    ) -> Result<Answer> {
        let mut ask = Ask::new(method, path);
        ask.headers.push(("content-type", content_type.to_owned()));
        ask.body = body;
        self.http.send(&ask).await
    }

    /// Opens a watch, which is expected to succeed.
    pub(crate) async fn watch(&self, path: &str) -> Result<Watch> {
        self.watch_as(path, JSON).await
    }

    pub(crate) async fn watch_as(&self, path: &str, accept: &str) -> Result<Watch> {
        let mut ask = Ask::new("GET", path);
        ask.headers.push(("accept", accept.to_owned()));
        let began = self.http.follow(&ask).await?;
        began.map_err(|answer| anyhow::anyhow!("{path}: {} {}", answer.code, answer.text))
    }
}

impl Answer {
    /// Returns the body of a request that succeeded.
    pub(crate) fn ok(&self) -> Result<Value> {
        ensure!(self.code < 300, "{}: {}", self.code, self.text);
        Ok(self.json())
    }

    /// Returns the `Status` of a request that failed as expected.
    pub(crate) fn failed(&self, code: u16, reason: &str) -> Result<Value> {
        let status = self.json();
        ensure!(self.code == code, "{} instead of {code}: {}", self.code, self.text);
        ensure!(status["kind"] == "Status" && status["status"] == "Failure", "{status}");
        ensure!(status["code"] == code && status["reason"] == reason, "{status}");
        Ok(status)
    }
}

impl Watch {
    pub(crate) async fn event(&mut self) -> Result<Event> {
        self.next().await?.context("the watch goes on")
    }

    /// Returns the types and names of the next events, without bookmarks, which can arrive at any time if they were
    /// requested.
    pub(crate) async fn briefs(&mut self, count: usize) -> Result<Vec<String>> {
        let mut briefs = Vec::new();
        while briefs.len() < count {
            let event = self.event().await?;
            if event.kind != "BOOKMARK" {
                briefs.push(format!("{} {}", event.kind, name(&event.object)));
            }
        }
        Ok(briefs)
    }

    /// Checks that the watch ends here, and ends cleanly.
    pub(crate) async fn ends(&mut self) -> Result<()> {
        let next = self.next().await?;
        ensure!(next.is_none(), "{next:?}");
        Ok(())
    }
}

pub(crate) fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(crate) fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().into_iter().flatten().map(name).collect()
}

/// Returns a deployment that sets a status, which the server has to ignore.
pub(crate) fn deployment(replicas: u32) -> Value {
    json!({"metadata": {"name": "a"}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    }, "status": {"replicas": 7}})
}
