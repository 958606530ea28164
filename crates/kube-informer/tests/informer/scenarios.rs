//! Random sequences of faults, after which everything must converge. L1, I2, I11.

use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Verb};
use fastrand::Rng;
use tokio::time::sleep;

use super::running::{Book, Running};
use super::scene::{Maps, agrees, asked, seconds, server, within};

const SEEDS: u64 = 3;
/// Time to detect a dead watch, for a pause, and for a list.
const CONVERGED: Duration = Duration::from_secs(75 + 60 + 10);

/// Changes a random map.
fn churn(server: &ApiServer, random: &mut Rng) {
    let name = format!("m{}", random.u8(..20));
    let there = server.get("configmaps", "default", &name).is_some();
    match (there, random.u8(..3)) {
        (false, _) => server.add(&name, "0"),
        (true, 0) => server.remove(&name),
        (true, _) => server.change(&name, &random.u32(..).to_string()),
    };
}

/// Runs an informer with changing handlers through the faults of `happens`, if there are any.
async fn survives(
    seed: u64,
    happens: impl Fn(&ApiServer, &mut Rng, usize),
) -> (Running, Vec<Book>) {
    let mut random = Rng::with_seed(seed);
    let server = ApiServer::builder().seed(seed).build();
    let running = Running::new(server);
    running.informer.start();
    let mut books = Vec::new();
    for turn in 0..200 {
        happens(&running.server, &mut random, turn);
        for _ in 0..random.u8(..5) {
            churn(&running.server, &mut random);
        }
        if turn % 40 == 0 {
            books.push(Book::keep(&running.informer));
        }
        sleep(Duration::from_millis(random.u64(..3000))).await;
    }
    running.server.faults().clear();
    let converged =
        || running.informer.is_live() && agrees(&running.server, &running.informer.lister());
    within(CONVERGED, "L1", converged).await;
    seconds(1).await;
    assert!(books.iter().all(|book| book.is_right(&running.informer)), "seed {seed}");
    (running, books)
}

fn never_went_back(books: &[Book]) {
    for book in books {
        assert_eq!(book.older(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn l1_i2_a_flaky_network() {
    for seed in 0..SEEDS {
        let (running, books) = survives(seed, |server, _, turn| {
            if turn == 10 {
                server.faults().flaky_network(0.2);
            }
        })
        .await;
        never_went_back(&books);
        assert!(running.errors.len() > 5, "{}", running.errors.len());
    }
}

#[tokio::test(start_paused = true)]
async fn l1_i2_an_upgrade_of_the_control_plane() {
    for seed in 0..SEEDS {
        let (running, books) = survives(seed, |server, _, turn| {
            if turn % 50 == 25 {
                server.faults().control_plane_upgrade();
            }
        })
        .await;
        never_went_back(&books);
        assert!(running.errors.len() > 5, "{}", running.errors.len());
    }
}

#[tokio::test(start_paused = true)]
async fn l1_i2_servers_that_lag() {
    for seed in 0..SEEDS {
        let (running, books) = survives(seed, |server, _, turn| {
            let faults = server.faults();
            if turn == 0 {
                // Streams never lag, but lists do, including the first.
                faults.on(Verb::Watch).inject(Fault::status(422));
                faults.on(Verb::List).inject(Fault::StaleList { versions: 2 });
            }
            if turn % 20 == 19 {
                faults.on(Verb::List).inject(Fault::StaleList { versions: 20 });
                faults.on(Verb::Watch).after_events(0).inject(Fault::Gone);
            }
        })
        .await;
        never_went_back(&books);
        let texts: Vec<_> = running.errors.all().iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|text| text.contains("lags behind")), "{texts:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn l1_i21_a_restore_from_a_backup() {
    for seed in 0..SEEDS {
        let backup = parking_lot::Mutex::new(None);
        let (running, _) = survives(seed, |server, _, turn| match turn {
            5 => *backup.lock() = Some(server.store().snapshot()),
            // Until the versions have caught up, the client can tell only by the silence of its
            // watch.
            150 => {
                let backup = backup.lock();
                server.faults().etcd_restore(backup.as_ref().expect("there is one"));
            }
            _ => {}
        })
        .await;
        assert!(running.errors.nexts().contains(&"relist"));
    }
}

#[tokio::test(start_paused = true)]
async fn l1_i8_everything_at_once() {
    for seed in 0..SEEDS {
        let (_, books) = survives(seed, |server, random, _| {
            let faults = server.faults();
            let watch = || faults.on(Verb::Watch).after_events(seed % 4);
            match random.u8(..40) {
                0 => _ = watch().inject(Fault::HalfOpen),
                1 => _ = watch().inject(Fault::Reset),
                2 => _ = watch().inject(Fault::Gone),
                3 => _ = watch().inject(Fault::Truncated),
                4 => _ = watch().inject(Fault::MalformedUtf8),
                5 => _ = watch().inject(Fault::DuplicateEvent),
                6 => _ = watch().inject(Fault::SplitUtf8),
                7 => _ = watch().inject(Fault::EndBookmarkMissing),
                8 => _ = watch().inject(Fault::status(500)),
                9 => _ = faults.any().times(3).inject(Fault::status(503)),
                10 => _ = faults.any().inject(Fault::status_retry_after(429, "3")),
                11 => _ = faults.any().inject(Fault::html(502)),
                12 => server.restart(),
                13 => server.drop_watches(),
                14 => server.store().compact(server.store().revision()),
                15 => _ = faults.on(Verb::Watch).inject(Fault::StalledHeaders),
                16 => _ = watch().inject(Fault::Latency(Duration::from_secs(2))),
                _ => {}
            }
        })
        .await;
        never_went_back(&books);
    }
}

#[tokio::test(start_paused = true)]
async fn l1_l3_whatever_lasts_is_asked_for_kindly_and_passes() {
    type Of = fn() -> Fault;
    let lasting: [(&str, Of); 9] = [
        ("refused", || Fault::Refused),
        ("reset", || Fault::Reset),
        ("401", || Fault::status(401)),
        ("403", || Fault::status(403)),
        ("404", || Fault::status(404)),
        ("410", || Fault::Gone),
        ("429", || Fault::status(429)),
        ("503", || Fault::status(503)),
        ("html", || Fault::html(200)),
    ];
    for (name, fault) in lasting {
        let server: ApiServer = server();
        server.add("a", "1");
        server.add("b", "1");
        let running = Running::synced(server).await;
        let book = Book::keep(&running.informer);
        seconds(5).await;
        running.server.clear_record();
        let rule = running.server.faults().any().always().inject(fault());
        running.server.drop_watches();
        seconds(1800).await;
        running.server.remove("a");
        running.server.add("c", "1");
        seconds(1800).await;
        // In the long run, at most once per half of the longest pause: 15 s.
        let asked = asked(&running.server).len();
        assert!((60..=240).contains(&asked), "{name}: {asked} in an hour");
        assert!(!running.informer.is_live(), "{name}");
        assert_eq!(running.names(), ["a", "b"], "{name}");
        running.server.faults().remove(rule);
        let recovered =
            || running.informer.is_live() && agrees(&running.server, &running.informer.lister());
        within(Duration::from_secs(61), name, recovered).await;
        assert!(book.is_right(&running.informer), "{name}");
    }
}
