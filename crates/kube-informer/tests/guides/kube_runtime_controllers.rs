//! The controllers in the guide for users of kube-runtime: theirs, ours, and both combined.
#![expect(clippy::default_trait_access, reason = "as people write it")]

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Verb};
use futures::{FutureExt, StreamExt};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher;
use kube::{Client, CustomResource, CustomResourceExt, Resource, ResourceExt};
use kube_informer::{BoxError, Event, Object, ObjectKey, SharedInformer, SharedInformerFactory};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::sleep;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Website", namespaced)]
struct WebsiteSpec {
    html: String,
}

/// A server that knows websites, with one of them.
fn server() -> ApiServer {
    let server = ApiServer::start();
    server.create(serde_json::to_value(Website::crd()).unwrap()).unwrap();
    server
        .create(json!({
            "apiVersion": "example.com/v1", "kind": "Website",
            "metadata": {"namespace": "default", "name": "hello"}, "spec": {"html": "1"},
        }))
        .unwrap();
    server
}

/// Changes the website.
fn write(server: &ApiServer, html: &str) {
    let mut site = server.get("websites.example.com", "default", "hello").unwrap();
    site["spec"]["html"] = html.into();
    server.update(site).unwrap();
}

/// Waits until nothing is left to do, and looks at the page.
async fn page(server: &ApiServer) -> Option<String> {
    sleep(Duration::from_secs(60)).await;
    let page = server.get("configmaps", "default", "hello")?;
    page["data"]["html"].as_str().map(str::to_owned)
}

/// Makes it, changes it, deletes the page, and hears of all three.
async fn is_kept(server: &ApiServer) {
    assert_eq!(page(server).await.as_deref(), Some("1"));
    write(server, "2");
    assert_eq!(page(server).await.as_deref(), Some("2"));
    server.delete("configmaps", "default", "hello").unwrap();
    assert_eq!(page(server).await.as_deref(), Some("2"));
}

/// The page is deleted while its watch is down, and the server forgets that it was. Websites are watched all the time.
async fn miss_a_delete(server: &ApiServer) {
    assert_eq!(page(server).await.as_deref(), Some("1"));
    server.faults().on(Verb::Watch).resource("configmaps").always().inject(Fault::Refused);
    server.drop_watches();
    sleep(Duration::from_secs(5)).await;
    server.delete("configmaps", "default", "hello").unwrap();
    server.store().compact(u64::MAX);
    server.faults().clear();
    sleep(Duration::from_secs(60)).await;
}

mod theirs {
    use kube::runtime::Controller;
    use kube::runtime::controller::{Action, Config};

    use super::*;

    struct Context {
        client: Client,
    }

    async fn reconcile(
        site: Arc<Website>,
        context: Arc<Context>,
    ) -> Result<Action, kube::Error> {
        let namespace = site.namespace();
        let pages: Api<ConfigMap> = Api::namespaced(
            context.client.clone(),
            &namespace.unwrap_or_default(),
        );
        let name = site.name_any();
        let wanted = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                owner_references: site
                    .controller_owner_ref(&())
                    .map(|owner| vec![owner]),
                ..Default::default()
            },
            data: Some(
                [("html".into(), site.spec.html.clone())]
                    .into(),
            ),
            ..Default::default()
        };
        let params = Default::default();
        match pages.get_opt(&name).await? {
            None => {
                pages.create(&params, &wanted).await?;
            }
            Some(page) if page.data != wanted.data => {
                pages.replace(&name, &params, &wanted)
                    .await?;
            }
            Some(_) => {}
        }
        Ok(Action::requeue(Duration::from_secs(3600)))
    }

    fn error_policy(
        _site: Arc<Website>,
        _error: &kube::Error,
        _context: Arc<Context>,
    ) -> Action {
        Action::requeue(Duration::from_secs(5))
    }

    async fn run(
        client: Client,
        stop: impl Future<Output = ()> + Send + Sync + 'static,
    ) {
        let sites = Api::<Website>::all(client.clone());
        let pages = Api::<ConfigMap>::all(client.clone());
        Controller::new(sites, Default::default())
            .owns(pages, Default::default())
            .with_config(
                Config::default().concurrency(4))
            .graceful_shutdown_on(stop)
            .run(
                reconcile,
                error_policy,
                Arc::new(Context { client }),
            )
            .for_each(|result| {
                if let Err(error) = result {
                    eprintln!("{error}");
                }
                ready(())
            })
            .await;
    }

    #[tokio::test(start_paused = true)]
    async fn keeps_pages() {
        let server = server();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(run(server.client(), stopped.map(|_| ())));
        is_kept(&server).await;
        drop(stop);
        running.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_missed_delete_waits_for_the_next_requeue() {
        let server = server();
        let running = tokio::spawn(run(server.client(), std::future::pending()));
        miss_a_delete(&server).await;
        assert_eq!(page(&server).await, None);
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(page(&server).await.as_deref(), Some("1"));
        running.abort();
    }
}

mod ours {
    use kube_informer::{Action, Controller, Reconciler, Request};

    use super::*;

    struct Context {
        client: Client,
        pages: SharedInformer<ConfigMap>,
    }

    impl Reconciler<Website> for Context {
        type Error = BoxError;

        async fn reconcile(
            &self,
            request: Request<Website>,
        ) -> Result<Action, BoxError> {
            let Some(site) = &request.object else {
                return Ok(Action::await_change());
            };
            let pages: Api<ConfigMap> = Api::namespaced(
                self.client.clone(),
                site.namespace().unwrap_or_default(),
            );
            let html = site.decode()?.spec.html.clone();
            let mut wanted = ConfigMap {
                metadata: ObjectMeta {
                    name: Some(site.name().to_owned()),
                    ..Default::default()
                },
                data: Some([("html".into(), html)].into()),
                ..Default::default()
            };
            site.control(&mut wanted)?;
            let (name, params) =
                (site.name(), Default::default());
            let again =
                Action::requeue(Duration::from_secs(3600));
            let page = self.pages.lister().get(site.key());
            let written = match page {
                None => {
                    pages.create(&params, &wanted).await?
                }
                Some(page)
                    if page.decode()?.data != wanted.data =>
                {
                    pages.replace(name, &params, &wanted)
                        .await?
                }
                Some(_) => return Ok(again),
            };
            let version = written.metadata.resource_version;
            request.wrote(&self.pages, version);
            Ok(again)
        }
    }

    async fn run(
        client: Client,
        stop: impl Future + Send + 'static,
    ) -> Result<(), BoxError> {
        let factory =
            SharedInformerFactory::new(client.clone());
        let sites = factory.informer::<Website>();
        let pages = factory.informer::<ConfigMap>();
        Controller::new(&sites)
            .owns(&pages)
            .workers(4)
            .stop_on(stop)
            .on_error(|key, error| {
                eprintln!("{key}: {error}");
            })
            .run(Context { client, pages })
            .await?;
        factory.shutdown().await;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn keeps_pages() {
        let server = server();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(run(server.client(), stopped));
        is_kept(&server).await;
        drop(stop);
        running.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_missed_delete_is_repaired() {
        let server = server();
        let running = tokio::spawn(run(server.client(), std::future::pending::<()>()));
        miss_a_delete(&server).await;
        assert_eq!(page(&server).await.as_deref(), Some("1"));
        running.abort();
    }
}

mod together {
    use kube::runtime::applier;
    use kube::runtime::controller::Action;
    use kube::runtime::reflector::store::Writer;

    use super::*;

    #[derive(Clone)]
    struct Cached {
        metadata: ObjectMeta, // name and namespace alone
        object: Object<Website>,
    }

    impl Resource for Cached {
        type DynamicType = ();
        type Scope = NamespaceResourceScope;

        fn kind((): &()) -> Cow<'_, str> {
            Website::kind(&())
        }
        fn group((): &()) -> Cow<'_, str> {
            Website::group(&())
        }
        fn version((): &()) -> Cow<'_, str> {
            Website::version(&())
        }
        fn plural((): &()) -> Cow<'_, str> {
            Website::plural(&())
        }
        fn meta(&self) -> &ObjectMeta {
            &self.metadata
        }
        fn meta_mut(&mut self) -> &mut ObjectMeta {
            &mut self.metadata
        }
    }

    impl From<&Object<Website>> for Cached {
        fn from(object: &Object<Website>) -> Self {
            let metadata = ObjectMeta {
                name: Some(object.name().to_owned()),
                namespace: object
                    .namespace()
                    .map(str::to_owned),
                ..Default::default()
            };
            Self { metadata, object: object.clone() }
        }
    }

    fn fill(
        store: &mut Writer<Cached>,
        event: &Event<Website>,
    ) {
        use watcher::Event as Theirs;
        store.apply_watcher_event(&match event {
            Event::Added { object, initial: true } => {
                Theirs::InitApply(object.into())
            }
            Event::Synced => Theirs::InitDone,
            Event::Deleted(gone) => {
                Theirs::Delete((&gone.object).into())
            }
            Event::Added { object, .. }
            | Event::Updated { new: object, .. }
            | Event::Resynced(object) => {
                Theirs::Apply(object.into())
            }
        });
    }

    fn reference(key: &ObjectKey) -> ObjectRef<Cached> {
        let reference = ObjectRef::new(key.name());
        match key.namespace() {
            Some(namespace) => reference.within(namespace),
            None => reference,
        }
    }

    async fn reconcile(
        site: Arc<Cached>,
        pages: Arc<Api<ConfigMap>>,
    ) -> Result<Action, kube_informer::Error> {
        let html = site.object.decode()?.spec.html.clone();
        println!("{} says {html}", site.object.key());
        publish(&pages, &site.object, html).await;
        Ok(Action::await_change())
    }

    async fn publish(pages: &Api<ConfigMap>, site: &Object<Website>, html: String) {
        let mut page = ConfigMap { data: Some([("html".into(), html)].into()), ..Default::default() };
        page.metadata.name = Some(site.name().to_owned());
        site.control(&mut page).unwrap();
        if pages.replace(site.name(), &Default::default(), &page).await.is_err() {
            pages.create(&Default::default(), &page).await.unwrap();
        }
    }

    async fn run(factory: &SharedInformerFactory, api: Api<ConfigMap>) {
        let context = Arc::new(api);
        let sites = factory.informer::<Website>();
        let pages = factory.informer::<ConfigMap>();
        let (reader, mut store) = reflector::store();

        let changed = sites.events().filter_map(move |event| {
            fill(&mut store, &event);
            ready(event.key().map(reference))
        });
        let owned = pages.events().filter_map(|event| {
            let owner = event.object().and_then(|page| {
                let owner = page.controller()?;
                let key = page.key().sibling(&owner.name);
                (owner.kind == "Website")
                    .then(|| reference(&key))
            });
            ready(owner)
        });
        let queue = futures::stream::select(changed, owned)
            .map(Ok::<_, Infallible>);

        let results = applier(
            |site, context| {
                reconcile(site, context).boxed()
            },
            |_, _, _| Action::requeue(Duration::from_secs(5)),
            context,
            reader,
            queue,
            Default::default(),
        );
        let mut results = pin!(results);
        while results.next().await.is_some() {}
    }

    #[tokio::test(start_paused = true)]
    async fn keeps_pages() {
        let server = server();
        let factory = SharedInformerFactory::new(server.client());
        factory.start();
        let running = tokio::spawn({
            let (factory, api) = (factory.clone(), Api::default_namespaced(server.client()));
            async move { run(&factory, api).await }
        });
        is_kept(&server).await;
        factory.shutdown().await;
        running.await.unwrap();
        let reads = server.requests().iter().filter(|request| request.resource == "websites").count();
        assert_eq!(reads, 1, "one watch with initial events, and no other");
    }

    #[test]
    fn an_entry_is_a_pointer_and_a_name() {
        let object: Object<Website> = Object::from_json(r#"{"metadata": {"name": "a"}, "spec": {"html": ""}}"#).unwrap();
        let cached = Cached::from(&object);
        let bytes = |object: &Object<Website>| object.to_json().unwrap().as_ptr();
        assert_eq!(bytes(&cached.object), bytes(&object), "the same bytes");
        assert!((300..450).contains(&size_of::<Cached>()), "{}", size_of::<Cached>());
    }
}
