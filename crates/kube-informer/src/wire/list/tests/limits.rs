//! The size of buffers is bounded.

use super::*;

#[test]
fn i19_what_is_over_the_limit_is_refused_while_it_arrives() {
    let mut reader = reader(call());
    reader.list.bytes_max = 1000;
    push(&mut reader, br#"{"kind":"PodList","items":[{"metadata":{"name":"a"}},{"metadata":""#);
    assert!(matches!(reader.next(), Some(Ok(ListItem::Object(_)))));
    let mut pushed = 0;
    let error = loop {
        if let Some(item) = reader.next() {
            break item.unwrap_err();
        }
        push(&mut reader, &[b'x'; 100]);
        pushed += 100;
        assert!(pushed <= 1100, "never refused");
    };
    assert!(error.to_string().contains("byte 53 of the list is over the limit of 1000"), "{error}");
    assert!(matches!(error.cause(), Cause::Protocol));
    push(&mut reader, &[b'x'; 100]);
    assert_eq!(reader.list.buffer.capacity(), 0, "nothing is kept after an error");
    // The limit also holds for one that arrives in one piece.
    let mut reader = self::reader(call());
    reader.list.bytes_max = 100;
    push(&mut reader, list(&json!([pod(&"a".repeat(100), 1)])).to_string().as_bytes());
    assert!(reader.next().unwrap().is_err());
}

#[test]
fn i19_an_item_without_end_is_refused_at_the_limit() {
    // Fault 30.
    let piece = vec![b'x'; 1 << 20];
    let mut reader = reader(call());
    push(&mut reader, br#"{"items":[""#);
    for pushed in 0.. {
        if let Some(part) = reader.next() {
            assert_eq!((pushed, part.is_err()), (OBJECT_BYTES_MAX >> 20, true));
            break;
        }
        push(&mut reader, &piece);
    }
}

#[test]
fn i19_little_is_kept_of_a_status_that_comes_instead() {
    let long = "x".repeat(1 << 20);
    let mut reader = reader(call());
    push(&mut reader, format!(r#"{{"reason":"{long}","message":"{long}","kind":"Sta"#).as_bytes());
    assert!(reader.next().is_none());
    let Seen { reason, message, .. } = &reader.list.seen;
    for kept in [reason, message] {
        assert!(kept.as_ref().unwrap().chars().count() <= MESSAGE_CHARS_MAX + 1);
    }
    let all = read(format!(r#"{{"kind":"{long}","items":[]}}"#));
    assert!(all.error().len() < 300, "{all:?}");
}

#[test]
fn i19_items_that_were_taken_are_not_kept() {
    let items: Vec<_> = (0..1000).map(|n| pod(&format!("pod-{n}"), n)).collect();
    let text = list(&Value::from(items)).to_string();
    let mut reader = reader(call());
    let mut count = 0;
    for chunk in text.as_bytes().chunks(4096) {
        push(&mut reader, chunk);
        while let Some(item) = reader.next() {
            assert!(matches!(item, Ok(ListItem::Object(_))), "{item:?}");
            count += 1;
        }
        assert!(reader.list.buffer.capacity() <= 16 << 10, "{}", reader.list.buffer.capacity());
    }
    assert_eq!(count, 1000);
    let end = reader.finish().unwrap().unwrap();
    assert!(matches!(end, ListItem::End { resource_version, .. } if resource_version == "7"));
}

#[test]
fn i19_a_large_item_does_not_leave_a_large_buffer() {
    let large = json!({"metadata": {"name": "large"}, "data": "x".repeat(4 << 20)});
    let text = list(&json!([large, pod("a", 1), pod("b", 2)])).to_string();
    let mut reader = reader(call());
    for chunk in text.as_bytes().chunks(64 << 10) {
        push(&mut reader, chunk);
        while reader.next().is_some() {}
    }
    push(&mut reader, b" ");
    assert!(reader.list.buffer.capacity() <= 2 << 20, "{}", reader.list.buffer.capacity());
    assert!(reader.finish().unwrap().is_ok());
}
