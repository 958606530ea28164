//! Any bytes as the answer to a watch, in JSON or protobuf: the same events and the same error, however the bytes are
//! cut into chunks.
//!
//! The first byte chooses the encoding, the second the size of chunks, the rest is the body.

#![no_main]

use kube_informer_fuzz::Answer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[options, chunk], body)) = data.split_first_chunk() else { return };
    let answer = Answer::new(options, body, false);
    let whole = answer.watch(usize::MAX);
    assert!(whole.len() <= body.len() + 1, "more events than bytes");
    assert_eq!(whole, answer.watch(chunk.into()));
});
