//! Handlers that only fill a work queue.

use crate::workqueue::{LOW_PRIORITY, Task, WorkQueue};
use crate::{Event, HandlerBuilder, Lister, Object, ObjectKey, Registration};

impl<K: 'static> HandlerBuilder<K> {
    /// Queues the key of every object that is added, changes or is deleted.
    ///
    /// Objects of the initial list and unchanged objects (from a resync or a relist) are queued with
    /// [`LOW_PRIORITY`], so that a change does not wait behind them. With [`only_changes`](Self::only_changes),
    /// unchanged objects are not queued at all.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube_informer::{SharedInformerFactory, WorkQueue};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = embedded_apiserver::ApiServer::start();
    /// # let factory = SharedInformerFactory::new(server.client());
    /// let pods = factory.informer::<Pod>();
    /// let queue = WorkQueue::new();
    /// pods.handler().enqueue(&queue);
    /// # factory.start();
    /// # factory.wait_for_sync().await?;
    /// # queue.shut_down();
    ///
    /// while let Some(key) = queue.get().await {
    ///     match pods.lister().get(&*key) {
    ///         Some(pod) => println!("{key} is at {}", pod.resource_version()),
    ///         None => println!("{key} is gone"),
    ///     }
    ///     key.done();
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn enqueue(self, queue: &WorkQueue) -> Registration {
        self.enqueue_with(queue, |object| [object.key().clone()])
    }

    /// Queues the key of the controller of every object that is added, changes or is deleted: its owner with
    /// `controller: true`, if the lister has it.
    ///
    /// The owner is identified by its uid. An owner that was recreated under the same name does not own its
    /// predecessor's objects, and an owner that is not in the lister's cache is not queued.
    #[track_caller]
    pub fn enqueue_owner<O: 'static>(self, queue: &WorkQueue, owners: &Lister<O>) -> Registration {
        let owners = owners.clone();
        self.enqueue_with(queue, move |object| owner_key(object, &owners))
    }

    /// Queues tasks that are derived from each object that is added, changes or is deleted: any number of
    /// tasks, of any type.
    ///
    /// For a change, the tasks of both the old and the new state are queued, because an object that moves
    /// from one task to another affects both.
    #[track_caller]
    pub fn enqueue_with<T: Task, Tasks: IntoIterator<Item = T>>(
        self,
        queue: &WorkQueue<T>,
        tasks: impl Fn(&Object<K>) -> Tasks + Send + 'static,
    ) -> Registration {
        self.enqueue_when(queue, |_| true, tasks)
    }

    /// Queues tasks like [`enqueue_with`](Self::enqueue_with), but only for some events.
    #[track_caller]
    pub(crate) fn enqueue_when<T: Task, Tasks: IntoIterator<Item = T>>(
        self,
        queue: &WorkQueue<T>,
        worth: impl Fn(&Event<K>) -> bool + Send + 'static,
        tasks: impl Fn(&Object<K>) -> Tasks + Send + 'static,
    ) -> Registration {
        let queue = queue.clone();
        self.for_each(move |event| {
            if matches!(event, Event::Synced) || !worth(&event) {
                return;
            }
            let priority = priority(&event);
            for task in event_objects(&event).flat_map(&tasks) {
                queue.add_with_priority(task, priority);
            }
        })
    }
}

/// Returns the states that an event is about.
fn event_objects<K>(event: &Event<K>) -> impl Iterator<Item = &Object<K>> {
    let old = match event {
        Event::Updated { old, new } if !old.same_version(new) => Some(old),
        _ => None,
    };
    old.into_iter().chain(event.object())
}

/// Returns the priority of an event: changes come before unchanged objects.
fn priority<K>(event: &Event<K>) -> i32 {
    match event {
        Event::Added { initial: true, .. } | Event::Resynced(_) => LOW_PRIORITY,
        Event::Updated { old, new } if old.same_version(new) => LOW_PRIORITY,
        _ => 0,
    }
}

/// Returns the key of an object's controller, which is in the object's namespace or cluster-scoped.
pub(crate) fn owner_key<K, O>(object: &Object<K>, owners: &Lister<O>) -> Option<ObjectKey> {
    let controller = object.controller()?;
    let beside = object.key().sibling(&controller.name);
    let keys = [beside, ObjectKey::cluster(&controller.name)];
    let is_owner = |key: &ObjectKey| {
        owners.get(key).is_some_and(|owner| owner.uid() == controller.uid.as_ref())
    };
    keys.into_iter().find(is_owner)
}
