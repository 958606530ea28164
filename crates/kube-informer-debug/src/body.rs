//! The bodies of responses.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt as _;
use futures_util::stream;
use http_body::{Frame, SizeHint};
use tokio::sync::watch;

use crate::pulse::Reader;

/// The body of a response of the page.
pub struct Body(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(Some(bytes.into())))
    }

    /// Returns a body of messages, which ends if its reader is too slow.
    pub(crate) fn messages(
        first: Bytes,
        latest: watch::Receiver<Bytes>,
        reader: Arc<Reader>,
    ) -> Self {
        let begin = Messages { first: Some(first), latest, reader };
        Self(Kind::Stream(stream::unfold(begin, Messages::next).boxed()))
    }
}

/// The messages to an open page: the first, and then always the latest.
struct Messages {
    first: Option<Bytes>,
    latest: watch::Receiver<Bytes>,
    reader: Arc<Reader>,
}

impl Messages {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        if !self.reader.waits() {
            return None;
        }
        let message = if let Some(first) = self.first.take() {
            first
        } else {
            self.latest.changed().await.ok()?;
            self.latest.borrow_and_update().clone()
        };
        self.reader.took();
        Some((message, self))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take()),
            Kind::Stream(stream) => stream.poll_next_unpin(context),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}
