//! Read your own writes: the rules of the consistency store (CS).

use std::sync::{Arc, Mutex};

use embedded_apiserver::{ApiServer, Fault, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::PostParams;
use kube_informer::{
    Action, BoxError, ConsistencyStore, Controller, Finalizer, ObjectKey, Request, SharedInformer,
    SharedInformerFactory, finalizer,
};
use tokio::time::Instant;

use crate::scene::{Running, SECOND, labelled, map, run, scene, secret};

async fn synced(server: &ApiServer) -> (SharedInformerFactory, SharedInformer<ConfigMap>) {
    let factory = SharedInformerFactory::new(server.client());
    let maps = factory.informer();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    (factory, maps)
}

fn version_of(object: &serde_json::Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn cs1_cs2_each_cache_must_reach_its_newest_write() {
    let server = ApiServer::start();
    let (factory, maps) = synced(&server).await;
    let secrets = factory.informer::<Secret>();
    secrets.wait_for_sync().await.unwrap();
    let (store, key) = (ConsistencyStore::new(), ObjectKey::cluster("key"));
    assert_eq!(store.ensure_ready(&key), Ok(()));

    let first = server.create(map("first")).unwrap();
    let second = server.create(map("second")).unwrap();
    store.wrote_at(&key, &maps, version_of(&second));
    store.wrote_at(&key, &maps, version_of(&first)); // older: changes nothing
    let behind = store.ensure_ready(&key).unwrap_err();
    assert_eq!((&*behind.informer, behind.wrote), ("configmaps", version_of(&second).into()));
    assert!(behind.read < version_of(&first).into());
    assert_eq!(store.ensure_ready(&ObjectKey::cluster("another")), Ok(()));

    maps.wait_for_version(version_of(&second)).await.unwrap();
    let third = server.create(secret("third", None)).unwrap();
    store.wrote_at(&key, &secrets, version_of(&third));
    assert_eq!(&*store.ensure_ready(&key).unwrap_err().informer, "secrets");
    secrets.wait_for_version(version_of(&third)).await.unwrap();
    assert_eq!(store.ensure_ready(&key), Ok(()));
    // The record is removed, whatever the caches do from here on.
    assert_eq!(format!("{store:?}"), "ConsistencyStore { tasks: 0 }");
}

#[tokio::test(start_paused = true)]
async fn cs3_cs4_an_empty_cache_is_not_ready() {
    let server = ApiServer::start();
    let (_factory, maps) = synced(&server).await;
    let (store, key) = (ConsistencyStore::new(), ObjectKey::cluster("key"));
    for version in ["", "0", "00", "x7", "1.5", "-1"] {
        store.wrote_at(&key, &maps, version);
        assert_eq!(store.ensure_ready(&key), Ok(()), "{version:?}");
    }
    let idle = SharedInformerFactory::new(server.client());
    let unfilled = idle.informer::<ConfigMap>();
    store.wrote_at(&key, &unfilled, "1");
    assert!(store.ensure_ready(&key).unwrap_err().read.is_empty());
    // An informer that has been stopped will never have it.
    unfilled.stop();
    assert_eq!(store.ensure_ready(&key), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn cs5_what_was_written_for_a_task_can_be_forgotten() {
    let server = ApiServer::start();
    let (_factory, maps) = synced(&server).await;
    let (store, key) = (ConsistencyStore::new(), ObjectKey::cluster("key"));
    let written = server.create(map("a")).unwrap();
    store.wrote_at(&key, &maps, version_of(&written));
    assert!(store.ensure_ready(&key).is_err());
    store.clear(&key);
    assert_eq!(store.ensure_ready(&key), Ok(()));
}

/// A controller that creates a secret for each map with `generateName`: with a stale cache it creates two.
fn makes_secrets(
    server: &ApiServer,
    factory: &SharedInformerFactory,
    change: impl FnOnce(Controller<ConfigMap>) -> Controller<ConfigMap>,
    is_careful: bool,
) -> Running {
    let secrets = factory.informer::<Secret>();
    let controller = Controller::new(&factory.informer::<ConfigMap>()).owns(&secrets);
    let api = Api::<Secret>::default_namespaced(server.client());
    run(change(controller), move |request: Request<ConfigMap>| {
        let (secrets, api) = (secrets.clone(), api.clone());
        async move {
            let Some(owner) = &request.object else { return Ok(Action::await_change()) };
            let list = secrets.lister().list();
            if list.iter().any(|secret| secret.is_controlled_by(owner)) {
                return Ok(Action::await_change());
            }
            let owner = serde_json::from_slice(&owner.to_json()?)?;
            let mut secret = secret("", Some(&owner));
            secret["metadata"]["generateName"] = "made-".into();
            let made = api.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
            if is_careful {
                request.wrote(&secrets, made.metadata.resource_version);
            }
            Ok(Action::await_change())
        }
    })
}

/// Creates a map, silences the watch of secrets, and touches the map.
async fn with_silent_secrets(server: &ApiServer, running: &mut Running) {
    let silent = Fault::Latency(20 * SECOND);
    server.faults().on(Verb::Watch).resource("secrets").after_events(0).inject(silent);
    let made = server.create(map("a")).unwrap();
    running.next().await;
    server.update(labelled(made, "b")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_until_the_cache_includes_its_writes() {
    let (server, factory) = scene();
    let mut running = makes_secrets(&server, &factory, |controller| controller, true);
    factory.start();
    factory.wait_for_sync().await.unwrap();
    let began = Instant::now();
    with_silent_secrets(&server, &mut running).await;
    // A map without writes does not wait.
    server.create(map("another")).unwrap();
    assert_eq!(running.next().await, ("another".into(), true));
    assert!(began.elapsed() < SECOND);
    // Both, once their secrets are in the cache.
    let mut next = [running.next().await.0, running.next().await.0];
    next.sort();
    assert_eq!(next, ["a", "another"]);
    assert!(began.elapsed() >= 15 * SECOND, "{:?}", began.elapsed());
    // It may be reconciled once more because it waited, but nothing more is created.
    tokio::time::sleep(3600 * SECOND).await;
    assert_eq!(server.list("secrets", "default").len(), 2);
    let status = running.handle.status();
    assert!(status.waited_for_cache > 0 && status.behind == 0, "{status:?}");
}

/// Shows that the test above can fail.
#[tokio::test(start_paused = true)]
async fn a_controller_that_does_not_say_what_it_wrote_makes_it_twice() {
    let (server, factory) = scene();
    let mut running = makes_secrets(&server, &factory, |controller| controller, false);
    factory.start();
    factory.wait_for_sync().await.unwrap();
    with_silent_secrets(&server, &mut running).await;
    running.next().await;
    running.next().await;
    assert_eq!(server.list("secrets", "default").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_stays_behind_is_reported_and_the_key_goes_on() {
    let (server, factory) = scene();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    let change = move |controller: Controller<ConfigMap>| {
        controller
            .consistency_timeout(5 * SECOND)
            .on_error(move |key, error| tell.lock().unwrap().push(format!("{key}: {error}")))
    };
    let mut running = makes_secrets(&server, &factory, change, true);
    factory.start();
    factory.wait_for_sync().await.unwrap();
    let began = Instant::now();
    with_silent_secrets(&server, &mut running).await;
    assert_eq!(running.next().await, ("a".into(), true));
    assert_eq!(began.elapsed().as_secs(), 5);
    assert_eq!(running.handle.status().behind, 1);
    let told = told.lock().unwrap().join("\n");
    assert!(told.contains("default/a: the cache of secrets is at version"), "{told}");
    assert!(told.contains("reconciled all the same after 5s"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_write_deleted_before_it_was_cached_is_noticed() {
    let (server, factory) = scene();
    let mut running = makes_secrets(&server, &factory, |controller| controller, true);
    factory.start();
    factory.wait_for_sync().await.unwrap();
    server.faults().on(Verb::Watch).resource("secrets").after_events(0).inject(Fault::StalledBody);
    server.create(map("a")).unwrap();
    running.next().await;
    let made = loop {
        match server.list("secrets", "default").pop() {
            Some(made) => break made,
            None => tokio::task::yield_now().await,
        }
    };
    server.delete("secrets", "default", made["metadata"]["name"].as_str().unwrap()).unwrap();
    // The watch resumes when the events of both have expired: a list shows neither.
    server.faults().on(Verb::Watch).resource("secrets").inject(Fault::Compact);
    server.restart();
    let next = tokio::time::timeout(600 * SECOND, running.next()).await;
    assert_eq!(next.expect("it is looked at again"), ("a".into(), true));
    tokio::time::sleep(SECOND).await;
    assert_eq!(server.list("secrets", "default").len(), 1);
}

/// Deletes a map with a finalizer, whose watch stalls during the cleanup, and triggers its key once more. Returns
/// how often the map was cleaned up.
async fn cleanups_with_a_stalled_watch(records_writes: bool) -> usize {
    const NAME: &str = "example.com/volumes";
    let (server, factory) = scene();
    let mut object = map("a");
    object["metadata"]["finalizers"] = vec![NAME].into();
    server.create(object).unwrap();
    let owner = ObjectKey::namespaced("default", "a");
    let controller = Controller::new(&factory.informer::<ConfigMap>())
        .watches(&factory.informer::<Secret>(), move |_| vec![owner.clone()]);
    let (cleaned, api) = (Arc::new(Mutex::new(0)), Api::all(server.client()));
    let (count, faulty) = (cleaned.clone(), server.clone());
    let mut running = run(controller, move |request: Request<ConfigMap>| {
        let (count, faulty, api) = (count.clone(), faulty.clone(), api.clone());
        async move {
            let reconcile = async |state| {
                if let Finalizer::Cleanup(_) = state {
                    *count.lock().unwrap() += 1;
                    let stall = Fault::Latency(20 * SECOND);
                    faulty
                        .faults()
                        .on(Verb::Watch)
                        .resource("configmaps")
                        .after_events(0)
                        .inject(stall);
                }
                Ok::<_, BoxError>(())
            };
            match &request.object {
                Some(map) if !records_writes => finalizer(&api, map, NAME, reconcile).await?,
                _ => request.finalizer(&api, NAME, reconcile).await?,
            };
            Ok(Action::await_change())
        }
    });
    factory.start();
    assert_eq!(running.next().await, ("a".into(), true));
    server.delete("configmaps", "default", "a").unwrap();
    assert_eq!(running.next().await, ("a".into(), true));
    while server.get("configmaps", "default", "a").is_some() {
        tokio::task::yield_now().await;
    }
    server.create(secret("trigger", None)).unwrap();
    while running.next().await != ("a".into(), false) {}
    *cleaned.lock().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_is_not_repeated_on_a_stale_cache() {
    assert_eq!(cleanups_with_a_stalled_watch(true).await, 1);
    // Shows that the scene has a stale cache.
    assert_eq!(cleanups_with_a_stalled_watch(false).await, 2);
}
