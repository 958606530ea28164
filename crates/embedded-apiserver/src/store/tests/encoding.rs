//! The bytes of a revision and their slices.

use serde_json::json;

use super::*;

/// Checks that all parts of a revision agree with its line.
fn check(revision: &Revision, event_type: EventType, version: u64) {
    let line = revision.line();
    assert_eq!(line.last(), Some(&b'\n'));
    assert!(!line[..line.len() - 1].contains(&b'\n'), "a line is one line");
    let event = parsed(line);
    assert_eq!(event["type"], event_type.as_str());
    assert_eq!(revision.event_type(), event_type);
    let object = parsed(&revision.object());
    assert_eq!(event["object"], object);
    assert_eq!(object["metadata"]["resourceVersion"], version.to_string());
    assert_eq!(revision.version(), version);
    assert_eq!(parsed(&revision.metadata()), object["metadata"]);
    let mut tail = parsed(&[b"{", &revision.tail()[..]].concat());
    tail["apiVersion"] = object["apiVersion"].clone();
    tail["kind"] = object["kind"].clone();
    assert_eq!(tail, object);
    assert_eq!(Value::Object(revision.to_map()), object);
    let labels = object["metadata"]["labels"].as_object().map_or(0, serde_json::Map::len);
    assert_eq!(revision.labels().len(), labels);
}

#[test]
fn slices_are_the_parts_of_the_object() {
    let scene = Scene::new();
    let objects = [
        json!({"metadata": {"name": "plain"}}),
        json!({"metadata": {"name": "n", "namespace": "a", "labels": {"b": "2", "a": "1"}},
            "data": {"k": "line\nbreak \"quoted\" \\ \u{1F600} \u{0}"}}),
        json!({"metadata": {"name": "n", "zz": {"resourceVersion": "inner"}}, "zzz": [1, 2.5, null],
            "AAA": true, "kind": "Other", "apiVersion": "other/v9"}),
    ];
    for object in &objects {
        for version in [1, 9, 10, 99, 100, u64::MAX] {
            let draft = Draft::encode(&scene.resource, object.as_object().expect("it is one"));
            let key = Arc::clone(&draft.key);
            let revision = draft.seal(key, EventType::Added, version);
            check(&revision, EventType::Added, version);
            let map = revision.to_map();
            assert_eq!((&map["kind"], &map["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
            assert_eq!(map.get("data"), object.get("data"));
        }
    }
}

#[test]
fn another_version_may_be_longer_or_shorter() {
    let scene = Scene::new();
    for (first, second) in [(99, 100), (100, 99), (9, 10_000), (7, 8), (10_000, 1)] {
        let draft = scene.draft("a", "x", "1");
        let key = Arc::clone(&draft.key);
        let original = draft.seal(key, EventType::Modified, first);
        for event_type in [EventType::Deleted, EventType::Added] {
            let later = original.at_version(event_type, second);
            check(&later, event_type, second);
            // And back: the offsets are those of the draft, not of one of its versions.
            check(&later.at_version(EventType::Modified, first), EventType::Modified, first);
            let mut expected = original.to_map();
            expected["metadata"]["resourceVersion"] = second.to_string().into();
            assert_eq!(later.to_map(), expected);
        }
        check(&original, EventType::Modified, first);
    }
}

#[test]
fn sameness_is_of_everything_but_the_version() {
    let scene = Scene::new();
    let sealed = |value: &str, version| {
        let draft = scene.draft("a", "x", value);
        let key = Arc::clone(&draft.key);
        draft.seal(key, EventType::Added, version)
    };
    for version in [5, 99, 12_345] {
        assert!(scene.draft("a", "x", "1").is_same_as(&sealed("1", version)));
        assert!(!scene.draft("a", "x", "2").is_same_as(&sealed("1", version)));
        // As long as the version: a change must not be hidden by cutting out the version.
        assert!(!scene.draft("a", "x", "123456").is_same_as(&sealed("1", version)));
        assert!(!scene.draft("a", "x", "1").is_same_as(&sealed("123456", version)));
        assert!(!scene.draft("a", "y", "1").is_same_as(&sealed("1", version)));
    }
}

#[test]
fn a_preview_has_no_version() {
    let scene = Scene::new();
    let preview = parsed(&scene.draft("a", "x", "1").preview());
    assert_eq!(preview["metadata"].get("resourceVersion"), None);
    assert_eq!(
        (&preview["metadata"]["uid"], &preview["data"]["value"]),
        (&json!("u"), &json!("1"))
    );
    let nothing = Draft::encode(&scene.resource, &serde_json::Map::new());
    let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    assert_eq!(parsed(&nothing.preview()), expected);
}

#[test]
fn the_version_survives_the_change_of_its_length_in_the_store() {
    let scene = Scene::new();
    let mut version = 0;
    while version < 101 {
        version = scene.put("a", "x", &version.to_string());
        let stored = scene.store.get(&scene.table, &Key::new("a", "x")).expect("it was put");
        check(&stored, stored.event_type(), version);
        let gone = scene.delete("a", "x");
        let history = scene.store.history(&scene.table, &Key::new("a", "x"));
        check(history.last().expect("it was deleted"), EventType::Deleted, gone);
        version = scene.put("a", "x", "again");
        scene.put("a", "x", "and again");
    }
}
