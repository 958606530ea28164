//! References to an object: as an owner, and as the subject of an event.

use std::any::{Any, TypeId};

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::{ClusterResourceScope, NamespaceResourceScope, Resource};

use super::{Kind, Object};
use crate::{Error, Result};

/// References to the object.
impl<K: Kind> Object<K> {
    /// Builds the owner reference that makes this object the controller of a child, with
    /// `blockOwnerDeletion`: if the owner is deleted in the foreground, it stays until the child is
    /// gone.
    ///
    /// `namespace` is that of the child, `None` for a cluster-scoped one.
    ///
    /// # Errors
    ///
    /// Fails if a namespaced owner and the child are not in the same namespace. The garbage collector
    /// would look for the owner in the child's namespace, not find it there, and delete the child.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::ReplicaSet;
    /// use kube_informer::Object;
    ///
    /// let set: Object<ReplicaSet> = Object::from_json(
    ///     r#"{"metadata": {"name": "web", "namespace": "shop", "uid": "7d5c"}}"#,
    /// )?;
    /// let reference = set.controller_reference(Some("shop"))?;
    /// assert_eq!((&*reference.api_version, &*reference.kind), ("apps/v1", "ReplicaSet"));
    /// assert_eq!((&*reference.uid, reference.controller), ("7d5c", Some(true)));
    ///
    /// let error = set.controller_reference(None).unwrap_err();
    /// assert!(error.is_invalid() && error.to_string().contains("cluster-scoped"));
    /// # Ok::<(), kube_informer::Error>(())
    /// ```
    pub fn controller_reference(&self, namespace: Option<&str>) -> Result<OwnerReference> {
        match (self.namespace(), namespace) {
            (None, _) => {}
            (Some(own), Some(child)) if own == child => {}
            (Some(_), None) => {
                return Err(self.cannot_own("a cluster-scoped object: its owner must be one too"));
            }
            (Some(_), Some(child)) => {
                let why = format!(
                    "an object in namespace {child:?}: both must be in the same namespace, or the \
                     owner must be cluster-scoped"
                );
                return Err(self.cannot_own(&why));
            }
        }
        let (api_version, kind) = self.types()?;
        if self.uid().is_empty() {
            return Err(self.cannot_own("anything before the server has given it a uid"));
        }
        Ok(OwnerReference {
            api_version,
            kind,
            name: self.name().to_owned(),
            uid: self.uid().to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        })
    }

    /// Makes this object the controller of a child that is about to be written.
    ///
    /// A child of a namespaced kind without a namespace is put into that of its owner. The child keeps its
    /// other owners.
    ///
    /// # Errors
    ///
    /// Fails as [`controller_reference`](Self::controller_reference) does, and if the child already has another
    /// controller, because two controllers of one object undo each other's work.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{ConfigMap, Service};
    /// use kube::ResourceExt;
    /// use kube_informer::Object;
    ///
    /// let service: Object<Service> = Object::from_json(
    ///     r#"{"metadata": {"name": "web", "namespace": "shop", "uid": "7d5c"}}"#,
    /// )?;
    /// let mut child = ConfigMap::default();
    /// child.metadata.name = Some("web-settings".to_owned());
    /// service.control(&mut child)?;
    /// assert_eq!(child.namespace().as_deref(), Some("shop"));
    /// assert!(Object::pack(&child)?.is_controlled_by(&service));
    /// # Ok::<(), kube_informer::Error>(())
    /// ```
    pub fn control<C: Resource>(&self, child: &mut C) -> Result<()>
    where
        C::Scope: 'static,
    {
        let scope = TypeId::of::<C::Scope>();
        let metadata = child.meta_mut();
        metadata.namespace = metadata.namespace.take().filter(|namespace| !namespace.is_empty());
        let namespace = if scope == TypeId::of::<ClusterResourceScope>() {
            None
        } else if scope == TypeId::of::<NamespaceResourceScope>() {
            metadata.namespace.as_deref().or(self.namespace())
        } else {
            metadata.namespace.as_deref()
        };
        let reference = self.controller_reference(namespace)?;
        let namespace = namespace.map(str::to_owned);
        let owners = metadata.owner_references.get_or_insert_default();
        if let Some(other) = owners.iter().find(|owner| owner.controller == Some(true))
            && other.uid != reference.uid
        {
            let (kind, name) = (&other.kind, &other.name);
            return Err(self.cannot_own(&format!("an object that the {kind} {name:?} controls")));
        }
        owners.retain(|owner| owner.uid != reference.uid);
        owners.push(reference);
        metadata.namespace = namespace;
        Ok(())
    }

    /// Returns `apiVersion` and `kind`: those of `K` or, for a dynamic kind, those in the object.
    fn types(&self) -> Result<(String, String)> {
        let nothing: &dyn Any = &();
        if let Some(known) = nothing.downcast_ref::<K::DynamicType>() {
            return Ok((K::api_version(known).into_owned(), K::kind(known).into_owned()));
        }
        let text = |field: &str| Ok::<_, Error>(self.field::<String>(field)?.unwrap_or_default());
        let (api_version, kind) = (text("apiVersion")?, text("kind")?);
        if api_version.is_empty() || kind.is_empty() {
            let why = "it has no apiVersion and kind, and its type does not know them";
            return Err(Error::invalid(format!("no reference to {}: {why}", self.key())));
        }
        Ok((api_version, kind))
    }

    fn cannot_own(&self, why: &str) -> Error {
        Error::invalid(format!("{} cannot control {why}", self.key()))
    }
}

/// A reference to this state of the object, as events contain it. For an object of a dynamic kind that lacks
/// `apiVersion` and `kind`, they are missing.
///
/// ```
/// use k8s_openapi::api::core::v1::{ObjectReference, Pod};
/// use kube_informer::Object;
///
/// let pod: Object<Pod> =
///     Object::from_json(r#"{"metadata": {"name": "web-0", "namespace": "shop", "uid": "7d5c"}}"#)?;
/// let reference = ObjectReference::from(&pod);
/// assert_eq!(reference.kind.as_deref(), Some("Pod"));
/// assert_eq!(reference.uid.as_deref(), Some("7d5c"));
/// # Ok::<(), kube_informer::Error>(())
/// ```
impl<K: Kind> From<&Object<K>> for ObjectReference {
    fn from(object: &Object<K>) -> Self {
        let (api_version, kind) = object.types().ok().unzip();
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Self {
            api_version,
            kind,
            namespace: object.namespace().map(str::to_owned),
            name: text(object.name()),
            uid: text(object.uid()),
            resource_version: text(object.resource_version().as_str()),
            field_path: None,
        }
    }
}

#[cfg(test)]
mod tests;
