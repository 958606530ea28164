//! Controllers that reconcile only while they lead.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use embedded_apiserver::{ApiServer, Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::controller::Phase;
use kube_informer::{Action, Controller, LeaderElector, SharedInformerFactory};
use tokio::time::{Instant, sleep};

use crate::scene::{Running, SECOND, map, run, run_idle};

fn elector(server: &ApiServer, identity: &str) -> LeaderElector {
    let elector = LeaderElector::builder(server.client_as(identity.to_owned()), "default", "maps");
    elector.identity(identity).seed(7).build().unwrap()
}

fn controller(server: &ApiServer) -> Controller<ConfigMap> {
    Controller::new(&SharedInformerFactory::new(server.client()).informer())
}

#[tokio::test(start_paused = true)]
async fn the_second_replica_takes_over_with_a_full_cache() {
    let server = ApiServer::start();
    server.create(map("a")).unwrap();
    let start = |name: &str| run_idle(controller(&server).leader_election(&elector(&server, name)));
    let mut first = start("first");
    assert_eq!(first.next().await, ("a".into(), true));
    let mut second = start("second");
    second.is_quiet().await;
    let status = second.handle.status();
    assert_eq!((status.phase, status.queue.ready), (Phase::Standby, 1));
    assert_eq!(first.handle.status().phase, Phase::Running);

    let (stopped, lists) = (Instant::now(), server.requests().len());
    first.handle.stop();
    first.task.await.unwrap().unwrap();
    assert_eq!(second.next().await, ("a".into(), true));
    // The lease was released, so the takeover does not wait for its expiry, and nothing is relisted.
    assert!(stopped.elapsed() < 5 * SECOND, "{:?}", stopped.elapsed());
    let requests = server.requests();
    let is_list = |request: &embedded_apiserver::RequestRecord| {
        request.verb == Some(Verb::List) || request.uri.contains("sendInitialEvents")
    };
    assert!(!requests[lists..].iter().any(is_list), "{requests:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_ends_with_the_leadership_that_it_began_in() {
    let server = ApiServer::start();
    server.create(map("a")).unwrap();
    let active = Arc::new(AtomicUsize::new(0));
    let start = |name: &'static str| -> Running {
        struct Active(Arc<AtomicUsize>);
        impl Drop for Active {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let active = active.clone();
        run(controller(&server).leader_election(&elector(&server, name)), move |_| {
            let active = active.clone();
            async move {
                assert_eq!(active.fetch_add(1, Ordering::SeqCst), 0, "two lead");
                let _active = Active(active);
                sleep(3600 * SECOND).await;
                Ok(Action::await_change())
            }
        })
    };
    let mut first = start("first");
    first.next().await;
    let mut second = start("second");
    // The first cannot renew any more.
    for verb in [Verb::Get, Verb::Update] {
        let rule = server.faults().on(verb).resource("leases").user("first").always();
        rule.inject(Fault::status(500));
    }
    let began = Instant::now();
    assert_eq!(second.next().await, ("a".into(), true));
    let elapsed = began.elapsed();
    assert!(elapsed >= 10 * SECOND && elapsed < 25 * SECOND, "{elapsed:?}");
    assert_eq!((active.load(Ordering::SeqCst), second.handle.status().panicked), (1, 0));
    assert_eq!(first.handle.status().phase, Phase::Standby);
    // It takes part again when it can.
    server.faults().clear();
    second.handle.stop();
    second.task.abort();
    assert_eq!(first.next().await, ("a".into(), true));
}

#[tokio::test(start_paused = true)]
async fn controllers_with_one_elector_lead_together() {
    let server = ApiServer::start();
    server.create(map("a")).unwrap();
    let shared = elector(&server, "together");
    let mut all: Vec<_> =
        (0..3).map(|_| run_idle(controller(&server).leader_election(&shared))).collect();
    for running in &mut all {
        assert_eq!(running.next().await, ("a".into(), true));
    }
    let mut other = run_idle(controller(&server).leader_election(&elector(&server, "other")));
    let last = all.pop().unwrap();
    for running in all {
        running.handle.stop();
        running.task.await.unwrap().unwrap();
    }
    other.is_quiet().await;
    assert!(shared.is_leader());
    last.handle.stop();
    last.task.await.unwrap().unwrap();
    assert_eq!(other.next().await, ("a".into(), true));
}
