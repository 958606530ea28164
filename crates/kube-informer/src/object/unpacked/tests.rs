use super::*;

type Unpack = Result<Vec<u8>, ()>;

fn unpacked(texts: &Unpacked) -> usize {
    texts.unpacks.load(Ordering::Relaxed)
}

#[test]
fn the_latest_texts_are_unpacked_once() {
    let texts = Unpacked::default();
    for _ in 0..3 {
        for object in 0..TEXTS_MAX as u64 {
            let text = texts.text(object, || Unpack::Ok(object.to_string().into())).unwrap();
            assert_eq!(text, object.to_string());
        }
    }
    assert_eq!(unpacked(&texts), TEXTS_MAX);
    let later = TEXTS_MAX as u64;
    assert_eq!(texts.text(later, || Unpack::Ok(b"later".to_vec())).unwrap(), "later");
    assert_eq!(texts.text(0, || Unpack::Ok(b"0".to_vec())).unwrap(), "0");
    assert_eq!(unpacked(&texts), TEXTS_MAX + 2);
}

#[test]
fn threads_that_ask_at_the_same_time_unpack_once() {
    let texts = Unpacked::default();
    let start = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for object in 0..TEXTS_MAX as u64 {
                    start.wait();
                    let text = texts.text(object, || Unpack::Ok(vec![1; 1000])).unwrap();
                    assert_eq!(text.len(), 1000);
                }
            });
        }
    });
    assert_eq!(unpacked(&texts), TEXTS_MAX);
}

#[test]
fn texts_are_bounded_in_bytes() {
    let texts = Unpacked::default();
    for object in 0..1000 {
        texts.text(object, || Unpack::Ok(vec![1; 100_000])).unwrap();
        assert!(texts.bytes.load(Ordering::Relaxed) <= TEXT_BYTES_MAX);
    }
    texts.text(1000, || Unpack::Ok(vec![1; 2 * TEXT_BYTES_MAX])).unwrap();
    let before = unpacked(&texts);
    texts.text(1000, || Unpack::Err(())).unwrap();
    assert_eq!(unpacked(&texts), before, "a single one may be larger");
    texts.text(1001, || Unpack::Ok(vec![1; 10])).unwrap();
    assert_eq!(texts.bytes.load(Ordering::Relaxed), 10);
}

#[test]
fn an_error_is_not_remembered() {
    let texts = Unpacked::default();
    assert!(texts.text(1, || Unpack::Err(())).is_err());
    assert_eq!(texts.text(1, || Unpack::Ok(b"text".to_vec())).unwrap(), "text");
}
