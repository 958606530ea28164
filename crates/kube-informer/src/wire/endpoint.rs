//! Requests about one object: read it, create it, replace it, patch it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use http::{Method, Request};
use http_body_util::BodyExt;
use kube_client::client::Body;
use kube_client::{Api, Client};
use serde_json::Value;
use tokio::time::timeout;

use super::request::accepted;
use super::{Call, Encoding, OBJECT_BYTES_MAX, Target, Verb, accept, failed, timed_out};
use crate::object::Packer;
use crate::{Error, Kind, Object, Result};

/// How long a request may take in total. A server gives up on a request within a minute and reports that; the
/// rest is for connecting. Without a limit, a connection that died silently would block a caller forever.
pub(crate) const ANSWER_WAIT_MAX: Duration = Duration::from_secs(75);

/// A resource of a server, in the scope of an object.
pub(crate) struct Endpoint {
    client: Client,
    target: Arc<Target>,
    wait_max: Duration,
}

/// A change of an object. `Status` is a merge patch too, of the status subresource.
pub(crate) enum Patch {
    Json(Value),
    Merge(Value),
    Status(Value),
}

impl Endpoint {
    pub(crate) fn new(client: Client, target: Target) -> Self {
        Self { client, target: Arc::new(target), wait_max: ANSWER_WAIT_MAX }
    }

    /// Returns the endpoint of an object. An `Api` for all namespaces works for objects in each of them.
    pub(crate) fn of<K: Kind + Clone>(api: &Api<K>, object: &Object<K>) -> Result<Self> {
        let path = api.resource_url();
        let mut target = Target::from_path(path, api.namespace()).ok_or_else(|| {
            Error::invalid(format!(
                "{path:?} is not the path of a resource: /api/VERSION/… or /apis/GROUP/VERSION/… is"
            ))
        })?;
        if api.namespace().is_some() && api.namespace() != object.namespace() {
            return Err(Error::invalid(format!(
                "{} is not in the namespace {:?} of the Api: use Api::all, or that of its namespace",
                object.key(),
                api.namespace().unwrap_or_default(),
            )));
        }
        target.namespace = object.namespace().map(str::to_owned);
        target.metadata_only = K::metadata_api();
        Ok(Self::new(api.clone().into_client(), target))
    }

    /// Sets a limit other than [`ANSWER_WAIT_MAX`].
    pub(crate) fn wait_max(self, wait_max: Duration) -> Self {
        Self { wait_max, ..self }
    }

    /// Returns the most recent state of an object, not one from the server's cache.
    pub(crate) async fn get(&self, name: &str) -> Result<Object> {
        let path = format!("{}/{}", self.target.path()?, segment(name)?);
        self.send(Verb::Get, Method::GET, path, None).await
    }

    pub(crate) async fn create(&self, object: &Value) -> Result<Object> {
        let body = Some(("application/json", object));
        self.send(Verb::Create, Method::POST, self.target.path()?, body).await
    }

    /// Replaces an object. Fails with a conflict if the server's object is not at the version of this one.
    pub(crate) async fn update(&self, name: &str, object: &Value) -> Result<Object> {
        let path = format!("{}/{}", self.target.path()?, segment(name)?);
        self.send(Verb::Update, Method::PUT, path, Some(("application/json", object))).await
    }

    pub(crate) async fn patch(&self, name: &str, change: &Patch) -> Result<Object> {
        let (subresource, content_type, change) = match change {
            Patch::Json(operations) => ("", "application/json-patch+json", operations),
            Patch::Merge(change) => ("", "application/merge-patch+json", change),
            Patch::Status(change) => ("/status", "application/merge-patch+json", change),
        };
        let path = format!("{}/{}{subresource}", self.target.path()?, segment(name)?);
        self.send(Verb::Patch, Method::PATCH, path, Some((content_type, change))).await
    }

    async fn send(
        &self,
        verb: Verb,
        method: Method,
        path: String,
        body: Option<(&str, &Value)>,
    ) -> Result<Object> {
        let call = Call { verb, target: self.target.clone() };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(ACCEPT, accepted(&call, Encoding::Json))
            .header(ACCEPT_ENCODING, "identity");
        let request = match body {
            Some((content_type, body)) => request
                .header(CONTENT_TYPE, content_type)
                .body(Body::from(Bytes::from(body.to_string()))),
            None => request.body(Body::empty()),
        };
        let mut request =
            request.map_err(|_| Error::invalid(format!("cannot {call}: no such name can be")))?;
        // kube names its tracing span after this.
        request.extensions_mut().insert(verb.as_str());
        let answer = timeout(self.wait_max, self.answer(request, &call)).await;
        let answer = answer.map_err(|_| timed_out(&call, self.wait_max, false))??;
        Packer::plain().pack(&answer, None).map_err(|error| error.within(format!("cannot {call}")))
    }

    async fn answer(&self, request: Request<Body>, call: &Call) -> Result<Vec<u8>> {
        let response = self.client.send(request).await.map_err(|error| failed(error, call))?;
        let mut body = accept(response, call, Encoding::Json).await?.body;
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|error| failed(error, call))?.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > OBJECT_BYTES_MAX {
                return Err(Error::protocol(format!("cannot {call}: the answer is too large")));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes)
    }
}

/// Returns a name as part of a path. The names of some kinds have characters that are special there.
fn segment(name: &str) -> Result<String> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '%']) {
        return Err(Error::invalid(format!("{name:?} cannot be the name of an object")));
    }
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':');
    let mut segment = String::with_capacity(name.len());
    for byte in name.bytes() {
        if plain(byte) {
            segment.push(char::from(byte));
        } else {
            segment.push_str(&format!("%{byte:02X}"));
        }
    }
    Ok(segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_or_refused() {
        assert_eq!(segment("web-0").unwrap(), "web-0");
        assert_eq!(segment("system:node a?b").unwrap(), "system:node%20a%3Fb");
        for name in ["", ".", "..", "a/b", "a%2fb"] {
            assert!(segment(name).unwrap_err().is_invalid(), "{name:?}");
        }
    }
}
