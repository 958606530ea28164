//! Indexes: their content, and when it is complete.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn keys(index: &Index, value: &str) -> String {
    index.keys(value).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn values(index: &Index) -> String {
    index.values().join(" ")
}

#[test]
fn s7_s9_i15_an_update_moves_an_object_from_its_old_values_to_its_new_ones() {
    let store = Store::new();
    let index = by_tags(&store);
    let mut version = 0;
    let mut write = |tags: &str| {
        version += 1;
        apply(&store, vec![put_delta(tagged(&format!("a@{version}"), tags))]);
        values(&index)
    };
    assert_eq!(write("x"), "x");
    assert_eq!(write("x"), "x");
    assert_eq!(write("y"), "y");
    assert_eq!(write("z.y.x.y"), "x y z");
    assert_eq!(write("y.w"), "w y");
    assert_eq!((keys(&index, "y"), keys(&index, "x")), ("a".to_owned(), String::new()));
    assert_eq!(write(""), "");
    assert_eq!(write("y"), "y");
    apply(&store, vec![deleted(object("a@99"))]);
    assert_eq!(values(&index), "");
}

#[test]
fn s8_s12_values_are_sorted_and_only_those_that_somebody_has() {
    let store = Store::new();
    let index = by_tags(&store);
    apply(
        &store,
        vec![
            put_delta(tagged("a@1", "b.c")),
            put_delta(tagged("b@2", "c.a")),
            put_delta(tagged("c@3", "d")),
        ],
    );
    assert_eq!(values(&index), "a b c d");
    apply(&store, vec![deleted(object("a@4")), deleted(object("c@5"))]);
    assert_eq!(values(&index), "a c");
    replace(&store, vec![tagged("z@6", "e")], &[], "6");
    assert_eq!(values(&index), "e");
}

#[test]
fn s3_keys_are_sorted_and_lists_are_in_the_order_of_their_places() {
    let store = Store::new();
    let index = by_tags(&store);
    let all = ["c/b@1", "a/z@2", "a/b@3", "z@4"];
    apply(&store, all.map(|text| put_delta(tagged(text, "x"))).into());
    assert_eq!(keys(&index, "x"), "z a/b a/z c/b");
    assert_eq!(texts(&index.get("x")), all.join(" "));
    // The next object takes the slot of the one that was deleted.
    apply(&store, vec![deleted(object("a/z@5")), put_delta(tagged("n@6", "x"))]);
    assert_eq!(texts(&index.get("x")), "c/b@1 n@6 a/b@3 z@4");
    assert_eq!(texts(&lister(&store).list()), "c/b@1 n@6 a/b@3 z@4");
}

#[test]
fn s9_matching_is_the_union_over_the_values_of_an_object_each_once() {
    let store = Store::new();
    let index = by_tags(&store);
    apply(
        &store,
        vec![
            put_delta(tagged("a@1", "x.y")),
            put_delta(tagged("b@2", "y.z")),
            put_delta(tagged("c@3", "z")),
            put_delta(tagged("d@4", "")),
        ],
    );
    let matching = |tags| texts(&index.matching(&tagged("other@0", tags)));
    assert_eq!(matching("x.y"), "a@1 b@2");
    assert_eq!(matching("z.y.x.unknown"), "a@1 b@2 c@3");
    assert_eq!(matching(""), "");
}

#[test]
fn s10_s11_an_unknown_name_is_an_error_that_names_the_others_and_an_unknown_value_is_empty() {
    let store = Store::new();
    let _tags = by_tags(&store);
    let _label = Index::<Untyped>::label(&store, None, "app");
    apply(&store, vec![put_delta(tagged("shop/a@1", "x"))]);
    let lister = lister(&store);
    assert_eq!(texts(&lister.by_index("tags", "x").unwrap()), "shop/a@1");
    assert_eq!(texts(&lister.by_index("namespace", "shop").unwrap()), "shop/a@1");
    assert!(lister.by_index("tags", "unknown").unwrap().is_empty());
    let error = lister.by_index("unknown", "x").unwrap_err();
    assert!(error.is_unknown_index());
    let text = error.to_string();
    assert_eq!(
        text,
        r#"there is no index "unknown"; the indexes are ["label:app", "namespace", "tags"]"#
    );
}

#[test]
fn s13_a_taken_name_is_a_conflict_until_the_index_that_has_it_goes() {
    let store = Store::new();
    let add = |name| Index::<Untyped>::function(&store, None, name, |_| ["other"]);
    let old = by_tags(&store);
    let error = add("tags").unwrap_err();
    assert!(error.is_index_conflict());
    assert!(error.to_string().starts_with(r#"there is an index "tags" already"#), "{error}");
    for built_in in ["namespace", "controller", "label:app", "field:spec.nodeName"] {
        assert!(add(built_in).unwrap_err().is_index_conflict(), "{built_in}");
    }
    apply(&store, vec![put_delta(tagged("a@1", "x"))]);
    assert_eq!(values(&old), "x");
    drop(old);
    assert_eq!(values(&add("tags").unwrap()), "other");
}

/// A regression: indexes without handles used to stay, and their functions were called for every write.
#[test]
fn an_index_goes_with_its_last_handle() {
    let store = Store::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let index = named(&store, "counted", move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        ["x"]
    });
    let again = index.clone();
    drop(index);
    put(&store, "a@1");
    assert_eq!((calls.load(Ordering::Relaxed), &*keys(&again, "x")), (1, "a"));
    drop(again);
    put(&store, "a@2");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert!(store.by_index("counted", "x").unwrap_err().is_unknown_index());
    assert_eq!(Arc::strong_count(&calls), 1, "the function went too");
    // An index with two handles lasts as long as either.
    let [one, other] = [(); 2].map(|()| Index::<Untyped>::label(&store, None, "app"));
    drop(one);
    apply(&store, vec![put_delta(labelled("b@3", &[("app", "web")]))]);
    assert_eq!(keys(&other, "web"), "b");
}

#[test]
fn a_path_that_cannot_be_read_is_an_error_at_once() {
    let store = Store::new();
    let error = Index::<Untyped>::field(&store, None, "spec..nodeName".into()).unwrap_err();
    assert!(error.to_string().contains("spec..nodeName"), "{error}");
}

#[test]
fn s13_an_index_that_comes_late_has_what_was_there_before() {
    let store = Store::new();
    for version in 1..=20 {
        apply(&store, vec![put_delta(tagged(&format!("n{version}@{version}"), "x"))]);
    }
    apply(&store, vec![deleted(object("n5@21")), deleted(object("n20@22"))]);
    let index = by_tags(&store);
    assert_eq!(index.get("x").len(), 18);
    apply(&store, vec![put_delta(tagged("n5@23", "x")), deleted(object("n1@24"))]);
    assert_eq!(index.get("x").len(), 18);
    assert_eq!(texts(&index.get("x")), texts(&lister(&store).list()));
}

#[test]
fn s14_a_panic_in_a_function_is_contained_and_counted() {
    let store = Store::new();
    let tags = by_tags(&store);
    let index: Index = named(&store, "picky", |object| {
        assert!(object.name() != "bad", "no");
        [object.name().to_owned()]
    });
    apply(
        &store,
        vec![
            put_delta(tagged("good@1", "x")),
            put_delta(tagged("bad@2", "x")),
            put_delta(tagged("bad@3", "x")),
        ],
    );
    assert_eq!((&*values(&index), store.len()), ("good", 2));
    assert_eq!(keys(&tags, "x"), "bad good");
    assert_eq!(store.index_panics(), 2);
    // This also holds if the index is added late, and for queries about an object.
    let late: Index =
        named(&store, "never", |object| -> Option<&str> { panic!("{}", object.name()) });
    assert!(late.values().is_empty() && late.matching(&object("good@1")).is_empty());
    assert_eq!(store.index_panics(), 5);
}

#[test]
fn i15_a_function_that_changes_its_mind_leaves_nothing_behind() {
    let store = Store::new();
    let calls = AtomicUsize::new(0);
    let index: Index = named(&store, "fickle", move |_| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        (0..call % 4).map(|part| format!("{}", call + part)).collect::<Vec<_>>()
    });
    for version in 1..=40 {
        apply(&store, vec![put_delta(object(&format!("n{}@{version}", version % 7)))]);
        let listed: usize = index.values().iter().map(|value| index.get(value).len()).sum();
        assert!(index.values().iter().all(|value| !index.get(value).is_empty()) && listed <= 21);
    }
    replace(&store, vec![], &[], "50");
    assert!(index.values().is_empty());
}

#[test]
fn indexes_by_the_same_thing_are_the_same_index() {
    let store = Store::new();
    let labels: [Index; 2] = [(); 2].map(|()| Index::label(&store, None, "node"));
    let fields: [Index; 2] =
        [(); 2].map(|()| Index::field(&store, None, "spec.nodeName".into()).unwrap());
    let controllers: [Index; 2] = [(); 2].map(|()| Index::controller(&store, None));
    apply(&store, vec![put_delta(labelled("a@1", &[("node", "worker-1")]))]);
    for index in labels.iter().chain(&fields) {
        assert_eq!((&*values(index), &*keys(index, "worker-1")), ("worker-1", "a"));
    }
    assert_eq!(labels[0].name(), "label:node");
    assert_eq!(fields[1].name(), "field:spec.nodeName");
    assert_eq!(controllers[1].name(), "controller");
    assert_eq!(format!("{:?}", labels[1]), r#"Index("label:node")"#);
    let count = || store.by_index("?", "").unwrap_err().to_string().matches('"').count() / 2 - 1;
    assert_eq!(count(), 4);
    let other: Index = Index::label(&store, None, "app");
    assert_eq!((count(), other.values().len()), (5, 0));
}

#[test]
fn an_index_by_controller_has_the_uid_of_the_owner() {
    let indexer = &mut Indexer::<Untyped>::new();
    let index = indexer.index_by_controller();
    let owned = r#"{"metadata": {"name": "a", "ownerReferences": [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "other"},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "7-1", "controller": true}
    ]}}"#;
    indexer.put(Object::from_json(owned).unwrap());
    indexer.put(object("b@1"));
    assert_eq!((&*values(&index), &*keys(&index, "7-1")), ("7-1", "a"));
}

#[test]
fn an_index_keeps_what_it_was_given_alive() {
    let store = Store::new();
    let alive = Alive::new(|| ());
    let index: Index = Index::label(&store, Some(alive.clone()), "app");
    let again = index.clone();
    drop(index);
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(again);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn relisted_objects_that_are_the_same_are_not_asked_for_their_values_again() {
    let store = Store::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let index: Index = named(&store, "counted", move |object| {
        counter.fetch_add(1, Ordering::Relaxed);
        [object.name().to_owned()]
    });
    let list = || ["a@1", "b@2", "c@3"].map(object);
    replace(&store, list().into(), &[], "3");
    replace(&store, list().into(), &[], "4");
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    assert_eq!(values(&index), "a b c");
}
