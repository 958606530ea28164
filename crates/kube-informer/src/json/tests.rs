use proptest::prelude::*;
use serde_json::Value;

use super::children::Member;
use super::*;

/// Generates a value, as text with any white space.
fn any_text() -> impl Strategy<Value = String> {
    let space = || "[ \n\r\t]{0,2}";
    let string = prop_oneof![
        any::<String>().prop_map(|text| Value::from(text).to_string()),
        "\"([a-z\u{e9}]|\\\\[\"\\\\/bfnrt]|\\\\u00[0-9a-fA-F]{2}){0,20}\"",
    ];
    let number = "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?";
    let word = prop_oneof![Just("null"), Just("true"), Just("false")].prop_map(String::from);
    let leaf = prop_oneof![string.clone(), number.prop_map(String::from), word];
    let value = leaf.prop_recursive(6, 64, 6, move |inner| {
        let element = (space(), inner.clone(), space()).prop_map(|(a, v, b)| a + &v + &b);
        let member = (space(), string.clone(), space(), element.clone())
            .prop_map(|(a, key, b, value)| a + &key + &b + ":" + &value);
        prop_oneof![
            proptest::collection::vec(element, 1..6).prop_map(|all| format!("[{}]", all.join(","))),
            proptest::collection::vec(member, 1..6)
                .prop_map(|all| format!("{{{}}}", all.join(","))),
            space().prop_map(|space| format!("{{{space}}}")),
            space().prop_map(|space| format!("[{space}]")),
        ]
    });
    (space(), value, space()).prop_map(|(a, value, b)| a + &value + &b)
}

/// `serde_json` rejects numbers that do not fit an `f64` when it reads them, but not when it skips them.
fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

/// Generates a text with some bytes replaced, which is probably no longer valid.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        proptest::sample::select(b"{}[]\",:\\ \n0-+.eEtfnu\x00\x1f\x7f\xc3\xff".to_vec()),
        any::<u8>()
    ];
    (any_text(), proptest::collection::vec((any::<prop::sample::Index>(), byte), 0..4), 0.8..1.2)
        .prop_map(|(text, changes, keep): (String, _, f64)| {
            let mut bytes = text.into_bytes();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let keep = (bytes.len() as f64 * keep) as usize;
            bytes.truncate(keep);
            bytes
        })
}

proptest! {
    #[test]
    fn a_text_is_json_if_serde_json_says_so(bytes in mutated()) {
        prop_assert_eq!(whole(&bytes).is_ok(), is_json(&bytes));
    }

    #[test]
    fn a_value_is_found_among_others(before in any_text(), value in any_text(), after in any_text()) {
        let all = format!("{before},{value},{after}");
        let start = before.len() + 1;
        let end = skip(all.as_bytes(), start).unwrap();
        prop_assert_eq!(all[start..end].trim(), value.trim());
    }

    #[test]
    fn children_are_what_serde_json_finds(text in any_text()) {
        let json = text.as_bytes();
        let parsed = serde_json::from_str::<Value>(&text);
        prop_assume!(parsed.is_ok());
        let children = Children::of(json, 0);
        let read = |member: &Member| {
            serde_json::from_slice::<Value>(&json[member.value.clone()]).unwrap()
        };
        match parsed.unwrap() {
            Value::Object(expected) => {
                let found: serde_json::Map<_, _> = children.unwrap().map(Result::unwrap)
                    .map(|member| (super::text(&json[member.key.clone()]).unwrap().into_owned(), read(&member)))
                    .collect();
                prop_assert_eq!(found, expected);
            }
            Value::Array(expected) => {
                let found: Vec<_> = children.unwrap().map(|member| read(&member.unwrap())).collect();
                prop_assert_eq!(found, expected);
            }
            _ => prop_assert!(children.is_none()),
        }
    }

    #[test]
    fn any_children_can_be_cut(text in any_text(), cut: u64) {
        let json = text.as_bytes();
        let Some(children) = Children::of(json, 0) else { return Ok(()) };
        let (mut left, mut kept, mut expected) = (Vec::new(), false, 0);
        let mut from = 0;
        for (n, member) in children.map(Result::unwrap).enumerate() {
            if cut >> n & 1 == 1 {
                let extent = member.extent(!kept);
                left.extend_from_slice(&json[from..extent.start]);
                from = extent.end;
            } else {
                kept = true;
                expected += 1;
            }
        }
        left.extend_from_slice(&json[from..]);
        prop_assert!(whole(&left).is_ok(), "{}", String::from_utf8_lossy(&left));
        prop_assert_eq!(Children::of(&left, 0).unwrap().count(), expected);
    }

    #[test]
    fn looking_into_values_ends_where_skipping_does(text in any_text()) {
        let json = text.as_bytes();
        let Some(mut children) = Children::of(json, 0) else { return Ok(()) };
        while let Some(head) = children.head().unwrap() {
            let end = match Children::of(json, head.value) {
                Some(inner) => inner.end().unwrap(),
                None => skip(json, head.value).unwrap(),
            };
            children.close(head, end).unwrap();
        }
        prop_assert_eq!(children.end().unwrap(), skip(json, 0).unwrap());
    }

    #[test]
    fn nothing_panics_on_any_bytes(bytes in mutated(), at in 0..80_usize) {
        let _ = skip(&bytes, at);
        let _ = super::text(&bytes);
        let _ = is_key(&bytes, "key");
        if let Some(children) = Children::of(&bytes, at) {
            // The iteration ends, with at most one error.
            prop_assert!(children.filter(Result::is_err).count() <= 1);
        }
        let mut end = ValueEnd::default();
        let _ = (end.feed(&bytes), end.finish(&bytes));
    }

    #[test]
    fn the_end_of_a_value_is_found_however_it_arrives(
        value in any_text(), after in any_text(), sizes in proptest::collection::vec(1..9_usize, 1..9)
    ) {
        let all = format!("{value},{after}");
        let expected = skip(all.as_bytes(), 0).unwrap();
        let (mut end, mut length) = (ValueEnd::default(), 0);
        let mut sizes = sizes.into_iter().cycle();
        let found = loop {
            if let Some(found) = end.feed(&all.as_bytes()[..length]).unwrap() {
                break found;
            }
            prop_assert!(length < all.len());
            length = (length + sizes.next().unwrap()).min(all.len());
        };
        prop_assert_eq!(found, expected);
        prop_assert!(length <= expected + 9, "found late");
        let mut alone = ValueEnd::default();
        prop_assert_eq!(alone.finish(value.trim_end().as_bytes()).unwrap(), Some(expected));
    }

    #[test]
    fn eight_bytes_at_once_find_what_one_by_one_finds(eight: [u8; 8]) {
        let first = eight.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
        let found = special(u64::from_le_bytes(eight));
        prop_assert_eq!((found != 0).then(|| found.trailing_zeros() as usize / 8), first);
    }
}

#[test]
fn nesting_is_bounded_and_takes_no_stack() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(whole(nested(DEPTH_MAX).as_bytes()).is_ok());
    assert!(whole("[".repeat(1_000_000).as_bytes()).is_err());
    let error = whole((nested(DEPTH_MAX + 2)).as_bytes()).unwrap_err();
    assert!(error.to_string().contains("512 levels"), "{error}");
}

#[test]
fn an_error_says_where_and_quotes_nothing() {
    let error = whole(b"{\"password\": secret}").unwrap_err();
    assert_eq!(error.to_string(), "a value expected at byte 13");
}

#[test]
fn a_bad_value_can_be_passed_over() {
    let list = b"{\"a\" nonsense \xff [} \"}]\\\"\" }, {}";
    let mut end = ValueEnd::default();
    assert_eq!(end.feed(list).unwrap(), Some(list.len() - 4));
    assert!(whole(&list[..list.len() - 4]).is_err());
}

#[test]
fn what_is_no_value_is_an_error_at_once() {
    for text in [",", "]", " }", ":1", "\u{e9}"] {
        assert!(ValueEnd::default().feed(text.as_bytes()).is_err(), "{text}");
    }
}
