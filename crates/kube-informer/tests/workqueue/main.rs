//! Informers that fill work queues.

use embedded_apiserver::ApiServer;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube_informer::workqueue::LOW_PRIORITY;
use kube_informer::{ObjectKey, SharedInformerFactory, WorkQueue};
use serde_json::{Value, json};

fn pod(name: &str, owner: Option<(&str, &str, &str)>) -> Value {
    let owners = owner.map(|(kind, name, uid)| {
        json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "controller": true})
    });
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "default", "name": name, "ownerReferences": Vec::from_iter(owners)},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    })
}

/// Returns the next task and its priority.
async fn next(queue: &WorkQueue) -> (String, i32) {
    let task = queue.get().await.expect("not shut down");
    let next = (task.to_string(), task.priority());
    task.done();
    next
}

#[tokio::test(start_paused = true)]
async fn pq5_initial_lists_and_resyncs_come_after_changes() {
    let server = ApiServer::start();
    server.create(pod("old", None)).unwrap();
    let factory = SharedInformerFactory::new(server.client());
    let queue = WorkQueue::new();
    let pods = factory.informer::<Pod>();
    let second = std::time::Duration::from_secs(1);
    let registration = pods.handler().resync(second).enqueue(&queue);
    factory.start();
    registration.wait_for_sync().await.unwrap();
    assert_eq!(next(&queue).await, ("default/old".into(), LOW_PRIORITY));
    assert_eq!(next(&queue).await, ("default/old".into(), LOW_PRIORITY)); // the resync
    let created = server.create(pod("new", None)).unwrap();
    assert_eq!(next(&queue).await, ("default/new".into(), 0));
    let mut changed = created;
    changed["metadata"]["labels"] = json!({"app": "web"});
    server.update(changed).unwrap();
    let next_change = async || loop {
        let next = next(&queue).await;
        if next.1 == 0 {
            return next;
        }
    };
    assert_eq!(next_change().await, ("default/new".into(), 0));
    server.delete("pods", "default", "new").unwrap();
    assert_eq!(next_change().await, ("default/new".into(), 0));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn tasks_of_the_previous_state_are_queued_too() {
    let server = ApiServer::start();
    let factory = SharedInformerFactory::new(server.client());
    let queue = WorkQueue::<String>::new();
    let app = |pod: &kube_informer::Object<Pod>| pod.labels().get("app").map(str::to_owned);
    factory.informer::<Pod>().handler().enqueue_with(&queue, app);
    factory.start();
    factory.wait_for_sync().await.unwrap();
    let take = async || {
        let task = queue.get().await.unwrap();
        let app = task.clone();
        task.done();
        app
    };
    let mut moving = pod("moving", None);
    moving["metadata"]["labels"] = json!({"app": "from"});
    let mut moving = server.create(moving).unwrap();
    assert_eq!(take().await, "from");
    moving["metadata"]["labels"] = json!({"app": "to"});
    server.update(moving).unwrap();
    assert_eq!((take().await, take().await), ("from".into(), "to".into()));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn owners_are_queued_if_cached_with_the_same_uid() {
    let server = ApiServer::start();
    let sets = server
        .create(json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"namespace": "default", "name": "web"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]}}},
        }))
        .unwrap();
    let node =
        server.create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}));
    let (set_uid, node_uid) = (&sets["metadata"]["uid"], &node.unwrap()["metadata"]["uid"]);
    let factory = SharedInformerFactory::new(server.client());
    let (by_set, by_node) = (WorkQueue::new(), WorkQueue::new());
    let pods = factory.informer::<Pod>();
    let (owners, nodes) = (factory.informer::<ReplicaSet>(), factory.informer::<Node>());
    factory.start();
    factory.wait_for_sync().await.unwrap();
    pods.handler().enqueue_owner(&by_set, &owners.lister());
    pods.handler().enqueue_owner(&by_node, &nodes.lister());

    let uid = |value: &Value| value.as_str().unwrap().to_owned();
    server.create(pod("alone", None)).unwrap();
    server.create(pod("stale", Some(("ReplicaSet", "web", "another-uid")))).unwrap();
    server.create(pod("web-0", Some(("ReplicaSet", "web", &uid(set_uid))))).unwrap();
    server.create(pod("static", Some(("Node", "n1", &uid(node_uid))))).unwrap();
    assert_eq!(next(&by_set).await, ("default/web".into(), 0));
    assert_eq!(next(&by_node).await, ("n1".into(), 0));
    server.delete("pods", "default", "web-0").unwrap();
    assert_eq!(next(&by_set).await, ("default/web".into(), 0));
    assert_eq!((by_set.len(), by_node.len()), (0, 0));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_keys_are_each_handed_out_once() {
    let queue = WorkQueue::new();
    let keys: Vec<_> =
        (0..100_000).map(|n| ObjectKey::namespaced("shop", &n.to_string())).collect();
    keys.iter().chain(&keys).for_each(|key| queue.add(key.clone()));
    assert_eq!(queue.len(), keys.len());
    let worker = |queue: WorkQueue| async move {
        let mut mine = Vec::new();
        while let Some(key) = queue.get().await {
            mine.push(key.clone());
            key.done();
            tokio::task::yield_now().await;
        }
        mine
    };
    let workers: Vec<_> = (0..8).map(|_| tokio::spawn(worker(queue.clone()))).collect();
    queue.drain().await;
    let mut seen = Vec::new();
    for worker in workers {
        seen.extend(worker.await.unwrap());
    }
    let mut expected = keys;
    expected.sort();
    seen.sort();
    assert!(seen == expected);
}
