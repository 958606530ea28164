//! The items of an answer, as its body arrives.

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

/// Makes items of bytes: [`push`](Self::push) a chunk, take the [`next`](Self::next) items until there
/// are none, and [`finish`](Self::finish) where the body ends.
pub(crate) trait Reader {
    type Item;

    /// What is read, for errors.
    fn call(&self) -> &Call;

    /// Takes a chunk. The items of the chunks before it must have been taken.
    fn push(&mut self, chunk: Bytes);

    /// The next item, `None` until more has come. Nothing follows an error.
    fn next(&mut self) -> Option<Result<Self::Item>>;

    /// What the end of the body makes of the rest.
    fn finish(&mut self) -> Option<Result<Self::Item>>;
}

/// Everything that a reader makes of a body. An error is the last item.
pub(crate) struct Items<R> {
    /// `None` once the end or an error has been given out.
    open: Option<(R, Body)>,
    /// How long nothing may come before the connection is taken for dead.
    silence_max: Option<Duration>,
    silence: Option<Pin<Box<Sleep>>>,
}

impl<R: Reader> Items<R> {
    pub(crate) fn new(reader: R, body: Body, silence_max: Option<Duration>) -> Self {
        Self { open: Some((reader, body)), silence_max, silence: None }
    }

    /// Ready once nothing has come for too long.
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
                    // Trailers are not for us.
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
