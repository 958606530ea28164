use proptest::prelude::*;

use super::*;

/// Returns texts that have most of their content in common, each with something of its own.
pub(crate) fn alike(count: usize) -> Vec<Vec<u8>> {
    let text = |n: usize| {
        let env: Vec<_> =
            (0..40).map(|i| format!(r#"{{"name":"SETTING_{i}","value":"v"}}"#)).collect();
        let env = env.join(",");
        format!(r#"{{"metadata":{{"name":"web-{n}","uid":"{:x}"}},"spec":[{env}]}}"#, n * 7919)
    };
    (0..count).map(|n| text(n).into_bytes()).collect()
}

fn random(length: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| random.u8(..)).collect()
}

fn dictionary() -> &'static Dictionary {
    static DICTIONARY: std::sync::LazyLock<Dictionary> =
        std::sync::LazyLock::new(|| Dictionary::train(&alike(400)).expect("they are alike"));
    &DICTIONARY
}

#[test]
fn texts_that_are_alike_become_a_tenth() {
    for text in alike(500) {
        let frame = dictionary().pack(&text).expect("it saves much");
        assert!(frame.len() < text.len() / 10, "{} of {}", frame.len(), text.len());
        assert_eq!(dictionary().unpack(&frame).unwrap(), text);
    }
}

#[test]
fn random_texts_are_not_packed() {
    assert!(dictionary().pack(&random(10_000, 1)).is_none());
    assert!(dictionary().pack(b"").is_none());
}

#[test]
fn too_few_samples_give_no_dictionary() {
    assert!(Dictionary::train(&alike(0)).is_none());
    assert!(Dictionary::train(&alike(1)).is_none());
    assert!(Dictionary::train(&vec![b""; 200]).is_none());
}

#[test]
fn training_takes_a_bounded_part_of_large_texts() {
    let texts: Vec<_> = (0..200).map(|n| alike(1)[0].repeat(100 + n)).collect();
    let dictionary = Dictionary::train(&texts).expect("they are alike");
    assert!(dictionary.compress.sizeof() + dictionary.decompress.sizeof() < 200 << 10);
    let frame = dictionary.pack(&texts[0]).unwrap();
    assert_eq!(dictionary.unpack(&frame).unwrap(), texts[0]);
}

#[test]
fn i19_a_frame_that_claims_to_be_huge_is_an_error() {
    // A frame's magic number, a descriptor that announces an eight-byte size, and the size.
    for size in [TEXT_BYTES_MAX + 1, 1 << 40, u64::MAX - 2] {
        let frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &size.to_le_bytes(), &[1, 0, 0]].concat();
        assert_eq!(zstd_safe::get_frame_content_size(&frame).ok().flatten(), Some(size));
        assert!(dictionary().unpack(&frame).unwrap_err().contains("claims"), "{size}");
    }
}

#[test]
fn a_damaged_frame_is_an_error() {
    let text = &alike(1)[0];
    let frame = dictionary().pack(text).unwrap();
    assert!(dictionary().unpack(&frame[..frame.len() - 1]).is_err());
    assert!(dictionary().unpack(b"").is_err());
    assert!(dictionary().unpack(&text[..]).is_err());
    let other = Dictionary::train(&alike(900)[500..]).unwrap();
    assert!(other.unpack(&frame).is_err(), "the dictionary of another informer");
}

#[test]
fn threads_share_a_few_contexts() {
    let texts = alike(200);
    std::thread::scope(|scope| {
        for _ in 0..2 * CONTEXTS_MAX {
            scope.spawn(|| {
                for text in &texts {
                    let frame = dictionary().pack(text).unwrap();
                    assert_eq!(dictionary().unpack(&frame).unwrap(), *text);
                }
            });
        }
    });
}

proptest! {
    #[test]
    fn every_text_comes_back(text: Vec<u8>, repeated in 1..200_usize) {
        let text = text.repeat(repeated);
        if let Some(frame) = dictionary().pack(&text) {
            prop_assert!(frame.len() < text.len());
            prop_assert_eq!(dictionary().unpack(&frame).unwrap(), text);
        }
    }

    #[test]
    fn any_bytes_are_unpacked_or_an_error(bytes: Vec<u8>, at in 0..200_usize, flip: u8) {
        let _ = dictionary().unpack(&bytes);
        let mut frame = dictionary().pack(&alike(1)[0]).unwrap().into_vec();
        let at = at % frame.len();
        // After the size, which decides how much memory is allocated.
        if at > 12 {
            frame[at] ^= flip;
            let _ = dictionary().unpack(&frame);
        }
    }
}
