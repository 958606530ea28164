//! The command-line tool on the real server.

use std::env;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{ChildStdout, Command};

use super::scene::{Scene, shared};

async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> Result<Value> {
    let line = lines.next_line().await?.context("the tool says more")?;
    Ok(serde_json::from_str(&line)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tool_watches() -> Result<()> {
    let Some(kubernetes) = shared().await? else { return Ok(()) };
    let tool = env::var_os("KUBECTL_INFORMER").context("KUBECTL_INFORMER names the tool")?;
    let scene = Scene::new(kubernetes.client().await?, "tool").await?;
    scene.create("a").await?;
    let mut watch = Command::new(tool);
    watch.args(["watch", "cm", "-n", "tool", "-o", "json", "--count", "4", "--timeout", "60s"]);
    watch.arg("--kubeconfig").arg(kubernetes.kubeconfig());
    let mut watch = watch.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let mut lines = BufReader::new(watch.stdout.take().context("it is a pipe")?).lines();
    let mut seen = vec![next(&mut lines).await?];
    scene.create("b").await?;
    scene.set("a", 1).await?;
    scene.delete("b").await?;
    for _ in 0..3 {
        seen.push(next(&mut lines).await?);
    }
    let words = seen.iter().map(|event| {
        (event["type"].as_str().unwrap_or_default(), event["object"]["metadata"]["name"].as_str())
    });
    let words: Vec<_> = words.collect();
    let (a, b) = (Some("a"), Some("b"));
    assert_eq!(words, [("ADD", a), ("ADD", b), ("UPDATE", a), ("DELETE", b)]);
    assert!(watch.wait().await?.success());
    Ok(())
}
