//! Sends a request and returns the whole response: the headers and the time matter here.

use std::time::Duration;

use http::{HeaderMap, Request};
use kube_client::Client;
use kube_client::client::Body;
use kube_core::{DynamicObject, Resource as _, Status};
use kube_informer::Error;
use serde_json::Value;
use tokio::time::timeout;

use crate::discovery::Type;

/// The time limit for a response. A slower server is of no use to an informer.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// The server's response.
pub(super) struct Answer {
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

/// Sends a request for JSON.
pub(super) async fn ask(client: &Client, path: &str) -> Result<Answer, Error> {
    let asked = timeout(WAIT_MAX, answer(client, path)).await;
    asked.unwrap_or_else(|_| Err(Error::connection(format!("no answer within {WAIT_MAX:?}"))))
}

async fn answer(client: &Client, path: &str) -> Result<Answer, Error> {
    let broken = |error: &dyn std::fmt::Display| Error::connection(error.to_string());
    let request = Request::get(path).header("Accept", "application/json").body(Body::empty());
    let request = request.map_err(|error| broken(&error))?;
    let (head, body) = client.send(request).await.map_err(|error| broken(&error))?.into_parts();
    let bytes = body.collect_bytes().await.map_err(|error| broken(&error))?;
    if !head.status.is_success() {
        let said = serde_json::from_slice::<Status>(&bytes).unwrap_or_default();
        let message = Some(said.message.clone()).filter(|message| !message.is_empty());
        let message = message.unwrap_or_else(|| head.status.to_string());
        return Err(Error::from_status(
            Status { code: head.status.as_u16(), message, ..said },
            false,
        ));
    }
    // The position is enough to find the error; the text may contain secrets.
    let body = serde_json::from_slice(&bytes).map_err(|error| {
        Error::connection(format!("the answer is no JSON at its byte {}", error.column()))
    })?;
    Ok(Answer { headers: head.headers, body })
}

/// Returns the path of all objects of a type, with a query.
pub(super) fn path(of: &Type, namespace: Option<&str>, query: &str) -> String {
    let namespace = namespace.filter(|_| of.namespaced);
    format!("{}?{query}", DynamicObject::url_path(&of.resource(), namespace))
}
