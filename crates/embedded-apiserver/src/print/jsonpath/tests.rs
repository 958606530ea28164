use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object() -> Value {
    json!({
        "metadata": {"name": "one", "labels": {"example.com/size": "big", "a": {"b": 1}}},
        "spec": {"replicas": 3, "paused": false, "ratio": 0.5, "note": null},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "count": 1, "seen": true, "weight": 0.5},
            {"type": "Bad", "status": "False", "count": 2, "seen": false, "weight": 1.5},
            {"status": "Unknown"},
        ]},
        "lists": [[1, 2], [3]],
        "gap": [[1], [], [2]],
        "empty": [],
    })
}

#[test]
fn paths_find_the_values_they_name() {
    let cases = [
        (".metadata.name", json!(["one"])),
        ("$.metadata.name", json!(["one"])),
        ("['metadata']['name']", json!(["one"])),
        (".metadata.labels['example\\.com/size']", json!(["big"])),
        (".metadata.labels.example\\.com/size", json!(["big"])),
        (".metadata.labels['a.b']", json!([1])),
        (".spec.note", json!([null])),
        (".spec.note.more", json!([])),
        (".spec.note[0]", json!([])),
        (".spec.missing", json!([])),
        (".spec.replicas.more", json!([])),
        (".lists[0]", json!([[1, 2]])),
        (".lists[-1]", json!([[3]])),
        (".lists[2]", json!([])),
        (".lists[-3]", json!([])),
        (".lists[*][0]", json!([1, 3])),
        (".lists[*][1]", json!([])),
        (".gap[*][*]", json!([1])),
        (".empty[*]", json!([])),
        (".empty[0]", json!([])),
        (".spec[0]", json!([])),
        (".spec[*]", json!([])),
        (".lists.*", json!([[1, 2], [3]])),
        (".status.conditions[*].type", json!(["Ready", "Bad"])),
        (r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"])),
        (".status.conditions[?(@.type=='Ready')].status", json!(["True"])),
        (".status.conditions[?( @.type == 'Ready' )].status", json!(["True"])),
        (".status.conditions[?(@.type!='Ready')].status", json!(["False"])),
        (".status.conditions[?(@.type=='None')].status", json!([])),
        (".status.conditions[?(@.count==2)].type", json!(["Bad"])),
        (".status.conditions[?(@.seen==true)].type", json!(["Ready"])),
        (".status.conditions[?(@.seen!=true)].type", json!(["Bad"])),
        (".status.conditions[?(@.weight==1.5)].type", json!(["Bad"])),
        (".status.conditions[?(@.type)].status", json!(["True", "False"])),
        (".status.conditions[?(@.type==1)].status", json!([])),
        (".spec[?(@.type==1)]", json!([])),
    ];
    for (path, expected) in cases {
        let found = JsonPath::parse(path).unwrap();
        let found: Vec<Value> = found.find(&object()).into_iter().cloned().collect();
        assert_eq!(Value::from(found), expected, "{path}");
    }
}

#[test]
fn what_is_not_understood_is_named_with_its_place() {
    let cases = [
        ("", "names no field"),
        ("spec", "at byte 0: a path starts with a dot"),
        (".", "at byte 1: expected the name of a field"),
        (".spec..x", "at byte 6: recursive descent (..) is not supported"),
        (".spec.", "at byte 6: expected the name"),
        (".spec }", "expected a dot or a bracket, not ' '"),
        (".a[", "at byte 2: this bracket is not closed"),
        (".a[0,1]", "expected an index"),
        (".a[0:1]", "expected an index"),
        (".a[\"b\"]", "expected an index"),
        (".a[]", "expected an index"),
        (".a\\", "a backslash ends the path"),
        (".a[?(@.b<1)]", "at byte 8: expected ==, != or the end"),
        (".a[?(@.b==c)]", "expected a text in quotes"),
        (".a[?(@.b==inf)]", "expected a text in quotes"),
        (".a[?(@.b=='c)]", "this text is not closed"),
        (".a[?(@.b=='c']", "expected the end of the filter"),
        (".a[?(@.b[?(@.c)])]", "a filter within a filter"),
    ];
    for (path, expected) in cases {
        let problem = JsonPath::parse(path).unwrap_err();
        assert!(problem.contains(expected), "{path}: {problem}");
    }
}

#[test]
fn length_and_depth_are_bounded() {
    assert!(JsonPath::parse(&".a".repeat(MAX_STEPS)).is_ok());
    assert!(JsonPath::parse(&".a".repeat(MAX_STEPS + 1)).is_err());
    assert!(JsonPath::parse(&format!("['{}']", "a.".repeat(MAX_STEPS + 1))).is_err());
    assert!(JsonPath::parse(&format!(".{}", "a".repeat(MAX_LENGTH))).is_err());
}

proptest! {
    #[test]
    fn no_text_is_too_strange_to_read(path in r#"[.\[\]()?@$*'"\\=! ab0é-]{0,24}"#) {
        if let Ok(path) = JsonPath::parse(&path) {
            path.find(&json!({"a": [{"b": 1, "a": "b"}, {"b": "a"}], "b": {"a": [0, -1.5]}}));
        }
    }
}
