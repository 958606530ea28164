//! `reflector`: a client's cache always converges to the server's state.

use std::collections::BTreeMap;
use std::time::Duration;

use embedded_apiserver::ApiServer;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::Api;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::to_value;
use tokio::task::JoinHandle;

use crate::harness::{map, until, with_data};

/// The names and versions that a cache must agree on.
type State = BTreeMap<String, String>;

struct Scene {
    server: ApiServer,
    store: Store<ConfigMap>,
    reflecting: JoinHandle<()>,
    objects: usize,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.reflecting.abort();
    }
}

impl Scene {
    fn new(config: watcher::Config) -> Self {
        let server = ApiServer::start();
        let (store, writer) = reflector::store();
        let maps: Api<ConfigMap> = Api::all(server.client());
        let stream = watcher::watcher(maps, config).default_backoff().reflect(writer);
        let reflecting = tokio::spawn(stream.for_each(|_| async {}));
        Self { server, store, reflecting, objects: 0 }
    }

    /// Creates, changes and deletes a few objects.
    fn change(&mut self) {
        for at in self.objects..self.objects + 5 {
            self.server.create(to_value(map(&format!("m{at}"))).unwrap()).unwrap();
        }
        self.objects += 5;
        for at in (0..self.objects).step_by(3) {
            let changed = with_data(&format!("m{at}"), &self.objects.to_string());
            // Deleted objects stay deleted.
            let _ = self.server.update(to_value(changed).unwrap());
        }
        for at in (0..self.objects).step_by(4) {
            let _ = self.server.delete("configmaps", "default", &format!("m{at}"));
        }
    }

    fn truth(&self) -> State {
        let names = (0..self.objects).map(|at| format!("m{at}"));
        names
            .filter_map(|name| {
                let object = self.server.get("configmaps", "default", &name)?;
                Some((name, object["metadata"]["resourceVersion"].as_str()?.to_owned()))
            })
            .collect()
    }

    fn copy(&self) -> State {
        let objects = self.store.state();
        objects.iter().map(|o| (o.name_any(), o.resource_version().unwrap())).collect()
    }

    async fn converges(&self) {
        until("the copy is the truth", || self.copy() == self.truth()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(self.copy(), self.truth(), "and stays it");
    }
}

fn modes() -> [watcher::Config; 3] {
    [
        watcher::Config::default(),
        watcher::Config::default().page_size(3),
        watcher::Config::default().streaming_lists(),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_copy_follows_changes() {
    for mode in modes() {
        let mut scene = Scene::new(mode);
        for _ in 0..5 {
            scene.change();
            scene.converges().await;
        }
        assert_eq!(scene.server.count("configmaps", ""), scene.copy().len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_survives_the_end_of_its_watch() {
    for mode in modes() {
        let mut scene = Scene::new(mode);
        for _ in 0..5 {
            scene.change();
            scene.converges().await;
            scene.server.drop_watches();
            scene.change();
            scene.converges().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_survives_a_restart_of_the_server() {
    for mode in modes() {
        let mut scene = Scene::new(mode);
        for _ in 0..5 {
            scene.change();
            scene.converges().await;
            scene.server.restart();
            scene.change();
            scene.converges().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_survives_compaction_while_it_was_away() {
    for mode in modes() {
        let mut scene = Scene::new(mode);
        scene.change();
        scene.converges().await;
        for _ in 0..3 {
            scene.server.refuse_connections();
            scene.change();
            scene.server.store().compact(u64::MAX);
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert_ne!(scene.copy(), scene.truth(), "it is away");
            scene.server.accept_connections();
            scene.converges().await;
        }
    }
}

/// A streaming list or a page may be cut off: the cache never has half of one.
#[tokio::test(start_paused = true)]
async fn a_copy_is_never_half_a_list() {
    for mode in modes() {
        let mut scene = Scene::new(mode);
        for _ in 0..10 {
            scene.change();
        }
        scene.converges().await;
        let before = scene.copy().len();
        for _ in 0..20 {
            scene.server.store().compact(u64::MAX);
            scene.server.restart();
            tokio::task::yield_now().await;
            assert!(scene.copy().len() >= before);
        }
        scene.converges().await;
    }
}
