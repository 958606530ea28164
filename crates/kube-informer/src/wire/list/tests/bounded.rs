//! The readers buffer no more than their limit, whatever the input.

use super::*;

/// The head of a field, which precedes a value in protobuf.
const HEAD_BYTES_MAX: usize = 20;

/// Reads a body in chunks, and checks the size of the buffer after each.
fn check(
    bytes: &[u8],
    encoding: Encoding,
    limit: usize,
    chunk: usize,
) -> Result<(), TestCaseError> {
    let mut reader = reader_of(call(), encoding);
    reader.list.bytes_max = limit;
    for chunk in bytes.chunks(chunk) {
        push(&mut reader, chunk);
        prop_assert!(reader.list.buffer.len() <= limit + HEAD_BYTES_MAX + chunk.len());
        while let Some(item) = reader.next() {
            if item.is_err() {
                prop_assert_eq!(reader.list.buffer.capacity(), 0);
            }
        }
        prop_assert!(reader.list.rest().len() <= limit + HEAD_BYTES_MAX);
    }
    Ok(())
}

type Changes = Vec<(prop::sample::Index, u8)>;

fn changed(mut bytes: Vec<u8>, changes: Changes) -> Vec<u8> {
    for (place, byte) in changes {
        let at = place.index(bytes.len());
        bytes[at] = byte;
    }
    bytes
}

proptest! {
    #[test]
    fn i19_no_list_in_json_is_buffered_beyond_the_limit(
        text in any_list(),
        changes: Changes,
        (limit, chunk) in (1..500_usize, 1..300_usize),
    ) {
        check(&changed(text.into_bytes(), changes), Encoding::Json, limit, chunk)?;
    }

    #[test]
    fn i19_no_list_in_protobuf_is_buffered_beyond_the_limit(
        count in 0..6_u32,
        changes: Changes,
        (limit, chunk) in (1..500_usize, 1..300_usize),
    ) {
        let items = (0..count).map(|n| {
            let name = format!("pod-{n}");
            json!({"metadata": {"name": name}, "spec": {"nodeName": "n".repeat(n as usize * 70)}})
        });
        let bytes = kube_schema::to_vec(&list(&items.collect())).unwrap();
        // The fields of the envelope have a limit of their own.
        let raw = kube_schema::Envelope::parse(&bytes).unwrap().raw;
        let whole = changed(raw.to_vec(), changes);
        let envelope = kube_schema::Envelope { api_version: "v1", kind: "PodList", raw: &whole };
        check(&envelope.to_vec(), Encoding::Protobuf, limit, chunk)?;
    }
}
