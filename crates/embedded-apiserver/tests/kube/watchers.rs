//! `watcher`: its requests, and its events.

use embedded_apiserver::{ApiServer, Verb};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{PredicateConfig, WatchStreamExt, predicates};

use crate::harness::{labelled, map, with_data};

fn brief(event: &Event<ConfigMap>) -> String {
    match event {
        Event::Init => "init".to_owned(),
        Event::InitApply(map) => format!("init {}", map.name_any()),
        Event::InitDone => "done".to_owned(),
        Event::Apply(map) => format!("apply {}", map.name_any()),
        Event::Delete(map) => format!("delete {}", map.name_any()),
    }
}

fn verbs(server: &ApiServer) -> Vec<Verb> {
    server.requests().iter().filter_map(|request| request.verb).collect()
}

async fn scene() -> (ApiServer, Api<ConfigMap>) {
    let server = ApiServer::start();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &map(name)).await.unwrap();
    }
    server.clear_record();
    (server, maps)
}

#[tokio::test(start_paused = true)]
async fn state_and_changes_arrive_in_either_mode() {
    let list_watch = vec![Verb::List, Verb::List, Verb::Watch];
    for (config, asked) in [
        (watcher::Config::default().page_size(2), list_watch),
        (watcher::Config::default().streaming_lists(), vec![Verb::Watch]),
    ] {
        let (server, maps) = scene().await;
        let mut events = watcher(maps.clone(), config).boxed();
        let mut seen = Vec::new();
        for _ in 0..5 {
            seen.push(brief(&events.try_next().await.unwrap().unwrap()));
        }
        assert_eq!(seen, ["init", "init a", "init b", "init c", "done"]);
        let other = server.client();
        let change = async {
            let maps: Api<ConfigMap> = Api::default_namespaced(other);
            maps.create(&PostParams::default(), &map("d")).await.unwrap();
            maps.replace("a", &PostParams::default(), &with_data("a", "1")).await.unwrap();
            maps.delete("b", &DeleteParams::default()).await.unwrap();
        };
        let see = async {
            let mut seen = Vec::new();
            for _ in 0..3 {
                seen.push(brief(&events.try_next().await.unwrap().unwrap()));
            }
            seen
        };
        let (seen, ()) = tokio::join!(see, change);
        assert_eq!(seen, ["apply d", "apply a", "delete b"]);
        let reads = verbs(&server).into_iter().filter(|v| matches!(v, Verb::List | Verb::Watch));
        assert_eq!(reads.collect::<Vec<_>>(), asked);
    }
}

#[tokio::test(start_paused = true)]
async fn selectors_are_for_changes_too() {
    let (server, maps) = scene().await;
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let config = config.labels("on=yes");
        let mut events = watcher(maps.clone(), config).boxed();
        assert_eq!(brief(&events.try_next().await.unwrap().unwrap()), "init");
        assert_eq!(brief(&events.try_next().await.unwrap().unwrap()), "done");
        let change = async {
            for label in ["yes", "no"] {
                let map = serde_json::to_value(labelled("a", ("on", label))).unwrap();
                server.update(map).unwrap();
            }
        };
        let see = async {
            [
                brief(&events.try_next().await.unwrap().unwrap()),
                brief(&events.try_next().await.unwrap().unwrap()),
            ]
        };
        let (seen, ()) = tokio::join!(see, change);
        assert_eq!(seen, ["apply a", "delete a"]);
    }
}

/// A watch that ends is resumed without a list: kube relies on the versions of events and bookmarks
/// for that.
#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_taken_up_without_a_list() {
    let (server, maps) = scene().await;
    let config = watcher::Config::default().timeout(60);
    let mut events = watcher(maps, config).default_backoff().boxed();
    for _ in 0..5 {
        events.try_next().await.unwrap();
    }
    let secret = serde_json::json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "s"}});
    server.create(secret).unwrap();
    let newest = server.store().revision();
    let create = async {
        tokio::time::sleep(std::time::Duration::from_secs(300)).await;
        server.create(serde_json::to_value(map("d")).unwrap()).unwrap();
    };
    let (event, ()) = tokio::join!(events.try_next(), create);
    assert_eq!(brief(&event.unwrap().unwrap()), "apply d");
    let requests = server.requests();
    let watches: Vec<_> = requests.iter().filter(|r| r.verb == Some(Verb::Watch)).collect();
    assert!(watches.len() >= 4, "one a minute");
    assert_eq!(verbs(&server).iter().filter(|verb| **verb == Verb::List).count(), 1);
    // From the second on they start at the last bookmark, which includes the secret.
    let at = format!("resourceVersion={newest}");
    assert!(watches[1..].iter().all(|watch| watch.uri.contains(&at)), "{watches:?}");
}

#[tokio::test(start_paused = true)]
async fn a_generation_predicate_lets_through_what_changes_the_spec() {
    let server = ApiServer::start();
    let pod = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    server.create(pod.clone()).unwrap();
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::default_namespaced(server.client());
    let mut specs = watcher(pods, watcher::Config::default())
        .applied_objects()
        .predicate_filter(predicates::generation, PredicateConfig::default())
        .boxed();
    assert_eq!(specs.try_next().await.unwrap().unwrap().metadata.generation, Some(1));
    let change = async {
        let mut pod = pod;
        pod["status"] = serde_json::json!({"phase": "Running"});
        server.update_status(pod.clone()).unwrap();
        pod["spec"]["nodeName"] = serde_json::json!("n");
        server.update(pod).unwrap();
    };
    let (seen, ()) = tokio::join!(specs.try_next(), change);
    assert_eq!(seen.unwrap().unwrap().metadata.generation, Some(2));
}
