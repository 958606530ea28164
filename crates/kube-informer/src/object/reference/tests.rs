use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ObjectReference, Pod};
use kube_core::{ApiResource, DynamicObject, PartialObjectMeta, Resource};
use serde_json::json;

use crate::object::{Kind, Object};

fn object<K>(api_version: &str, namespace: &str) -> Object<K> {
    let json = json!({
        "apiVersion": api_version, "kind": "Widget",
        "metadata": {"name": "a", "namespace": namespace, "uid": "u1", "resourceVersion": "7"},
    });
    Object::from_json(json.to_string()).unwrap()
}

fn text<K: Kind>(owner: &Object<K>, namespace: Option<&str>) -> String {
    owner.controller_reference(namespace).unwrap_err().to_string()
}

#[test]
fn an_owner_is_in_the_namespace_of_its_child_or_in_none() {
    let owner: Object<Pod> = object("v1", "shop");
    let reference = owner.controller_reference(Some("shop")).unwrap();
    let expected = json!({
        "apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u1",
        "controller": true, "blockOwnerDeletion": true,
    });
    assert_eq!(serde_json::to_value(reference).unwrap(), expected);
    assert!(text(&owner, Some("other")).contains("\"other\""));
    assert!(text(&owner, None).contains("cluster-scoped"));
    let node: Object<Namespace> = object("v1", "");
    for child in [None, Some("shop"), Some("other")] {
        assert_eq!(node.controller_reference(child).unwrap().kind, "Namespace");
    }
}

#[test]
fn an_object_without_a_uid_owns_nothing() {
    let owner: Object<Pod> = Object::from_json(r#"{"metadata": {"name": "a"}}"#).unwrap();
    assert!(text(&owner, None).contains("uid"));
}

#[test]
fn kinds_are_those_of_the_type_or_of_the_object() {
    let partial: Object<PartialObjectMeta<Pod>> = object("meta.k8s.io/v1", "shop");
    assert_eq!(partial.controller_reference(Some("shop")).unwrap().kind, "Pod");
    let dynamic: Object<DynamicObject> = object("example.com/v1", "shop");
    let reference = dynamic.controller_reference(Some("shop")).unwrap();
    assert_eq!((&*reference.api_version, &*reference.kind), ("example.com/v1", "Widget"));
    let bare: Object<DynamicObject> =
        Object::from_json(r#"{"metadata": {"name": "a", "uid": "u"}}"#).unwrap();
    assert!(text(&bare, None).contains("no apiVersion"));
    assert_eq!(ObjectReference::from(&bare).kind, None);
    assert_eq!(ObjectReference::from(&dynamic).resource_version.as_deref(), Some("7"));
}

#[test]
fn a_child_has_one_controller_and_keeps_its_owners() {
    let owner: Object<Pod> = object("v1", "shop");
    let mut child = ConfigMap::default();
    let mut other = owner.controller_reference(Some("shop")).unwrap();
    other.uid = "u2".to_owned();
    other.controller = None;
    child.metadata.owner_references = Some(vec![other.clone()]);
    owner.control(&mut child).unwrap();
    owner.control(&mut child).unwrap();
    let uids = |child: &ConfigMap| {
        let owners = child.metadata.owner_references.iter().flatten();
        owners.map(|owner| owner.uid.clone()).collect::<Vec<_>>()
    };
    assert_eq!(uids(&child), ["u2", "u1"]);
    assert_eq!(child.metadata.namespace.as_deref(), Some("shop"));
    other.controller = Some(true);
    child.metadata.owner_references = Some(vec![other]);
    let error = owner.control(&mut child).unwrap_err();
    assert!(error.to_string().contains("the Pod \"a\" controls"), "{error}");
    assert_eq!(uids(&child), ["u2"]);
}

#[test]
fn a_child_is_put_only_where_its_kind_allows() {
    let owner: Object<Pod> = object("v1", "shop");
    let mut elsewhere = ConfigMap::default();
    elsewhere.metadata.namespace = Some("other".to_owned());
    assert!(owner.control(&mut elsewhere).is_err());
    assert_eq!(elsewhere.metadata.namespace.as_deref(), Some("other"));
    assert!(owner.control(&mut Namespace::default()).is_err());
    // Only the server knows whether a dynamic kind has namespaces.
    let mut dynamic = DynamicObject::new("b", &ApiResource::erase::<ConfigMap>(&()));
    assert!(owner.control(&mut dynamic).is_err());
    dynamic.meta_mut().namespace = Some("shop".to_owned());
    owner.control(&mut dynamic).unwrap();
}
