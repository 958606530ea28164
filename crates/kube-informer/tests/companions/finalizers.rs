//! Finalizers: restarts at every point, other controllers, and stale caches.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::{ApiServer, Denial, Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube_informer::{Error, Finalizer, Object, finalizer};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::timeout;

use crate::cut::Life;
use crate::scene::{create, delete, finalizers, object, read, requests, server, set_finalizers};

const NAME: &str = "example.com/volumes";

fn api(server: &ApiServer) -> Api<ConfigMap> {
    Api::all(server.client())
}

/// Reconciles with nothing to do, and returns what was called.
async fn reconcile(
    server: &ApiServer,
    map: &Object<ConfigMap>,
    name: &str,
) -> Result<Option<&'static str>, Error> {
    finalizer(&api(server), map, name, async |state| match state {
        Finalizer::Apply(_) => Ok("apply"),
        Finalizer::Cleanup(_) => Ok("cleanup"),
    })
    .await
}

/// Resources that a controller has created outside the cluster, and the number of calls.
#[derive(Default)]
struct World {
    volumes: Mutex<BTreeSet<String>>,
    calls: Mutex<Vec<&'static str>>,
}

/// A reconcile that waits before, while and after it changes the world.
async fn reconcile_volume(
    api: &Api<ConfigMap>,
    map: &Object<ConfigMap>,
    world: &World,
    life: &Life,
) -> Result<(), Error> {
    life.point().await;
    let done = finalizer(api, map, NAME, async |state| {
        life.point().await;
        match state {
            Finalizer::Apply(map) => {
                assert!(map.has_finalizer(NAME), "it is there before anything is made");
                world.calls.lock().push("apply");
                world.volumes.lock().insert(map.uid().to_owned());
            }
            Finalizer::Cleanup(map) => {
                world.calls.lock().push("cleanup");
                world.volumes.lock().remove(map.uid());
            }
        }
        life.point().await;
        Ok::<_, Error>(())
    });
    done.await?;
    life.point().await;
    Ok(())
}

/// A controller that lives as long as `life`, and is restarted after that.
async fn lives(
    server: &ApiServer,
    world: &World,
    lives: &mut impl Iterator<Item = Life>,
    died: &mut usize,
) {
    loop {
        let life = lives.next().expect("the last one is endless");
        let api = Api::all(life.client(server.client()));
        let Some(map) = read(server, "a") else { return };
        let run = reconcile_volume(&api, &map, world, &life);
        match timeout(Duration::from_secs(1), run).await {
            Ok(result) => return result.expect("nothing is wrong with the server"),
            Err(_) => *died += 1,
        }
        let gone = read(server, "a").is_none();
        assert!(!gone || world.volumes.lock().is_empty(), "gone before it was cleaned up");
    }
}

/// Kills the controller after each of these numbers of points; returns the number of deaths.
async fn scenario(points: [usize; 3], delete_early: bool) -> usize {
    let (server, world) = (server(), World::default());
    create(&server, "a");
    let mut budget = points.map(Life::of).into_iter().chain(std::iter::repeat_with(Life::endless));
    let mut died = 0;
    if delete_early {
        // Deleted between the first life and the second.
        let life = budget.next().expect("there is one");
        let api = Api::all(life.client(server.client()));
        let map = read(&server, "a").expect("it was made");
        let run = reconcile_volume(&api, &map, &world, &life);
        died += usize::from(timeout(Duration::from_secs(1), run).await.is_err());
    } else {
        lives(&server, &world, &mut budget, &mut died).await;
        assert_eq!(world.volumes.lock().len(), 1, "it was applied");
        assert_eq!(finalizers(&server, "a"), [NAME]);
    }
    delete(&server, "a");
    lives(&server, &world, &mut budget, &mut died).await;
    assert!(read(&server, "a").is_none(), "nothing keeps it");
    assert!(world.volumes.lock().is_empty(), "{points:?}: gone before it was cleaned up");
    let calls = world.calls.lock();
    assert!(calls.contains(&"cleanup") || !calls.contains(&"apply"), "{points:?}: {calls:?}");
    died
}

#[tokio::test(start_paused = true)]
async fn cleanup_precedes_the_end_wherever_the_process_dies() {
    let (mut runs, mut deaths) = (0, 0);
    for delete_early in [false, true] {
        for first in 0.. {
            let mut worst = 0;
            for second in 0..9 {
                worst = worst.max(scenario([first, second, usize::MAX], delete_early).await);
                deaths += worst;
                runs += 1;
            }
            if worst == 0 || first > 20 {
                assert!(first >= 5, "only {first} points: is the client not cut?");
                break;
            }
        }
    }
    assert!(runs > 100 && deaths > 100, "{runs} runs, {deaths} deaths");
}

#[tokio::test]
async fn live_object_is_given_the_finalizer_before_it_is_applied() {
    let server = server();
    let map = create(&server, "a");
    assert_eq!(reconcile(&server, &map, NAME).await.unwrap(), Some("apply"));
    assert_eq!(finalizers(&server, "a"), [NAME]);
    assert_eq!(requests(&server), ["Patch"]);
    let map = read(&server, "a").unwrap();
    assert_eq!(reconcile(&server, &map, NAME).await.unwrap(), Some("apply"));
    assert_eq!(requests(&server), ["Patch"], "once it is there nothing is sent");
}

#[tokio::test]
async fn apply_receives_the_state_that_has_the_finalizer() {
    let server = server();
    let map = create(&server, "a");
    let api = api(&server);
    let given = finalizer(&api, &map, NAME, async |state| match state {
        Finalizer::Apply(map) => Ok::<_, Error>(map),
        Finalizer::Cleanup(_) => unreachable!("it is live"),
    });
    let given = given.await.unwrap().unwrap();
    assert!(given.same_version(&read(&server, "a").unwrap()));
    assert!(given.has_finalizer(NAME) && given.decode().is_ok());
}

#[tokio::test]
async fn dying_object_is_never_given_a_finalizer() {
    let server = server();
    create(&server, "a");
    set_finalizers(&server, "a", &["example.com/other"]);
    let live = read(&server, "a").unwrap();
    delete(&server, "a");
    let dying = read(&server, "a").unwrap();
    assert_eq!(reconcile(&server, &dying, NAME).await.unwrap(), None);
    assert_eq!(requests(&server).len(), 0);
    // Nor if the cache does not know yet that the object is being deleted.
    let error = reconcile(&server, &live, NAME).await.unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains("being deleted"), "{error}");
    assert_eq!(finalizers(&server, "a"), ["example.com/other"]);
}

#[tokio::test]
async fn object_that_is_gone_or_replaced_is_a_conflict() {
    let server = server();
    let old = create(&server, "a");
    delete(&server, "a");
    let error = reconcile(&server, &old, NAME).await.unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains("default/a"), "{error}");
    create(&server, "a");
    assert!(reconcile(&server, &old, NAME).await.unwrap_err().is_conflict());
    assert!(finalizers(&server, "a").is_empty(), "the new object is another one");
}

#[tokio::test]
async fn changes_of_other_finalizers_need_no_retry() {
    let server = server();
    let stale = create(&server, "a");
    set_finalizers(&server, "a", &["example.com/other"]);
    assert_eq!(reconcile(&server, &stale, NAME).await.unwrap(), Some("apply"));
    assert_eq!(finalizers(&server, "a"), ["example.com/other", NAME]);
    // The cache does not have another replica's write: the finalizer is not added twice.
    assert_eq!(reconcile(&server, &stale, NAME).await.unwrap(), Some("apply"));
    assert_eq!(finalizers(&server, "a"), ["example.com/other", NAME]);
}

#[tokio::test]
async fn stale_list_never_adds_a_copy_or_removes_another() {
    let server = server();
    create(&server, "a");
    set_finalizers(&server, "a", &["example.com/x"]);
    let stale = read(&server, "a").unwrap();
    set_finalizers(&server, "a", &["example.com/x", NAME]);
    assert_eq!(reconcile(&server, &stale, NAME).await.unwrap(), Some("apply"));
    assert_eq!(finalizers(&server, "a"), ["example.com/x", NAME]);
    set_finalizers(&server, "a", &["example.com/x", NAME, "example.com/y"]);
    delete(&server, "a");
    let stale = read(&server, "a").unwrap();
    set_finalizers(&server, "a", &[NAME, "example.com/y"]);
    assert_eq!(reconcile(&server, &stale, NAME).await.unwrap(), Some("cleanup"));
    assert_eq!(finalizers(&server, "a"), ["example.com/y"]);
}

#[tokio::test]
async fn other_changes_are_no_conflict() {
    let server = server();
    let stale = create(&server, "a");
    let mut map = server.get("configmaps", "default", "a").unwrap();
    map["data"] = json!({"a": "b"});
    server.update(map).unwrap();
    assert_eq!(reconcile(&server, &stale, NAME).await.unwrap(), Some("apply"));
    assert_eq!(requests(&server), ["Patch"]);
}

#[tokio::test]
async fn two_controllers_keep_and_remove_their_own_finalizers() {
    let server = server();
    let names = ["example.com/a", "example.com/b"];
    let map = create(&server, "a");
    let both = tokio::join!(reconcile(&server, &map, names[0]), reconcile(&server, &map, names[1]));
    assert_eq!((both.0.unwrap(), both.1.unwrap()), (Some("apply"), Some("apply")));
    let mut found = finalizers(&server, "a");
    found.sort();
    assert_eq!(found, names);
    delete(&server, "a");
    let dying = read(&server, "a").unwrap();
    // The first in the list is removed first, so that the other changes its position.
    let first = dying.finalizers()[0].clone();
    let second = dying.finalizers()[1].clone();
    assert_eq!(reconcile(&server, &dying, &first).await.unwrap(), Some("cleanup"));
    assert_eq!(finalizers(&server, "a"), std::slice::from_ref(&second));
    server.clear_record();
    assert_eq!(reconcile(&server, &dying, &second).await.unwrap(), Some("cleanup"));
    assert_eq!(requests(&server), ["Patch", "Get", "Patch"]);
    assert!(read(&server, "a").is_none());
}

#[tokio::test]
async fn removal_is_repeated_without_cleaning_up_again() {
    let server = server();
    create(&server, "a");
    set_finalizers(&server, "a", &["example.com/other", NAME]);
    delete(&server, "a");
    let stale = read(&server, "a").unwrap();
    set_finalizers(&server, "a", &[NAME]);
    let cleanups = Mutex::new(0);
    let api = api(&server);
    let done = finalizer(&api, &stale, NAME, async |_| {
        *cleanups.lock() += 1;
        Ok::<_, Error>(())
    });
    assert_eq!(done.await.unwrap(), Some(()));
    assert_eq!(*cleanups.lock(), 1);
    assert!(read(&server, "a").is_none());
}

#[tokio::test]
async fn removing_from_an_object_that_is_gone_succeeds() {
    let server = server();
    create(&server, "a");
    set_finalizers(&server, "a", &[NAME]);
    delete(&server, "a");
    let dying = read(&server, "a").unwrap();
    set_finalizers(&server, "a", &[]);
    assert_eq!(reconcile(&server, &dying, NAME).await.unwrap(), Some("cleanup"));
    // Also if another object has its name.
    create(&server, "a");
    set_finalizers(&server, "a", &[NAME]);
    assert_eq!(reconcile(&server, &dying, NAME).await.unwrap(), Some("cleanup"));
    assert_eq!(finalizers(&server, "a"), [NAME]);
}

#[tokio::test]
async fn every_copy_of_the_finalizer_is_removed() {
    let server = server();
    create(&server, "a");
    set_finalizers(&server, "a", &[NAME, "example.com/other", NAME]);
    delete(&server, "a");
    let dying = read(&server, "a").unwrap();
    assert_eq!(reconcile(&server, &dying, NAME).await.unwrap(), Some("cleanup"));
    assert_eq!(finalizers(&server, "a"), ["example.com/other"]);
}

#[tokio::test]
async fn failed_cleanup_keeps_the_finalizer() {
    let server = server();
    create(&server, "a");
    set_finalizers(&server, "a", &[NAME]);
    delete(&server, "a");
    let dying = read(&server, "a").unwrap();
    let failed: Result<Option<()>, anyhow::Error> =
        finalizer(&api(&server), &dying, NAME, async |_| anyhow::bail!("the disk is busy")).await;
    assert_eq!(failed.unwrap_err().to_string(), "the disk is busy");
    assert_eq!(finalizers(&server, "a"), [NAME]);
    assert_eq!(requests(&server).len(), 0);
}

#[tokio::test]
async fn errors_of_requests_say_what_failed() {
    let server = server();
    let map = create(&server, "a");
    for (fault, text) in [(Fault::status(500), "(500)"), (Fault::LostAnswer, "connection")] {
        server.faults().on(Verb::Patch).inject(fault);
        let error = reconcile(&server, &map, NAME).await.unwrap_err();
        let shown = error.to_string();
        assert!(
            shown.contains("the finalizer example.com/volumes cannot be added to default/a"),
            "{shown}"
        );
        assert!(shown.contains(text) && !error.is_conflict(), "{shown}");
    }
    // The response was lost, but the write was not.
    assert_eq!(finalizers(&server, "a"), [NAME]);
    assert_eq!(reconcile(&server, &map, NAME).await.unwrap(), Some("apply"));
}

#[tokio::test]
async fn without_the_permission_to_read_a_change_is_a_conflict() {
    let server = server();
    let stale = create(&server, "a");
    set_finalizers(&server, "a", &["example.com/other"]);
    server.access().deny(Denial::verbs([Verb::Get]).user("jane"));
    let api = Api::all(server.client_as("jane"));
    let result = finalizer(&api, &stale, NAME, async |_| Ok::<_, Error>(())).await;
    assert!(result.unwrap_err().is_conflict());
}

#[tokio::test]
async fn impossible_calls_are_refused_before_any_request() {
    let server = server();
    let map = create(&server, "a");
    let never = async |_: Finalizer<ConfigMap>| -> Result<(), Error> { unreachable!("refused") };
    let error = finalizer(&api(&server), &map, "volumes", never).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    let elsewhere: Api<ConfigMap> = Api::namespaced(server.client(), "other");
    let error = finalizer(&elsewhere, &map, NAME, never).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("\"other\""), "{error}");
    assert_eq!(requests(&server).len(), 0);
}

#[tokio::test]
async fn finalizer_can_be_spawned() {
    let server = Arc::new(server());
    let map = create(&server, "a");
    let api = api(&server);
    let task =
        tokio::spawn(
            async move { finalizer(&api, &map, NAME, |_| async { Ok::<_, Error>(()) }).await },
        );
    assert!(task.await.unwrap().is_ok());
    let partial = object::<kube::core::PartialObjectMeta<ConfigMap>>(
        &server.get("configmaps", "default", "a").unwrap(),
    );
    delete(&server, "a");
    let api = Api::all(server.client());
    finalizer(&api, &partial, "example.com/more", async |_| Ok::<_, Error>(())).await.unwrap_err();
}
