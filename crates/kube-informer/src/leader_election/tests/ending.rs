//! Giving leadership up.

use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Verb};
use serde_json::json;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::scene::{
    NAME, NAMESPACE, RESOURCE, builder, elector, foreign, holder, lease, record, seconds, server,
    settle, timed, verbs, write,
};
use crate::leader_election::RunOutcome;

/// Asserts that another candidate leads soon.
async fn assert_free(server: &ApiServer) {
    let (took, guard) = timed(elector(server, "next").acquire()).await;
    assert!(took < 0.1 && guard.is_leader(), "{took}");
}

#[tokio::test(start_paused = true)]
async fn le9_a_released_lease_is_free_at_once() {
    let server = server();
    let guard = elector(&server, "a").acquire().await;
    seconds(5).await;
    let view = guard.leadership().clone();
    guard.release().await.unwrap();
    assert!(!view.is_leader());
    let record = record(&server);
    assert_eq!(
        (&record["holderIdentity"], &record["leaseDurationSeconds"]),
        (&json!(""), &json!(1))
    );
    assert_eq!(
        (&record["leaseTransitions"], &record["acquireTime"]),
        (&json!(0), &record["renewTime"])
    );
    assert_free(&server).await;
}

#[tokio::test(start_paused = true)]
async fn le9_a_release_needs_one_request() {
    let server = server();
    let guard = elector(&server, "a").acquire().await;
    server.clear_record();
    guard.release().await.unwrap();
    assert_eq!(verbs(&server, "a"), ["update"]);
}

#[tokio::test(start_paused = true)]
async fn le9_a_conflict_during_release_is_retried() {
    let server = server();
    let guard = elector(&server, "a").acquire().await;
    let mut labelled = lease(&server);
    labelled["metadata"]["labels"] = json!({"team": "shop"});
    server.update(labelled).unwrap();
    server.clear_record();
    guard.release().await.unwrap();
    assert_eq!(verbs(&server, "a"), ["update", "get", "update"]);
    assert_eq!(
        (holder(&server), &lease(&server)["metadata"]["labels"]["team"]),
        (String::new(), &json!("shop"))
    );
}

#[tokio::test(start_paused = true)]
async fn le9_a_lease_of_another_is_left_alone() {
    let server = server();
    let guard = elector(&server, "a").acquire().await;
    write(&server, &foreign(0));
    guard.release().await.unwrap();
    assert_eq!(record(&server), foreign(0));
}

#[tokio::test(start_paused = true)]
async fn le9_a_release_without_a_lease_or_a_server_ends() {
    let server = server();
    let guard = elector(&server, "a").acquire().await;
    server.delete(RESOURCE, NAMESPACE, NAME).unwrap();
    guard.release().await.unwrap();
    let guard = elector(&server, "a").acquire().await;
    server.faults().any().always().inject(Fault::StalledHeaders);
    let (took, released) = timed(guard.release()).await;
    assert!(released.unwrap_err().is_timeout());
    assert!(took < 10.1, "{took}");
}

#[tokio::test(start_paused = true)]
async fn le9_a_renewal_under_way_does_not_undo_a_release() {
    let server = server();
    let guard = elector(&server, "a").acquire().await;
    // The renewal reaches the server, and its answer takes a while.
    server.faults().on(Verb::Update).inject(Fault::LostAnswer);
    sleep(Duration::from_millis(2001)).await;
    guard.release().await.unwrap();
    seconds(5).await;
    assert_eq!(holder(&server), "");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_guard_releases_only_if_that_is_wanted() {
    let server = server();
    drop(elector(&server, "a").acquire().await);
    settle().await;
    assert_eq!(holder(&server), "");
    let keeping = builder(&server, "b").release_on_stop(false).build().unwrap();
    let guard = keeping.acquire().await;
    let view = guard.leadership().clone();
    drop(guard);
    assert!(!view.is_leader(), "at once");
    seconds(1).await;
    assert_eq!(holder(&server), "b");
    let guard = keeping.acquire().await;
    guard.release().await.unwrap();
    assert_eq!(holder(&server), "", "it was asked for");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_gives_up_while_it_wins_releases() {
    let server = server();
    server.faults().on(Verb::Create).inject(Fault::Latency(Duration::from_secs(1)));
    let elector = elector(&server, "a");
    assert!(timeout(Duration::from_millis(500), elector.acquire()).await.is_err());
    seconds(2).await;
    assert_eq!(verbs(&server, "a"), ["get", "create", "update"]);
    assert_eq!(holder(&server), "");
    assert!(!elector.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_gives_up_in_doubt_releases() {
    let server = server();
    server.faults().on(Verb::Create).inject(Fault::LostAnswer);
    assert!(timeout(Duration::from_secs(1), elector(&server, "a").acquire()).await.is_err());
    settle().await;
    assert_eq!(verbs(&server, "a"), ["get", "create", "get", "update"]);
    assert_eq!(holder(&server), "");
}

#[tokio::test(start_paused = true)]
async fn le8_le9_a_stop_ends_the_work_then_releases() {
    struct Work(ApiServer);
    impl Drop for Work {
        fn drop(&mut self) {
            assert_eq!(holder(&self.0), "a", "the lease is still ours");
        }
    }
    let server = server();
    let (elector, stop) = (elector(&server, "a"), CancellationToken::new());
    let work = Work(server.clone());
    let run = elector.run(stop.cancelled(), |_| async move {
        let _work = work;
        std::future::pending::<()>().await;
    });
    let stopped = async {
        seconds(20).await;
        assert!(elector.is_leader());
        stop.cancel();
    };
    let (outcome, ()) = tokio::join!(run, stopped);
    assert_eq!((outcome, holder(&server)), (RunOutcome::Stopped, String::new()));
    assert_free(&server).await;
}

#[tokio::test(start_paused = true)]
async fn le8_a_candidate_stops_at_once() {
    let server = server();
    write(&server, &foreign(0));
    let elector = elector(&server, "a");
    let run = elector.run(seconds(10), |_| async { panic!("it does not lead") });
    let (took, outcome) = timed(run).await;
    assert_eq!(outcome, RunOutcome::<()>::Stopped);
    assert!(took < 10.1, "{took}");
    assert_eq!(record(&server), foreign(0));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_run_drops_its_work_and_releases() {
    let server = server();
    let elector = elector(&server, "a");
    let run = elector.run(std::future::pending::<()>(), |_| std::future::pending::<()>());
    assert!(timeout(Duration::from_secs(20), run).await.is_err());
    settle().await;
    assert_eq!(holder(&server), "");
}
