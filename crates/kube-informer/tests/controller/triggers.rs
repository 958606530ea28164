//! Triggers of a reconcile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use embedded_apiserver::{Fault, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube_informer::controller::{Phase, Predicate};
use kube_informer::{Action, Controller, ObjectKey, SharedInformerFactory};

use crate::scene::{Running, SECOND, labelled, map, run, run_idle, scene, secret};

#[tokio::test(start_paused = true)]
async fn objects_are_reconciled_on_add_update_and_delete() {
    let (server, factory) = scene();
    server.create(map("old")).unwrap();
    let mut running = run_idle(Controller::new(&factory.informer::<ConfigMap>()));
    assert_eq!(running.next().await, ("old".into(), true));
    let new = server.create(map("new")).unwrap();
    assert_eq!(running.next().await, ("new".into(), true));
    server.update(labelled(new, "b")).unwrap();
    assert_eq!(running.next().await, ("new".into(), true));
    server.delete("configmaps", "default", "new").unwrap();
    assert_eq!(running.next().await, ("new".into(), false));
    running.is_quiet().await;
    assert_eq!(running.handle.status().succeeded, 4);
}

#[tokio::test(start_paused = true)]
async fn an_owner_is_reconciled_when_something_that_it_owns_changes() {
    let (server, factory) = scene();
    let owner = server.create(map("owner")).unwrap();
    let controller =
        Controller::new(&factory.informer::<ConfigMap>()).owns(&factory.informer::<Secret>());
    let mut running = run_idle(controller);
    assert_eq!(running.next().await, ("owner".into(), true));
    let child = server.create(secret("owned", Some(&owner))).unwrap();
    assert_eq!(running.next().await, ("owner".into(), true));
    server.create(secret("another", None)).unwrap();
    server.update(labelled(child, "b")).unwrap();
    assert_eq!(running.next().await, ("owner".into(), true));
    server.delete("secrets", "default", "owned").unwrap();
    assert_eq!(running.next().await, ("owner".into(), true));
    running.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_function_says_which_objects_another_one_concerns() {
    let (server, factory) = scene();
    server.create(map("a")).unwrap();
    let keys = |secret: &kube_informer::Object<Secret>| {
        secret.labels().get("l").map(|name| ObjectKey::namespaced("default", name))
    };
    let controller =
        Controller::new(&factory.informer::<ConfigMap>()).watches(&factory.informer(), keys);
    let mut running = run_idle(controller);
    assert_eq!(running.next().await, ("a".into(), true));
    let secret = server.create(labelled(secret("s", None), "a")).unwrap();
    assert_eq!(running.next().await, ("a".into(), true));
    // Both, the previous and the new one.
    server.update(labelled(secret, "b")).unwrap();
    assert_eq!(running.next().await, ("a".into(), true));
    assert_eq!(running.next().await, ("b".into(), false));
    running.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn predicates_of_the_main_kind_and_of_others_keep_events_away() {
    let (server, factory) = scene();
    let owner = server.create(map("owner")).unwrap();
    let controller = Controller::new(&factory.informer::<ConfigMap>())
        .when(Predicate::labels_changed())
        .when(Predicate::new(|event| event.key().is_some_and(|key| key.name() != "ignored")))
        .owns_when(&factory.informer::<Secret>(), Predicate::labels_changed());
    let mut running = run_idle(controller);
    assert_eq!(running.next().await, ("owner".into(), true));
    server.create(map("ignored")).unwrap();
    let mut noted = owner.clone();
    noted["metadata"]["annotations"] = serde_json::json!({"a": "b"});
    let noted = server.update(noted).unwrap();
    running.is_quiet().await;
    server.update(labelled(noted, "b")).unwrap();
    assert_eq!(running.next().await, ("owner".into(), true));
    let mut child = server.create(secret("owned", Some(&owner))).unwrap();
    assert_eq!(running.next().await, ("owner".into(), true));
    child["metadata"]["annotations"] = serde_json::json!({"a": "b"});
    server.update(child).unwrap();
    running.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_reconciled_before_all_caches_are_synced() {
    let (server, factory) = scene();
    server.create(map("a")).unwrap();
    for resource in ["secrets", "namespaces"] {
        for verb in [Verb::List, Verb::Watch] {
            server.faults().on(verb).resource(resource).inject(Fault::Latency(60 * SECOND));
        }
    }
    let controller = Controller::new(&factory.informer::<ConfigMap>())
        .owns(&factory.informer::<Secret>())
        .needs(&factory.informer::<Namespace>());
    let mut running = run_idle(controller);
    tokio::time::sleep(30 * SECOND).await;
    assert!(factory.informer::<ConfigMap>().has_synced());
    let status = running.handle.status();
    assert_eq!((status.phase, status.queue.ready), (Phase::Syncing, 1));
    assert_eq!(running.next().await, ("a".into(), true));
    assert!(factory.informer::<Secret>().has_synced());
    assert!(factory.informer::<Namespace>().has_synced());
    assert_eq!(running.handle.status().phase, Phase::Running);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_cannot_be_filled_is_an_error_that_names_it() {
    let (server, factory) = scene();
    let denied = embedded_apiserver::Denial::verbs([Verb::List, Verb::Watch]).resource("secrets");
    server.access().deny(denied);
    let controller = Controller::new(&factory.informer::<ConfigMap>())
        .owns(&factory.informer::<Secret>())
        .sync_timeout(60 * SECOND);
    let running = run_idle(controller);
    let error = running.task.await.unwrap().unwrap_err().to_string();
    assert!(error.starts_with("not synced: it took longer than 60s; secrets is"), "{error}");
    assert_eq!(error.matches("secrets is backing off").count(), 1, "{error}");
}

#[tokio::test(start_paused = true)]
async fn ten_controllers_of_one_kind_cost_one_list_and_one_watch() {
    let (server, factory) = scene();
    server.create(map("a")).unwrap();
    let controllers: Vec<Running> = (0..10)
        .map(|_| {
            let maps = factory.informer::<ConfigMap>();
            run_idle(Controller::new(&maps).owns(&factory.informer::<Secret>()))
        })
        .collect();
    for mut running in controllers {
        assert_eq!(running.next().await, ("a".into(), true));
        // They go on together.
        std::mem::forget(running);
    }
    let count =
        |verb| server.requests().iter().filter(|request| request.verb == Some(verb)).count();
    // A streaming list is a watch: one for each of the two kinds, and no list.
    assert_eq!((count(Verb::List), count(Verb::Watch), server.watches()), (0, 2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_change_during_a_reconcile_causes_another() {
    let (server, factory) = scene();
    let keys = 20;
    for key in 0..keys {
        server.create(map(&key.to_string())).unwrap();
    }
    let active: Arc<Vec<AtomicUsize>> = Arc::new((0..keys).map(|_| AtomicUsize::new(0)).collect());
    let most = Arc::new(AtomicUsize::new(0));
    let all = Arc::new(AtomicUsize::new(0));
    let controller = Controller::new(&factory.informer::<ConfigMap>()).workers(8);
    let (most_seen, counts) = (most.clone(), active.clone());
    let mut running = run(controller, move |request| {
        let (active, most, all) = (counts.clone(), most_seen.clone(), all.clone());
        async move {
            let key: usize = request.key.name().parse().unwrap();
            assert_eq!(active[key].fetch_add(1, Ordering::SeqCst), 0, "twice at once");
            most.fetch_max(all.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(SECOND).await;
            all.fetch_sub(1, Ordering::SeqCst);
            active[key].fetch_sub(1, Ordering::SeqCst);
            Ok(Action::await_change())
        }
    });
    for _ in 0..8 {
        running.next().await;
    }
    // All eight run. A change of one of them is not lost.
    let changed = server.get("configmaps", "default", "0").unwrap();
    server.update(labelled(changed, "b")).unwrap();
    let mut runs = 0;
    for _ in 0..keys + 1 - 8 {
        runs += usize::from(running.next().await.0 == "0");
    }
    assert_eq!(runs, 1);
    running.is_quiet().await;
    assert_eq!((most.load(Ordering::SeqCst), running.handle.status().panicked), (8, 0));
}

#[tokio::test(start_paused = true)]
async fn requeues_are_delayed_and_keys_can_be_added() {
    let (server, factory) = scene();
    server.create(map("a")).unwrap();
    let controller = Controller::new(&factory.informer::<ConfigMap>());
    let mut running = run(controller, async |_| Ok(Action::requeue(60 * SECOND)));
    assert_eq!(running.next().await, ("a".into(), true));
    let began = tokio::time::Instant::now();
    for round in 1..4 {
        assert_eq!(running.next().await, ("a".into(), true));
        assert_eq!(began.elapsed().as_secs(), round * 60);
    }
    running.handle.queue().add("default/elsewhere".parse().unwrap());
    assert_eq!(running.next().await, ("elsewhere".into(), false));
    assert!(running.handle.status().requeued >= 4);
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_kind_is_reconciled_like_any_other() {
    let (server, factory) = scene();
    server.create(map("a")).unwrap();
    let resource = kube::api::ApiResource::erase::<ConfigMap>(&());
    let maps = factory.dynamic(&resource);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let controller = Controller::new(&maps).owns(&factory.informer::<Secret>());
    let _running = tokio::spawn(controller.run(
        move |request: kube_informer::Request<kube::api::DynamicObject>| {
            let tell = tell.clone();
            async move {
                tell.send(request.key.to_string()).unwrap();
                Ok::<_, kube::Error>(Action::await_change())
            }
        },
    ));
    assert_eq!(told.recv().await.unwrap(), "default/a");
}

/// As in a typical program: the factory is used for nothing else.
#[tokio::test(start_paused = true)]
async fn a_controller_starts_the_informers_that_it_uses() {
    let server = embedded_apiserver::ApiServer::start();
    server.create(map("a")).unwrap();
    let maps = SharedInformerFactory::new(server.client()).informer::<ConfigMap>();
    let mut running = run_idle(Controller::new(&maps));
    drop(maps);
    assert_eq!(running.next().await, ("a".into(), true));
}
