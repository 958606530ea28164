//! The readers buffer no more than their limit, whatever the input.

use super::*;

/// Reads a body in chunks, and checks the size of the buffer after each.
fn check(
    bytes: &[u8],
    encoding: Encoding,
    limit: usize,
    chunk: usize,
) -> Result<(), TestCaseError> {
    let mut reader = reader_of(target(), encoding);
    reader.event_bytes_max = limit;
    for chunk in bytes.chunks(chunk) {
        reader.push(Bytes::copy_from_slice(chunk));
        while let Some(item) = reader.next() {
            if item.is_err() {
                prop_assert_eq!(reader.chunk.len(), 0);
            }
        }
        prop_assert!(reader.pending.len() <= limit);
        prop_assert!(reader.failed || reader.chunk.is_empty(), "all of a chunk is taken");
    }
    Ok(())
}

type Changes = Vec<(prop::sample::Index, u8)>;

fn changed(mut bytes: Vec<u8>, changes: Changes) -> Vec<u8> {
    for (place, byte) in changes {
        let at = place.index(bytes.len().max(1));
        if let Some(there) = bytes.get_mut(at) {
            *there = byte;
        }
    }
    bytes
}

proptest! {
    #[test]
    fn i19_no_watch_in_json_is_buffered_beyond_the_limit(
        (text, _) in any_stream(),
        changes: Changes,
        (limit, chunk) in (1..200_usize, 1..300_usize),
    ) {
        check(&changed(text.into_bytes(), changes), Encoding::Json, limit, chunk)?;
    }

    #[test]
    fn i19_no_watch_in_protobuf_is_buffered_beyond_the_limit(
        sizes in prop::collection::vec(0..300_usize, 0..8),
        changes: Changes,
        (limit, chunk) in (1..500_usize, 1..300_usize),
    ) {
        let frames = sizes.iter().map(|size| {
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
                             "spec": {"nodeName": "n".repeat(*size)}});
            let object = kube_schema::to_vec(&pod).unwrap();
            kube_schema::WatchFrame { event_type: "ADDED", object: &object }.to_vec()
        });
        check(&changed(frames.collect::<Vec<_>>().concat(), changes), Encoding::Protobuf, limit, chunk)?;
    }
}
