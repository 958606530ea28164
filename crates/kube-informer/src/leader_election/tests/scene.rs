//! A server with one Lease, and candidates for it.

use std::time::Duration;

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::leader_election::{LeaderElector, LeaderElectorBuilder};

pub(super) const NAMESPACE: &str = "kube-system";
pub(super) const NAME: &str = "my-operator";
pub(super) const RESOURCE: &str = "leases.coordination.k8s.io";

pub(super) fn server() -> ApiServer {
    ApiServer::builder().seed(7).build()
}

pub(super) fn builder(server: &ApiServer, identity: &str) -> LeaderElectorBuilder {
    let client = server.client_as(identity);
    LeaderElector::builder(client, NAMESPACE, NAME).identity(identity).seed(7)
}

pub(super) fn elector(server: &ApiServer, identity: &str) -> LeaderElector {
    builder(server, identity).build().expect("the settings are valid")
}

/// Returns the Lease's `spec` on the server.
pub(super) fn record(server: &ApiServer) -> Value {
    lease(server)["spec"].clone()
}

pub(super) fn lease(server: &ApiServer) -> Value {
    server.get(RESOURCE, NAMESPACE, NAME).expect("there is a Lease")
}

pub(super) fn holder(server: &ApiServer) -> String {
    record(server)["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// Writes the record of another candidate.
pub(super) fn write(server: &ApiServer, spec: &Value) {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": NAMESPACE, "name": NAME},
        "spec": spec,
    });
    if let Some(mut there) = server.get(RESOURCE, NAMESPACE, NAME) {
        there["spec"] = spec.clone();
        server.update(there).expect("it is there");
    } else {
        server.create(lease).expect("it is new");
    }
}

/// Returns the record of another candidate, renewed for the n-th time. Its clock is wrong by years.
pub(super) fn foreign(renewal: u32) -> Value {
    json!({
        "holderIdentity": "foreign", "leaseDurationSeconds": 40, "leaseTransitions": 3,
        "acquireTime": "2001-01-01T00:00:00.000000Z",
        "renewTime": format!("2001-01-01T00:00:00.{renewal:06}Z"),
    })
}

/// Returns the verbs of a candidate's requests.
pub(super) fn verbs(server: &ApiServer, identity: &str) -> Vec<String> {
    let requests = server.requests();
    let of = requests.iter().filter(|request| request.user == identity);
    of.filter_map(|request| request.verb).map(|verb| format!("{verb:?}").to_lowercase()).collect()
}

/// Runs everything that can run now; time is paused.
pub(super) async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

pub(super) async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

/// Returns how long a future takes, in seconds. Fails after an hour.
pub(super) async fn timed<T>(future: impl Future<Output = T>) -> (f64, T) {
    let began = Instant::now();
    let output = timeout(Duration::from_secs(3600), future).await.expect("it ends");
    (began.elapsed().as_secs_f64(), output)
}
