mod bounded;
mod limits;
mod protobuf;
mod skipped;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Transform;
use crate::wire::{Target, Verb};

fn target() -> Target {
    Target { kind: Some("Pod".into()), ..Target::from_path("/api/v1/pods", None).unwrap() }
}

fn reader(target: Target) -> WatchReader {
    reader_of(target, Encoding::Json)
}

fn reader_of(target: Target, encoding: Encoding) -> WatchReader {
    let call = Call { verb: Verb::Watch, target: Arc::new(target) };
    let packer = Packer::new(Transform::default(), None, false);
    WatchReader::new(call, Arc::new(packer), encoding)
}

fn shown(item: Result<WatchItem>) -> Result<String, Error> {
    let change =
        |what, object: &Object| format!("{what} {}@{}", object.key(), object.resource_version());
    Ok(match item? {
        WatchItem::Added(object) => change("Added", &object),
        WatchItem::Modified(object) => change("Modified", &object),
        WatchItem::Deleted(object) => change("Deleted", &object),
        WatchItem::Unreadable { error, resource_version, deleted } => {
            assert!(error.is_unreadable());
            let key = error.key().map(ToString::to_string).unwrap_or_default();
            let what = if deleted { "Deleted" } else { "Changed" };
            format!("{what} unreadable {key}@{resource_version}")
        }
        WatchItem::Bookmark { resource_version, initial_events_end: false } => {
            format!("Bookmark@{resource_version}")
        }
        WatchItem::Bookmark { resource_version, .. } => format!("End@{resource_version}"),
    })
}

/// Returns the events up to the end or an error, which comes last.
fn read_with<'a>(
    mut reader: WatchReader,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<String>, Option<Error>) {
    let mut events = Vec::new();
    let mut taken = |part| match shown(part) {
        Ok(event) => {
            events.push(event);
            None
        }
        Err(error) => Some(error),
    };
    for chunk in chunks {
        reader.push(Bytes::copy_from_slice(chunk));
        while let Some(part) = reader.next() {
            if let Some(error) = taken(part) {
                reader.push(Bytes::from_static(b"{}\n"));
                assert!(reader.next().is_none() && reader.finish().is_none());
                return (events, Some(error));
            }
        }
    }
    let error = reader.finish().and_then(taken);
    (events, error)
}

fn read(text: impl AsRef<[u8]>) -> (Vec<String>, Option<Error>) {
    read_with(reader(target()), [text.as_ref()])
}

fn events(text: impl AsRef<[u8]>) -> Vec<String> {
    let (events, error) = read(text);
    assert!(error.is_none(), "{error:?}");
    events
}

fn error(text: impl AsRef<[u8]>) -> Error {
    read(text).1.expect("an error")
}

fn event(event_type: &str, name: &str, version: u32) -> String {
    let object = json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": name, "resourceVersion": version.to_string()},
        "spec": {"text": "ü \" \\n \n \u{1F600}"}});
    format!(r#"{{"type":"{event_type}","object":{object}}}"#)
}

#[test]
fn events_are_lines() {
    let text = [event("ADDED", "a", 1), event("MODIFIED", "a", 2), event("DELETED", "a", 3)];
    let expected = ["Added a@1", "Modified a@2", "Deleted a@3"];
    assert_eq!(events(text.join("\n") + "\n"), expected);
    // Fault 25: with any line ending, and with none after the last line.
    assert_eq!(events(text.join("\n")), expected);
    assert_eq!(events(text.join("\r\n") + "\r\n"), expected);
    assert_eq!(events(format!("\n \r\n{}\n\n\t\n", text.join("\n\n"))), expected);
    assert_eq!(events(""), [""; 0]);
    assert_eq!(events("\n\n"), [""; 0]);
}

#[test]
fn type_and_object_come_in_any_order_and_with_others() {
    let object = r#"{"metadata":{"name":"a","resourceVersion":"1"}}"#;
    for line in [
        format!(r#"{{"type":"ADDED","object":{object}}}"#),
        format!(r#" {{ "object" : {object} , "type" : "ADDED" }} "#),
        format!(r#"{{"new":[{{}}],"t\u0079pe":"\u0041DDED","object":{object},"x":null}}"#),
    ] {
        assert_eq!(events(&line), ["Added a@1"], "{line}");
    }
}

#[test]
fn the_usual_form_is_no_other_than_the_rest() {
    let object =
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}"#;
    let line = |object: &str, more: &str| format!(r#"{{"type":"ADDED","object":{object}{more}"#);
    for more in ["}", "}\r", "} ", r#","x":{}}"#, r#","x":"}"}"#] {
        assert_eq!(events(line(object, more)), ["Added a@1"], "{more}");
    }
    for (more, said) in [
        ("}}", "not JSON at line 1, column"),
        ("} {}", "not JSON"),
        (r#","object":{}}"#, "not of the expected type at line 1, column"),
        (r"{}}", "not JSON"),
        (r"]}", "not JSON"),
    ] {
        let error = error(line(object, more));
        assert!(error.to_string().contains(said), "{more}: {error}");
    }
}

#[test]
fn w2_only_the_annotation_true_ends_the_initial_events() {
    let bookmark = |metadata: &str| {
        let object = format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{metadata}}}"#);
        format!(r#"{{"type":"BOOKMARK","object":{object}}}"#)
    };
    let annotated = |value: &str| {
        let annotations = format!(r#"{{"a":"b","k8s.io/initial-events-end":{value}}}"#);
        bookmark(&format!(r#"{{"resourceVersion":"7","annotations":{annotations}}}"#))
    };
    assert_eq!(events(annotated(r#""true""#)), ["End@7"]);
    for value in [r#""false""#, r#""True""#, r#""""#, "true", "null", "1", "{}"] {
        assert_eq!(events(annotated(value)), ["Bookmark@7"], "{value}");
    }
    for metadata in [r#"{"resourceVersion":"7"}"#, r#"{"resourceVersion":"7","annotations":null}"#]
    {
        assert_eq!(events(bookmark(metadata)), ["Bookmark@7"]);
    }
}

#[test]
fn r47_an_error_event_is_its_status() {
    let error = error(
        r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},
            "status":"Failure","message":"too old resource version: 1 (9)","reason":"Expired",
            "code":410}}"#
            .replace('\n', " "),
    );
    assert!(error.is_expired());
    assert!(matches!(error.cause(), Cause::Api { in_stream: true, .. }));
    assert!(error.to_string().starts_with("cannot watch pods cluster-wide any longer (410)"));
    assert!(error.to_string().contains("too old resource version: 1 (9)"), "{error}");
    for object in ["{}", "7", r#"{"kind":"Pod"}"#] {
        let line = format!(r#"{{"type":"ERROR","object":{object}}}"#);
        assert!(self::error(line).to_string().contains("without a Status"));
    }
}

#[test]
fn an_object_that_cannot_be_kept_is_a_value_and_the_watch_goes_on() {
    let text = [
        event("ADDED", "a", 1),
        r#"{"type":"DELETED","object":{"metadata":{"resourceVersion":"2"}}}"#.into(),
        r#"{"type":"ADDED","object":{"metadata":7}}"#.into(),
        r#"{"type":"MODIFIED","object":[]}"#.into(),
        event("ADDED", "b", 3),
    ];
    let expected = [
        "Added a@1",
        "Deleted unreadable @2",
        "Changed unreadable @",
        "Changed unreadable @",
        "Added b@3",
    ];
    assert_eq!(events(text.join("\n")), expected);
}

#[test]
fn metadata_only_events_are_those_or_whole_ones() {
    let partial = event("ADDED", "a", 1)
        .replace(r#""Pod""#, r#""PartialObjectMetadata""#)
        .replace(r#""v1""#, r#""meta.k8s.io/v1""#);
    let text = [partial, event("ADDED", "b", 2)].join("\n");
    let meta = || reader(Target { metadata_only: true, ..target() });
    let (events, error) = read_with(meta(), [text.as_bytes()]);
    assert_eq!((events.len(), error.is_none()), (2, true), "{error:?}");
}

#[test]
fn what_is_no_event_is_an_error() {
    for (line, said) in [
        ("x", "not a JSON object"),
        ("[]", "not a JSON object"),
        ("{}", "no type or no object"),
        (r#"{"type":"ADDED"}"#, "no type or no object"),
        (r#"{"object":{}}"#, "no type or no object"),
        (r#"{"type":7,"object":{}}"#, "not of the expected type"),
        (r#"{"type":"ADDED","object":null}"#, "no type or no object"),
        (r#"{"type":"ADDED","type":"ADDED","object":{}}"#, "not of the expected type"),
        (r#"{"type":"ADDED","object":{},"object":{}}"#, "not of the expected type"),
        (r#"{"type":"ADDED","object":{"a":tru}}"#, "not JSON"),
        (r#"{"type":"ADDED","object":{}} {}"#, "not JSON"),
        (r#"{"kind":"Status","apiVersion":"v1","code":500}"#, "an object and not an event"),
    ] {
        let text = format!("{}\n{line}\n", event("ADDED", "a", 1));
        let (events, error) = read(text);
        let error = error.unwrap();
        assert_eq!(events.len(), 1);
        assert!(error.to_string().contains(said), "{line}: {error}");
        assert!(error.to_string().starts_with("cannot watch pods cluster-wide any longer: "));
        assert!(matches!(error.cause(), Cause::Protocol));
    }
    // Fault 26.
    let mut text = event("ADDED", "a", 1).into_bytes();
    let at = text.iter().position(|byte| *byte == 0xC3).unwrap();
    text[at] = 0xFF;
    assert!(error(text).to_string().contains("not UTF-8"));
}

#[test]
fn i8_an_object_that_is_too_deep_is_one_bad_object() {
    // Fault 28.
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let metadata = format!(r#"{{"managedFields":{deep},"name":"b","resourceVersion":"2"}}"#);
    let bad = format!(r#"{{"type":"DELETED","object":{{"metadata":{metadata}}}}}"#);
    let text = [event("ADDED", "a", 1), bad, event("ADDED", "c", 3)].join("\n");
    assert_eq!(events(text), ["Added a@1", "Deleted unreadable b@2", "Added c@3"]);
}

#[test]
fn i20_errors_do_not_repeat_what_is_in_objects() {
    let secret = "c2VjcmV0";
    for line in [
        format!(r#"{{"type":"ADDED","object":{{"{secret}":"{secret}"}}}}"#),
        format!(r#"{{"type":"ADDED","object":{{"{secret}":"{secret}"}}"#),
        format!(r#"{{"type":"ADDED","object":{{"{secret}":{secret}}}}}"#),
        format!(r#"{{"type":"ERROR","object":{{"{secret}":"{secret}"}}}}"#),
        format!(r#"{{"type":"BOOKMARK","object":{{"{secret}":"{secret}"}}}}"#),
        format!("{secret}\n"),
    ] {
        let mut reader = reader(target());
        reader.push(Bytes::from(line.clone()));
        let shown = format!("{:?} {:?}", reader.next(), reader.finish());
        assert!(shown.contains("Err"), "{shown}");
        assert!(!shown.contains(secret), "{shown}");
    }
}

fn any_stream() -> impl Strategy<Value = (String, usize)> {
    let line = prop_oneof![
        4 => ("[a-z]{1,9}", any::<u32>()).prop_map(|(name, version)| event("ADDED", &name, version)),
        1 => any::<u32>().prop_map(|version| {
            json!({"type": "BOOKMARK", "object": {"metadata": {
                "resourceVersion": version.to_string()}}}).to_string()
        }),
        1 => Just(r#"{"type":"DELETED","object":{}}"#.to_owned()),
    ];
    let ending = prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n"), Just(" \n\t\r\n")];
    (prop::collection::vec((line, ending), 0..12), any::<bool>()).prop_map(|(lines, whole)| {
        let mut text: String = lines.iter().flat_map(|(line, end)| [line.as_str(), end]).collect();
        if !whole {
            text.truncate(text.trim_end().len());
        }
        (text, lines.len())
    })
}

proptest! {
    #[test]
    fn chunks_do_not_change_what_is_read(
        (text, count) in any_stream(),
        sizes in prop::collection::vec(1..200_usize, 1..20),
    ) {
        let whole = events(&text);
        prop_assert_eq!(whole.len(), count);
        let mut sizes = sizes.iter().cycle();
        let mut rest = text.as_bytes();
        let chunks = std::iter::from_fn(|| {
            let (chunk, after) = rest.split_at(rest.len().min(*sizes.next()?));
            rest = after;
            (!chunk.is_empty()).then_some(chunk)
        });
        prop_assert_eq!(&read_with(reader(target()), chunks).0, &whole);
        // Fault 24: inside every UTF-8 sequence too.
        prop_assert_eq!(&read_with(reader(target()), text.as_bytes().chunks(1)).0, &whole);
    }

    /// An event that arrived in part does not count.
    #[test]
    fn a_stream_that_breaks_off_has_its_whole_events((text, _) in any_stream(), place: prop::sample::Index) {
        prop_assume!(!text.is_empty());
        let cut = &text.as_bytes()[..place.index(text.len())];
        let (got, error) = read(cut);
        let all = events(&text);
        prop_assert_eq!(&got[..], &all[..got.len()]);
        if let Some(error) = error {
            prop_assert!(matches!(error.cause(), Cause::Broken), "{}", error);
            prop_assert!(got.len() < all.len());
        }
    }

    #[test]
    fn any_change_is_read_without_a_panic(
        (text, _) in any_stream(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        size in 1..100_usize,
    ) {
        prop_assume!(!text.is_empty());
        let mut bytes = text.into_bytes();
        for (place, byte) in changes {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        let whole = read(&bytes);
        let pieces = read_with(reader(target()), bytes.chunks(size));
        prop_assert_eq!(pieces.0, whole.0);
        prop_assert_eq!(pieces.1.is_some(), whole.1.is_some());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
        let (got, _) = read(bytes);
        prop_assert!(got.is_empty());
    }
}
