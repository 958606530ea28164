//! A WebSocket: sends the body of a response as messages, until it ends or the client closes.

use std::io;
use std::pin::pin;

use bytes::{Buf, Bytes};
use futures_util::{SinkExt, StreamExt};
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Utf8Bytes};

use super::orderly::Orderly;
use crate::limits::{SHUTDOWN_GRACE, WEBSOCKET_RECEIVED_BYTES_MAX};
use crate::upgrade::Messages;

/// A response whose connection becomes a WebSocket when HTTP has sent its head.
pub(super) struct Upgrading {
    pub(super) connection: OnUpgrade,
    pub(super) messages: Messages,
    pub(super) body: Orderly,
}

impl Upgrading {
    /// Sends the messages. An error represents a connection that is to be broken.
    pub(super) async fn run(self) -> io::Result<()> {
        let connection = self.connection.await.map_err(io::Error::other)?;
        let stream = TokioIo::new(connection);
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config())).await;
        let (mut sink, mut source) = socket.split();
        let close = {
            // Clients have nothing to say, but their pings and their close need a response, which
            // reading sends.
            let mut heard = pin!(async {
                loop {
                    match source.next().await {
                        Some(Ok(_)) => {}
                        Some(Err(error)) => return close_code(&error),
                        None => return None,
                    }
                }
            });
            tokio::select! {
                biased;
                code = &mut heard => code,
                sent = send(&mut sink, self.body, Frames::new(self.messages)) => {
                    sent?;
                    // The client closes first, so that none of the last messages is lost.
                    timeout(SHUTDOWN_GRACE, &mut heard).await.ok().flatten()
                }
            }
        };
        let Ok(mut socket) = sink.reunite(source) else { return Ok(()) };
        let closed = async {
            if let Some(code) = close {
                socket.send(closing(code)).await.ok();
            }
            // Ends TLS properly.
            socket.get_mut().shutdown().await.ok();
        };
        let _ = timeout(SHUTDOWN_GRACE, closed).await;
        Ok(())
    }
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(WEBSOCKET_RECEIVED_BYTES_MAX))
        .max_frame_size(Some(WEBSOCKET_RECEIVED_BYTES_MAX))
        .read_buffer_size(WEBSOCKET_RECEIVED_BYTES_MAX)
        // Each message is flushed anyway.
        .write_buffer_size(0)
}

/// Returns the reason to tell a client that violates the protocol or a limit, if it can be told.
fn close_code(error: &Error) -> Option<CloseCode> {
    match error {
        Error::Capacity(_) => Some(CloseCode::Size),
        Error::Protocol(_) => Some(CloseCode::Protocol),
        Error::Utf8(_) => Some(CloseCode::Invalid),
        _ => None,
    }
}

fn closing(code: CloseCode) -> Message {
    Message::Close(Some(CloseFrame { code, reason: Utf8Bytes::default() }))
}

/// Sends a body, and closes the WebSocket at its end. An error is the body's; if the client is
/// gone, this just ends.
async fn send<S>(sink: &mut S, mut body: Orderly, mut frames: Frames) -> io::Result<()>
where
    S: SinkExt<Message, Error = Error> + Unpin,
{
    while let Some(chunk) = body.frame().await {
        let Ok(mut chunk) = chunk?.into_data() else { continue };
        while let Some(frame) = frames.next(&mut chunk) {
            if sink.send(Message::Frame(frame)).await.is_err() {
                return Ok(());
            }
        }
    }
    if let Some(frame) = frames.last()
        && sink.send(Message::Frame(frame)).await.is_err()
    {
        return Ok(());
    }
    // If it fails, the client is gone.
    sink.send(closing(CloseCode::Normal)).await.ok();
    Ok(())
}

/// Splits a body into the frames of messages. A message that arrives in several chunks is sent in
/// as many frames.
struct Frames {
    messages: Messages,
    /// Whether the last frame was not the end of its message.
    open: bool,
    /// The start of a length that is not complete.
    length: Vec<u8>,
    /// The bytes of the message that are to come, once its length is known.
    missing: Option<usize>,
}

impl Frames {
    fn new(messages: Messages) -> Self {
        Self { messages, open: false, length: Vec::new(), missing: None }
    }

    /// Takes the next frame from a chunk. Returns `None` when the chunk is used up.
    fn next(&mut self, chunk: &mut Bytes) -> Option<Frame> {
        match self.messages {
            Messages::Lines if chunk.is_empty() => None,
            Messages::Lines => {
                let end = chunk.iter().position(|byte| *byte == b'\n');
                let payload = chunk.split_to(end.map_or(chunk.len(), |end| end + 1));
                Some(self.frame(payload, Data::Text, end.is_some()))
            }
            Messages::Frames => {
                let missing = self.missing(chunk)?;
                if missing > 0 && chunk.is_empty() {
                    return None;
                }
                let payload = chunk.split_to(missing.min(chunk.len()));
                let left = missing - payload.len();
                self.missing = Some(left).filter(|left| *left > 0);
                Some(self.frame(payload, Data::Binary, left == 0))
            }
        }
    }

    /// Returns the number of bytes up to the end of the message, if it is known.
    fn missing(&mut self, chunk: &mut Bytes) -> Option<usize> {
        if self.missing.is_some() {
            return self.missing;
        }
        while self.length.len() < size_of::<u32>() {
            self.length.push(chunk.try_get_u8().ok()?);
        }
        let length = self.length.drain(..).fold(0, |length, byte| length << 8 | usize::from(byte));
        Some(length)
    }

    /// Ends a message that the body did not complete, so that the client sees what there is of it.
    fn last(&mut self) -> Option<Frame> {
        self.open.then(|| self.frame(Bytes::new(), Data::Continue, true))
    }

    fn frame(&mut self, payload: Bytes, data: Data, is_last: bool) -> Frame {
        let data = if self.open { Data::Continue } else { data };
        self.open = !is_last;
        Frame::message(payload, OpCode::Data(data), is_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the frames of a body: the opcode, whether it is the last one, and the payload.
    fn frames(messages: Messages, chunks: &[&'static [u8]]) -> Vec<(Data, bool, Vec<u8>)> {
        let mut frames = Frames::new(messages);
        let mut out = Vec::new();
        for chunk in chunks {
            let mut chunk = Bytes::from_static(chunk);
            out.extend(std::iter::from_fn(|| frames.next(&mut chunk)));
        }
        out.extend(frames.last());
        let shown = |frame: Frame| {
            let header = frame.header();
            let OpCode::Data(data) = header.opcode else { panic!("{:?}", header.opcode) };
            (data, header.is_final, frame.payload().to_vec())
        };
        out.into_iter().map(shown).collect()
    }

    #[test]
    fn lines_are_messages_however_they_are_split() {
        let whole = frames(Messages::Lines, &[b"{}\n", b"[]\n1\n"]);
        let texts = [b"{}\n", b"[]\n", &b"1\n"[..]];
        assert_eq!(whole, texts.map(|text| (Data::Text, true, text.to_vec())));
        let split = frames(Messages::Lines, &[b"{", b"", b"}\n", b"half"]);
        let wanted = [
            (Data::Text, false, b"{".to_vec()),
            (Data::Continue, true, b"}\n".to_vec()),
            (Data::Text, false, b"half".to_vec()),
            (Data::Continue, true, Vec::new()),
        ];
        assert_eq!(split, wanted);
    }

    #[test]
    fn frames_lose_their_length() {
        let binary = |is_last, payload: &[u8]| (Data::Binary, is_last, payload.to_vec());
        let whole = frames(Messages::Frames, &[b"\0\0\0\x02ab\0\0\0\x01c", b"\0\0\0\0"]);
        assert_eq!(whole, [binary(true, b"ab"), binary(true, b"c"), binary(true, b"")]);
        let split = frames(Messages::Frames, &[b"\0", b"\0\0", b"\x03a", b"b"]);
        let rest = [(Data::Continue, false, b"b".to_vec()), (Data::Continue, true, Vec::new())];
        assert_eq!(split, [[binary(false, b"a")].to_vec(), rest.to_vec()].concat());
    }
}
