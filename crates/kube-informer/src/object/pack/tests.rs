use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Labels;

const SECRET: &str = "hunter2";

fn pack(json: &str) -> Result<Object> {
    Packer::plain().pack(json.as_bytes(), None)
}

fn value(object: &Object) -> Value {
    serde_json::from_slice(&object.to_json().unwrap()).unwrap()
}

fn pod_types() -> Types {
    Types { api_version: "v1".into(), kind: "Pod".into() }
}

#[test]
fn k1_the_header_is_read_from_metadata() {
    let object = pack(
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","uid":"u1",
            "resourceVersion":"42","generation":3,"deletionTimestamp":"2024-05-01T10:00:00Z",
            "labels":{"tier":"front","app":"web"},
            "ownerReferences":[
                {"apiVersion":"v1","kind":"Node","name":"n","uid":"u2"},
                {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u3","controller":true},
                {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"no","uid":"u4","controller":true}]},
            "spec":{}}"#,
    )
    .unwrap();
    assert_eq!(object.key().as_str(), "shop/web-0");
    assert_eq!((object.uid(), object.resource_version().as_str()), ("u1", "42"));
    assert_eq!(object.generation(), Some(3));
    assert_eq!(object.deletion_timestamp().unwrap().to_string(), "2024-05-01T10:00:00Z");
    let labels: Vec<_> = object.labels().iter().collect();
    assert_eq!(labels, [("app", "web"), ("tier", "front")]);
    assert_eq!((object.labels().get("app"), object.labels().get("ap")), (Some("web"), None));
    let owner = object.controller().unwrap();
    assert_eq!((&*owner.api_version, &*owner.kind), ("apps/v1", "ReplicaSet"));
    assert_eq!((&*owner.name, &*owner.uid), ("web", "u3"));
}

#[test]
fn k1_nothing_but_a_name_is_needed_and_null_is_absent() {
    let null = r#"{"metadata":{"name":"a","namespace":null,"uid":null,"resourceVersion":null,
        "generation":null,"deletionTimestamp":null,"labels":null,"ownerReferences":null}}"#;
    for json in [r#"{"metadata":{"name":"a"}}"#, null] {
        let object = pack(json).unwrap();
        assert_eq!(object.key(), &ObjectKey::cluster("a"));
        assert!(object.uid().is_empty() && object.resource_version().is_empty());
        assert!(object.labels().is_empty() && object.controller().is_none());
        assert_eq!((object.generation(), object.deletion_timestamp()), (None, None));
    }
}

#[test]
fn a_body_of_the_wrong_type_is_kept_with_its_header() {
    for body in [r#""spec":7"#, r#""spec":{"containers":"none"},"status":[null]"#, r#""x":1e999"#] {
        let json = format!(r#"{{"metadata":{{"name":"a","namespace":"b"}},{body}}}"#);
        let object: Object<k8s_openapi::api::core::v1::Pod> = pack(&json).unwrap().cast();
        assert_eq!(object.key().as_str(), "b/a");
        if !body.contains("1e999") {
            let error = object.decode().unwrap_err();
            assert!(error.is_decode() && error.key() == Some(object.key()), "{error}");
        }
    }
}

#[test]
fn nesting_that_nobody_decodes_is_kept_with_its_header() {
    let deep = |depth: usize| {
        let nested = "[".repeat(depth) + &"]".repeat(depth);
        pack(&format!(r#"{{"metadata":{{"name":"a"}},"spec":{nested}}}"#))
    };
    assert!(deep(300).unwrap().decode_as::<Value>().unwrap_err().is_decode());
    assert_eq!(deep(100_000).unwrap_err().key(), Some(&ObjectKey::cluster("a")));
}

/// Objects that cannot be kept, whether their key is known, and the error.
#[test]
fn b12_what_cannot_be_kept_is_said_with_its_key() {
    let secret = format!(r#""spec":{{"password":"{SECRET}"}}"#);
    let cases = [
        ("hunter2", None, "it is not JSON"),
        ("\"hunter2\"", None, "its JSON is not an object"),
        ("[\"hunter2\"]", None, "its JSON is not an object"),
        ("", None, "a value expected at byte 0"),
        ("{SPEC}", None, "its metadata is not there"),
        (r#"{"metadata":null,SPEC}"#, None, "its metadata is not an object"),
        (r#"{"metadata":"hunter2",SPEC}"#, None, "its metadata is not an object"),
        (r#"{"metadata":{"namespace":"b"},SPEC}"#, None, "its metadata.name is not there"),
        (r#"{"metadata":{"name":""},SPEC}"#, None, "its metadata.name is not there"),
        (r#"{"metadata":{"name":7},SPEC}"#, None, "metadata.name is not a string"),
        (r#"{"metadata":{"name":"\ud800"},SPEC}"#, None, "metadata.name is not a string"),
        (
            r#"{"metadata":{"labels":{"a":1},"name":"a","namespace":"b"},SPEC}"#,
            Some("b/a"),
            "labels",
        ),
        (r#"{"metadata":{"labels":"hunter2","name":"a"},SPEC}"#, Some("a"), "a map of strings"),
        (r#"{"metadata":{"name":"a","uid":{}},SPEC}"#, Some("a"), "metadata.uid"),
        (r#"{"metadata":{"name":"a","resourceVersion":42},SPEC}"#, Some("a"), "resourceVersion"),
        (r#"{"metadata":{"name":"a","generation":"hunter2"},SPEC}"#, Some("a"), "generation"),
        (
            r#"{"metadata":{"name":"a","generation":99999999999999999999},SPEC}"#,
            Some("a"),
            "64 bits",
        ),
        (r#"{"metadata":{"name":"a","deletionTimestamp":"hunter2"},SPEC}"#, Some("a"), "RFC 3339"),
        (r#"{"metadata":{"name":"a","deletionTimestamp":7},SPEC}"#, Some("a"), "RFC 3339"),
        (r#"{"metadata":{"name":"a","ownerReferences":{}},SPEC}"#, Some("a"), "is not a list"),
        (r#"{"metadata":{"name":"a","ownerReferences":["hunter2"]},SPEC}"#, Some("a"), "of owners"),
        (r#"{"metadata":{"name":"a","ownerReferences":[{"uid":1}]},SPEC}"#, Some("a"), "of owners"),
        (r#"{"metadata":{"name":"a"},SPEC"#, Some("a"), "',' or '}' expected at byte"),
        (r#"{"metadata":{"name":"a"},SPEC,}"#, Some("a"), "a key expected"),
        (r#"{"metadata":{"name":"a"},SPEC} 7"#, Some("a"), "the end expected"),
        // Half a key would be the key of another object.
        (r#"{"metadata":{"name":"a","uid":"hunter2""#, None, "not JSON"),
        (r#"{"metadata":{"name":"a","namespace":"b","uid":"hunter2""#, Some("b/a"), "not JSON"),
    ];
    for (json, key, says) in cases {
        let error = pack(&json.replace("SPEC", &secret)).unwrap_err();
        assert!(error.is_unreadable(), "{json}");
        assert_eq!(error.key().map(ObjectKey::as_str), key, "{json}");
        assert!(error.to_string().contains(says), "{json}: {error}");
        let seen = format!("{error} {error:?}");
        assert!(!seen.contains(SECRET), "i20: {seen}");
    }
}

#[test]
fn what_is_not_utf8_is_not_kept_but_its_key_is_known() {
    let error = Packer::plain().pack(b"{\"metadata\":{\"name\":\"a\"},\"x\":\"\xff\"}", None);
    let error = error.unwrap_err();
    assert_eq!(error.key(), Some(&ObjectKey::cluster("a")));
    assert!(error.to_string().contains("not UTF-8 at byte 30"), "{error}");
}

#[test]
fn i20_debug_shows_the_key_and_the_version_only() {
    let json = format!(
        r#"{{"metadata":{{"name":"a","resourceVersion":"1"}},"data":{{"key":"{SECRET}"}}}}"#
    );
    assert_eq!(format!("{:?}", pack(&json).unwrap()), "Object(a@1)");
}

#[test]
fn of_keys_that_are_there_twice_the_last_counts() {
    let object = pack(
        r#"{"metadata":{"name":"a","uid":"1","managedFields":[1]},
            "metadata":{"name":"b","name":"c","managedFields":[1],"managedFields":[2],
                        "labels":{"x":"1","y":"2","x":"3"}}}"#,
    )
    .unwrap();
    assert_eq!((object.name(), object.uid()), ("c", ""));
    assert_eq!(object.labels(), &Labels::new([("x", "3"), ("y", "2")]));
    assert!(!String::from_utf8_lossy(&object.to_json().unwrap()).contains("managedFields"));
    assert_eq!(value(&object)["metadata"]["name"], "c");
}

#[test]
fn keys_and_values_may_have_escapes_and_any_white_space() {
    let json = "\r\n{ \"\\u006detadata\"\t:\r\n{\"n\\u0061me\" : \"a\\u0062\" , \
                \"managed\\u0046ields\":[],\"labels\":{\"\\u00e9\":\"\\n\"}}\r\n}\r\n";
    let object = pack(json).unwrap();
    assert_eq!(object.name(), "ab");
    assert_eq!(object.labels().get("\u{e9}"), Some("\n"));
    assert_eq!(value(&object)["metadata"].get("managedFields"), None);
}

#[test]
fn types_are_put_in_front_where_they_are_missing() {
    let pack = |json: &str| Packer::plain().pack(json.as_bytes(), Some(&pod_types())).unwrap();
    let text = |object: &Object| String::from_utf8(object.to_json().unwrap().to_vec()).unwrap();
    let neither = pack(r#" {"metadata":{"managedFields":[],"name":"a"}} "#);
    assert_eq!(text(&neither), r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#);
    let one = pack(r#"{"kind":"Job","metadata":{"name":"a"}}"#);
    assert_eq!(text(&one), r#"{"apiVersion":"v1","kind":"Job","metadata":{"name":"a"}}"#);
    let both = r#"{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"a"}}"#;
    assert_eq!(text(&pack(both)), both);
    let odd = Types { api_version: "a\"b".into(), kind: "K".into() };
    let odd = Packer::plain().pack(br#"{"metadata":{"name":"a"}}"#, Some(&odd)).unwrap();
    assert_eq!(value(&odd)["apiVersion"], "a\"b");
}

#[test]
fn managed_fields_can_be_kept() {
    let json = r#"{"metadata":{"name":"a","managedFields":[{"manager":"kubectl"}]}}"#;
    let packer = Packer::new(Transform::default(), None, true);
    let object = packer.pack(json.as_bytes(), None).unwrap();
    assert_eq!(&object.to_json().unwrap()[..], json.as_bytes());
}

#[test]
fn s2_objects_with_the_same_labels_and_owner_share_them() {
    let packer = Packer::new(Transform::default(), None, false);
    let pack = |name: &str, labels: Value| {
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u",
                   "controller": true});
        let metadata = json!({"name": name, "labels": labels, "ownerReferences": [owner]});
        packer.pack(json!({ "metadata": metadata }).to_string().as_bytes(), None).unwrap()
    };
    let one = pack("a", json!({"app": "web", "tier": "front"}));
    let same = pack("b", json!({"tier": "front", "app": "web"}));
    let other = pack("c", json!({"app": "webtier"}));
    let header = |object: &Object| {
        (object.raw.header.labels.clone(), object.raw.header.controller.clone().unwrap())
    };
    assert!(Arc::ptr_eq(&header(&one).0, &header(&same).0));
    assert!(!Arc::ptr_eq(&header(&one).0, &header(&other).0));
    assert!(Arc::ptr_eq(&header(&one).1, &header(&other).1));
    assert_eq!(packer.shared().len(), (2, 1));
    let (none, null) = (pack("d", json!({})), pack("e", Value::Null));
    assert!(Arc::ptr_eq(&header(&none).0, &header(&null).0));
}

#[test]
fn labels_that_nobody_has_any_more_are_forgotten() {
    let packer = Packer::new(Transform::default(), None, false);
    let pack = |n: usize| {
        let json = format!(r#"{{"metadata":{{"name":"a","labels":{{"n":"{n}"}}}}}}"#);
        packer.pack(json.as_bytes(), None).unwrap()
    };
    let objects: Vec<Object> = (0..5000).map(pack).collect();
    assert_eq!(packer.shared().len().0, 5000);
    drop(objects);
    let kept = pack(0);
    for _ in 0..10_000 {
        assert_eq!(pack(0).labels(), kept.labels());
    }
    assert_eq!(packer.shared().len().0, 1);
    // Nor do they pile up if each exists only briefly.
    (0..5000).map(pack).for_each(drop);
    assert!(packer.shared().len().0 < 600, "{:?}", packer.shared().len());
}

fn decode(json: &[u8]) -> Result<Arc<dyn Any + Send + Sync>> {
    let typed: k8s_openapi::api::core::v1::Pod =
        serde_json::from_slice(json).map_err(|_| Error::invalid("no pod"))?;
    Ok(Arc::new(typed))
}

#[test]
fn a_decoded_object_is_kept_decoded_and_one_that_is_not_decodable_as_bytes() {
    let packer = Packer::new(Transform::default(), Some(decode), false);
    let pod = |spec: &str| {
        let json = format!(r#"{{"metadata":{{"name":"a"}},"spec":{spec}}}"#);
        let types = pod_types();
        let object = packer.pack(json.as_bytes(), Some(&types)).unwrap();
        object.cast::<k8s_openapi::api::core::v1::Pod>()
    };
    let good = pod(r#"{"containers":[],"nodeName":"n"}"#);
    let (first, second) = (good.decode().unwrap(), good.decode().unwrap());
    assert!(Arc::ptr_eq(&first, &second) && Arc::strong_count(&first) == 3);
    assert!(good.memory() > good.to_json().unwrap().len() + 2000);
    let bad = pod("7");
    assert!(bad.raw.decoded.is_none());
    assert!(bad.decode().unwrap_err().is_decode());
}

#[test]
fn a_decoder_that_panics_leaves_the_bytes() {
    let packer = Packer::new(Transform::default(), Some(|_| panic!("no")), false);
    let object = packer.pack(br#"{"metadata":{"name":"a"}}"#, None).unwrap();
    assert_eq!(object.name(), "a");
}

#[test]
fn t3_repacking_leaves_alone_what_is_as_it_should_be() {
    let object = pack(r#"{"metadata":{"name":"a","uid":"u"}}"#).unwrap();
    let plain = Packer::new(Transform::default(), None, false).with_plain_bodies();
    assert!(!plain.needs_repack());
    assert!(plain.repack(object.clone()).unwrap().is_same_instance(&object));
    let decoding = Packer::new(Transform::default(), Some(decode), false);
    assert!(decoding.needs_repack());
    let repacked = decoding.repack(object.clone()).unwrap();
    assert!(repacked.raw.decoded.is_some());
    assert_eq!((repacked.key(), repacked.uid()), (object.key(), "u"));
    assert_eq!(repacked.to_json().unwrap(), object.to_json().unwrap());
    assert!(decoding.repack(repacked.clone()).unwrap().is_same_instance(&repacked));
}

#[test]
fn the_version_of_an_unreadable_object_is_read_if_it_can_be() {
    let version = |json: &str| Packer::unreadable_version(json.as_bytes());
    assert_eq!(version(r#"{"metadata":{"name":7,"resourceVersion":"42"},"spec":"#), "42");
    assert_eq!(version(r#"{"metadata":{"resourceVersion":42}}"#), "");
    assert_eq!(version("nonsense"), "");
}

/// Generates an object with its members in any order and white space between them.
fn any_object() -> impl Strategy<Value = String> {
    let text = || any::<String>().prop_map(|text| Value::from(text).to_string());
    let labels = proptest::collection::btree_map(any::<String>(), any::<String>(), 0..4)
        .prop_map(|labels| json!(labels).to_string());
    let managed = Just(r#"[{"manager":"m","fieldsV1":{"f:a":{}}}]"#.to_owned());
    let member = |name: &'static str, value: BoxedStrategy<String>| {
        (value, "[ \n]{0,1}").prop_map(move |(value, space)| {
            format!("{space}\"{name}\"{space}:{space}{value}{space}")
        })
    };
    let metadata = (
        member("name", text().boxed()),
        member("namespace", text().boxed()),
        member("resourceVersion", text().boxed()),
        member("labels", labels.boxed()),
        member("managedFields", managed.boxed()),
        member("annotations", Just("{}".to_owned()).boxed()),
    )
        .prop_map(|(a, b, c, d, e, f)| vec![a, b, c, d, e, f]);
    let some = |members: Vec<String>| proptest::sample::subsequence(members, 1..=6).prop_shuffle();
    let metadata = metadata.prop_flat_map(some).prop_map(|all| format!("{{{}}}", all.join(",")));
    (member("metadata", metadata.boxed()), member("spec", text().boxed()))
        .prop_flat_map(|(a, b)| Just(vec![a, b]).prop_shuffle())
        .prop_map(|all| format!("{{{}}}", all.join(",")))
}

/// Returns a packer that has its dictionary.
fn trained() -> &'static Packer {
    static TRAINED: LazyLock<Packer> = LazyLock::new(|| {
        let packer = Packer::new(Transform::default(), None, false).train_on(10);
        let object = |n: usize| {
            let spec = format!("{n} {}", "what all of these objects have in common ".repeat(9));
            let json = json!({"metadata": {"name": n.to_string(), "labels": {}}, "spec": spec});
            packer.pack(json.to_string().as_bytes(), None).unwrap()
        };
        let objects: Vec<_> = (0..20).map(object).collect();
        assert!(objects[19].is_packed());
        packer
    });
    &TRAINED
}

proptest! {
    #[test]
    fn a_packed_body_reads_as_a_plain_one(json in any_object(), times in 1..50_usize) {
        let more = json!({"more": "what all of these objects have in common ".repeat(times)});
        let json = more.to_string().replace('}', ",") + &json[1..];
        let (Ok(plain), Ok(packed)) = (pack(&json), trained().pack(json.as_bytes(), None)) else {
            prop_assert!(pack(&json).is_err() && trained().pack(json.as_bytes(), None).is_err());
            return Ok(());
        };
        prop_assert_eq!(packed.to_json().unwrap(), plain.to_json().unwrap());
        prop_assert!(packed.same_content(&plain) && plain.same_content(&packed));
        prop_assert!(packed.memory() <= plain.memory());
        for path in ["metadata", "metadata.labels[*]", "more"] {
            let field = |object: &Object| object.field::<Value>(path).unwrap();
            prop_assert_eq!(field(&packed), field(&plain));
            prop_assert_eq!(packed.index_values(&path.into()), plain.index_values(&path.into()));
        }
    }

    #[test]
    fn an_object_is_packed_as_serde_json_would_read_it(json in any_object()) {
        let mut expected: Value = serde_json::from_str(&json).unwrap();
        let metadata = expected["metadata"].as_object_mut().unwrap();
        metadata.remove("managedFields");
        let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        match pack(&json) {
            Err(error) => {
                prop_assert!(error.is_unreadable());
                prop_assert_eq!(name, "");
            }
            Ok(object) => {
                prop_assert_eq!(object.name(), name);
                let text = |field: &str| expected["metadata"][field].as_str().unwrap_or_default();
                prop_assert_eq!(object.namespace().unwrap_or_default(), text("namespace"));
                prop_assert_eq!(object.resource_version().as_str(), text("resourceVersion"));
                let labels: serde_json::Map<String, Value> =
                    object.labels().iter().map(|(name, value)| (name.into(), value.into())).collect();
                prop_assert_eq!(Value::from(labels), expected["metadata"].get("labels").cloned().unwrap_or(json!({})));
                prop_assert_eq!(value(&object), expected);
            }
        }
    }

    #[test]
    fn nothing_panics_on_any_bytes_and_what_is_kept_is_json(
        json in any_object(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        length in any::<prop::sample::Index>(), cut: bool,
    ) {
        let mut bytes = json.into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut {
            bytes.truncate(length.index(bytes.len()));
        }
        let _ = Packer::unreadable_version(&bytes);
        match Packer::plain().pack(&bytes, Some(&pod_types())) {
            Ok(object) => prop_assert!(object.decode_as::<serde::de::IgnoredAny>().is_ok()),
            Err(error) => prop_assert!(error.is_unreadable()),
        }
    }
}
