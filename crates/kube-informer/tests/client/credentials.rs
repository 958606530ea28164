//! Credentials of the client.

use std::fs;
use std::path::PathBuf;

use embedded_apiserver::ApiServer;
use kube::config::ExecInteractiveMode;
use kube::{Client, Config};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use crate::{config, is_answered, listen};

/// Returns the user of the last request.
fn user(server: &ApiServer) -> String {
    server.requests().last().unwrap().user.clone()
}

#[tokio::test]
async fn tokens_and_impersonation_reach_the_server() {
    let server = ApiServer::start();
    let listening = listen(&server).await;
    let config = config(&listening, &listening.url()).await;
    assert!(is_answered(&kube_informer::client(config.clone()).unwrap()).await);
    let administrator = user(&server);

    let mut jane = config.clone();
    jane.auth_info.impersonate = Some("jane".to_owned());
    jane.auth_info.impersonate_groups = Some(vec!["system:masters".to_owned()]);
    assert!(is_answered(&kube_informer::client(jane).unwrap()).await);
    assert_eq!(user(&server), "jane");

    let mut stranger = config.clone();
    stranger.auth_info.token = Some("wrong".to_owned().into());
    assert!(!is_answered(&kube_informer::client(stranger).unwrap()).await);

    // A file is read again when it has changed, within a minute.
    let file = file("token");
    fs::write(&file, server.token()).unwrap();
    let mut by_file = config;
    by_file.auth_info.token = None;
    by_file.auth_info.token_file = Some(file.to_str().unwrap().to_owned());
    assert!(is_answered(&kube_informer::client(by_file).unwrap()).await);
    assert_eq!(user(&server), administrator);
}

/// kube's own client runs it three times.
#[tokio::test]
async fn a_plugin_that_gives_tokens_is_run_once() {
    let server = ApiServer::start();
    let listening = listen(&server).await;
    let mut config = config(&listening, &listening.url()).await;
    config.auth_info.token = None;
    let runs = file("runs");
    let _ = fs::remove_file(&runs);
    let script = format!(
        "echo run >> {}; echo '{}'",
        runs.display(),
        credential(&json!({"token": server.token()}))
    );
    plugin(&mut config, &script);
    let client = kube_informer::client(config).unwrap();
    assert!(is_answered(&client).await);
    assert_eq!(fs::read_to_string(&runs).unwrap(), "run\n");
}

#[tokio::test]
async fn the_end_of_a_certificate_that_a_plugin_gives_is_known() {
    let server = ApiServer::start();
    let listening = listen(&server).await;
    let mut config = config(&listening, &listening.url()).await;
    config.auth_info.token = None;
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([]).unwrap().self_signed(&key).unwrap();
    let status = json!({
        "clientCertificateData": certificate.pem(), "clientKeyData": key.serialize_pem(),
        "expirationTimestamp": "2036-01-01T00:00:00Z",
    });
    let answer = file("certificate");
    fs::write(&answer, credential(&status).to_string()).unwrap();
    plugin(&mut config, &format!("cat {}", answer.display()));
    let kubes = *Client::try_from(config.clone()).unwrap().valid_until();
    assert!(kubes.is_some());
    assert_eq!(*kube_informer::client(config).unwrap().valid_until(), kubes);
}

#[tokio::test]
async fn a_plugin_that_fails_is_an_error_at_once() {
    let mut config = Config::new("https://127.0.0.1:1".parse().unwrap());
    plugin(&mut config, "exit 3");
    let error = kube_informer::client(config).err().unwrap();
    assert!(matches!(error, kube::Error::Auth(_)), "{error:?}");
}

fn credential(status: &Value) -> Value {
    json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": status,
    })
}

fn plugin(config: &mut Config, script: &str) {
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
    });
    let mut exec: kube::config::ExecConfig = serde_json::from_value(exec).unwrap();
    exec.interactive_mode = Some(ExecInteractiveMode::Never);
    config.auth_info.exec = Some(exec);
}

/// Returns the path of a file of this test run.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("client-{}-{name}", std::process::id()))
}
