//! A candidate of ours as a process: this program, run with variables that tell it to be one.

use std::env;
use std::io::{self, Write as _};
use std::process::exit;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube_informer::LeaderElector;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

pub(crate) const KUBECONFIG: &str = "CANDIDATE_KUBECONFIG";
pub(crate) const IDENTITY: &str = "CANDIDATE_IDENTITY";
pub(crate) const LEASE: &str = "CANDIDATE_LEASE";

/// Long enough that a busy machine misses no deadline, short enough to wait for.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(4);
pub(crate) const RENEW_DEADLINE: Duration = Duration::from_secs(3);
pub(crate) const RETRY_PERIOD: Duration = Duration::from_millis(500);

/// The pace of the work that a leader does.
const PACE: Duration = Duration::from_millis(10);

/// Does nothing unless [`process`](super::process) has started it.
#[test]
fn candidate() -> Result<()> {
    let (Ok(kubeconfig), Ok(identity), Ok(lease)) =
        (env::var(KUBECONFIG), env::var(IDENTITY), env::var(LEASE))
    else {
        return Ok(());
    };
    thread::spawn(|| {
        // It ends when the test that has started it does, however that ends.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        exit(2);
    });
    // The line that the test runner has begun.
    say("");
    Runtime::new()?.block_on(lead(&kubeconfig, &identity, &lease))
}

async fn lead(kubeconfig: &str, identity: &str, lease: &str) -> Result<()> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    let elector = LeaderElector::builder(Client::try_from(config)?, "default", lease)
        .identity(identity)
        .lease_duration(LEASE_DURATION)
        .renew_deadline(RENEW_DEADLINE)
        .retry_period(RETRY_PERIOD)
        .on_new_leader(|identity| say(&format!("leader {identity}")))
        .build()?;
    let mut terminate = signal(SignalKind::terminate())?;
    let work = |_| async {
        say("leads");
        loop {
            say(&format!("step {}", micros()));
            sleep(PACE).await;
        }
    };
    elector.run(terminate.recv(), work).await;
    say("ended");
    Ok(())
}

fn micros() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros()
}

/// One line, past the test runner, which would keep it.
fn say(line: &str) {
    // Without a reader there is nobody to tell.
    let _ = writeln!(io::stdout().lock(), "{line}");
}
