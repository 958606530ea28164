//! A small living cluster: something to look at for who has no cluster, and for `serve --demo`.
//!
//! Deployments with their replica sets and pods, a cron job, a custom resource. Everything is there
//! and runs from the first moment; after that something happens about once a second, for ever.
//!
//! # Architecture invariants
//! - What happens next follows from the objects and from the seed. Nothing else is remembered, so that
//!   whoever scales, edits or deletes something sees the cluster react instead of break.
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

/// The time from one change to the next.
const BEAT: Duration = Duration::from_secs(1);

/// The time to the first: nobody waits long for a sign of life.
const FIRST_BEAT: Duration = Duration::from_millis(200);

/// How many events about pods are kept. A real server keeps an hour's worth: more than one wants to
/// see of a cluster that is there to be watched.
const EVENTS_MAX: usize = 20;

/// The options of a server that [`populate`] can be used on.
pub(crate) fn builder(seed: Option<u64>) -> Builder {
    let builder = ApiServer::builder().pods_run(true).pod_events_max(EVENTS_MAX);
    match seed {
        Some(seed) => builder.seed(seed),
        None => builder,
    }
}

/// Puts the cluster in place, as if it had been there for days.
pub(crate) fn populate(server: &ApiServer, seed: Option<u64>) {
    let mut world = World::new(server.clone(), rng(seed));
    scene::set(&mut world);
    controllers::step(&mut world);
}

/// A server with the cluster in place: everything runs. Needs a tokio runtime. Without a seed, each
/// is a little different.
pub(crate) fn cluster(seed: Option<u64>) -> ApiServer {
    let server = builder(seed).build();
    populate(&server, seed);
    server
}

/// Keeps the cluster alive. It never ends: drop it to stop.
pub(crate) async fn live(server: ApiServer, seed: Option<u64>) {
    let mut world = World::new(server, rng(seed.map(u64::reverse_bits)));
    let mut story = Story::default();
    let mut beats = interval_at(Instant::now() + FIRST_BEAT, BEAT);
    // A machine that slept does not make up for what it missed.
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
