//! Events that do not affect the resource.

use super::*;

#[test]
fn r51_a_bookmark_that_cannot_be_used_is_skipped_unless_it_ends_the_initial_events() {
    let read = |types: &str, metadata: &str| {
        let bookmark =
            format!(r#"{{"type":"BOOKMARK","object":{{{types},"metadata":{metadata}}}}}"#);
        read(format!("{bookmark}\n{}", event("ADDED", "b", 8)))
    };
    let (pod, job) =
        (r#""kind":"Pod","apiVersion":"v1""#, r#""kind":"Job","apiVersion":"batch/v1""#);
    for (types, metadata) in [
        (pod, "{}"),
        (pod, "null"),
        (pod, "7"),
        (pod, r#"{"resourceVersion":""}"#),
        (pod, r#"{"resourceVersion":7}"#),
        (job, r#"{"resourceVersion":"9"}"#),
    ] {
        let (events, error) = read(types, metadata);
        assert_eq!(events, ["Changed unreadable @", "Added b@8"], "{types} {metadata}");
        assert!(error.is_none(), "{error:?}");
    }
    // Without it, the initial events would never end.
    let end = r#""annotations":{"k8s.io/initial-events-end":"true"}"#;
    for (types, metadata, said) in [
        (pod, format!("{{{end}}}"), "a bookmark is without a resourceVersion"),
        (pod, format!(r#"{{"resourceVersion":7,{end}}}"#), "without a resourceVersion"),
        (job, format!(r#"{{"resourceVersion":"9",{end}}}"#), r#"of kind "Job" of "batch/v1""#),
    ] {
        let (events, error) = read(types, &metadata);
        let error = error.unwrap();
        assert_eq!(events, [""; 0]);
        assert!(matches!(error.cause(), Cause::Protocol));
        assert!(error.to_string().contains(said), "{error}");
    }
}

/// Returns the error with which an event is skipped. Its name and version would be those of another object.
fn skipped(mut reader: WatchReader, line: &str) -> Error {
    reader.push(Bytes::from(format!("{line}\n{}\n", event("ADDED", "b", 8))));
    let Some(Ok(WatchItem::Unreadable { error, resource_version, .. })) = reader.next() else {
        panic!("{line}")
    };
    assert_eq!((error.key(), resource_version.as_str()), (None, ""), "{line}");
    assert!(error.is_unreadable());
    assert!(matches!(reader.next(), Some(Ok(WatchItem::Added(_)))), "the watch goes on");
    error
}

#[test]
fn r51_an_object_of_another_kind_is_skipped() {
    let metadata = r#""metadata":{"name":"a","resourceVersion":"7"}"#;
    for (types, what) in [
        (r#""kind":"Table","apiVersion":"meta.k8s.io/v1""#, r#""Table" of "meta.k8s.io/v1""#),
        (r#""apiVersion":"batch/v1","kind":"Job""#, r#""Job" of "batch/v1""#),
        (r#""kind":"Pod","apiVersion":"v2""#, r#""Pod" of "v2""#),
        (r#""kind":"Status","apiVersion":"v1""#, r#""Status" of "v1""#),
        (
            r#""kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1""#,
            r#""PartialObjectMetadata" of "meta.k8s.io/v1""#,
        ),
    ] {
        for event_type in ["ADDED", "MODIFIED", "DELETED"] {
            let line = format!(r#"{{"type":"{event_type}","object":{{{types},{metadata}}}}}"#);
            let error = skipped(reader(target()), &line).to_string();
            let said = format!("an event is of kind {what}, expected \"Pod\" of \"v1\"");
            assert_eq!(error, said);
        }
    }
    // If only the server knows the kind, any kind of that version is accepted.
    let unknown = || reader(Target { kind: None, ..target() });
    let (events, none) = read_with(unknown(), [event("ADDED", "a", 1).as_bytes()]);
    assert_eq!((events.len(), none.is_none()), (1, true));
    skipped(
        unknown(),
        r#"{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1"}}"#,
    );
}

#[test]
fn r54_an_event_of_an_unknown_type_is_skipped() {
    for event_type in ["PATCHED", "added", ""] {
        let error = skipped(reader(target()), &event(event_type, "a", 7));
        let said = format!("an event is of the unknown type {event_type:?}");
        assert_eq!(error.to_string(), said);
    }
    let long = skipped(reader(target()), &event(&"\\n".repeat(1000), "a", 7)).to_string();
    assert!(long.len() < 200 && !long.contains('\n'), "{long}");
}
