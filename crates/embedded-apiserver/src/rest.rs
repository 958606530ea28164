//! The verbs. Each handles a parsed request, and returns a response or a `Status`.

mod binding;
mod continue_token;
mod delete;
mod eviction;
mod log;
mod owners;
mod parts;
mod patch;
mod read;
mod scale;
mod unstored;
mod watch;
mod write;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::body::Body;
use crate::codec::Codec;
use crate::garbage;
use crate::kinds::Subresource;
use crate::negotiate;
use crate::request::{Target, Verb};
use crate::response::respond;
use crate::server::Shared;
use crate::status::Status;
use crate::view::View;

pub(crate) use delete::{Propagation, collect};
pub(crate) use write::modify;

/// A request for a resource.
pub(crate) struct Call {
    pub(crate) id: u64,
    pub(crate) target: Target,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The age of an object that is created. It is zero for HTTP requests.
    pub(crate) age: Duration,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the headers, which contain the token, nor the body.
        f.debug_struct("Call")
            .field("id", &self.id)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// Handles a request.
pub(crate) async fn answer(shared: &Arc<Shared>, call: &Call) -> Result<Response<Body>, Status> {
    let response = perform(shared, call).await;
    garbage::settle(shared);
    response
}

async fn perform(shared: &Arc<Shared>, call: &Call) -> Result<Response<Body>, Status> {
    match call.target.subresource {
        Some(Subresource::Scale) => return scale::answer(shared, call).await,
        Some(Subresource::Log) => return log::answer(shared, call).await,
        Some(Subresource::Eviction) => return eviction::create(shared, call),
        Some(Subresource::Binding) => return binding::create(shared, call),
        Some(
            Subresource::Attach | Subresource::Exec | Subresource::PortForward | Subresource::Proxy,
        ) => return Err(unstored::unsupported(call)),
        None if !call.target.resource.stored => return binding::create(shared, call),
        _ => {}
    }
    let view = View::new(
        &call.target.resource,
        negotiate::representation(&call.headers, call.target.verb, call.target.resource.custom)?,
        &call.target.query.include_object,
        &shared.clock,
    )?;
    match call.target.verb {
        Verb::Get => read::get(shared, call, &view).await,
        Verb::List => read::list(shared, call, &view).await,
        Verb::Watch => watch::watch(shared, call, view).await,
        Verb::Create => write::create(shared, call, &view),
        Verb::Update => write::update(shared, call, &view),
        Verb::Patch => patch::patch(shared, call, &view),
        Verb::Delete => delete::delete(shared, call, &view),
        Verb::DeleteCollection => delete::delete_collection(shared, call, &view),
    }
}

/// Compresses a body of `len` bytes if the client accepts it and the body is large enough.
pub(crate) fn compressed(call: &Call, codec: Codec, body: Body, len: usize) -> Response<Body> {
    let content_type = codec.content_type();
    if len < crate::limits::GZIP_BYTES_MIN || !negotiate::accepts_gzip(&call.headers) {
        return respond(StatusCode::OK, content_type, body);
    }
    let mut response = respond(StatusCode::OK, content_type, crate::gzip::compress(body));
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}
