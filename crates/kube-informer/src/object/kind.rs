//! What can be watched.

use serde::de::DeserializeOwned;

/// What an informer can watch: any kube `Resource` that deserializes. Implemented for all of them:
/// built-in kinds, `#[derive(CustomResource)]` types, `DynamicObject`, `PartialObjectMeta<K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be watched by an informer",
    note = "it must implement `kube::Resource` and `serde::Deserialize`, of the same kube version as kube-informer"
)]
pub trait Kind: kube_core::Resource + DeserializeOwned + Send + Sync + 'static {}
#[diagnostic::do_not_recommend]
impl<K> Kind for K where K: kube_core::Resource + DeserializeOwned + Send + Sync + 'static {}

/// A [`Kind`] that knows its resource at compile time: all but the dynamic ones.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not know its own resource, or cannot be watched at all",
    label = "not a kind that is known at compile time",
    note = "for a dynamic kind use `factory.dynamic(&api_resource)` or `factory.builder_with::<K>(&api_resource)`",
    note = "other types must implement `kube::Resource` and `serde::Deserialize`, with the kube version that kube-informer uses"
)]
pub trait StaticKind: Kind<DynamicType = ()> {}
#[diagnostic::do_not_recommend]
impl<K: Kind<DynamicType = ()>> StaticKind for K {}

/// The marker of handles that do not say what type their objects decode to.
#[derive(Clone, Copy, Debug)]
pub enum Untyped {}
