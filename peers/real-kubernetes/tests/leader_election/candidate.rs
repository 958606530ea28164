//! One of our candidates as a process: this test program, started with variables that turn it into one.

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

/// The interval between two steps of a leader's work.
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
        // It ends with the test that started it, however that ends.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        exit(2);
    });
    // Ends the line that the test runner has started.
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

/// Prints one line directly, because the test runner would capture it.
fn say(line: &str) {
    // If the reader is gone, the line is not needed.
    let _ = writeln!(io::stdout().lock(), "{line}");
}
