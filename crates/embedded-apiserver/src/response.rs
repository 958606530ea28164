//! Responses: bodies with their status and content type, and failures as Kubernetes says them.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use crate::body::Body;
use crate::status::Status;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(crate) fn json(code: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    respond(code, Body::whole(body))
}

pub(crate) fn respond(code: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// An answer of another type than JSON.
pub(crate) fn of_type(
    code: StatusCode,
    content_type: &'static str,
    text: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = respond(code, Body::whole(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The answer to a request that failed.
pub(crate) fn failure(status: &Status) -> Response<Body> {
    let mut response = json(status.code, status.to_json().to_string());
    if let Some(seconds) = status.details.as_ref().map(|d| d.retry_after_seconds).filter(|&s| s > 0)
    {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}
