//! Runs half an hour of the cluster in paused time.

use std::collections::{BTreeMap, BTreeSet};

use embedded_apiserver::PodDelays;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::world::{name, namespace, owner};
use super::*;

const KINDS: [&str; 12] = [
    "configmaps",
    "cronjobs.batch",
    "customresourcedefinitions.apiextensions.k8s.io",
    "databases.demo.example.com",
    "deployments.apps",
    "jobs.batch",
    "namespaces",
    "nodes",
    "pods",
    "replicasets.apps",
    "services",
    "events",
];

fn start() -> ApiServer {
    let at = "2026-03-01T10:00:00Z".parse().unwrap();
    let server = builder(Some(7)).starting_at(at).build();
    populate(&server, Some(7));
    server
}

fn everything(server: &ApiServer) -> Vec<Value> {
    KINDS.iter().flat_map(|kind| server.list(kind, "")).collect()
}

/// Counts the objects, except for events.
fn objects(server: &ApiServer) -> usize {
    KINDS.iter().filter(|kind| **kind != "events").map(|kind| server.count(kind, "")).sum()
}

fn status_of(pod: &Value) -> String {
    let columns = embedded_apiserver::Columns::built_in("", "pods");
    columns.cells(pod, "2026-03-01T12:00:00Z".parse().unwrap())[2].clone()
}

#[tokio::test(start_paused = true)]
async fn everything_runs_from_the_first_moment() {
    let server = start();
    let pods = server.list("pods", "");
    assert_eq!(pods.len(), 8);
    for pod in &pods {
        assert_eq!(status_of(pod), "Running");
        assert!(pod["status"]["podIP"].is_string() && pod["spec"]["nodeName"].is_string());
        // web-5d78c9869d-x2k4p, of the replica set web-5d78c9869d, of the deployment web.
        let sets = server.list("replicasets.apps", "");
        let set = sets.iter().find(|set| owner(pod) == set["metadata"]["uid"].as_str()).unwrap();
        assert!(name(pod).starts_with(&format!("{}-", name(set))), "{}", name(pod));
        assert_eq!(name(pod).rsplit('-').next().unwrap().len(), 5);
        let hash = &set["metadata"]["labels"]["pod-template-hash"];
        assert_eq!(&pod["metadata"]["labels"]["pod-template-hash"], hash);
        assert!(name(set).ends_with(hash.as_str().unwrap()));
    }
    for deployment in server.list("deployments.apps", "") {
        assert_eq!(deployment["status"]["readyReplicas"], deployment["spec"]["replicas"]);
        assert_eq!(deployment["status"]["updatedReplicas"], deployment["spec"]["replicas"]);
    }
    assert_eq!(server.count("nodes", ""), 3);
    assert_eq!(server.count("databases.demo.example.com", "default"), 2);
    // No changes are in progress: the server leaves the pods as they are.
    let before = everything(&server);
    sleep(Duration::from_secs(600)).await;
    assert_eq!(everything(&server), before);
}

/// While the pods are created, the server simulates them, perhaps on another thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_runs_from_the_first_moment_whoever_is_quicker() {
    let at_once =
        PodDelays { schedule: Duration::ZERO, create: Duration::ZERO, ..PodDelays::default() };
    for _ in 0..50 {
        let server = builder(None).pod_delays(at_once.clone()).build();
        populate(&server, None);
        let pods = server.list("pods", "");
        assert_eq!(pods.iter().map(status_of).collect::<Vec<_>>(), ["Running"; 8]);
    }
}

/// A record of all changes: the promised kinds of changes, and the maximum number of objects at
/// once.
#[derive(Debug, Default)]
struct Seen {
    kinds: BTreeSet<&'static str>,
    statuses: BTreeSet<String>,
    objects_max: usize,
    events_max: usize,
    last: BTreeMap<String, Value>,
}

impl Seen {
    fn count(&mut self, server: &ApiServer) {
        self.objects_max = self.objects_max.max(objects(server));
        self.events_max = self.events_max.max(server.count("events", ""));
    }

    fn look(&mut self, server: &ApiServer) {
        self.count(server);
        let mut now = BTreeMap::new();
        for object in everything(server) {
            let kind = object["kind"].as_str().unwrap().to_owned();
            let key = format!("{kind} {}/{}", namespace(&object), name(&object));
            match self.last.get(&key).cloned() {
                Some(old) if old != object => self.changed(&kind, &old, &object),
                None if kind == "Event" => drop(self.kinds.insert("event")),
                None if kind == "Pod" => drop(self.kinds.insert("pod up")),
                _ => {}
            }
            if kind == "Pod" {
                self.statuses.insert(status_of(&object));
            }
            now.insert(key, object);
        }
        if self.last.keys().any(|key| key.starts_with("Pod ") && !now.contains_key(key)) {
            self.kinds.insert("pod down");
        }
        self.last = now;
    }

    fn changed(&mut self, kind: &str, old: &Value, new: &Value) {
        let differs = |path: &str| old.pointer(path) != new.pointer(path);
        let replicas = |object: &Value| object["spec"]["replicas"].as_u64();
        let restarts = "/status/containerStatuses/0/restartCount";
        for (change, happened) in [
            ("release", kind == "Deployment" && differs("/spec/template")),
            ("scale up", kind == "Deployment" && replicas(new) > replicas(old)),
            ("scale down", kind == "Deployment" && replicas(new) < replicas(old)),
            ("label", kind == "Pod" && differs("/metadata/labels")),
            ("annotation", kind == "Pod" && differs("/metadata/annotations")),
            ("restart", kind == "Pod" && old.pointer(restarts).is_some() && differs(restarts)),
            ("config map", kind == "ConfigMap"),
            ("database", kind == "Database" && differs("/status/phase")),
            ("job", kind == "Job" && new["status"]["succeeded"] == 1),
        ] {
            if happened {
                self.kinds.insert(change);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn for_half_an_hour_everything_promised_happens_and_nothing_grows() {
    let server = start();
    let living = tokio::spawn(live(server.clone(), Some(7)));
    let mut seen = Seen::default();
    seen.look(&server);
    let before = server.store().revision();
    // The promised changes happen soon; that nothing grows is checked for longer.
    for _ in 0..2 * 600 {
        sleep(Duration::from_millis(500)).await;
        seen.look(&server);
    }
    for _ in 600..1_800 {
        sleep(Duration::from_secs(1)).await;
        seen.count(&server);
    }
    living.abort();
    let all = [
        "annotation",
        "config map",
        "database",
        "event",
        "job",
        "label",
        "pod down",
        "pod up",
        "release",
        "restart",
        "scale down",
        "scale up",
    ];
    assert_eq!(seen.kinds.iter().copied().collect::<Vec<_>>(), all);
    for status in
        ["Running", "Error", "CrashLoopBackOff", "ContainerCreating", "Completed", "Terminating"]
    {
        assert!(seen.statuses.contains(status), "{status} in {:?}", seen.statuses);
    }
    assert!(seen.objects_max <= 45, "{} objects", seen.objects_max);
    assert!(seen.events_max <= 40, "{} events", seen.events_max);
    let changes = server.store().revision() - before;
    // Including its events, which come and go, each pod causes about a dozen changes.
    assert!((1_800..8 * 1_800).contains(&changes), "{changes} changes in half an hour");
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_is_the_same_cluster() {
    let mut ends = Vec::new();
    for _ in 0..2 {
        let server = start();
        let living = tokio::spawn(live(server.clone(), Some(7)));
        sleep(Duration::from_secs(300)).await;
        living.abort();
        ends.push((server.store().revision(), everything(&server)));
    }
    assert_eq!(ends[0], ends[1]);
    let other = builder(Some(8)).build();
    populate(&other, Some(8));
    let names = |server: &ApiServer| -> Vec<String> {
        server.list("pods", "").iter().map(|pod| name(pod).to_owned()).collect()
    };
    assert_ne!(names(&other), names(&start()));
}

/// The cluster reacts to users' changes.
#[tokio::test(start_paused = true)]
async fn what_people_do_to_it_has_consequences() {
    let server = start();
    let _living = tokio::spawn(live(server.clone(), Some(7)));
    let mut grafana = server.get("deployments.apps", "monitoring", "grafana").unwrap();
    grafana["spec"]["replicas"] = 3.into();
    server.update(grafana).unwrap();
    sleep(Duration::from_secs(10)).await;
    let pods = server.list("pods", "monitoring");
    assert_eq!(pods.iter().map(status_of).collect::<Vec<_>>(), ["Running"; 3]);

    server.delete("pods", "monitoring", name(&pods[0])).unwrap();
    sleep(Duration::from_secs(10)).await;
    let again = server.list("pods", "monitoring");
    assert_eq!(again.len(), 3);
    assert!(again.iter().all(|pod| name(pod) != name(&pods[0])));

    server.delete("deployments.apps", "monitoring", "grafana").unwrap();
    sleep(Duration::from_secs(10)).await;
    assert_eq!(server.count("pods", "monitoring"), 0);
    assert_eq!(server.count("replicasets.apps", "monitoring"), 0);
}

/// No object is required for the others to live on.
#[tokio::test(start_paused = true)]
async fn it_lives_on_when_everything_is_deleted() {
    let server = start();
    let living = tokio::spawn(live(server.clone(), Some(7)));
    sleep(Duration::from_secs(100)).await;
    for kind in KINDS.iter().filter(|kind| **kind != "namespaces") {
        for object in server.list(kind, "") {
            // Some objects are deleted by the cluster itself meanwhile.
            drop(server.delete(kind, namespace(&object), name(&object)));
        }
    }
    sleep(Duration::from_secs(300)).await;
    for nonsense in [
        json!("x"),
        json!({"replicas": u64::MAX, "template": "x"}),
        json!({"template": {"metadata": 1, "spec": []}}),
        json!({"template": {"metadata": {"labels": []}}}),
    ] {
        for (version, kind) in [("apps/v1", "Deployment"), ("batch/v1", "Job")] {
            let metadata = json!({"namespace": "default", "generateName": "x-"});
            let object = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": nonsense});
            server.create(object).unwrap();
        }
    }
    sleep(Duration::from_secs(30)).await;
    assert!(!living.is_finished());
    server.create(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "default", "name": "mine"},
        "spec": {"replicas": 1, "template": {
            "metadata": {"labels": {"app": "mine"}}, "spec": {"containers": [{"name": "mine", "image": "mine"}]},
        }},
    })).unwrap();
    sleep(Duration::from_secs(10)).await;
    let pods = server.list("pods", "default");
    // There are no nodes left to run it on.
    assert!(pods.iter().any(|pod| name(pod).starts_with("mine-") && status_of(pod) == "Pending"));
}
