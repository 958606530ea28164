//! Faults in the bytes of a body.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::time::Duration;

use super::Exposed;
use crate::body::{Body, Chunks};
use crate::faults::{Fault, Point, Waiting};

/// Bytes that are waiting to be sent in chunks.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    queue: VecDeque<Bytes>,
    slow: Option<(usize, Duration)>,
    split: bool,
}

impl Pieces {
    /// Returns whether this fault starts to split bodies into chunks. False if they are already
    /// split.
    pub(super) fn would_cut(&self, fault: &Fault, bytes: &[u8]) -> bool {
        match fault {
            Fault::SlowBytes { .. } => self.slow.is_none(),
            Fault::SplitUtf8 => !self.split && !bytes.is_ascii(),
            _ => false,
        }
    }

    pub(super) fn cut_from_now_on(&mut self, fault: &Fault) {
        match fault {
            Fault::SlowBytes { bytes, every } => self.slow = Some(((*bytes).max(1), *every)),
            Fault::SplitUtf8 => self.split = true,
            _ => {}
        }
    }

    /// Queues bytes to be sent in chunks, or returns them if chunks are not requested.
    pub(super) fn push(&mut self, mut bytes: Bytes) -> Option<Bytes> {
        if let Some((len, _)) = self.slow {
            while !bytes.is_empty() {
                self.queue.push_back(bytes.split_to(len.min(bytes.len())));
            }
            return None;
        }
        if !self.split {
            return Some(bytes);
        }
        while let Some(lead) = bytes.iter().position(|byte| *byte >= 0xC0) {
            self.queue.push_back(bytes.split_to(lead + 1));
        }
        self.queue.push_back(bytes);
        None
    }

    /// Returns the next chunk when it is due.
    pub(super) async fn next(&mut self, request: &Exposed) -> Option<io::Result<Bytes>> {
        let piece = self.queue.pop_front()?;
        match self.slow {
            Some((_, every)) => {
                if let Err(error) = request.wait(every).await {
                    return Some(Err(error));
                }
            }
            // A socket flushes its data when no more is ready.
            None => tokio::task::yield_now().await,
        }
        Some(Ok(piece))
    }
}

/// Returns a body to which pending faults are applied.
pub(super) fn damaged(body: Body, request: Arc<Exposed>, waiting: Vec<Waiting>) -> Body {
    let damaged = Damaged {
        chunks: body.into_chunks(),
        rest: None,
        request,
        waiting,
        pieces: Pieces::default(),
        sent: 0,
        over: false,
    };
    Body::chunks(stream::unfold(damaged, |mut damaged| async move {
        let chunk = damaged.next().await?;
        Some((chunk, damaged))
    }))
}

struct Damaged {
    chunks: Chunks,
    /// The rest of a chunk in whose middle a fault fires.
    rest: Option<Bytes>,
    request: Arc<Exposed>,
    waiting: Vec<Waiting>,
    pieces: Pieces,
    sent: u64,
    over: bool,
}

impl Damaged {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if let Some(piece) = self.pieces.next(&self.request).await {
                self.over |= piece.is_err();
                return Some(piece);
            }
            if self.over {
                return None;
            }
            let chunk = match self.rest.take() {
                Some(rest) => Ok(rest),
                None => self.chunks.next().await?,
            };
            let struck = match chunk {
                Ok(chunk) => self.strike(chunk).await,
                Err(error) => Err(error),
            };
            match struck {
                Ok(chunk) => {
                    self.sent += chunk.len() as u64;
                    if let Some(chunk) = self.pieces.push(chunk).filter(|chunk| !chunk.is_empty()) {
                        return Some(Ok(chunk));
                    }
                }
                Err(error) => {
                    self.over = true;
                    return Some(Err(error));
                }
            }
        }
    }

    /// Applies the faults at the start of the next bytes, and splits off the bytes after the point
    /// of the next fault.
    async fn strike(&mut self, mut chunk: Bytes) -> io::Result<Bytes> {
        let sent = self.sent;
        let due = |waiting: &mut Waiting| {
            let ascii = matches!(*waiting.fault, Fault::SplitUtf8) && chunk.is_ascii();
            offset(waiting) <= sent && !ascii
        };
        let due: Vec<Waiting> = self.waiting.extract_if(.., due).collect();
        for waiting in due {
            if !self.request.is_struck(&waiting, 0) {
                continue;
            }
            match &*waiting.fault {
                Fault::Truncated => {
                    self.over = true;
                    let kept = if waiting.point == Point::Body { chunk.len() / 2 } else { 0 };
                    return Ok(chunk.slice(..kept));
                }
                Fault::MalformedUtf8 => chunk = malformed(&chunk),
                fault if self.pieces.would_cut(fault, &chunk) => self.pieces.cut_from_now_on(fault),
                fault => self.request.suffer(fault).await?,
            }
        }
        let next = self.waiting.iter().map(offset).filter(|at| *at > sent).min();
        if let Some(next) = next.filter(|next| *next < sent + chunk.len() as u64) {
            self.rest = Some(chunk.split_off((next - sent) as usize));
        }
        Ok(chunk)
    }
}

fn offset(waiting: &Waiting) -> u64 {
    match waiting.point {
        Point::Bytes(offset) => offset,
        _ => 0,
    }
}

/// Returns the bytes with an invalid UTF-8 byte in their last string, or at their end if there is
/// none. The byte is inserted, so quotes still match.
pub(super) fn malformed(bytes: &Bytes) -> Bytes {
    const TEXT: &[u8] = br#"":""#;
    let at = bytes.windows(TEXT.len()).rposition(|window| window == TEXT);
    let at = at.map_or(bytes.len(), |at| at + TEXT.len());
    let mut out = Vec::with_capacity(bytes.len() + 1);
    out.extend_from_slice(&bytes[..at]);
    out.push(0xFF);
    out.extend_from_slice(&bytes[at..]);
    out.into()
}
