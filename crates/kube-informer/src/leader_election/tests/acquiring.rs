//! Settings, and becoming leader.

use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::scene::{
    NAME, NAMESPACE, RESOURCE, builder, elector, foreign, holder, lease, record, seconds, server,
    settle, timed, verbs, write,
};
use crate::leader_election::{LeaderElector, LeaderElectorBuilder};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn le1_settings_that_are_not_safe_are_refused() {
    type Change = fn(LeaderElectorBuilder) -> LeaderElectorBuilder;
    let cases: [(Change, &str); 9] = [
        (|builder| builder.identity(""), "identity is empty"),
        (|builder| builder.lease_duration(Duration::ZERO), "lease_duration is zero"),
        (|builder| builder.renew_deadline(Duration::ZERO), "renew_deadline is zero"),
        (|builder| builder.retry_period(Duration::ZERO), "retry_period is zero"),
        (|builder| builder.lease_duration(secs(10)), "longer than renew_deadline (10s)"),
        (|builder| builder.renew_deadline(secs(15)), "lease_duration (15s) must be longer"),
        (|builder| builder.retry_period(Duration::from_millis(8334)), "1.2 times retry_period"),
        (|builder| builder.retry_period(Duration::MAX), "1.2 times retry_period"),
        (|builder| builder.lease_duration(Duration::MAX), "a Lease can say up to 2147483647 s"),
    ];
    let server = server();
    for (change, message) in cases {
        let error = change(builder(&server, "a")).build().unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains(message), "{error}");
        assert!(error.to_string().contains("kube-system/my-operator"), "{error}");
    }
    for (namespace, name) in [("", "a"), ("Web", "a"), ("web", ""), ("web", "../pods")] {
        let error = LeaderElector::builder(server.client(), namespace, name).build().unwrap_err();
        assert!(error.is_invalid(), "{error}");
    }
    assert!(builder(&server, "a").retry_period(Duration::from_millis(8333)).build().is_ok());
}

#[tokio::test(start_paused = true)]
async fn le2_the_defaults_are_those_of_kubernetes() {
    let server = server();
    let guard = elector(&server, "a").acquire().await;
    assert_eq!(record(&server)["leaseDurationSeconds"], 15);
    seconds(5).await;
    assert_eq!(verbs(&server, "a"), ["get", "create", "update", "update"]);
    server.refuse_connections();
    // The last renewal was a second ago.
    let (took, ()) = timed(guard.lost()).await;
    assert!((took - 9.0).abs() < 0.1, "{took}");
}

#[tokio::test(start_paused = true)]
async fn le3_attempts_are_between_1_and_2_2_retry_periods_apart() {
    let server = server();
    write(&server, &foreign(0));
    let elector = elector(&server, "a");
    let keep_alive = async {
        for renewal in 1.. {
            seconds(10).await;
            write(&server, &foreign(renewal));
        }
    };
    tokio::select! {
        biased;
        () = keep_alive => {}
        _ = elector.acquire() => panic!("the lease is renewed all the time"),
        () = seconds(600) => {}
    }
    let requests = server.requests();
    let at: Vec<f64> = requests.iter().map(|request| request.at.as_secs_f64()).collect();
    let pauses: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.len() > 130, "{}", pauses.len());
    assert!(pauses.iter().all(|pause| (1.99..4.41).contains(pause)), "{pauses:?}");
    let (shortest, longest) = pauses
        .iter()
        .fold((9.0_f64, 0.0_f64), |(least, most), pause| (least.min(*pause), most.max(*pause)));
    assert!(shortest < 2.2 && longest > 4.2, "{shortest} to {longest}");
}

#[tokio::test(start_paused = true)]
async fn le4_a_lease_that_does_not_exist_is_created() {
    let server = server();
    let (took, guard) = timed(elector(&server, "a").acquire()).await;
    assert!(took < 0.1 && guard.is_leader(), "{took}");
    assert_eq!((holder(&server), guard.transitions()), ("a".to_owned(), 0));
    assert_eq!(record(&server)["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn le4_le6_a_lease_without_a_holder_is_taken_at_once() {
    for spec in [json!({}), json!({"holderIdentity": "", "leaseDurationSeconds": 40})] {
        let server = server();
        write(&server, &spec);
        let (took, guard) = timed(elector(&server, "a").acquire()).await;
        assert!(took < 0.1, "{took}");
        assert_eq!((holder(&server), guard.transitions()), ("a".to_owned(), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn le4_le6_an_unchanged_lease_is_taken_over_after_its_duration() {
    let server = server();
    write(&server, &foreign(0));
    let (took, guard) = timed(elector(&server, "a").acquire()).await;
    // Neither the candidate's 15 seconds, nor at once because the time in the record is long past.
    assert!((40.0..44.5).contains(&took), "{took}");
    assert_eq!(guard.transitions(), 4);
    let record = record(&server);
    assert_eq!(record["leaseTransitions"], 4);
    assert_eq!(record["acquireTime"], record["renewTime"]);
}

#[tokio::test(start_paused = true)]
async fn le4_every_change_of_the_record_starts_the_wait_again() {
    let server = server();
    write(&server, &foreign(0));
    let elector = elector(&server, "a");
    let renewed = async {
        for renewal in 1..=5 {
            seconds(35).await;
            write(&server, &foreign(renewal));
        }
    };
    let ((), (took, guard)) = tokio::join!(renewed, timed(elector.acquire()));
    // Up to 4.4 seconds until the last change is seen, then 40, then up to 4.4.
    assert!((215.0..223.9).contains(&took), "{took}");
    assert!(guard.is_leader());
}

#[tokio::test(start_paused = true)]
async fn le4_changed_labels_do_not_prolong_a_lease() {
    let server = server();
    write(&server, &foreign(0));
    let elector = elector(&server, "a");
    let labelled = async {
        for number in 0.. {
            seconds(5).await;
            let mut lease = lease(&server);
            lease["metadata"]["labels"] = json!({"number": number.to_string()});
            server.update(lease).unwrap();
        }
    };
    let (took, _guard) = tokio::select! {
        biased;
        () = labelled => unreachable!("for ever"),
        acquired = timed(elector.acquire()) => acquired,
    };
    assert!((40.0..48.9).contains(&took), "{took}");
    assert!(lease(&server)["metadata"]["labels"]["number"].is_string());
}

#[tokio::test(start_paused = true)]
async fn le4_le6_a_lease_with_our_identity_is_ours() {
    let server = server();
    let mut spec = foreign(0);
    spec["holderIdentity"] = json!("a");
    write(&server, &spec);
    let (took, guard) = timed(elector(&server, "a").acquire()).await;
    assert!(took < 0.1, "{took}");
    assert_eq!(guard.transitions(), 3);
    assert_eq!(record(&server)["acquireTime"], spec["acquireTime"]);
}

#[tokio::test(start_paused = true)]
async fn le4_a_deleted_lease_is_held_until_it_would_expire() {
    let server = server();
    write(&server, &foreign(0));
    let elector = elector(&server, "a");
    let deleted = async {
        seconds(5).await;
        server.delete(RESOURCE, NAMESPACE, NAME).unwrap();
    };
    let ((), (took, guard)) = tokio::join!(deleted, timed(elector.acquire()));
    assert!((40.0..44.5).contains(&took), "{took}");
    assert_eq!(guard.transitions(), 4);
}

#[tokio::test(start_paused = true)]
async fn le4_of_candidates_that_race_one_wins() {
    let server = server();
    // All of them read before the first one writes.
    server.faults().on(Verb::Get).always().inject(Fault::Latency(secs(1)));
    let electors: Vec<_> =
        ["a", "b", "c"].into_iter().map(|identity| elector(&server, identity)).collect();
    let candidates: Vec<_> = electors
        .iter()
        .map(|elector| {
            let elector = elector.clone();
            tokio::spawn(async move { elector.acquire().await })
        })
        .collect();
    seconds(60).await;
    assert_eq!(electors.iter().filter(|elector| elector.is_leader()).count(), 1);
    assert_eq!(candidates.iter().filter(|candidate| candidate.is_finished()).count(), 1);
    assert!(electors.iter().all(|elector| elector.leader().as_deref() == Some(&*holder(&server))));
    // A lost race is not an error.
    assert!(electors.iter().all(|elector| elector.status().last_error.is_none()));
}

#[tokio::test(start_paused = true)]
async fn clones_of_an_elector_take_turns() {
    let server = server();
    let elector = elector(&server, "a");
    let first = elector.acquire().await;
    let second = tokio::spawn({
        let elector = elector.clone();
        async move { elector.acquire().await }
    });
    seconds(60).await;
    assert!(!second.is_finished() && first.is_leader());
    let view = first.leadership().clone();
    first.release().await.unwrap();
    let second = timeout(secs(5), second).await.unwrap().unwrap();
    assert!(second.is_leader() && !view.is_leader());
    assert_eq!((second.transitions(), elector.status().terms), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_is_asked_again_and_the_reason_shown() {
    let server = server();
    server.faults().on(Verb::Create).times(2).inject(Fault::status(403));
    let elector = elector(&server, "a");
    let (took, _guard) = timed(elector.acquire()).await;
    assert!((4.0..8.9).contains(&took), "{took}");
    let error = elector.status().last_error.expect("an error");
    assert!(error.is_forbidden(), "{error}");
    assert!(error.to_string().contains("verb \"create\" on the resource \"leases\""), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_does_not_exist_is_named() {
    let server = server();
    let elector = LeaderElector::builder(server.client(), "nowhere", "a").build().unwrap();
    assert!(timeout(secs(10), elector.acquire()).await.is_err());
    let error = elector.status().last_error.expect("an error").to_string();
    assert!(error.contains("no such namespace") && error.contains("nowhere"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn requests_time_out_well_before_the_renew_deadline() {
    let server = server();
    server.faults().on(Verb::Get).inject(Fault::StalledHeaders);
    let (took, _guard) = timed(elector(&server, "a").acquire()).await;
    assert!((5.3..7.8).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn le8_new_leaders_are_reported_once_each() {
    let server = server();
    write(&server, &foreign(0));
    let told = Arc::new(Mutex::new(Vec::new()));
    let elector = builder(&server, "a")
        .on_new_leader({
            let told = told.clone();
            move |identity| told.lock().push(identity.to_owned())
        })
        .build()
        .unwrap();
    let candidate = tokio::spawn({
        let elector = elector.clone();
        async move { elector.acquire().await }
    });
    seconds(10).await;
    write(&server, &foreign(1));
    seconds(10).await;
    assert_eq!(*told.lock(), ["foreign"]);
    assert_eq!(elector.leader().as_deref(), Some("foreign"));
    let guard = candidate.await.unwrap();
    assert_eq!(*told.lock(), ["foreign", "a"]);
    assert_eq!(elector.leader().as_deref(), Some("a"));
    guard.release().await.unwrap();
    assert_eq!(*told.lock(), ["foreign", "a"]);
    assert_eq!(elector.leader(), None);
}

#[tokio::test(start_paused = true)]
async fn le8_a_callback_that_panics_ends_nothing() {
    let server = server();
    let elector = builder(&server, "a").on_new_leader(|_| panic!("on purpose")).build().unwrap();
    let guard = elector.acquire().await;
    sleep(secs(60)).await;
    settle().await;
    assert!(guard.is_leader());
}
