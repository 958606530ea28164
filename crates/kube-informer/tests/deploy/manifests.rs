//! The manifests, as objects of their types.

use std::fmt::Debug;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::runtime::wait::{await_condition, conditions};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{CRD, NAME, deployed, start};

/// Reads an object from the server as its type, and fails if the type lacks one of its fields.
pub(crate) fn typed<T: Serialize + DeserializeOwned + Debug>(resource: &str, namespace: &str) -> T {
    let stored = deployed().get(resource, namespace, NAME).expect("it is deployed");
    let typed: T = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), stored, "the type lacks a field");
    typed
}

/// The embedded server does not validate specs, so that the types have to.
#[tokio::test]
async fn manifests_match_their_types() {
    typed::<Namespace>("namespaces", "");
    typed::<ServiceAccount>("serviceaccounts", NAME);
    let role: ClusterRole = typed("clusterroles.rbac.authorization.k8s.io", "");
    let binding: ClusterRoleBinding = typed("clusterrolebindings.rbac.authorization.k8s.io", "");
    assert_eq!(binding.role_ref.kind, "ClusterRole");
    assert_eq!(Some(binding.role_ref.name), role.metadata.name);
    let role: Role = typed("roles.rbac.authorization.k8s.io", NAME);
    let binding_in: RoleBinding = typed("rolebindings.rbac.authorization.k8s.io", NAME);
    assert_eq!(binding_in.role_ref.kind, "Role");
    assert_eq!(Some(binding_in.role_ref.name), role.metadata.name);
    for subjects in [binding.subjects, binding_in.subjects] {
        let subjects = subjects.unwrap();
        let [account] = &*subjects else { panic!("one subject, not {subjects:?}") };
        assert_eq!((&*account.kind, &*account.name), ("ServiceAccount", NAME));
        assert_eq!(account.namespace.as_deref(), Some(NAME));
    }
    let deployment: Deployment = typed("deployments.apps", NAME);
    let (selector, template) = (deployment.spec.selector, deployment.spec.template);
    assert_eq!(selector.match_labels, template.metadata.unwrap().labels);
    assert_eq!(template.spec.unwrap().service_account_name.as_deref(), Some(NAME));
}

/// Without the definition the operator creates its own.
#[tokio::test]
async fn definition_is_that_of_the_program() {
    let server = embedded_apiserver::ApiServer::start();
    let operator = start(&server).await;
    let api = Api::<CustomResourceDefinition>::all(server.client());
    let is_there = conditions::is_crd_established();
    await_condition(api, "websites.example.com", is_there).await.unwrap();
    drop(operator);
    let of = |server: &embedded_apiserver::ApiServer| -> Value {
        server
            .get("customresourcedefinitions.apiextensions.k8s.io", "", "websites.example.com")
            .unwrap()["spec"]
            .take()
    };
    let deployed = embedded_apiserver::ApiServer::start();
    deployed.load_yaml(CRD).unwrap();
    let (program, manifest) = (of(&server), of(&deployed));
    assert_eq!(manifest, program, "deploy/operator/crd.yaml should be:\n{program:#}");
}
