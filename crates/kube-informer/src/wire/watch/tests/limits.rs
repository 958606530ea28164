//! The size of buffers is bounded.

use super::*;

#[test]
fn i19_a_line_over_the_limit_is_refused_while_it_arrives() {
    let mut reader = reader(target());
    reader.event_bytes_max = 1000;
    reader.push(Bytes::from(event("ADDED", "a", 1) + "\n"));
    assert!(reader.next().unwrap().is_ok());
    let mut pushed = 0;
    let error = loop {
        reader.push(Bytes::from_static(&[b'x'; 100]));
        pushed += 100;
        if let Some(part) = reader.next() {
            break part.unwrap_err();
        }
        assert!(pushed <= 1000, "never refused");
    };
    assert!(error.to_string().contains("is over the limit of 1000 bytes"), "{error}");
    assert_eq!(reader.pending.capacity(), 0, "nothing is kept after an error");
    // The limit also holds for one that arrives in one piece.
    let mut reader = self::reader(target());
    reader.event_bytes_max = 100;
    reader.push(Bytes::from(event("ADDED", &"a".repeat(100), 1) + "\n"));
    assert!(reader.next().unwrap().is_err());
}

#[test]
fn i19_a_line_without_end_is_refused_at_the_limit() {
    // Fault 30.
    static PIECE: [u8; 1 << 20] = [b'x'; 1 << 20];
    let mut reader = reader(target());
    for pushed in 0.. {
        reader.push(Bytes::from_static(&PIECE));
        if let Some(part) = reader.next() {
            assert_eq!((pushed, part.is_err()), (OBJECT_BYTES_MAX >> 20, true));
            break;
        }
    }
}

/// A regression: kept and parsed as a whole, one of 30 MiB took 1.4 GiB.
#[test]
fn i19_an_error_event_over_the_limit_is_refused_while_it_arrives() {
    static PIECE: [u8; 16 << 10] = [b'x'; 16 << 10];
    let mut reader = reader(target());
    reader.push(Bytes::from_static(br#"{"type":"ERROR","object":{"kind":"Status","message":""#));
    assert!(reader.next().is_none());
    for pushed in 1.. {
        reader.push(Bytes::from_static(&PIECE));
        if let Some(item) = reader.next() {
            let error = item.unwrap_err();
            assert!(error.to_string().contains("the ERROR event that begins at byte 0"), "{error}");
            assert_eq!(pushed, STATUS_BYTES_MAX / PIECE.len() + 1);
            assert_eq!(reader.pending.capacity(), 0, "nothing is kept after an error");
            break;
        }
    }
    // The limit also holds for one that arrives in one piece, in any order.
    let long = "x".repeat(STATUS_BYTES_MAX);
    let status = format!(r#"{{"kind":"Status","code":410,"message":"{long}"}}"#);
    for line in [
        format!(r#"{{"type":"ERROR","object":{status}}}"#),
        format!(r#"{{"object":{status},"type":"ERROR"}}"#),
    ] {
        let error = error(line);
        assert!(error.to_string().contains("ERROR event"), "{error}");
        assert!(error.to_string().contains("over the limit"), "{error}");
        assert!(matches!(error.cause(), Cause::Protocol));
    }
}

#[test]
fn i19_a_large_event_does_not_leave_a_large_buffer() {
    let mut reader = reader(target());
    let text = event("ADDED", &"a".repeat(4 << 20), 1) + "\n";
    for chunk in text.as_bytes().chunks(64 << 10) {
        reader.push(Bytes::copy_from_slice(chunk));
        while reader.next().is_some() {}
    }
    assert!(reader.pending.capacity() <= 1 << 20, "{}", reader.pending.capacity());
}
