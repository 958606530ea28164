//! A controller of config maps that reports its reconciles.

use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::controller::ControllerHandle;
use kube_informer::{Action, BoxError, Controller, NotSynced, Request, SharedInformerFactory};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": name}})
}

pub(crate) fn secret(name: &str, owner: Option<&Value>) -> Value {
    let owner = owner.map(|owner| {
        let metadata = &owner["metadata"];
        json!({"apiVersion": "v1", "kind": "ConfigMap", "controller": true,
            "name": metadata["name"], "uid": metadata["uid"]})
    });
    let mut secret = map(name);
    secret["kind"] = "Secret".into();
    secret["metadata"]["ownerReferences"] = Vec::from_iter(owner).into();
    secret
}

pub(crate) fn labelled(mut object: Value, label: &str) -> Value {
    object["metadata"]["labels"]["l"] = label.into();
    object
}

/// A controller that runs in a task of its own.
pub(crate) struct Running {
    pub(crate) reconciled: UnboundedReceiver<Request<ConfigMap>>,
    pub(crate) handle: ControllerHandle,
    pub(crate) task: JoinHandle<Result<(), NotSynced>>,
}

impl Running {
    /// Returns the next request: the name of the object, and whether it exists.
    pub(crate) async fn next(&mut self) -> (String, bool) {
        let request = self.reconciled.recv().await.expect("it runs");
        (request.key.name().to_owned(), request.object.is_some())
    }

    /// Asserts that nothing is reconciled in the next hour.
    pub(crate) async fn is_quiet(&mut self) {
        let next = tokio::time::timeout(3600 * SECOND, self.reconciled.recv()).await;
        assert!(next.is_err(), "{next:?}");
    }
}

pub(crate) type Outcome = Result<Action, BoxError>;

/// Runs a controller with a reconciler that is called for each request, after the request was
/// reported.
pub(crate) fn run<R>(
    controller: Controller<ConfigMap>,
    reconcile: impl Fn(Request<ConfigMap>) -> R + Send + Sync + 'static,
) -> Running
where
    R: Future<Output = Outcome> + Send + 'static,
{
    let (tell, reconciled): (UnboundedSender<_>, _) = unbounded_channel();
    let (handle, reconcile) = (controller.handle(), Arc::new(reconcile));
    let task = tokio::spawn(controller.run(move |request: Request<ConfigMap>| {
        let (tell, reconcile) = (tell.clone(), reconcile.clone());
        async move {
            let _ = tell.send(request.clone());
            reconcile(request).await
        }
    }));
    Running { reconciled, handle, task }
}

/// Runs a controller with a reconciler that does nothing.
pub(crate) fn run_idle(controller: Controller<ConfigMap>) -> Running {
    run(controller, async |_| Ok(Action::await_change()))
}

pub(crate) fn scene() -> (ApiServer, SharedInformerFactory) {
    let server = ApiServer::start();
    let factory = SharedInformerFactory::new(server.client());
    (server, factory)
}
