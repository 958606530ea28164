//! Reconciles that fail.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::controller::Terminal;
use kube_informer::workqueue::ItemFastSlow;
use kube_informer::{Action, Controller};
use tokio::time::Instant;

use crate::scene::{SECOND, labelled, map, run, scene};

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_backs_off_while_others_flow() {
    let (server, factory) = scene();
    server.create(map("crash-loop")).unwrap();
    let controller = Controller::new(&factory.informer::<ConfigMap>());
    let mut running = run(controller, async |request| {
        if request.key.name() == "crash-loop" {
            return Err("on purpose".into());
        }
        Ok(Action::await_change())
    });
    // 5, 10, 20, … ms: ten failures take five seconds.
    let began = Instant::now();
    for failures in 0..10 {
        let request = running.reconciled.recv().await.unwrap();
        assert_eq!(request.failures, failures);
    }
    let elapsed = began.elapsed();
    assert!(elapsed > 2 * SECOND && elapsed < 3 * SECOND, "{elapsed:?}");
    for name in 0..100 {
        let began = Instant::now();
        server.create(map(&name.to_string())).unwrap();
        while running.next().await.0 != name.to_string() {}
        assert!(began.elapsed() < 10 * Duration::from_millis(1), "it waited for another one");
    }
    // One attempt in twenty minutes is the slowest.
    let began = Instant::now();
    for _ in 0..20 {
        while running.next().await.0 != "crash-loop" {}
    }
    assert!(began.elapsed() > 3 * 1000 * SECOND);
    let status = running.handle.status();
    assert!(status.succeeded == 100 && status.failed >= 30, "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn a_success_makes_a_key_start_anew() {
    let (server, factory) = scene();
    let object = server.create(map("a")).unwrap();
    let controller = Controller::new(&factory.informer::<ConfigMap>());
    let mut running = run(controller, async |request| {
        if request.failures < 3 { Err("not yet".into()) } else { Ok(Action::await_change()) }
    });
    for failures in 0..4 {
        assert_eq!(running.reconciled.recv().await.unwrap().failures, failures);
    }
    server.update(labelled(object, "b")).unwrap();
    assert_eq!(running.reconciled.recv().await.unwrap().failures, 0);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_contained_counted_and_retried() {
    let (server, factory) = scene();
    server.create(map("a")).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    let controller = Controller::new(&factory.informer::<ConfigMap>())
        .on_error(|_, _| panic!("on purpose"))
        .on_error(move |key, error| tell.lock().unwrap().push(format!("{key}: {error}")));
    let mut running = run(controller, async |request| {
        assert!(request.failures > 1, "on purpose");
        Ok(Action::await_change())
    });
    for failures in 0..3 {
        assert_eq!(running.reconciled.recv().await.unwrap().failures, failures);
    }
    running.is_quiet().await;
    let status = running.handle.status();
    assert_eq!((status.panicked, status.failed, status.succeeded), (2, 2, 1));
    assert_eq!(*told.lock().unwrap(), ["default/a: the reconciler panicked"; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_takes_too_long_is_dropped_and_retried() {
    let (server, factory) = scene();
    server.create(map("a")).unwrap();
    let controller = Controller::new(&factory.informer::<ConfigMap>()).timeout(SECOND);
    let mut running = run(controller, async |request| {
        if request.failures == 0 {
            std::future::pending::<()>().await;
        }
        Ok(Action::await_change())
    });
    let began = Instant::now();
    running.next().await;
    running.next().await;
    assert_eq!(began.elapsed().as_secs(), 1);
    running.is_quiet().await;
    let status = running.handle.status();
    assert_eq!((status.timed_out, status.failed, status.succeeded), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_wrapped_terminal_error_waits_for_a_change() {
    #[derive(Debug)]
    struct Context(Terminal);
    impl std::fmt::Display for Context {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("in context")
        }
    }
    impl std::error::Error for Context {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let (server, factory) = scene();
    let object = server.create(map("a")).unwrap();
    let controller = Controller::new(&factory.informer::<ConfigMap>());
    let mut running = run(controller, async |request| {
        let error = Terminal::new("the spec cannot be met");
        let anyhow = anyhow::Error::from(error).context("in context");
        match request.object.unwrap().labels().get("l") {
            None => Err(anyhow.into()),
            Some(_) => Err(Context(Terminal::new("nor can this one")).into()),
        }
    });
    running.next().await;
    running.is_quiet().await;
    server.update(labelled(object, "b")).unwrap();
    running.next().await;
    running.is_quiet().await;
    let status = running.handle.status();
    assert_eq!((status.terminal, status.failed, status.queue.delayed), (2, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn another_rate_limiter_says_how_long_keys_wait() {
    let (server, factory) = scene();
    server.create(map("a")).unwrap();
    let controller = Controller::new(&factory.informer::<ConfigMap>())
        .rate_limiter(ItemFastSlow::new(SECOND, 60 * SECOND, 2));
    let mut running = run(controller, async |_| Err("on purpose".into()));
    running.next().await;
    let began = Instant::now();
    for at in [1, 2, 62, 122] {
        running.next().await;
        assert_eq!(began.elapsed().as_secs(), at);
    }
}
