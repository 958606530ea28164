use super::*;
use crate::Delta;
use crate::indexer::{Accept, Alive, Batch};

fn object(key: &str, version: &str, app: &str) -> Object {
    let key: ObjectKey = key.parse().unwrap();
    let json = serde_json::json!({"metadata": {
        "namespace": key.namespace().unwrap_or_default(),
        "name": key.name(),
        "resourceVersion": version,
        "labels": {"app": app},
    }});
    Object::from_json(json.to_string()).unwrap()
}

/// Returns a lister of three pods in two namespaces and a node.
fn filled() -> Lister {
    let store = Store::new();
    let objects = [("shop/web", "web"), ("shop/db", "db"), ("lab/web", "web"), ("node", "node")];
    let put = |((key, app), version): ((&str, &str), u64)| {
        Delta::Added(object(key, &version.to_string(), app))
    };
    apply(&store, objects.into_iter().zip(1..).map(put).collect());
    Lister::new(store, None)
}

fn apply(store: &Store, deltas: Vec<Delta>) {
    for batch in Batch::of(deltas) {
        store.write(0, batch, Accept::Newer, || ());
    }
}

fn names<K>(list: &List<K>) -> Vec<&str> {
    list.iter().map(|object| object.key().as_str()).collect()
}

#[test]
fn l1_a_selector_is_evaluated_on_the_labels() {
    let lister = filled();
    let web = Selector::label("app", "web");
    assert_eq!(names(&lister.select(&web)), ["shop/web", "lab/web"]);
    assert_eq!(names(&lister.namespace("shop").select(&web)), ["shop/web"]);
    assert_eq!(lister.select(&Selector::everything()).len(), 4);
    assert_eq!(lister.namespace("shop").select(&Selector::everything()).len(), 2);
    assert!(lister.select(&Selector::label("app", "other")).is_empty());
    let nothing = lister.select(&Selector::nothing());
    assert_eq!((nothing.len(), nothing.resource_version().as_str()), (0, "4"));
    let set = "app in (web, node), app != node".parse().unwrap();
    assert_eq!(names(&lister.select(&set)), ["shop/web", "lab/web"]);
}

#[test]
fn l1_the_selector_of_nothing_reads_nothing() {
    let lister = filled();
    let nothing = select(&lister.store, &Selector::nothing(), || panic!("read"));
    assert!(nothing.0.is_empty() && nothing.1 == "4");
}

#[test]
fn l2_a_namespace_lister_has_one_namespace_and_the_empty_one_is_all() {
    let lister = filled();
    let shop = lister.namespace("shop");
    assert_eq!(names(&shop.list()), ["shop/web", "shop/db"]);
    assert_eq!(shop.keys(), ["shop/web", "shop/db"].map(|key| key.parse().unwrap()));
    assert_eq!((shop.len(), shop.is_empty()), (2, false));
    let all = lister.namespace("");
    assert_eq!((all.len(), names(&all.list())), (4, names(&lister.list())));
    let none = lister.namespace("none");
    assert!(none.is_empty() && none.list().is_empty() && none.keys().is_empty());
    assert_eq!(none.list().resource_version(), "4");
}

#[test]
fn l3_an_object_is_found_however_its_key_is_written() {
    let lister = filled();
    let key = ObjectKey::namespaced("shop", "web");
    let found = [
        lister.get(&key),
        lister.get(("shop", "web")),
        lister.get("shop/web"),
        lister.namespace("shop").get("web"),
    ];
    assert!(found.iter().flatten().all(|object| object.key() == &key));
    assert_eq!(found.iter().flatten().count(), 4);
    assert!(lister.get("shop/none").is_none() && lister.namespace("none").get("web").is_none());
}

#[test]
fn l4_l5_a_name_alone_is_a_cluster_scoped_object() {
    let lister = filled();
    assert!(lister.get("web").is_none());
    assert!(lister.get("node").is_some() && lister.get(("", "node")).is_some());
    assert!(lister.namespace("").get("node").is_some());
    assert!(lister.namespace("shop").get("node").is_none());
}

#[test]
fn l6_what_is_read_is_the_cached_instance() {
    let lister = filled();
    let all = lister.list();
    assert!(all[0].is_same_instance(&lister.get("shop/web").unwrap()));
    assert!(lister.namespace("shop").list()[0].is_same_instance(&all[0]));
}

#[test]
fn b20_a_list_carries_the_version_that_it_was_read_at() {
    let lister = filled();
    let before = lister.list();
    apply(&lister.store, vec![Delta::Added(object("new", "9", ""))]);
    assert_eq!((before.len(), before.resource_version().as_str()), (4, "4"));
    let after = lister.list();
    assert_eq!((after.len(), after.resource_version().as_str()), (5, "9"));
    assert_eq!(lister.resource_version(), "9");
    assert_eq!(lister.namespace("shop").list().resource_version(), "9");
}

#[test]
fn a_list_is_a_slice_and_an_iterator() {
    let list = filled().list();
    let borrowed: Vec<&str> = (&list).into_iter().map(|object| object.key().as_str()).collect();
    assert_eq!(borrowed, ["shop/web", "shop/db", "lab/web", "node"]);
    assert_eq!(list.first().map(Object::name), Some("web"));
    let debug = format!("{:?}", filled().namespace("lab").list());
    assert_eq!(debug, "List { items: [Object(lab/web@3)], version: 4 }");
    let copy = list.clone();
    assert_eq!(copy.into_iter().count(), list.into_vec().len());
}

#[test]
fn a_lister_is_the_same_cache_under_any_type_and_keeps_its_informer() {
    let alive = Alive::new(|| ());
    let lister = Lister::<Untyped>::new(filled().store, Some(alive.clone()));
    let typed: Lister<k8s_openapi::api::core::v1::Pod> = lister.clone().cast();
    assert_eq!((typed.len(), typed.is_empty(), typed.keys()), (4, false, lister.keys()));
    assert!(!typed.has_synced());
    let objects = lister.list().into_vec();
    let list = Delta::ReplacedAll { objects, unreadable: vec![], version: "4".into() };
    apply(&lister.store, vec![list]);
    assert!(typed.has_synced());
    assert_eq!(format!("{typed:?}"), "Lister { len: 4, version: 4, .. }");
    let shop = typed.namespace("shop");
    assert_eq!(format!("{shop:?}"), r#"NamespaceLister { namespace: "shop", len: 2, .. }"#);
    drop((lister, typed));
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(shop.clone());
    drop(shop);
    assert_eq!(Arc::strong_count(&alive), 1);
}
