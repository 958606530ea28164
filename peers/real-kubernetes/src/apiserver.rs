//! kube-apiserver.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::Request;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use tokio::time::{Instant, sleep, timeout};

use crate::access::{self, Access};
use crate::certificates::{ACCOUNTS_KEY, ACCOUNTS_PUBLIC_KEY, CERTIFICATE, KEY};
use crate::process::{GLANCE, Process, SharedLeash};

/// The time within which it must become ready, even on a busy machine.
const READY_MAX: Duration = Duration::from_secs(180);

/// The timeout of one readiness check.
const ANSWER_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct ApiServer {
    program: PathBuf,
    arguments: Vec<String>,
    directory: PathBuf,
    leash: SharedLeash,
    process: Option<Process>,
}

impl ApiServer {
    pub(crate) fn new(
        programs: &Path,
        directory: &Path,
        leash: &SharedLeash,
        (etcd, port): (&str, u16),
        access: &Access,
        flags: &[String],
    ) -> Self {
        let file = |name: &str| directory.join(name).display().to_string();
        let mut arguments = vec![
            format!("--etcd-servers={etcd}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", file(CERTIFICATE)),
            format!("--tls-private-key-file={}", file(KEY)),
            format!("--cert-dir={}", file("certificates")),
            format!("--token-auth-file={}", access.tokens().display()),
            "--authorization-mode=RBAC".to_owned(),
            format!("--service-account-key-file={}", file(ACCOUNTS_PUBLIC_KEY)),
            format!("--service-account-signing-key-file={}", file(ACCOUNTS_KEY)),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            // There is no controller that would create the service accounts of pods.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            // Nor is there a network in which this server has a known address.
            "--endpoint-reconciler-type=none".to_owned(),
            // Without this, a graceful shutdown takes a minute if there is a watch: the server waits for watches as
            // for any other request, without notifying them.
            "--shutdown-watch-termination-grace-period=5s".to_owned(),
        ];
        arguments.extend_from_slice(flags);
        Self {
            program: programs.join("kube-apiserver"),
            arguments,
            directory: directory.to_owned(),
            leash: leash.clone(),
            process: None,
        }
    }

    /// Starts it, and waits until it is ready for the user of this kubeconfig.
    pub(crate) async fn start(&mut self, kubeconfig: &Path) -> Result<()> {
        self.process = None;
        let client = access::client(kubeconfig, false).await?;
        let (program, directory) = (&self.program, &self.directory);
        let process =
            Process::start("kube-apiserver", program, &self.arguments, directory, &self.leash)?;
        let process = self.process.insert(process);
        let deadline = Instant::now() + READY_MAX;
        loop {
            process.check()?;
            let asked = timeout(ANSWER_MAX, ready(&client)).await;
            match asked.unwrap_or_else(|_| Err(anyhow::anyhow!("no answer"))) {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > deadline => {
                    let log = process.last_words();
                    return Err(error.context(format!("kube-apiserver is not ready:\n{log}")));
                }
                Err(_) => sleep(GLANCE).await,
            }
        }
    }

    pub(crate) fn process(&mut self) -> Result<&mut Process> {
        self.process.as_mut().context("kube-apiserver is not running")
    }

    /// Drops the process, which kills it.
    pub(crate) fn gone(&mut self) {
        self.process = None;
    }
}

async fn ready(client: &Client) -> Result<()> {
    client.request_text(Request::get("/readyz").body(Vec::new())?).await?;
    // The server creates it a moment after it reports that it is ready.
    Api::<Namespace>::all(client.clone()).get("default").await?;
    Ok(())
}
