//! `deploy/operator` runs the operator example in a cluster. Its manifests are valid, its rules allow exactly the
//! requests that the operator makes, and its probes lead somewhere.

#[allow(dead_code, reason = "no test uses all of it")]
#[path = "../shared/process.rs"]
mod process;

mod image;
mod manifests;
mod probes;
mod rules;

use std::path::PathBuf;

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::process::Command;

use process::Process;

const CRD: &str = include_str!("../../../../deploy/operator/crd.yaml");
const OPERATOR: &str = include_str!("../../../../deploy/operator/operator.yaml");

/// The name of nearly everything: namespace, account, roles, lease and deployment.
const NAME: &str = "website-operator";

/// The user of a pod with that account.
const USER: &str = "system:serviceaccount:website-operator:website-operator";

/// Returns a server with everything that is deployed.
fn deployed() -> ApiServer {
    let server = ApiServer::start();
    for manifests in [CRD, OPERATOR] {
        server.load_yaml(manifests).unwrap();
    }
    server
}

/// Starts the operator in the way that its pod does.
async fn start(server: &ApiServer) -> Process {
    let tests = std::env::current_exe().expect("a test is a file");
    let built: PathBuf = tests.ancestors().nth(2).expect("target/debug").join("examples/operator");
    assert!(built.exists(), "{} is not built: cargo build --examples", built.display());
    let mut command = Command::new(built);
    command.env("PROBES", "127.0.0.1:0").env_remove("KUBE_INFORMER_PLAY");
    server.access().add_token("token-of-the-account", USER);
    let edit = |kubeconfig: String| {
        let kubeconfig = kubeconfig.replace(server.token(), "token-of-the-account");
        kubeconfig.replace("namespace: default", "namespace: website-operator")
    };
    Process::start(command, server, edit).await
}

fn site(port: i32) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Website",
        "metadata": {"namespace": "default", "name": "hello"},
        "spec": {"html": "<h1>Hello</h1>", "port": port},
    })
}
