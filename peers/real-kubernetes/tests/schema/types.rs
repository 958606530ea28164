//! Every kind that k8s-openapi has a type for.

use k8s_openapi::{Resource, api, apiextensions_apiserver, kube_aggregator};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A type, with the kind of its objects.
#[derive(Debug)]
pub(crate) struct Typed {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// Fails unless JSON and protobuf decode to the same value.
    pub(crate) agree: fn(&Value, &[u8]) -> Result<(), String>,
}

fn typed<T: Resource + DeserializeOwned + PartialEq>() -> Typed {
    Typed { api_version: T::API_VERSION, kind: T::KIND, agree: agree::<T> }
}

fn agree<T: DeserializeOwned + PartialEq>(json: &Value, bytes: &[u8]) -> Result<(), String> {
    let from_json = serde_json::from_value::<T>(json.clone());
    let from_bytes = kube_schema::from_slice::<T>(bytes);
    match (from_json, from_bytes) {
        (Ok(a), Ok(b)) if a == b => Ok(()),
        // For example null for a time in a map, which no type of k8s-openapi accepts.
        (Err(_), Err(_)) => Ok(()),
        (Ok(_), Ok(_)) => Err("JSON and protobuf give different values".to_owned()),
        (Ok(_), Err(error)) => Err(format!("only JSON is read: {error}")),
        (Err(error), Ok(_)) => Err(format!("only protobuf is read: {error}")),
    }
}

macro_rules! typed {
    ($($kind:ty,)*) => { &[$(typed::<$kind>),*] };
}

pub(crate) const TYPES: &[fn() -> Typed] = typed![
    api::admissionregistration::v1::MutatingAdmissionPolicy,
    api::admissionregistration::v1::MutatingAdmissionPolicyBinding,
    api::admissionregistration::v1::MutatingWebhookConfiguration,
    api::admissionregistration::v1::ValidatingAdmissionPolicy,
    api::admissionregistration::v1::ValidatingAdmissionPolicyBinding,
    api::admissionregistration::v1::ValidatingWebhookConfiguration,
    api::admissionregistration::v1alpha1::MutatingAdmissionPolicy,
    api::admissionregistration::v1alpha1::MutatingAdmissionPolicyBinding,
    api::admissionregistration::v1beta1::MutatingAdmissionPolicy,
    api::admissionregistration::v1beta1::MutatingAdmissionPolicyBinding,
    api::apiserverinternal::v1alpha1::StorageVersion,
    api::apps::v1::ControllerRevision,
    api::apps::v1::DaemonSet,
    api::apps::v1::Deployment,
    api::apps::v1::ReplicaSet,
    api::apps::v1::StatefulSet,
    api::authentication::v1::SelfSubjectReview,
    api::authentication::v1::TokenRequest,
    api::authentication::v1::TokenReview,
    api::authorization::v1::LocalSubjectAccessReview,
    api::authorization::v1::SelfSubjectAccessReview,
    api::authorization::v1::SelfSubjectRulesReview,
    api::authorization::v1::SubjectAccessReview,
    api::autoscaling::v1::HorizontalPodAutoscaler,
    api::autoscaling::v1::Scale,
    api::autoscaling::v2::HorizontalPodAutoscaler,
    api::batch::v1::CronJob,
    api::batch::v1::Job,
    api::certificates::v1::CertificateSigningRequest,
    api::certificates::v1::ClusterTrustBundle,
    api::certificates::v1::PodCertificateRequest,
    api::certificates::v1beta1::ClusterTrustBundle,
    api::certificates::v1beta1::PodCertificateRequest,
    api::coordination::v1::Lease,
    api::coordination::v1alpha2::LeaseCandidate,
    api::coordination::v1beta1::LeaseCandidate,
    api::core::v1::Binding,
    api::core::v1::ComponentStatus,
    api::core::v1::ConfigMap,
    api::core::v1::Endpoints,
    api::core::v1::Event,
    api::core::v1::LimitRange,
    api::core::v1::Namespace,
    api::core::v1::Node,
    api::core::v1::PersistentVolume,
    api::core::v1::PersistentVolumeClaim,
    api::core::v1::Pod,
    api::core::v1::PodTemplate,
    api::core::v1::ReplicationController,
    api::core::v1::ResourceQuota,
    api::core::v1::Secret,
    api::core::v1::Service,
    api::core::v1::ServiceAccount,
    api::discovery::v1::EndpointSlice,
    api::events::v1::Event,
    api::flowcontrol::v1::FlowSchema,
    api::flowcontrol::v1::PriorityLevelConfiguration,
    api::lifecycle::v1alpha1::Eviction,
    api::lifecycle::v1alpha1::EvictionRequest,
    api::networking::v1::Ingress,
    api::networking::v1::IngressClass,
    api::networking::v1::IPAddress,
    api::networking::v1::NetworkPolicy,
    api::networking::v1::ServiceCIDR,
    api::node::v1::RuntimeClass,
    api::policy::v1::Eviction,
    api::policy::v1::PodDisruptionBudget,
    api::rbac::v1::ClusterRole,
    api::rbac::v1::ClusterRoleBinding,
    api::rbac::v1::Role,
    api::rbac::v1::RoleBinding,
    api::resource::v1::DeviceClass,
    api::resource::v1::DeviceTaintRule,
    api::resource::v1::ResourceClaim,
    api::resource::v1::ResourceClaimTemplate,
    api::resource::v1::ResourceSlice,
    api::resource::v1alpha3::DeviceTaintRule,
    api::resource::v1alpha3::ResourcePoolStatusRequest,
    api::resource::v1beta1::DeviceClass,
    api::resource::v1beta1::ResourceClaim,
    api::resource::v1beta1::ResourceClaimTemplate,
    api::resource::v1beta1::ResourceSlice,
    api::resource::v1beta2::DeviceClass,
    api::resource::v1beta2::DeviceTaintRule,
    api::resource::v1beta2::ResourceClaim,
    api::resource::v1beta2::ResourceClaimTemplate,
    api::resource::v1beta2::ResourceSlice,
    api::scheduling::v1::PriorityClass,
    api::scheduling::v1alpha3::CompositePodGroup,
    api::scheduling::v1alpha3::PodGroup,
    api::scheduling::v1alpha3::Workload,
    api::scheduling::v1beta1::PodGroup,
    api::scheduling::v1beta1::Workload,
    api::storage::v1::CSIDriver,
    api::storage::v1::CSINode,
    api::storage::v1::CSIStorageCapacity,
    api::storage::v1::StorageClass,
    api::storage::v1::VolumeAttachment,
    api::storage::v1::VolumeAttributesClass,
    api::storagemigration::v1::StorageVersionMigration,
    api::storagemigration::v1beta1::StorageVersionMigration,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
];
