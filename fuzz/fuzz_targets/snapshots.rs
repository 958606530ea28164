//! Any bytes as a snapshot: the informer begins with its objects or lists, and is in sync either way.
//!
//! If the first byte is even, the rest is the file. Otherwise it is what the file's zstd frame holds, so that the
//! checksum is right.

#![no_main]

use std::path::Path;
use std::time::Duration;

use embedded_apiserver::ApiServer;
use kube_client::Client;
use kube_core::DynamicObject;
use kube_informer::SharedInformerFactory;
use kube_informer_fuzz::{describe, pods, runtime};
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use tokio::runtime::Runtime;

const FORMAT: &[u8] = b"kube-informer snapshot 1\n";

fuzz_target!(|data: &[u8]| {
    let Some((&form, content)) = data.split_first() else { return };
    let path = std::env::temp_dir().join(format!("kube-informer-fuzz-{}", std::process::id()));
    if form & 1 == 0 {
        std::fs::write(&path, content).expect("it can be written");
    } else {
        let frame = zstd::encode_all(content, 1).expect("anything can be compressed");
        std::fs::write(&path, [FORMAT, &frame].concat()).expect("it can be written");
    }
    SCENE.with(|Scene { runtime, client }| runtime.block_on(begin(client, &path)));
});

/// The parts that all runs share: making a server takes longer than reading a snapshot.
struct Scene {
    runtime: Runtime,
    client: Client,
}

thread_local! {
    static SCENE: Scene = Scene::new();
}

impl Scene {
    fn new() -> Self {
        let runtime = runtime();
        let client = runtime.block_on(async {
            let server = ApiServer::builder().seed(1).build();
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"},
                "spec": {"containers": [{"name": "a", "image": "a"}]}});
            server.create(pod).expect("it is a pod");
            Client::new(server.service_as("kubernetes-admin"), "default")
        });
        Self { runtime, client }
    }
}

async fn begin(client: &Client, path: &Path) {
    let factory = SharedInformerFactory::new(client.clone());
    let informer = factory.builder_with::<DynamicObject>(&pods()).warm_start(path).build();
    factory.start();
    let synced = tokio::time::timeout(Duration::from_secs(3600), informer.wait_for_sync()).await;
    synced.expect("it lists where it cannot begin with the snapshot").expect("the server is well");
    for object in informer.lister().list() {
        describe(&object.cast());
    }
    factory.shutdown().await;
}
