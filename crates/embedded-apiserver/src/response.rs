//! Responses: bodies with their status and content type, and failures as Kubernetes reports them.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use crate::body::Body;
use crate::codec::Codec;
use crate::status::Status;

/// Returns a response with an encoded object or list.
pub(crate) fn encoded(code: StatusCode, codec: Codec, body: impl Into<Bytes>) -> Response<Body> {
    respond(code, codec.content_type(), Body::whole(body))
}

pub(crate) fn respond(code: StatusCode, content_type: HeaderValue, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Returns a response that is not an object.
pub(crate) fn of_type(
    code: StatusCode,
    content_type: &'static str,
    text: impl Into<Bytes>,
) -> Response<Body> {
    respond(code, HeaderValue::from_static(content_type), Body::whole(text))
}

/// Returns the response to a failed request.
pub(crate) fn failure(status: &Status, codec: Codec) -> Response<Body> {
    let object = status.to_json();
    let mut response = match codec.encode(&object) {
        Ok(body) => encoded(status.code, codec, body),
        Err(_) => encoded(status.code, Codec::Json, object.to_string()),
    };
    if let Some(seconds) = status.details.as_ref().map(|d| d.retry_after_seconds).filter(|&s| s > 0)
    {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}
