//! Staying leader, and losing leadership.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use embedded_apiserver::{Fault, Verb};
use serde_json::json;

use super::scene::{
    NAME, NAMESPACE, RESOURCE, builder, elector, foreign, holder, lease, record, seconds, server,
    settle, timed, verbs, write,
};
use crate::leader_election::RunOutcome;

#[tokio::test(start_paused = true)]
async fn le5_le6_a_leader_renews_without_reading() {
    let server = server();
    let elector = elector(&server, "a");
    let _guard = elector.acquire().await;
    let first = record(&server);
    server.clear_record();
    seconds(21).await;
    assert_eq!(verbs(&server, "a"), ["update"; 10]);
    assert_eq!(elector.status().slow_path_total, 0);
    let last = record(&server);
    assert_eq!(last["acquireTime"], first["acquireTime"]);
    assert_eq!(last["leaseTransitions"], first["leaseTransitions"]);
    assert!(last["renewTime"].as_str() > first["renewTime"].as_str());
}

#[tokio::test(start_paused = true)]
async fn le5_a_conflict_is_answered_by_reading() {
    let server = server();
    let elector = elector(&server, "a");
    let guard = elector.acquire().await;
    let mut labelled = lease(&server);
    labelled["metadata"]["labels"] = json!({"team": "shop"});
    labelled["spec"]["strategy"] = json!("OldestEmulationVersion");
    server.update(labelled).unwrap();
    server.clear_record();
    seconds(5).await;
    assert_eq!(verbs(&server, "a"), ["update", "get", "update", "update"]);
    assert_eq!(elector.status().slow_path_total, 1);
    assert!(guard.is_leader());
    assert_eq!(lease(&server)["metadata"]["labels"]["team"], "shop");
    assert_eq!(record(&server)["strategy"], "OldestEmulationVersion");
}

#[tokio::test(start_paused = true)]
async fn le5_a_renewal_whose_answer_is_lost_does_not_end_leadership() {
    let server = server();
    let elector = elector(&server, "a");
    let guard = elector.acquire().await;
    server.faults().on(Verb::Update).times(3).inject(Fault::LostAnswer);
    seconds(60).await;
    assert!(guard.is_leader());
    assert_eq!(record(&server)["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn le5_a_deleted_lease_is_created_again_with_its_count() {
    let server = server();
    write(&server, &json!({"leaseTransitions": 6}));
    let guard = elector(&server, "a").acquire().await;
    server.delete(RESOURCE, NAMESPACE, NAME).unwrap();
    seconds(3).await;
    assert!(guard.is_leader());
    assert_eq!((holder(&server), guard.transitions()), ("a".to_owned(), 7));
    assert_eq!(record(&server)["leaseTransitions"], 7);
}

#[tokio::test(start_paused = true)]
async fn le7_failures_shorter_than_the_renew_deadline_are_retried() {
    let server = server();
    let guard = elector(&server, "a").acquire().await;
    for _ in 0..5 {
        server.refuse_connections();
        seconds(6).await;
        server.accept_connections();
        seconds(3).await;
        assert!(guard.is_leader());
    }
}

#[tokio::test(start_paused = true)]
async fn le7_leadership_ends_when_no_renewal_succeeds_in_time() {
    let server = server();
    let elector = elector(&server, "a");
    let guard = elector.acquire().await;
    server.faults().on(Verb::Update).always().inject(Fault::StalledHeaders);
    let (took, ()) = timed(guard.lost()).await;
    assert!((took - 10.0).abs() < 0.01, "{took}");
    assert!(!guard.is_leader() && !elector.is_leader());
    assert_eq!(guard.remaining(), Duration::ZERO);
    // Once lost, a term stays lost, even if this candidate still holds the lease.
    server.faults().clear();
    let again = elector.acquire().await;
    assert!(again.is_leader() && elector.is_leader() && !guard.is_leader());
}

#[tokio::test(start_paused = true)]
async fn le7_the_deadline_counts_from_the_start_of_the_last_renewal() {
    let server = server();
    server.faults().on(Verb::Create).inject(Fault::Latency(Duration::from_millis(1500)));
    let guard = elector(&server, "a").acquire().await;
    let remaining = guard.remaining().as_secs_f64();
    assert!((remaining - 8.5).abs() < 0.01, "{remaining}");
}

#[tokio::test(start_paused = true)]
async fn le7_a_record_that_is_not_ours_ends_leadership_at_once() {
    for spec in [foreign(0), json!({"holderIdentity": "", "leaseDurationSeconds": 1})] {
        let server = server();
        let elector = elector(&server, "a");
        let guard = elector.acquire().await;
        write(&server, &spec);
        let (took, ()) = timed(guard.lost()).await;
        assert!(took < 2.1, "{took}");
        assert_eq!(record(&server), spec, "it was left alone");
    }
}

/// Counts the steps of a worker that never ends.
async fn work(steps: Arc<AtomicU64>) {
    loop {
        steps.fetch_add(1, Ordering::Relaxed);
        seconds(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn le8_work_is_dropped_before_another_can_lead() {
    struct Dropped(ApiServer, Arc<AtomicU64>);
    use embedded_apiserver::ApiServer;
    impl Drop for Dropped {
        fn drop(&mut self) {
            assert_eq!(holder(&self.0), "a", "the lease is still ours");
            self.1.fetch_add(1000, Ordering::Relaxed);
        }
    }
    let server = server();
    let elector = elector(&server, "a");
    let steps = Arc::new(AtomicU64::new(0));
    let dropped = Dropped(server.clone(), steps.clone());
    let trouble = async {
        seconds(5).await;
        server.refuse_connections();
    };
    let run = elector.run(std::future::pending::<()>(), |leadership| {
        let steps = steps.clone();
        async move {
            let _dropped = dropped;
            assert!(leadership.is_leader());
            work(steps).await;
        }
    });
    let ((), (took, outcome)) = tokio::join!(trouble, timed(run));
    // The last renewal was at four seconds.
    assert!((took - 14.0).abs() < 0.1, "{took}");
    assert_eq!((outcome, steps.load(Ordering::Relaxed)), (RunOutcome::Lost, 1014));
    assert!(!elector.is_leader());
    server.accept_connections();
    let outcome = elector.run(std::future::pending::<()>(), |_| async { 7 }).await;
    assert_eq!(outcome, RunOutcome::Finished(7));
}

#[tokio::test(start_paused = true)]
async fn le10_only_a_leader_that_outlives_its_lease_is_unhealthy() {
    let server = server();
    let elector = builder(&server, "a").build().unwrap();
    let tolerance = Duration::from_secs(5);
    assert!(elector.check(tolerance).is_ok(), "it has not been a candidate");
    let guard = elector.acquire().await;
    seconds(60).await;
    assert!(elector.check(tolerance).is_ok(), "it leads");
    server.refuse_connections();
    guard.lost().await;
    seconds(8).await;
    assert!(elector.check(tolerance).is_ok(), "it has 20 seconds from the last renewal on");
    seconds(3).await;
    let error = elector.check(tolerance).unwrap_err().to_string();
    assert!(error.contains("kube-system/my-operator") && error.contains("restart"), "{error}");
    drop(guard);
    settle().await;
    assert!(elector.check(tolerance).is_ok(), "the work has ended");
}

#[tokio::test(start_paused = true)]
async fn le10_candidates_are_healthy_however_old_the_lease_of_another() {
    let server = server();
    let mut spec = foreign(0);
    spec["leaseDurationSeconds"] = json!(100_000);
    write(&server, &spec);
    let elector = elector(&server, "a");
    let candidate = tokio::spawn({
        let elector = elector.clone();
        async move { elector.acquire().await }
    });
    seconds(1000).await;
    assert!(elector.check(Duration::ZERO).is_ok());
    candidate.abort();
}
