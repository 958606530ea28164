//! Compression of large responses while they are sent.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::StreamExt;
use futures_util::stream;

use crate::body::Body;

/// Compresses a body chunk by chunk at the fastest level, as kube-apiserver does.
pub(crate) fn compress(body: Body) -> Body {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let state = (body.into_chunks(), Some(encoder));
    Body::chunks(stream::unfold(state, |(mut chunks, encoder)| async move {
        let mut encoder = encoder?;
        loop {
            let Some(chunk) = chunks.next().await else {
                return Some((encoder.finish().map(Bytes::from), (chunks, None)));
            };
            if let Err(error) = chunk.and_then(|chunk| encoder.write_all(&chunk)) {
                return Some((Err(error), (chunks, None)));
            }
            // The encoder buffers its output, which may be empty here. An empty chunk would end an
            // HTTP/1 body.
            let out = std::mem::take(encoder.get_mut());
            if !out.is_empty() {
                return Some((Ok(out.into()), (chunks, Some(encoder))));
            }
        }
    }))
}
