//! The items of a response, as its body arrives.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http_body::Body as _;
use kube_client::client::Body;
use tokio::time::{Sleep, sleep};

use super::{Call, failed, timed_out};
use crate::Result;

/// A decoder of bytes into items. [`push`](Self::push) a chunk, take the [`next`](Self::next) items until there
/// are none, and [`finish`](Self::finish) at the end of the body.
pub(crate) trait Reader {
    type Item;

    /// Returns the request that is answered, for errors.
    fn call(&self) -> &Call;

    /// Adds a chunk. All items of earlier chunks must have been taken.
    fn push(&mut self, chunk: Bytes);

    /// Returns the next item, or `None` until more has arrived. Nothing follows an error.
    fn next(&mut self) -> Option<Result<Self::Item>>;

    /// Ends the body, and returns the last item or an error, if any.
    fn finish(&mut self) -> Option<Result<Self::Item>>;
}

/// A stream of the items of a body. An error is the last item.
pub(crate) struct Items<R> {
    /// `None` once the end or an error has been returned.
    open: Option<(R, Body)>,
    /// How long the body may be silent before the connection counts as dead.
    silence_max: Option<Duration>,
    silence: Option<Pin<Box<Sleep>>>,
}

impl<R: Reader> Items<R> {
    pub(crate) fn new(reader: R, body: Body, silence_max: Option<Duration>) -> Self {
        Self { open: Some((reader, body)), silence_max, silence: None }
    }

    /// Completes once the body has been silent for too long.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<Duration> {
        let Some(wait) = self.silence_max else { return Poll::Pending };
        let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(wait)));
        silence.as_mut().poll(context).map(|()| wait)
    }
}

impl<R: Reader + Unpin> Stream for Items<R> {
    type Item = Result<R::Item>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<R::Item>>> {
        let item = loop {
            let Some((reader, body)) = &mut self.open else { return Poll::Ready(None) };
            if let Some(item) = reader.next() {
                break item;
            }
            match Pin::new(body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers are ignored.
                    if let Ok(chunk) = frame.into_data() {
                        reader.push(chunk);
                    }
                    self.silence = None;
                }
                Poll::Ready(Some(Err(error))) => break Err(failed(error, reader.call())),
                Poll::Ready(None) => {
                    let last = reader.finish();
                    self.open = None;
                    return Poll::Ready(last);
                }
                Poll::Pending => {
                    let wait = ready!(self.poll_silence(context));
                    let Some((reader, _)) = &self.open else { return Poll::Ready(None) };
                    break Err(timed_out(reader.call(), wait, true));
                }
            }
        };
        if item.is_err() {
            self.open = None;
        }
        Poll::Ready(Some(item))
    }
}
