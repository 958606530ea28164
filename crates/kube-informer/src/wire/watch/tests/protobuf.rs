//! Watches in protobuf.

use kube_schema::{WatchFrame, to_vec};
use serde_json::Value;

use super::*;

fn reader() -> WatchReader {
    reader_of(target(), Encoding::Protobuf)
}

fn read(bytes: impl AsRef<[u8]>) -> (Vec<String>, Option<Error>) {
    read_with(reader(), [bytes.as_ref()])
}

fn frame(event_type: &str, object: &[u8]) -> Vec<u8> {
    WatchFrame { event_type, object }.to_vec()
}

fn encoded(event_type: &str, object: &Value) -> Vec<u8> {
    frame(event_type, &to_vec(object).unwrap())
}

fn pod(name: &str, version: u32) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1",
           "metadata": {"name": name, "resourceVersion": version.to_string()},
           "spec": {"nodeName": "ü \u{1F600}", "containers": [{"name": "c"}]}})
}

fn bookmark(metadata: &Value) -> Vec<u8> {
    encoded("BOOKMARK", &json!({"kind": "Pod", "apiVersion": "v1", "metadata": metadata}))
}

fn some_events() -> Vec<u8> {
    [
        encoded("ADDED", &pod("a", 1)),
        encoded("MODIFIED", &pod("a", 2)),
        bookmark(&json!({"resourceVersion": "3"})),
        encoded("DELETED", &pod("a", 4)),
    ]
    .concat()
}

const SOME_EVENTS: [&str; 4] = ["Added a@1", "Modified a@2", "Bookmark@3", "Deleted a@4"];

fn events(bytes: impl AsRef<[u8]>) -> Vec<String> {
    let (events, error) = read(bytes);
    assert!(error.is_none(), "{error:?}");
    events
}

#[test]
fn events_are_frames() {
    assert_eq!(events(some_events()), SOME_EVENTS);
    assert_eq!(events(b""), [""; 0]);
}

#[test]
fn chunks_do_not_change_what_is_read() {
    let bytes = some_events();
    for first in 0..=bytes.len() {
        let (begin, rest) = bytes.split_at(first);
        let (events, error) = read_with(reader(), [begin, rest]);
        assert_eq!((&events[..], error.is_none()), (&SOME_EVENTS.map(String::from)[..], true));
    }
    for size in 1..20 {
        assert_eq!(read_with(reader(), bytes.chunks(size)).0, SOME_EVENTS, "chunks of {size}");
    }
}

#[test]
fn a_stream_that_breaks_off_has_its_whole_events() {
    let bytes = some_events();
    let mut ends = vec![0];
    while let Some(length) = bytes.get(ends[ends.len() - 1]..).and_then(|rest| rest.first_chunk()) {
        ends.push(ends[ends.len() - 1] + 4 + u32::from_be_bytes(*length) as usize);
    }
    assert_eq!(ends.len(), 5);
    for cut in 0..bytes.len() {
        let (events, error) = read(&bytes[..cut]);
        let whole = ends.iter().filter(|end| (1..=cut).contains(*end)).count();
        assert_eq!(events, SOME_EVENTS[..whole], "cut at {cut}");
        if ends.contains(&cut) {
            assert!(error.is_none(), "cut at {cut}: {error:?}");
        } else {
            let error = error.unwrap();
            assert!(error.to_string().ends_with(&format!("breaks off at byte {cut}")), "{error}");
            assert!(matches!(error.cause(), Cause::Broken));
        }
    }
}

#[test]
fn only_the_annotation_true_ends_the_initial_events() {
    let annotated = |value: &str| {
        let annotations = json!({"a": "b", "k8s.io/initial-events-end": value});
        bookmark(&json!({"resourceVersion": "7", "annotations": annotations}))
    };
    assert_eq!(events(annotated("true")), ["End@7"]);
    for value in ["false", "True", ""] {
        assert_eq!(events(annotated(value)), ["Bookmark@7"], "{value}");
    }
}

#[test]
fn bookmark_that_cannot_be_used_is_skipped_unless_it_ends_the_initial_events() {
    let job = |metadata: &Value| {
        let job = json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata});
        encoded("BOOKMARK", &job)
    };
    let end = json!({"k8s.io/initial-events-end": "true"});
    for frame in [bookmark(&json!({})), job(&json!({"resourceVersion": "9"}))] {
        let bytes = [frame, encoded("ADDED", &pod("b", 8))].concat();
        assert_eq!(events(bytes), ["Changed unreadable @", "Added b@8"]);
    }
    for (frame, said) in [
        (bookmark(&json!({"annotations": end})), "a bookmark is without a resourceVersion"),
        (
            job(&json!({"resourceVersion": "9", "annotations": end})),
            r#"of kind "Job" of "batch/v1""#,
        ),
    ] {
        let error = read(frame).1.unwrap();
        assert!(matches!(error.cause(), Cause::Protocol));
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn an_error_event_is_its_status() {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired",
                        "message": "too old resource version: 1 (9)", "code": 410});
    let protobuf = read(encoded("ERROR", &status)).1.unwrap();
    assert!(protobuf.is_expired());
    let line = format!(r#"{{"type":"ERROR","object":{status}}}"#);
    assert_eq!(protobuf.to_string(), super::error(line).to_string());
    assert!(matches!(protobuf.cause(), Cause::Api { in_stream: true, .. }));
    let error = read(encoded("ERROR", &pod("a", 1))).1.unwrap();
    assert!(error.to_string().contains("without a Status"), "{error}");
}

#[test]
fn an_object_of_another_kind_and_an_unknown_type_are_skipped() {
    let job = json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "a"}});
    let widget =
        kube_schema::Envelope { api_version: "example.com/v1", kind: "Widget", raw: b"" }.to_vec();
    for (frame, said) in [
        (
            encoded("ADDED", &job),
            r#"an event is of kind "Job" of "batch/v1", expected "Pod" of "v1""#,
        ),
        (
            frame("ADDED", &widget),
            r#"an event is of kind "Widget" of "example.com/v1", expected "Pod" of "v1""#,
        ),
        (encoded("PATCHED", &pod("a", 1)), r#"an event is of the unknown type "PATCHED""#),
        (encoded("", &pod("a", 1)), r#"an event is of the unknown type """#),
    ] {
        let mut reader = reader();
        reader.push(Bytes::from([frame, encoded("ADDED", &pod("b", 8))].concat()));
        let Some(Ok(WatchItem::Unreadable { error, resource_version, .. })) = reader.next() else {
            panic!("{said}")
        };
        assert_eq!((error.to_string(), resource_version.as_str()), (said.to_owned(), ""));
        assert_eq!(error.key(), None);
        assert!(matches!(reader.next(), Some(Ok(WatchItem::Added(_)))), "the watch goes on");
    }
}

#[test]
fn an_object_that_cannot_be_kept_is_a_value_and_the_watch_goes_on() {
    let whole = to_vec(&pod("a", 2)).unwrap();
    let whole = kube_schema::Envelope::parse(&whole).unwrap();
    let broken = [whole.raw, b"\x12\x05x"].concat();
    let object = |raw| kube_schema::Envelope { raw, ..whole }.to_vec();
    let bytes = [
        frame("DELETED", &object(&broken)),
        frame("ADDED", &object(b"\xff")),
        frame("ADDED", &object(b"")),
        encoded("ADDED", &pod("b", 3)),
    ]
    .concat();
    let expected =
        ["Deleted unreadable a@2", "Changed unreadable @", "Changed unreadable @", "Added b@3"];
    assert_eq!(events(bytes), expected);
}

#[test]
fn an_object_that_does_not_say_its_kind_is_what_was_asked_for() {
    let whole = to_vec(&pod("a", 2)).unwrap();
    let raw = kube_schema::Envelope::parse(&whole).unwrap().raw;
    let unnamed = kube_schema::Envelope { api_version: "", kind: "", raw }.to_vec();
    assert_eq!(events(frame("ADDED", &unnamed)), ["Added a@2"]);
}

#[test]
fn metadata_only_events_are_those_or_whole_ones() {
    let partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                         "metadata": {"name": "a", "resourceVersion": "1"}});
    let bytes = [encoded("ADDED", &partial), encoded("ADDED", &pod("b", 2))].concat();
    let meta = reader_of(Target { metadata_only: true, ..target() }, Encoding::Protobuf);
    let (events, error) = read_with(meta, [&bytes[..]]);
    assert_eq!((events.len(), error.is_none()), (2, true), "{events:?} {error:?}");
}

#[test]
fn what_is_no_event_is_an_error() {
    for (event, said) in [
        (&b""[..], "no type or no object"),
        (b"\x0a\x05ADDED", "no type or no object"),
        (b"\x0a\x05ADDED\x12\0", "no type or no object"),
        (b"\x0a\x05ADDED\x12\x04\x0a\x02{}", "does not begin as Kubernetes' bodies do"),
        (b"\xff", "ends within a value"),
        (b"\x0a\x01\xff", "not UTF-8"),
    ] {
        let length = u32::try_from(event.len()).unwrap().to_be_bytes();
        let bytes = [&encoded("ADDED", &pod("a", 1))[..], &length, event].concat();
        let (events, error) = read(&bytes);
        let error = error.unwrap().to_string();
        assert_eq!(events, ["Added a@1"], "{event:?}");
        assert!(error.contains(said), "{event:?}: {error}");
        let begin = "cannot watch pods cluster-wide any longer: the event at byte ";
        assert!(error.starts_with(begin), "{error}");
    }
}

#[test]
fn an_event_over_the_limit_is_refused_by_its_length() {
    for (length, begin, refused) in [
        (OBJECT_BYTES_MAX + ENVELOPE_BYTES_MAX, &b"\x0a\x05ADDED"[..], true),
        (OBJECT_BYTES_MAX, b"\x0a\x05ADDED", false),
        (u32::MAX as usize, b"", true),
        (STATUS_BYTES_MAX + ENVELOPE_BYTES_MAX, b"\x0a\x05ERROR", true),
        (STATUS_BYTES_MAX, b"\x0a\x05ERROR", false),
    ] {
        let mut reader = reader();
        let length = u32::try_from(length).unwrap().to_be_bytes();
        reader.push(Bytes::from([&length[..], begin].concat()));
        let Some(item) = reader.next() else {
            assert!(!refused, "{begin:?}");
            continue;
        };
        let error = item.unwrap_err().to_string();
        assert!(refused && error.contains("begins at byte 0 is over the limit of"), "{error}");
        assert_eq!(reader.pending.capacity(), 0, "nothing is kept after an error");
    }
    // The limit also holds for one that arrives in one piece, or with the type after the object.
    let status = json!({"kind": "Status", "apiVersion": "v1", "code": 410,
                        "message": "x".repeat(STATUS_BYTES_MAX)});
    let status = to_vec(&status).unwrap();
    let mut event = Vec::new();
    let mut extension = Vec::new();
    kube_schema::push_field(&mut extension, 1, &status);
    kube_schema::push_field(&mut event, 2, &extension);
    kube_schema::push_field(&mut event, 1, b"ERROR");
    let length = u32::try_from(event.len()).unwrap().to_be_bytes();
    for bytes in [frame("ERROR", &status), [&length[..], &event].concat()] {
        let error = read(bytes).1.unwrap().to_string();
        assert!(error.contains("ERROR event") && error.contains("over the limit"), "{error}");
    }
}

#[test]
fn a_large_event_does_not_leave_a_large_buffer() {
    let mut reader = reader();
    let mut large = pod("a", 1);
    large["metadata"]["annotations"] = json!({"large": "x".repeat(4 << 20)});
    for chunk in encoded("ADDED", &large).chunks(64 << 10) {
        reader.push(Bytes::copy_from_slice(chunk));
        while reader.next().is_some() {}
    }
    assert!(reader.pending.capacity() <= 1 << 20, "{}", reader.pending.capacity());
}

#[test]
fn errors_do_not_repeat_what_is_in_objects() {
    let secret = "c2VjcmV0";
    let pod = |raw| kube_schema::Envelope { api_version: "v1", kind: "Pod", raw }.to_vec();
    for bytes in [
        frame("ADDED", secret.as_bytes()),
        frame("ADDED", &pod(secret.as_bytes())),
        frame("ERROR", &pod(secret.as_bytes())),
        frame("BOOKMARK", &pod(secret.as_bytes())),
        secret.as_bytes().to_vec(),
    ] {
        let mut reader = reader();
        reader.push(Bytes::from(bytes));
        let shown = format!("{:?} {:?}", reader.next(), reader.finish());
        assert!(shown.contains("Err") && !shown.contains(secret), "{shown}");
    }
}

proptest! {
    #[test]
    fn any_change_is_read_without_a_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        size in 1..200_usize,
    ) {
        let mut bytes = some_events();
        for (place, byte) in changes {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        let (whole, error) = read(&bytes);
        let (pieces, other) = read_with(reader(), bytes.chunks(size));
        prop_assert_eq!(whole, pieces);
        prop_assert_eq!(error.is_some(), other.is_some());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
        let _ = read(&bytes);
        let _ = read(frame("ADDED", &bytes));
        let object = kube_schema::Envelope { api_version: "v1", kind: "Pod", raw: &bytes }.to_vec();
        for event_type in ["ADDED", "BOOKMARK", "ERROR", "x"] {
            let _ = read(frame(event_type, &object));
        }
    }
}
