//! The reconciler, which maintains the children of a parent.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams, Preconditions};
use kube_informer::{Action, BoxError, Finalizer, Object, Reconciler, Request, SharedInformer};

use super::parents::{AGAIN, Wants};
use super::settings::Kinship;
use super::world::{FINALIZER, NAMESPACE, PARENT, SLOT, World};

pub(crate) struct Keeper {
    pub(crate) world: Arc<World>,
    pub(crate) instance: usize,
    pub(crate) client: kube::Client,
    pub(crate) children: SharedInformer<Secret>,
}

impl Reconciler<ConfigMap> for Keeper {
    type Error = BoxError;

    async fn reconcile(&self, request: Request<ConfigMap>) -> Result<Action, BoxError> {
        let _reconciling = self.world.begin(self.instance, &request.key);
        self.world.mishap().await?;
        let Some(parent) = &request.object else { return self.bury(&request).await };
        if !Wants::of(&*parent.decode()?).outside && !parent.has_finalizer(FINALIZER) {
            return self.keep(&request, parent).await;
        }
        let api = Api::namespaced(self.client.clone(), NAMESPACE);
        let done = request.finalizer(&api, FINALIZER, async |state| match state {
            Finalizer::Apply(parent) => {
                if Wants::of(&*parent.decode()?).outside {
                    self.world.make_outside(parent.name(), parent.uid());
                } else {
                    self.world.remove_outside(parent.name(), parent.uid());
                }
                self.keep(&request, &parent).await
            }
            Finalizer::Cleanup(parent) => {
                for child in self.children_of(&parent) {
                    self.delete(&child).await?;
                }
                self.world.dawdle().await;
                self.world.remove_outside(parent.name(), parent.uid());
                Ok::<_, BoxError>(Action::await_change())
            }
        });
        Ok(done.await?.unwrap_or(Action::await_change()))
    }
}

impl Keeper {
    /// Brings the children in line with their parent.
    async fn keep(
        &self,
        request: &Request<ConfigMap>,
        parent: &Object<ConfigMap>,
    ) -> Result<Action, BoxError> {
        let wants = Wants::of(&*parent.decode()?);
        let (mut kept, mut surplus) = (BTreeMap::new(), Vec::new());
        for child in self.children_of(parent) {
            let slot = child.labels().get(SLOT).unwrap_or_default().to_owned();
            let is_anothers = child.controller().is_some_and(|owner| owner.uid != parent.uid());
            if is_anothers || !wants.children.contains_key(&slot) {
                surplus.push(child);
                continue;
            }
            match kept.entry(slot) {
                Entry::Vacant(place) => {
                    place.insert(child);
                }
                Entry::Occupied(_) => {
                    let (by, name) = (self.instance, child.name());
                    self.world.note(format!("{by} sees a second copy: {name}"));
                    surplus.push(child);
                }
            }
        }
        for child in surplus {
            self.delete(&child).await?;
        }
        for (slot, &number) in &wants.children {
            self.world.dawdle().await;
            match kept.get(slot) {
                Some(child) => self.mend(request, parent, child, number).await?,
                None => self.create(request, parent, slot, number).await?,
            }
        }
        Ok(if wants.again { Action::requeue(AGAIN) } else { Action::await_change() })
    }

    async fn create(
        &self,
        request: &Request<ConfigMap>,
        parent: &Object<ConfigMap>,
        slot: &str,
        number: u32,
    ) -> Result<(), BoxError> {
        let labels = [(PARENT, parent.name()), (SLOT, slot)];
        let labels = labels.map(|(label, value)| (label.to_owned(), value.to_owned()));
        let metadata = ObjectMeta {
            generate_name: Some("child-".to_owned()),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        };
        let mut child = Secret { metadata, data: Some(data(number)), ..Secret::default() };
        parent.control(&mut child)?;
        let created = self.api().create(&PostParams::default(), &child).await?;
        self.world.note(format!("{} creates {slot} of {}", self.instance, parent.name()));
        self.world.created(parent.uid(), slot);
        if !self.world.settings.strict {
            // If the reconcile ends here, its write is not recorded.
            self.world.mishap().await?;
        }
        if self.world.settings.careful {
            request.wrote(&self.children, created.metadata.resource_version);
        }
        Ok(())
    }

    /// Restores the number and the owner of a child.
    async fn mend(
        &self,
        request: &Request<ConfigMap>,
        parent: &Object<ConfigMap>,
        child: &Object<Secret>,
        number: u32,
    ) -> Result<(), BoxError> {
        let is_orphan = child.controller().is_none();
        let mut mended = (*child.decode()?).clone();
        if !is_orphan && mended.data == Some(data(number)) {
            return Ok(());
        }
        mended.data = Some(data(number));
        parent.control(&mut mended)?;
        let does = if is_orphan { "adopts" } else { "updates" };
        // Only if it is as cached: the version is part of it.
        let written = self.api().replace(child.name(), &PostParams::default(), &mended).await?;
        self.world.note(format!("{} {does} {} of {}", self.instance, child.name(), parent.name()));
        if self.world.settings.careful {
            request.wrote(&self.children, written.metadata.resource_version);
        }
        Ok(())
    }

    async fn delete(&self, child: &Object<Secret>) -> Result<(), BoxError> {
        let uid = Some(child.uid().to_owned());
        let preconditions = Some(Preconditions { uid, ..Preconditions::default() });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        match self.api().delete(child.name(), &params).await {
            Ok(_) => {
                self.world.note(format!("{} deletes {}", self.instance, child.name()));
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes the children of a deleted parent if there is no garbage collector.
    async fn bury(&self, request: &Request<ConfigMap>) -> Result<Action, BoxError> {
        if self.world.settings.kinship == Kinship::Label {
            for child in self.labelled(request.key.name()) {
                self.delete(&child).await?;
            }
        }
        Ok(Action::await_change())
    }

    fn children_of(&self, parent: &Object<ConfigMap>) -> Vec<Object<Secret>> {
        match self.world.settings.kinship {
            Kinship::Owner => self.cached(|child| child.is_controlled_by(parent)),
            Kinship::Label => self.labelled(parent.name()),
        }
    }

    fn labelled(&self, parent: &str) -> Vec<Object<Secret>> {
        self.cached(|child| child.labels().get(PARENT) == Some(parent))
    }

    fn cached(&self, is_wanted: impl Fn(&Object<Secret>) -> bool) -> Vec<Object<Secret>> {
        let mut children = self.children.lister().list().into_vec();
        children.retain(is_wanted);
        // The same one of several is kept, whatever the order in the cache.
        children.sort_by(|a, b| a.name().cmp(b.name()));
        children
    }

    fn api(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }
}

/// The data of a child.
pub(crate) fn data(number: u32) -> BTreeMap<String, ByteString> {
    BTreeMap::from([("number".to_owned(), ByteString(number.to_string().into_bytes()))])
}
