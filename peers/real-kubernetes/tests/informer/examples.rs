//! The controllers of the examples, on the real server.

use std::env;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use tokio::process::Command;

use super::scene::shared;

/// Runs an example and returns the lines that it prints.
async fn played(example: &str) -> Result<Option<Vec<String>>> {
    let Some(kubernetes) = shared().await? else { return Ok(None) };
    let examples = env::var_os("KUBE_INFORMER_EXAMPLES")
        .context("KUBE_INFORMER_EXAMPLES names the directory of the examples")?;
    let output = Command::new(PathBuf::from(examples).join(example))
        .env("KUBECONFIG", kubernetes.kubeconfig())
        .env("KUBE_INFORMER_PLAY", "1")
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await?;
    assert!(output.status.success(), "{example}: {output:?}");
    Ok(Some(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sample_controller_keeps_its_deployment() -> Result<()> {
    let Some(lines) = played("controller").await? else { return Ok(()) };
    let expected = [
        "default/web gets a Deployment of 1",
        "default/web is scaled to 3",
        "default/web gets a Deployment of 3",
    ];
    assert_eq!(lines[..3], expected);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operator_publishes_repairs_refuses_and_cleans_up() -> Result<()> {
    let Some(lines) = played("operator").await? else { return Ok(()) };
    let expected = [
        "ConfigMap is written: default/hello",
        "Service is written: default/hello",
        r#"default/hello is ready: Some(("True", "Published"))"#,
        "ConfigMap is written: default/hello",
        r#"default/hello is ready: Some(("False", "BadPort"))"#,
        "default/hello leaves the search engines",
    ];
    assert_eq!(lines, expected);
    Ok(())
}
