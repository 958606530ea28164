//! Scripts: named requests that are sent to both servers in order.

use serde_json::Value;

use crate::http::{Ask, JSON, JSON_PATCH, MERGE_PATCH, User};

/// The topics of scripts. Each known difference belongs to one of them.
pub(crate) const TOPICS: [&str; 31] = [
    "access",
    "apply",
    "apply-lists",
    "apply-tracked",
    "apply-upgrade",
    "bodies",
    "create",
    "custom",
    "definitions",
    "delete",
    "discovery",
    "events",
    "fields",
    "finalizers",
    "forgotten",
    "kinds",
    "labels",
    "metadata",
    "namespaces",
    "pages",
    "patch",
    "paths",
    "pods",
    "representations",
    "status",
    "status-metadata",
    "subresources",
    "update",
    "versions",
    "watch",
    "watch-end",
];

/// Requests about one topic, sent one after the other, in a namespace of their own.
///
/// In paths and bodies, `<ns>` stands for the namespace, and `<name>` for a value [saved](Step::save) from an earlier
/// response.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) topic: &'static str,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug)]
pub(crate) struct Step {
    /// `topic/name`.
    pub(crate) id: String,
    pub(crate) ask: Ask,
    pub(crate) read: Read,
    /// Names, and the places in the response where their values are.
    pub(crate) saves: Vec<(&'static str, &'static str)>,
}

/// The part of a response that is read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Read {
    Whole,
    /// This many events of a watch, which is then closed.
    Events(usize),
    /// All events, until the watch ends.
    UntilEnd,
    /// The response, once it is a 200 and has a value here: a definition is served a moment after it is created.
    OnceThere(&'static str),
    /// The response, once it is a 404.
    OnceGone,
}

impl Script {
    pub(crate) fn new(topic: &'static str) -> Self {
        assert!(TOPICS.contains(&topic), "{topic} is not in TOPICS");
        Self { topic, steps: Vec::new() }
    }

    pub(crate) fn send(&mut self, name: &str, method: &'static str, path: &str) -> &mut Step {
        let id = format!("{}/{name}", self.topic);
        assert!(self.steps.iter().all(|step| step.id != id), "two requests are called {id}");
        let ask = Ask::new(method, path);
        self.steps.push(Step { id, ask, read: Read::Whole, saves: Vec::new() });
        self.steps.last_mut().expect("it was just pushed")
    }

    pub(crate) fn get(&mut self, name: &str, path: &str) -> &mut Step {
        self.send(name, "GET", path)
    }

    pub(crate) fn post(&mut self, name: &str, path: &str, body: impl Into<Value>) -> &mut Step {
        self.send(name, "POST", path).json(body)
    }

    pub(crate) fn put(&mut self, name: &str, path: &str, body: impl Into<Value>) -> &mut Step {
        self.send(name, "PUT", path).json(body)
    }

    pub(crate) fn merge(&mut self, name: &str, path: &str, body: impl Into<Value>) -> &mut Step {
        self.send(name, "PATCH", path).json(body).content_type(MERGE_PATCH)
    }

    pub(crate) fn json_patch(
        &mut self,
        name: &str,
        path: &str,
        body: impl Into<Value>,
    ) -> &mut Step {
        self.send(name, "PATCH", path).json(body).content_type(JSON_PATCH)
    }

    pub(crate) fn delete(&mut self, name: &str, path: &str) -> &mut Step {
        self.send(name, "DELETE", path)
    }

    /// Adds a watch, of which this many events are read.
    pub(crate) fn watch(&mut self, name: &str, path: &str, events: usize) -> &mut Step {
        let step = self.send(name, "GET", path);
        step.read = Read::Events(events);
        step
    }

    /// Waits until a path is served.
    pub(crate) fn once_there(&mut self, name: &str, path: &str) -> &mut Step {
        let step = self.send(name, "GET", path);
        step.read = Read::OnceThere("");
        step
    }

    /// Waits until a path is no longer served.
    pub(crate) fn once_gone(&mut self, name: &str, path: &str) -> &mut Step {
        let step = self.send(name, "GET", path);
        step.read = Read::OnceGone;
        step
    }

    /// Adds a watch that ends by itself.
    pub(crate) fn watch_to_the_end(&mut self, name: &str, path: &str) -> &mut Step {
        let step = self.send(name, "GET", path);
        step.read = Read::UntilEnd;
        step
    }
}

impl Step {
    pub(crate) fn json(&mut self, body: impl Into<Value>) -> &mut Self {
        let body = body.into().to_string();
        self.text(&body).content_type(JSON)
    }

    pub(crate) fn text(&mut self, body: &str) -> &mut Self {
        body.clone_into(&mut self.ask.body);
        self
    }

    pub(crate) fn content_type(&mut self, media_type: &str) -> &mut Self {
        self.ask.headers.retain(|(name, _)| *name != "content-type");
        self.header("content-type", media_type)
    }

    pub(crate) fn accept(&mut self, media_types: &str) -> &mut Self {
        self.header("accept", media_types)
    }

    pub(crate) fn header(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.ask.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn user(&mut self, user: User) -> &mut Self {
        self.ask.user = user;
        self
    }

    /// Waits until the response has a value at this place.
    pub(crate) fn with(&mut self, pointer: &'static str) -> &mut Self {
        self.read = Read::OnceThere(pointer);
        self
    }

    /// Saves a part of the response for later requests.
    pub(crate) fn save(&mut self, name: &'static str, pointer: &'static str) -> &mut Self {
        self.saves.push((name, pointer));
        self
    }
}
