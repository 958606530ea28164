mod bounded;
mod limits;
mod protobuf;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::wire::{Target, Verb};

fn call() -> Call {
    let target = Target {
        kind: Some("Pod".into()),
        ..Target::from_path("/api/v1/namespaces/web/pods", Some("web")).unwrap()
    };
    Call { verb: Verb::List, target: Arc::new(target) }
}

fn reader(call: Call) -> ListReader {
    reader_of(call, Encoding::Json)
}

fn reader_of(call: Call, encoding: Encoding) -> ListReader {
    let packer = Packer::new(crate::Transform::default(), None, false);
    ListReader::new(call, Arc::new(packer), encoding)
}

fn push(reader: &mut ListReader, chunk: &[u8]) {
    reader.push(Bytes::copy_from_slice(chunk));
}

/// The result of reading a list: keys and versions, `Err` for bad items, and how it ended.
#[derive(PartialEq, Debug)]
struct Read {
    items: Vec<Result<String, String>>,
    end: Result<(String, Option<String>), String>,
}

impl Read {
    fn error(&self) -> &str {
        self.end.as_ref().unwrap_err()
    }
}

fn read_with<'a>(mut reader: ListReader, chunks: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut items = Vec::new();
    for chunk in chunks {
        push(&mut reader, chunk);
        while let Some(item) = reader.next() {
            match item {
                Ok(ListItem::Object(item)) => {
                    items.push(Ok(format!("{}@{}", item.key(), item.resource_version())));
                }
                Ok(ListItem::Unreadable(error)) => items.push(Err(error.to_string())),
                Ok(ListItem::End { .. }) => panic!("the end before the end"),
                Err(error) => {
                    assert!(reader.next().is_none(), "after an error there is nothing");
                    return Read { items, end: Err(error.to_string()) };
                }
            }
        }
    }
    let end = match reader.finish().unwrap() {
        Ok(ListItem::End { resource_version, continue_token }) => {
            Ok((resource_version.to_string(), continue_token))
        }
        Ok(item) => panic!("{item:?} instead of an end"),
        Err(error) => Err(error.to_string()),
    };
    Read { items, end }
}

fn read(json: impl AsRef<[u8]>) -> Read {
    read_with(reader(call()), [json.as_ref()])
}

fn pod(name: &str, version: u32) -> Value {
    json!({"metadata": {"name": name, "namespace": "web", "resourceVersion": version.to_string()},
           "spec": {"text": "ü \" \\ ]}{[ \u{1F600}", "deep": [[{"a": [null, true, -1.5e3]}]]}})
}

fn list(items: &Value) -> Value {
    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"},
           "items": items})
}

#[test]
fn a_list_is_its_items_and_its_version() {
    let all = read(list(&json!([pod("a", 1), pod("b", 2)])).to_string());
    assert_eq!(all.items, [Ok("web/a@1".into()), Ok("web/b@2".into())]);
    assert_eq!(all.end, Ok(("7".into(), None)));
}

#[test]
fn members_come_in_any_order() {
    let items = json!([pod("a", 1)]);
    let metadata = r#""metadata":{"continue":"next","resourceVersion":"7","remainingItemCount":3}"#;
    let members =
        [r#""kind":"PodList""#, r#""apiVersion":"v1""#, metadata, &format!(r#""items":{items}"#)];
    for first in 0..4 {
        for second in (0..4).filter(|second| *second != first) {
            let rest = (0..4).filter(|at| ![first, second].contains(at));
            let order: Vec<_> = [first, second].into_iter().chain(rest).collect();
            let members: Vec<_> = order.iter().map(|at| members[*at]).collect();
            let all = read(format!("{{{}}}", members.join(",")));
            assert_eq!(all.items, [Ok("web/a@1".into())], "{order:?}");
            assert_eq!(all.end, Ok(("7".into(), Some("next".into()))), "{order:?}");
        }
    }
}

#[test]
fn white_space_is_allowed_where_json_has_it() {
    let pretty = serde_json::to_string_pretty(&list(&json!([pod("a", 1)]))).unwrap();
    let compact = list(&json!([pod("a", 1)])).to_string();
    assert_eq!(read(format!("\r\n\t {pretty}\n\n")), read(compact));
}

#[test]
fn no_items_are_no_items() {
    for items in [json!([]), Value::Null] {
        let all = read(list(&items).to_string());
        assert_eq!((all.items.len(), all.end), (0, Ok(("7".into(), None))));
    }
    // An empty token means none, as custom resources have it.
    let all = read(
        r#"{"apiVersion":"v1","items":[],"kind":"PodList","metadata":{"continue":"","resourceVersion":"7"}}"#,
    );
    assert_eq!(all.end, Ok(("7".into(), None)));
}

#[test]
fn a_list_without_a_version_says_so_and_leaves_it_to_the_reflector() {
    for metadata in ["{}", "null", r#"{"resourceVersion":null}"#, r#"{"resourceVersion":""}"#] {
        let all = read(format!(r#"{{"kind":"PodList","metadata":{metadata},"items":[]}}"#));
        assert_eq!(all.end, Ok((String::new(), None)), "{metadata}");
    }
    let all = read(r#"{"kind":"PodList","metadata":{"resourceVersion":7},"items":[]}"#);
    assert!(all.error().contains("metadata of the list"), "{all:?}");
}

#[test]
fn b12_a_bad_item_is_one_bad_item() {
    let bad = [json!(null), json!(7), json!({}), json!({"metadata": null}), json!([1])];
    for bad in bad {
        let all = read(list(&json!([pod("a", 1), bad, pod("b", 2)])).to_string());
        assert_eq!(all.items.len(), 3, "{bad}");
        assert!(all.items[1].is_err() && all.items[0].is_ok() && all.items[2].is_ok(), "{bad}");
        assert!(all.end.is_ok(), "{bad}");
    }
    // Not even valid JSON, as long as its end can be found.
    let text = list(&json!([pod("a", 1), {"bad": "x"}, pod("b", 2)])).to_string();
    let all = read(text.replace(r#"{"bad":"x"}"#, r#"{"bad":tru e,,}"#));
    assert_eq!((all.items.len(), all.items[1].is_err(), all.end.is_ok()), (3, true, true));
}

#[test]
fn r31_items_say_what_they_are_or_are_what_the_list_says() {
    let types_after = |json: &str, target: Target| {
        let mut reader = reader(Call { verb: Verb::List, target: Arc::new(target) });
        push(&mut reader, json.as_bytes());
        assert!(reader.next().is_none());
        reader.list.types.map(|types| (types.api_version, types.kind))
    };
    let pods = Target::from_path("/api/v1/pods", None).unwrap();
    let pod = Some(("v1".into(), "Pod".into()));
    let said = r#"{"kind":"PodList","apiVersion":"v1","items":["#;
    assert_eq!(types_after(said, pods.clone()), pod);
    let known = Target { kind: Some("Pod".into()), ..pods.clone() };
    assert_eq!(types_after(r#"{"items":["#, known), pod);
    assert_eq!(types_after(r#"{"items":["#, pods.clone()), None);
    // A `List` can contain anything.
    assert_eq!(types_after(r#"{"kind":"List","apiVersion":"v1","items":["#, pods), None);
}

#[test]
fn r31_items_are_not_checked_for_their_kind() {
    let mut other = pod("b", 2);
    (other["kind"], other["apiVersion"]) = (json!("Job"), json!("batch/v1"));
    let all = read(list(&json!([pod("a", 1), other])).to_string());
    assert_eq!(all.items, ["web/a@1", "web/b@2"].map(|item| Ok(item.to_owned())));
    assert!(all.end.is_ok());
}

#[test]
fn r28_a_table_is_an_error_before_it_is_read() {
    let mut reader = reader(call());
    push(&mut reader, br#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[],"items":["#);
    let error = reader.next().unwrap().unwrap_err().to_string();
    assert!(error.contains(r#""Table" of "meta.k8s.io/v1", expected "Pod" of "v1""#), "{error}");
    let all = read(r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"rows":[]}"#);
    assert!(all.error().contains("Table"), "{all:?}");
}

#[test]
fn what_is_no_list_of_that_resource_is_an_error() {
    for (json, said) in [
        (r"{}", "without a kind"),
        (r#"{"items":[]}"#, "without a kind"),
        (r#"{"kind":"PodList","apiVersion":"v1"}"#, "\"PodList\" and has no items"),
        (r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#, "\"Pod\" and has no items"),
        (r#"{"kind":"PodList","apiVersion":"v2","items":[]}"#, "\"PodList\" of \"v2\""),
        (r#"{"items":[],"kind":"JobList","apiVersion":"batch/v1"}"#, "\"JobList\" of \"batch/v1\""),
        (
            r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[]}"#,
            "PartialObjectMetadataList",
        ),
        (r#"{"kind":"PodList","items":{}}"#, "the items are no list"),
        (r#"{"kind":"PodList","items":[],"items":[]}"#, "twice"),
        ("[]", "'{' expected at byte 0"),
        ("<html><body>login</body></html>", "'{' expected at byte 0"),
        (r#"{"kind":"PodList","items":[],}"#, "a key expected at byte 29"),
        (r#"{"kind" "PodList"}"#, "':' expected at byte 8"),
        (r#"{"kind":}"#, "a value expected at byte 8"),
        (r#"{"items":[{} {}]}"#, "',' or ']' expected at byte 13"),
        (r#"{"items":[,]}"#, "a value expected at byte 10"),
    ] {
        let all = read(json);
        assert!(all.error().contains(said), "{json}: {}", all.error());
        assert!(all.error().starts_with("cannot list pods in namespace \"web\": "), "{json}");
    }
}

#[test]
fn a_status_instead_of_a_list_is_quoted() {
    let all = read(
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
            "message":"etcd is\nnot there","reason":"Timeout","code":504}"#,
    );
    let said = "a Status came instead of a list: Timeout etcd is not there";
    assert!(all.error().ends_with(said), "{}", all.error());
}

#[test]
fn metadata_only_lists_are_those_or_whole_ones() {
    let meta = Target { metadata_only: true, ..(*call().target).clone() };
    let meta = Call { verb: Verb::List, target: Arc::new(meta) };
    for head in [
        r#""kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1""#,
        r#""kind":"PodList","apiVersion":"v1""#,
    ] {
        let json = format!(r#"{{{head},"metadata":{{}},"items":[{}]}}"#, pod("a", 1));
        let all = read_with(reader(meta.clone()), [json.as_bytes()]);
        assert_eq!((all.items.len(), all.end.is_ok()), (1, true), "{head}");
    }
}

#[test]
fn what_follows_a_list_is_an_error() {
    let text = list(&json!([])).to_string();
    for more in ["x", "{}", "\n<html>", "\0"] {
        let all = read(format!("{text}{more}"));
        assert!(all.error().contains("the end expected"), "{all:?}");
    }
    assert!(read(format!("{text} \r\n")).end.is_ok());
}

/// Cuts the text at random places.
fn cut(text: &[u8], mut places: Vec<prop::sample::Index>) -> Vec<&[u8]> {
    places.sort_unstable_by_key(|place| place.index(text.len() + 1));
    let mut chunks = Vec::new();
    let mut start = 0;
    for place in places {
        let end = place.index(text.len() + 1);
        chunks.push(&text[start..end]);
        start = end;
    }
    chunks.push(&text[start..]);
    chunks
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,4}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_list() -> impl Strategy<Value = String> {
    let item = ("[a-z]{1,5}", any::<u32>(), any_json()).prop_map(|(name, version, spec)| {
        let mut item = pod(&name, version);
        item["spec"] = spec;
        item
    });
    let items = prop::collection::vec(prop_oneof![9 => item, 1 => any_json()], 0..8);
    (items, any::<bool>()).prop_map(|(items, pretty)| {
        let list = list(&Value::from(items));
        if pretty { serde_json::to_string_pretty(&list).unwrap() } else { list.to_string() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_thousand_items_in_chunks_of_any_size(sizes in prop::collection::vec(1..9000_usize, 1..20)) {
        let items: Vec<_> = (0..1000).map(|n| pod(&format!("pod-{n}"), n)).collect();
        let text = list(&Value::from(items)).to_string();
        let mut sizes = sizes.iter().cycle();
        let mut rest = text.as_bytes();
        let chunks = std::iter::from_fn(|| {
            let size = rest.len().min(*sizes.next()?);
            let (chunk, after) = rest.split_at(size);
            rest = after;
            (!chunk.is_empty()).then_some(chunk)
        });
        let all = read_with(reader(call()), chunks);
        prop_assert_eq!(all.items.len(), 1000);
        for (n, item) in all.items.iter().enumerate() {
            prop_assert_eq!(item, &Ok(format!("web/pod-{n}@{n}")));
        }
        prop_assert!(all.end.is_ok());
    }
}

proptest! {
    #[test]
    fn chunks_do_not_change_what_is_read(
        text in any_list(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let whole = read(&text);
        let expected = serde_json::from_str::<Value>(&text).unwrap();
        prop_assert_eq!(whole.items.len(), expected["items"].as_array().unwrap().len());
        prop_assert_eq!(&whole.end, &Ok(("7".into(), None)));
        let bytes = text.as_bytes();
        prop_assert_eq!(&read_with(reader(call()), cut(bytes, places)), &whole);
        prop_assert_eq!(&read_with(reader(call()), bytes.chunks(1)), &whole);
    }

    /// A truncated list is an error.
    #[test]
    fn a_list_that_breaks_off_has_no_end(text in any_list(), place: prop::sample::Index) {
        let cut = place.index(text.len());
        let all = read(&text.as_bytes()[..cut]);
        prop_assert!(all.error().contains("breaks off after"), "{:?}", all);
    }

    #[test]
    fn any_change_is_read_without_a_panic(
        text in any_list(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut bytes = text.into_bytes();
        for (place, byte) in changes {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        let whole = read(&bytes);
        let pieces = read_with(reader(call()), cut(&bytes, places));
        // How many items precede an error may differ, but not the items.
        prop_assert_eq!(pieces.end.is_ok(), whole.end.is_ok());
        prop_assert_eq!(pieces.items, whole.items);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
        prop_assert!(read(bytes).end.is_err());
    }
}

#[test]
fn i20_errors_do_not_repeat_what_is_in_objects() {
    let secret = "c2VjcmV0";
    let item = json!({"metadata": {"name": "a"}, "data": {"password": secret}}).to_string();
    for text in [
        format!(r#"{{"kind":"PodList","items":[{item}{item}]}}"#),
        format!(r#"{{"kind":"PodList","items":[{item},{}"#, &item[..item.len() - 4]),
        format!(r#"{{"kind":"PodList","items":"{secret}"}}"#),
        format!(r#"{{"kind":"PodList","{secret}" 7}}"#),
        format!(r#"{{"kind":"PodList","items":[]}} {secret}"#),
        format!(r#"{{"kind":"PodList","items":[{{"{secret}":"{secret}"}}]}} x"#),
        secret.to_owned(),
    ] {
        let all = read(&text);
        assert!(!all.error().contains(secret), "{}", all.error());
        let items = all.items.iter().filter_map(|item| item.as_ref().err());
        assert!(!items.fold(String::new(), |texts, text| texts + text).contains(secret));
    }
}
