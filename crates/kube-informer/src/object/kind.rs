//! Types that an informer can watch.

use serde::de::DeserializeOwned;

/// A type that an informer can watch: any kube `Resource` that deserializes. Implemented for built-in kinds,
/// `#[derive(CustomResource)]` types, `DynamicObject` and `PartialObjectMeta<K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be watched by an informer",
    note = "it must implement `kube::Resource` and `serde::Deserialize`, of the same kube version as kube-informer"
)]
pub trait Kind: kube_core::Resource + DeserializeOwned + Send + Sync + 'static {}
#[diagnostic::do_not_recommend]
impl<K> Kind for K where K: kube_core::Resource + DeserializeOwned + Send + Sync + 'static {}

/// A [`Kind`] whose resource is known at compile time: all except the dynamic ones.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not know its own resource, or cannot be watched at all",
    label = "not a kind that is known at compile time",
    note = "for a dynamic kind use `factory.dynamic(&api_resource)` or `factory.builder_with::<K>(&api_resource)`",
    note = "other types must implement `kube::Resource` and `serde::Deserialize`, with the kube version that kube-informer uses"
)]
pub trait StaticKind: Kind<DynamicType = ()> {}
#[diagnostic::do_not_recommend]
impl<K: Kind<DynamicType = ()>> StaticKind for K {}

/// The type parameter of handles that do not specify a type for their objects.
#[derive(Clone, Copy, Debug)]
pub enum Untyped {}
