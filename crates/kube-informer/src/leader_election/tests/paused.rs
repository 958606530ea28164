//! Processes that are paused and resumed, servers that fail: there are never two leaders, and never none for
//! long.

use std::env;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Verb};
use fastrand::Rng;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::scene::{builder, elector, holder, seconds, server, timed};
use crate::leader_election::LeaderElector;
use crate::leader_election::leadership::{Candidacy, Ending, Leadership, LeadershipGuard};
use crate::leader_election::tenure::tenure;

/// When the pause of a process ends.
#[derive(Clone)]
struct Pause(Arc<Mutex<Instant>>);

impl Pause {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    fn until(&self) -> Option<Instant> {
        Some(*self.0.lock()).filter(|until| *until > Instant::now())
    }

    fn stop_for(&self, time: Duration) {
        *self.0.lock() = Instant::now() + time;
    }
}

/// A task of a process, which is not polled while the process is paused.
struct Task<F> {
    pause: Pause,
    sleep: Option<Pin<Box<Sleep>>>,
    future: Pin<Box<F>>,
}

impl<F: Future> Task<F> {
    fn new(pause: &Pause, future: F) -> Self {
        Self { pause: pause.clone(), sleep: None, future: Box::pin(future) }
    }
}

impl<F: Future> Future for Task<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        while let Some(until) = self.pause.until() {
            let sleep = self.sleep.insert(Box::pin(sleep_until(until)));
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        self.future.as_mut().poll(context)
    }
}

/// Like `LeaderElector::start`, with a task that can be paused.
fn start(elector: &LeaderElector, pause: &Pause) -> (Candidacy, oneshot::Receiver<Leadership>) {
    let (won, winning) = oneshot::channel();
    let (ending, ended) = oneshot::channel();
    let task = tokio::spawn(Task::new(pause, tenure(elector.0.clone(), won, ended)));
    (Candidacy::new(ending, task), winning)
}

/// The steps that leaders have taken: when, by which process, and which processes were leaders
/// then.
type Steps = Arc<Mutex<Vec<Step>>>;
type Step = (Instant, usize, Vec<usize>);

/// The processes that currently believe that they lead.
fn leaders(electors: &[LeaderElector]) -> Vec<usize> {
    let leads = |number: &usize| electors[*number].is_leader();
    (0..electors.len()).filter(leads).collect()
}

/// A process that always takes part and works while it leads, and gives leadership up by itself now and then.
fn process(
    number: usize,
    electors: &[LeaderElector],
    pause: &Pause,
    steps: Steps,
) -> JoinHandle<()> {
    let (electors, tasks) = (electors.to_vec(), pause.clone());
    let mut rng = Rng::with_seed(number as u64);
    tokio::spawn(Task::new(pause, async move {
        loop {
            let (candidacy, won) = start(&electors[number], &tasks);
            let Ok(leadership) = won.await else { return };
            let guard = LeadershipGuard::new(leadership.clone(), candidacy);
            let last = rng.u32(..400);
            let work = async {
                for _ in 0..last {
                    steps.lock().push((Instant::now(), number, leaders(&electors)));
                    sleep(Duration::from_millis(100)).await;
                }
            };
            if leadership.while_leader(work).await.is_some() {
                guard.stop().await;
            }
        }
    }))
}

struct World {
    server: ApiServer,
    electors: Vec<LeaderElector>,
    pauses: Vec<Pause>,
    rng: Rng,
}

impl World {
    /// Injects a fault for a while.
    fn trouble(&mut self) {
        let millis = |rng: &mut Rng, max| Duration::from_millis(rng.u64(..max));
        let faults = self.server.faults();
        match self.rng.u32(..10) {
            0..4 => {
                let which = self.rng.usize(..self.pauses.len());
                self.pauses[which].stop_for(millis(&mut self.rng, 60_000));
            }
            4 => {
                faults.flaky_network(0.3);
            }
            5 => {
                let latency = Fault::Latency(millis(&mut self.rng, 6000));
                faults.any().resource("leases").always().probability(0.5).inject(latency);
            }
            6 => {
                faults.on(Verb::Update).times(self.rng.u64(1..5)).inject(Fault::LostAnswer);
            }
            7 => {
                faults.any().times(self.rng.u64(1..5)).inject(Fault::StalledHeaders);
            }
            8 => self.server.refuse_connections(),
            _ => {
                faults.any().times(self.rng.u64(1..5)).inject(Fault::status(500));
            }
        }
    }

    fn well(&mut self) {
        self.server.faults().clear();
        self.server.accept_connections();
    }

    /// Lets time pass, and asserts that there is at most one leader at every moment.
    async fn pass(&self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            sleep(Duration::from_millis(50)).await;
            let leaders = leaders(&self.electors);
            assert!(leaders.len() <= 1, "{leaders:?}");
        }
    }

    fn leads(&self) -> bool {
        !leaders(&self.electors).is_empty()
    }

    /// Asserts that once all faults have cleared there is a leader again within the time that the rules allow:
    /// until the last renewal is seen and the pause of a candidate (4.4 s), until the lease has expired (15 s),
    /// until a candidate notices that (4.4 s), plus requests that time out in between (3 × 3.3 s).
    async fn recover(&mut self) {
        self.well();
        let ends = self.pauses.iter().filter_map(Pause::until).max();
        let until = ends.unwrap_or_else(Instant::now) + Duration::from_secs(34);
        while Instant::now() < until && !self.leads() {
            self.pass(Duration::from_millis(100)).await;
        }
        assert!(self.leads(), "there is no leader although nothing is wrong");
    }
}

async fn random_run(seed: u64) {
    let server = ApiServer::builder().seed(seed).build();
    let steps = Steps::default();
    let pauses: Vec<_> = (0..3).map(|_| Pause::new()).collect();
    let electors: Vec<_> = (0..3_u64)
        .map(|number| {
            let identity = format!("p{number}");
            builder(&server, &identity).seed(seed * 3 + number).build().unwrap()
        })
        .collect();
    let processes: Vec<_> = pauses
        .iter()
        .enumerate()
        .map(|(number, pause)| process(number, &electors, pause, steps.clone()))
        .collect();
    let mut world = World { server, electors, pauses, rng: Rng::with_seed(seed) };
    for _ in 0..8 {
        for _ in 0..world.rng.u32(1..4) {
            world.trouble();
            let time = Duration::from_millis(world.rng.u64(..20_000));
            world.pass(time).await;
        }
        world.recover().await;
    }
    processes.iter().for_each(JoinHandle::abort);
    let steps = steps.lock();
    assert!(steps.len() > 20, "only {} steps", steps.len());
    for (_, number, leaders) in &*steps {
        assert_eq!(leaders, &[*number], "a step of a process that does not lead, or not alone");
    }
}

#[tokio::test(start_paused = true)]
async fn there_are_never_two_leaders_and_never_long_none() {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = match number("LEADER_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LEADER_SEEDS").unwrap_or(60),
    };
    for seed in seeds {
        println!("LEADER_SEED={seed}");
        random_run(seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_leader_takes_no_step_after_it_is_continued() {
    let server = server();
    let (elector_a, pause, steps) = (elector(&server, "a"), Pause::new(), Steps::default());
    let (candidacy, won) = start(&elector_a, &pause);
    let leadership = won.await.unwrap();
    let guard = LeadershipGuard::new(leadership.clone(), candidacy);
    let worker = tokio::spawn(Task::new(&pause, {
        let steps = steps.clone();
        async move {
            let work = async {
                loop {
                    steps.lock().push((Instant::now(), 0, Vec::new()));
                    sleep(Duration::from_millis(100)).await;
                }
            };
            assert_eq!(leadership.while_leader(work).await, None::<()>);
        }
    }));
    let other = elector(&server, "b");
    let next = tokio::spawn(async move { other.acquire().await });
    seconds(5).await;
    let paused = Instant::now();
    pause.stop_for(Duration::from_secs(60));
    seconds(1).await;
    assert!(elector_a.is_leader(), "a pause this short ends nothing");
    seconds(9).await;
    assert!(!elector_a.is_leader(), "nothing of the process runs, and still the term is over");
    let next = timed(next).await.1.unwrap();
    assert!(Instant::now() - paused < Duration::from_secs(25));
    timed(worker).await.1.unwrap();
    assert!(steps.lock().iter().all(|(at, ..)| *at <= paused));
    assert!(next.is_leader() && !guard.is_leader());
    assert_eq!(holder(&server), "b");
}

/// With several threads, the task can see that the guard is gone before it learns how to end.
#[tokio::test(start_paused = true)]
async fn a_dropped_guard_waits_for_the_kind_of_ending() {
    let server = server();
    let (mut candidacy, won) = start(&elector(&server, "a"), &Pause::new());
    won.await.unwrap().0.let_go();
    seconds(5).await;
    assert_eq!(holder(&server), "a");
    candidacy.end(Ending::Release).await.unwrap();
    assert_eq!(holder(&server), "");
}
