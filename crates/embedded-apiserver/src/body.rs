//! The body of a response: complete bytes, a stream of bytes, or the events of a watch.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt};
use http_body::{Frame, SizeHint};

use crate::view::WatchEvent;

pub(crate) type Chunks = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;
pub(crate) type Events = Pin<Box<dyn Stream<Item = io::Result<WatchEvent>> + Send>>;

/// The body of a response. An error represents a broken connection.
pub struct Body(Inner);

enum Inner {
    Whole(Option<Bytes>),
    Chunks(Chunks),
    Events(Events),
}

impl Body {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Whole(Some(bytes.into()).filter(|bytes| !bytes.is_empty())))
    }

    pub(crate) fn chunks(chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        Self(Inner::Chunks(Box::pin(chunks)))
    }

    /// Creates the body of a watch. Events are encoded only when they are sent, so that faults can
    /// inspect them.
    pub(crate) fn events(
        events: impl Stream<Item = io::Result<WatchEvent>> + Send + 'static,
    ) -> Self {
        Self(Inner::Events(Box::pin(events)))
    }

    /// Returns the events of a watch, or the body itself if it is not a watch.
    pub(crate) fn into_events(self) -> Result<Events, Self> {
        match self.0 {
            Inner::Events(events) => Ok(events),
            other => Err(Self(other)),
        }
    }

    /// Returns whether this is the body of a watch.
    pub(crate) fn is_events(&self) -> bool {
        matches!(self.0, Inner::Events(_))
    }

    pub(crate) fn into_chunks(self) -> Chunks {
        match self.0 {
            Inner::Whole(bytes) => Box::pin(futures_util::stream::iter(bytes.map(Ok))),
            Inner::Chunks(chunks) => chunks,
            Inner::Events(events) => Box::pin(events.map_ok(|event| event.line)),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Bodies contain objects, including secrets: never print one.
        f.write_str(match self.0 {
            Inner::Whole(_) => "Body(whole)",
            Inner::Chunks(_) => "Body(chunks)",
            Inner::Events(_) => "Body(events)",
        })
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Chunks(chunks) => {
                chunks.as_mut().poll_next(cx).map(|chunk| chunk.map(|c| c.map(Frame::data)))
            }
            Inner::Events(events) => {
                let event = events.as_mut().poll_next(cx);
                event.map(|event| event.map(|e| e.map(|e| Frame::data(e.line))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Inner::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            Inner::Chunks(_) | Inner::Events(_) => SizeHint::default(),
        }
    }
}
