//! The objects that the cluster starts with.

use std::time::Duration;

use serde_json::{Value, json};

use super::world::World;
use super::{controllers, pod};

const HOUR: Duration = Duration::from_secs(3600);

/// The initial state of a deployment.
struct App {
    namespace: &'static str,
    name: &'static str,
    image: &'static str,
    port: u16,
    replicas: u8,
    /// The age in hours.
    age: u32,
}

const APPS: [App; 4] = [
    App {
        namespace: "default",
        name: "web",
        image: "nginx:1.29.3",
        port: 80,
        replicas: 3,
        age: 290,
    },
    App {
        namespace: "default",
        name: "api",
        image: "example/api:2.4.1",
        port: 8080,
        replicas: 2,
        age: 75,
    },
    App {
        namespace: "default",
        name: "worker",
        image: "example/worker:2.4.0",
        port: 9000,
        replicas: 2,
        age: 75,
    },
    App {
        namespace: "monitoring",
        name: "grafana",
        image: "grafana/grafana:12.1.0",
        port: 3000,
        replicas: 1,
        age: 700,
    },
];

/// Creates all initial objects.
pub(super) fn set(world: &mut World) {
    nodes(world);
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"},
    });
    world.create_aged(namespace, HOUR * 700);
    let mut address = 1;
    for app in &APPS {
        deployment(world, app, &mut address);
        if app.name != "worker" {
            service(world, app, address);
        }
    }
    settings(world);
    databases(world);
    reports(world);
}

fn nodes(world: &World) {
    // Removes the default node, which the server created before it had these.
    drop(world.server.delete("nodes", "", "embedded-node"));
    for (at, (name, address)) in pod::NODES.into_iter().enumerate() {
        let mut labels = json!({
            "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": format!("zone-{}", at + 1),
        });
        if at == 0 {
            labels["node-role.kubernetes.io/control-plane"] = "".into();
        }
        let age = HOUR * 720;
        let created = world.create_aged(
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}),
            age,
        );
        let Some(node) = created else { continue };
        let since = world.ago(age);
        let resources = json!({"cpu": "4", "memory": "16Gi", "pods": "110"});
        let status = json!({
            "addresses": [
                {"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name},
            ],
            "allocatable": resources, "capacity": resources,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady",
                "message": "kubelet is posting ready status",
                "lastHeartbeatTime": since, "lastTransitionTime": since,
            }],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "kernelVersion": "6.12.0-embedded",
                "osImage": "Embedded", "containerRuntimeVersion": "containerd://2.1.4",
                "kubeletVersion": "v1.36.3", "kubeProxyVersion": "", "bootID": "", "machineID": "",
                "systemUUID": "",
            },
        });
        world.update_status(&node, status);
    }
}

/// Creates a deployment with its replica set and its pods, all running.
fn deployment(world: &mut World, app: &App, address: &mut u8) {
    let App { namespace, name, image, port, replicas, age } = app;
    let labels = json!({"app": name});
    let template = json!({
        "metadata": {"labels": labels},
        "spec": {"containers": [
            {"name": name, "image": image, "ports": [{"containerPort": port}]},
        ]},
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {
            "replicas": replicas, "revisionHistoryLimit": 0,
            "selector": {"matchLabels": labels}, "template": template,
            "strategy": {
                "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
        },
    });
    let Some(deployment) = world.create_aged(deployment, HOUR * *age) else { return };
    let minutes = world.rng.u32(60..*age * 30);
    let Some(set) = controllers::create_set(world, &deployment, HOUR / 60 * minutes) else {
        return;
    };
    for _ in 0..*replicas {
        let age = HOUR / 60 * world.rng.u32(5..minutes);
        let template = &set["spec"]["template"];
        let made = pod::of_template(world, &set, template);
        let Some(mut made) = world.create_aged(made, age) else { continue };
        let status = pod::long_running(world, &made, *address, age);
        // The server may have started this pod already. Without a version, the update applies to
        // any state.
        made["metadata"]["resourceVersion"].take();
        world.update_status(&made, status);
        *address += 1;
    }
}

fn service(world: &World, app: &App, address: u8) {
    let own = format!("10.96.0.{}", 20 + address);
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": app.namespace, "name": app.name, "labels": {"app": app.name}},
        "spec": {
            "clusterIP": own, "clusterIPs": [own], "selector": {"app": app.name},
            "ports": [{"name": "http", "port": 80, "targetPort": app.port}],
        },
    });
    world.create_aged(service, HOUR * app.age);
}

fn settings(world: &World) {
    for (namespace, name, data) in [
        ("default", "api-settings", json!({"logLevel": "info", "timeoutSeconds": "30"})),
        ("default", "features", json!({"darkMode": "on", "newCheckout": "off"})),
        ("monitoring", "grafana-settings", json!({"logLevel": "warn"})),
    ] {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": namespace, "name": name}, "data": data,
        });
        world.create_aged(map, HOUR * 75);
    }
}

fn databases(world: &World) {
    let column = |name: &str, kind: &str, path: &str, priority: u8| json!({"name": name, "type": kind, "jsonPath": path, "priority": priority});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "databases.demo.example.com"},
        "spec": {
            "group": "demo.example.com", "scope": "Namespaced",
            "names": {
                "plural": "databases", "singular": "database", "kind": "Database", "shortNames": ["db"],
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
                "additionalPrinterColumns": [
                    column("Engine", "string", ".spec.engine", 0),
                    column("Version", "string", ".spec.version", 0),
                    column("Phase", "string", ".status.phase", 0),
                    column("Size", "string", ".spec.size", 1),
                    column("Age", "date", ".metadata.creationTimestamp", 0),
                ],
            }],
        },
    });
    world.create_aged(definition, HOUR * 200);
    for (name, engine, version, size) in
        [("orders", "postgres", "17.4", "20Gi"), ("sessions", "valkey", "8.1", "2Gi")]
    {
        let database: Value = json!({
            "apiVersion": "demo.example.com/v1", "kind": "Database",
            "metadata": {"namespace": "default", "name": name},
            "spec": {"engine": engine, "version": version, "size": size},
            "status": {"phase": "Ready"},
        });
        world.create_aged(database, HOUR * 190);
    }
}

fn reports(world: &World) {
    let cron_job = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"namespace": "default", "name": "report"},
        "spec": {
            "schedule": "* * * * *", "suspend": false, "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1,
            "jobTemplate": {"spec": {"template": {
                "metadata": {"labels": {"app": "report"}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "report", "image": "example/report:1.2.0"}],
                },
            }}},
        },
    });
    world.create_aged(cron_job, HOUR * 75);
}
