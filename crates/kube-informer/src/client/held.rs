//! The body of a response, which occupies its place on a connection until it ends.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::pool::Slot;

/// A body, and its place on a connection.
pub(super) struct Held {
    body: Incoming,
    slot: Option<Slot>,
}

impl Held {
    pub(super) fn new(body: Incoming, slot: Slot) -> Self {
        Self { body, slot: Some(slot) }
    }

    /// Wraps a body of HTTP/1, which has a connection of its own.
    pub(super) fn free(body: Incoming) -> Self {
        Self { body, slot: None }
    }
}

impl Body for Held {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            self.slot = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
