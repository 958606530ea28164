//! A small simulated cluster, for users without a cluster and for `serve --demo`.
//!
//! It has deployments with their replica sets and pods, a cron job and a custom resource. Everything
//! exists and runs from the start. From then on, something changes about once a second.
//!
//! # Architecture invariants
//! - The next change follows from the objects and the seed. There is no other state, so that the cluster
//!   reacts when users scale, edit or delete objects, and does not break.
//! - The number of objects is bounded.

mod controllers;
mod pod;
mod scene;
mod story;
mod world;

use std::time::Duration;

use embedded_apiserver::{ApiServer, Builder};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use story::Story;
use world::World;

/// The time between two changes.
const BEAT: Duration = Duration::from_secs(1);

/// The time until the first change, short so that users soon see that the cluster is alive.
const FIRST_BEAT: Duration = Duration::from_millis(200);

/// The number of events about pods to retain. A real server retains an hour's worth, which would
/// clutter a cluster that exists to be watched.
const EVENTS_MAX: usize = 20;

/// Returns the options of a server that [`populate`] can be used on.
pub(crate) fn builder(seed: Option<u64>) -> Builder {
    let builder = ApiServer::builder().pods_run(true).pod_events_max(EVENTS_MAX);
    match seed {
        Some(seed) => builder.seed(seed),
        None => builder,
    }
}

/// Creates the cluster's objects, as if they had existed for days.
pub(crate) fn populate(server: &ApiServer, seed: Option<u64>) {
    let mut world = World::new(server.clone(), rng(seed));
    scene::set(&mut world);
    controllers::step(&mut world);
}

/// Returns a server with the cluster on it, and everything running. Needs a tokio runtime. Without
/// a seed, each cluster is slightly different.
pub(crate) fn cluster(seed: Option<u64>) -> ApiServer {
    let server = builder(seed).build();
    populate(&server, seed);
    server
}

/// Keeps the cluster changing. Never completes; drop the future to stop it.
pub(crate) async fn live(server: ApiServer, seed: Option<u64>) {
    let mut world = World::new(server, rng(seed.map(u64::reverse_bits)));
    let mut story = Story::default();
    let mut beats = interval_at(Instant::now() + FIRST_BEAT, BEAT);
    // After the machine has slept, missed changes are not made up for.
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        let busy = controllers::step(&mut world);
        story.go_on(&mut world, busy);
    }
}

fn rng(seed: Option<u64>) -> fastrand::Rng {
    seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed)
}

#[cfg(test)]
mod tests;
