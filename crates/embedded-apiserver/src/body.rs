//! The body of a response: bytes at once, or bytes over time.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Frame, SizeHint};

pub(crate) type Chunks = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// The body of a response. An error in it is what a client sees of a connection that broke.
pub struct Body(Inner);

enum Inner {
    Whole(Option<Bytes>),
    Chunks(Chunks),
}

impl Body {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Whole(Some(bytes.into()).filter(|bytes| !bytes.is_empty())))
    }

    pub(crate) fn chunks(chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        Self(Inner::Chunks(Box::pin(chunks)))
    }

    pub(crate) fn into_chunks(self) -> Chunks {
        match self.0 {
            Inner::Whole(bytes) => Box::pin(futures_util::stream::iter(bytes.map(Ok))),
            Inner::Chunks(chunks) => chunks,
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Bodies hold people's objects, secrets among them: never print one.
        f.write_str(match self.0 {
            Inner::Whole(_) => "Body(whole)",
            Inner::Chunks(_) => "Body(chunks)",
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
            Inner::Chunks(_) => SizeHint::default(),
        }
    }
}
