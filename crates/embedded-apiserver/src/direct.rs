//! Access to objects without HTTP, for test setup and for data that is loaded at startup.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use http_body_util::BodyExt;
use serde_json::Value;

use crate::object::{Object, meta_text};
use crate::request::{Target, route};
use crate::rest::{self, Call};
use crate::server::ApiServer;
use crate::status::Status;
use crate::store::{Key, PageRequest, Revision};

/// A document that could not be loaded.
#[derive(Debug)]
pub struct LoadError {
    /// The document's number, counted from 1.
    pub document: usize,
    /// The reason.
    pub why: String,
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "document {}: {}", self.document, self.why)
    }
}

impl std::error::Error for LoadError {}

impl ApiServer {
    /// Creates an object. Its `apiVersion`, `kind` and `metadata` determine the resource. Access
    /// rules and faults do not apply, and the write is not recorded; all other rules of the API
    /// apply.
    pub fn create(&self, object: Value) -> Result<Value, Status> {
        self.write(&Method::POST, object, Duration::ZERO)
    }

    /// Creates an object whose `creationTimestamp` is `age` ago.
    pub fn create_aged(&self, object: Value, age: Duration) -> Result<Value, Status> {
        self.write(&Method::POST, object, age)
    }

    /// Replaces an object, under the same rules as a PUT: if the object has a `resourceVersion`, it
    /// must be the latest.
    pub fn update(&self, object: Value) -> Result<Value, Status> {
        self.write(&Method::PUT, object, Duration::ZERO)
    }

    /// Replaces the `status` of an object.
    pub fn update_status(&self, object: Value) -> Result<Value, Status> {
        let object = into_map(object)?;
        let path = format!("{}/status", self.path_of(&object, true)?);
        self.call(&Method::PUT, &path, &Value::Object(object), Duration::ZERO)
    }

    /// Deletes an object.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Result<Value, Status> {
        self.delete_with(resource, namespace, name, &Value::Null)
    }

    /// Deletes an object, with `DeleteOptions`: `{"propagationPolicy": "Background"}`. Without a policy, a job leaves
    /// its pods behind, as on a real server.
    pub fn delete_with(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        options: &Value,
    ) -> Result<Value, Status> {
        let path = self.path_to(resource, namespace, name)?;
        self.call(&Method::DELETE, &path, options, Duration::ZERO)
    }

    /// Returns the current state of an object. `resource` is the plural, followed by a dot and the
    /// group unless that is the core group: `pods`, `deployments.apps`. The namespace of
    /// cluster-scoped objects is "".
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let key = Key::new(namespace, name);
        self.store().get(resource, &key).map(|revision| Value::Object(revision.to_map()))
    }

    /// Returns the current state of all objects of a resource in a namespace, or in all namespaces
    /// for "", sorted by namespace and name.
    pub fn list(&self, resource: &str, namespace: &str) -> Vec<Value> {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let request = PageRequest { namespace, ..PageRequest::default() };
        let page = self.store().list(resource, None, &request);
        let items = page.map(|page| page.items).unwrap_or_default();
        items.iter().map(|revision| Value::Object(revision.to_map())).collect()
    }

    /// Returns every retained state of an object, oldest first, as the version and the object, or
    /// `None` for a deletion.
    pub fn history(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Vec<(u64, Option<Value>)> {
        let shown = |revision: &Arc<Revision>| {
            let object = (!revision.is_deleted()).then(|| Value::Object(revision.to_map()));
            (revision.version(), object)
        };
        self.store().history(resource, &Key::new(namespace, name)).iter().map(shown).collect()
    }

    /// Returns the number of objects in a namespace, or in all namespaces for "".
    pub fn count(&self, resource: &str, namespace: &str) -> usize {
        self.store().count(resource, Some(namespace).filter(|namespace| !namespace.is_empty()))
    }

    /// Creates the objects of a YAML or JSON text with one or more documents, and returns their
    /// number. The items of a `List` are created individually.
    pub fn load_yaml(&self, text: &str) -> Result<usize, LoadError> {
        // JSON is YAML, but parsing it as YAML takes ten times as long, and large files are
        // rejected.
        let documents: Vec<Value> = match serde_json::from_str(text) {
            Ok(json) => vec![json],
            Err(_) => serde_saphyr::from_multiple(text).map_err(|error| not_yaml(text, &error))?,
        };
        let mut count = 0;
        for (at, document) in documents.into_iter().enumerate() {
            for object in items(document) {
                let created = self.create(object);
                created.map_err(|why| LoadError { document: at + 1, why: why.to_string() })?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn write(&self, method: &Method, object: Value, age: Duration) -> Result<Value, Status> {
        let object = into_map(object)?;
        let path = self.path_of(&object, method == Method::PUT)?;
        self.call(method, &path, &Value::Object(object), age)
    }

    fn path_of(&self, object: &Object, named: bool) -> Result<String, Status> {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let (group, version) =
            text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        let registry = self.shared.registry.read();
        let mut resources = registry.version(group, version).iter();
        let Some(resource) = resources.find(|resource| resource.kind == text("kind")) else {
            let what = format!("no kind {:?} is served in {:?}", text("kind"), text("apiVersion"));
            return Err(Status::bad_request(what));
        };
        let namespace = match meta_text(object, "namespace") {
            "" => "default",
            namespace => namespace,
        };
        let name = named.then(|| meta_text(object, "name"));
        Ok(path(resource, namespace, name))
    }

    fn path_to(&self, resource: &str, namespace: &str, name: &str) -> Result<String, Status> {
        let registry = self.shared.registry.read();
        // Two groups share the events. The core group comes first.
        let found = registry.iter().find(|other| &*other.table == resource);
        let found = found.ok_or_else(Status::no_such_resource)?;
        Ok(path(found, namespace, Some(name)))
    }

    /// Handles a parsed request.
    fn call(
        &self,
        method: &Method,
        path: &str,
        body: &Value,
        age: Duration,
    ) -> Result<Value, Status> {
        let uri: Uri =
            path.parse().map_err(|_| Status::bad_request(format!("{path:?} is no path")))?;
        let target: Option<Target> = route(method, &uri, &self.shared.registry.read())?;
        let target = target.ok_or_else(Status::no_such_resource)?;
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let call = Call { id: 0, target, headers: HeaderMap::new(), body, age };
        // Writes never wait, so the future is ready on its first poll.
        let response =
            now(rest::answer(&self.shared, &call)).expect("a write waits for nothing")?;
        let bytes = now(response.into_body().collect()).expect("the answer to a write is whole");
        let bytes = bytes.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

fn into_map(object: Value) -> Result<Object, Status> {
    match object {
        Value::Object(object) => Ok(object),
        _ => Err(Status::bad_request("an object is a JSON object")),
    }
}

fn not_yaml(text: &str, error: &serde_saphyr::Error) -> LoadError {
    let line = error.location().map_or(1, |location| location.line() as usize);
    let mut document = 1;
    let mut begun = false;
    for line in text.lines().take(line.saturating_sub(1)) {
        if line.starts_with("---") {
            document += usize::from(begun);
            begun = true;
        }
        begun |= !line.is_empty() && !line.starts_with('#');
    }
    // The snippet would show lines of the text, which may contain secrets.
    LoadError { document, why: error.without_snippet().to_string() }
}

fn path(resource: &crate::kinds::Resource, namespace: &str, name: Option<&str>) -> String {
    let mut path = match &*resource.group {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let segment = |text: &str| {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    if resource.namespaced {
        path.push_str("/namespaces/");
        path.push_str(&segment(namespace));
    }
    path.push('/');
    path.push_str(&resource.plural);
    if let Some(name) = name {
        path.push('/');
        path.push_str(&segment(name));
    }
    path
}

fn items(document: Value) -> Vec<Value> {
    let is_list = document.get("kind").and_then(Value::as_str).is_some_and(|k| k.ends_with("List"));
    match document {
        Value::Null => Vec::new(),
        Value::Object(mut list) if is_list && list.get("items").is_some_and(Value::is_array) => {
            match list.remove("items") {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            }
        }
        object => vec![object],
    }
}

/// Returns the output of a future that is ready on its first poll.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}
