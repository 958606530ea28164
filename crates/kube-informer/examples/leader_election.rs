//! Two replicas of a program: one works, the other takes over when the first has ended.

#[allow(dead_code, reason = "no example uses all of it")]
#[path = "shared/cluster.rs"]
mod cluster;

use std::time::Duration;

use kube_informer::leader_election::{LeaderElector, RunOutcome};
use tokio::time::sleep;

fn main() -> anyhow::Result<()> {
    cluster::run(example)
}

async fn example(cluster: cluster::Cluster) -> anyhow::Result<()> {
    let replica = |identity| {
        LeaderElector::builder(cluster.client(), "default", "leader-election-example")
            .identity(identity) // elsewhere the default will do: the pod's name and a random suffix
            .build()
    };
    let (first, second) = (replica("replica-0")?, replica("replica-1")?);
    tokio::join!(work(&first), work(&second));
    Ok(())
}

/// Takes part in the election until its own work is done.
async fn work(elector: &LeaderElector) {
    let identity = elector.identity();
    let stop = async { tokio::signal::ctrl_c().await };
    let outcome = elector
        .run(stop, |leadership| async move {
            println!("{identity} leads");
            // Dropped at any await when leadership is lost.
            for step in 1..=3 {
                sleep(Duration::from_secs(1)).await;
                println!("{identity} works, step {step}");
            }
            leadership.transitions()
        })
        .await;
    match outcome {
        RunOutcome::Finished(before) => println!("{identity} is done, {before} led before"),
        RunOutcome::Lost => println!("{identity} leads no longer"),
        RunOutcome::Stopped => println!("{identity} was stopped"),
    }
}
