//! A response body that ends between two events when its listener closes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::activity::OpenRequest;
use crate::body::Body;

/// The body of a response that is sent on a socket. Only watches wait for more data, so only they
/// end early. Other bodies are sent completely.
pub(super) struct Orderly {
    body: Body,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    _open: OpenRequest,
}

impl Orderly {
    pub(super) fn new(body: Body, closing: CancellationToken, open: OpenRequest) -> Self {
        Self { body, closing: Box::pin(closing.cancelled_owned()), _open: open }
    }

    pub(super) fn empty(closing: CancellationToken, open: OpenRequest) -> Self {
        Self::new(Body::whole(Bytes::new()), closing, open)
    }
}

impl http_body::Body for Orderly {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        self.closing.as_mut().poll(cx).map(|()| None)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
