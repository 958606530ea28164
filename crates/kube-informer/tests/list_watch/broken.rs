//! Connections and bodies that break.

use std::time::Duration;

use embedded_apiserver::{ApiServer, Fault, Verb};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube_informer::list_watch::ListOptions;
use kube_informer::{Error, KubeListWatch};
use serde_json::json;
use tokio::time::Instant;

use crate::support::{
    add, create, event, list, list_all, list_error, maps, server, watch_error, watch_from,
};

fn abc(server: &ApiServer) -> String {
    add(server, "default", "a");
    add(server, "default", "b");
    add(server, "default", "c")
}

#[tokio::test(start_paused = true)]
async fn refused_is_refused() {
    let server = server();
    server.faults().any().times(2).inject(Fault::Refused);
    for error in
        [list_error(&maps(&server)).await, watch_from(&maps(&server), "1").await.err().unwrap()]
    {
        assert!(error.is_connection_refused(), "{error}");
        assert!(error.to_string().contains("configmaps in namespace \"default\""), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_is_no_list() {
    let server = server();
    abc(&server);
    for (fault, said) in
        [(Fault::Reset, "the connection broke"), (Fault::Truncated, "the list breaks off after")]
    {
        for bytes in [0, 1, 10, 60, 200] {
            server.faults().on(Verb::List).after_bytes(bytes).inject(fault.clone());
            let error = list_error(&maps(&server)).await;
            assert!(error.to_string().contains(said), "{bytes}: {error}");
        }
    }
    assert_eq!(list_all(&maps(&server)).await.objects.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn i8_a_watch_that_breaks_off_has_its_whole_events() {
    // Faults 3, 4 and 22.
    let server = server();
    abc(&server);
    for (fault, said) in [
        (Fault::Reset, "the connection broke"),
        (Fault::Truncated, "the watch breaks off at byte"),
        (Fault::MalformedUtf8, "not UTF-8"),
    ] {
        server.faults().on(Verb::Watch).after_events(2).inject(fault);
        let mut watch = watch_from(&maps(&server), "1").await.unwrap();
        assert_eq!(event(&mut watch).await.unwrap(), "added default/a");
        assert_eq!(event(&mut watch).await.unwrap(), "added default/b");
        let error = watch_error(&mut watch).await;
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn text_is_read_once_it_is_whole() {
    // Fault 24.
    let server = server();
    abc(&server);
    server.faults().any().times(2).inject(Fault::SplitUtf8);
    let page = list_all(&maps(&server)).await;
    assert_eq!(page.objects[0].field::<String>("data.key").unwrap().unwrap(), "Größe");
    let mut watch = watch_from(&maps(&server), "1").await.unwrap();
    for name in ["a", "b", "c"] {
        assert_eq!(event(&mut watch).await.unwrap(), format!("added default/{name}"));
    }
    assert_eq!(server.faults().fired().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn slow_is_slow_and_not_dead() {
    // Fault 8.
    let server = server();
    add(&server, "default", "a");
    let slow = Fault::SlowBytes { bytes: 1, every: Duration::from_secs(70) };
    server.faults().any().inject(slow);
    let started = Instant::now();
    assert_eq!(list_all(&maps(&server)).await.keys(), ["default/a"]);
    assert!(started.elapsed() > Duration::from_secs(3600));
}

#[tokio::test(start_paused = true)]
async fn l2_waiting_for_an_answer_ends() {
    // Faults 6 and 1.
    let server = server();
    for fault in [Fault::StalledHeaders, Fault::HalfOpen] {
        server.faults().any().times(2).inject(fault);
        let started = Instant::now();
        let error = list_error(&maps(&server)).await;
        assert_eq!(started.elapsed().as_secs(), 75);
        assert!(error.to_string().contains("no answer within 75 s"), "{error}");
        let started = Instant::now();
        let error = watch_from(&maps(&server), "1").await.err().unwrap();
        assert_eq!(started.elapsed().as_secs(), 30);
        assert!(error.to_string().contains("no answer within 30 s"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn l2_waiting_for_the_rest_of_a_list_ends() {
    // Fault 7.
    let server = server();
    abc(&server);
    for bytes in [0, 100] {
        server.faults().any().after_bytes(bytes).inject(Fault::StalledBody);
        let started = Instant::now();
        let error = list_error(&maps(&server)).await;
        assert_eq!(started.elapsed().as_secs(), 75);
        assert!(error.to_string().contains("nothing came for 75 s"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_silence_of_a_watch_is_not_judged_here() {
    let server = server();
    let version = add(&server, "default", "a");
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::HalfOpen);
    let mut watch = watch_from(&maps(&server), &version).await.unwrap();
    let next = tokio::time::timeout(Duration::from_secs(24 * 3600), watch.next()).await;
    assert!(next.is_err());
}

#[tokio::test(start_paused = true)]
async fn b12_an_object_of_the_wrong_type_is_kept_and_decodes_for_nobody() {
    let server = server();
    abc(&server);
    server.faults().on(Verb::List).after_events(1).inject(Fault::WrongType);
    let page = list_all(&maps(&server)).await;
    assert_eq!(page.keys(), ["default/a", "default/b", "default/c"]);
    let wrong = page.objects[1].clone().cast::<k8s_openapi::api::core::v1::ConfigMap>();
    assert!(wrong.decode().unwrap_err().is_decode());
}

#[tokio::test(start_paused = true)]
async fn b12_a_bad_item_is_one_bad_item() {
    // Fault 28.
    let server = server();
    abc(&server);
    let too_deep = Fault::TooDeep { levels: 10_000 };
    server.faults().any().after_events(1).times(2).inject(too_deep);
    let page = list_all(&maps(&server)).await;
    assert_eq!(page.keys(), ["default/a", "default/c"]);
    let [bad] = &page.unreadable[..] else { panic!("{:?}", page.unreadable) };
    assert!(bad.is_unreadable());
    assert_eq!(bad.key().unwrap().as_str(), "default/b");
    let mut watch = watch_from(&maps(&server), "1").await.unwrap();
    assert_eq!(event(&mut watch).await.unwrap(), "added default/a");
    assert_eq!(event(&mut watch).await.unwrap(), "changed unreadable default/b");
    assert_eq!(event(&mut watch).await.unwrap(), "added default/c");
}

#[tokio::test(start_paused = true)]
async fn i19_an_object_as_large_as_etcd_takes_is_read() {
    // Fault 30. Objects larger than any server has are tested elsewhere, where that takes no time.
    let server = server();
    abc(&server);
    let large = Fault::Oversized { bytes: 3 << 20 };
    server.faults().any().after_events(1).times(2).inject(large);
    assert_eq!(list_all(&maps(&server)).await.objects.len(), 3);
    let mut watch = watch_from(&maps(&server), "1").await.unwrap();
    for name in ["a", "b", "c"] {
        assert_eq!(event(&mut watch).await.unwrap(), format!("added default/{name}"));
    }
    assert_eq!(server.faults().fired().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_dropped_lets_go_of_its_connection() {
    let server = server();
    abc(&server);
    let source = maps(&server);
    let watch = watch_from(&source, "1").await.unwrap();
    assert_eq!(server.watches(), 1);
    drop(watch);
    tokio::task::yield_now().await;
    assert_eq!(server.watches(), 0);
}

/// Returns every error that a source can be made to return.
async fn all_errors(server: &ApiServer, source: &KubeListWatch) -> Vec<Error> {
    let mut errors = Vec::new();
    for fault in [
        Fault::Refused,
        Fault::Reset,
        Fault::StalledHeaders,
        Fault::StalledBody,
        Fault::status(401),
        Fault::status(403),
        Fault::status(500),
        Fault::html(502),
        Fault::html(200),
        Fault::content_type("text/html"),
        Fault::Gone,
        Fault::Truncated,
        Fault::MalformedUtf8,
        Fault::TooDeep { levels: 10_000 },
    ] {
        for after in [None, Some(0), Some(30), Some(200)] {
            for verb in [Verb::List, Verb::Watch] {
                let rule = server.faults().on(verb);
                let rule = if let Some(bytes) = after { rule.after_bytes(bytes) } else { rule };
                rule.inject(fault.clone());
                if verb == Verb::List {
                    match list(source, ListOptions::default()).await {
                        Ok(page) => errors.extend(page.unreadable),
                        Err(error) => errors.push(error),
                    }
                } else {
                    errors.extend(errors_of_watch(source).await);
                }
                server.faults().clear();
            }
        }
    }
    errors
}

async fn errors_of_watch(source: &KubeListWatch) -> Vec<Error> {
    let mut watch = match watch_from(source, "1").await {
        Ok(watch) => watch,
        Err(error) => return vec![error],
    };
    let mut errors = Vec::new();
    for _ in 0..2 {
        let next = tokio::time::timeout(Duration::from_secs(100), watch.next()).await;
        match next {
            Ok(Some(Ok(kube_informer::list_watch::WatchItem::Unreadable { error, .. }))) => {
                errors.push(error);
            }
            Ok(Some(Err(error))) => errors.push(error),
            _ => {}
        }
    }
    errors
}

#[tokio::test(start_paused = true)]
async fn i20_no_error_repeats_what_is_in_an_object() {
    let server = server();
    for name in ["a", "b"] {
        let data = json!({"data": {"password": "eHl6enk="}, "type": "xyzzy"});
        create(&server, "v1", "Secret", &json!({"namespace": "default", "name": name}), &data);
    }
    let source = KubeListWatch::of::<Secret>(server.client()).namespace("default");
    let errors = all_errors(&server, &source).await;
    assert!(errors.len() > 50, "{}", errors.len());
    for error in errors {
        for text in [error.to_string(), format!("{error:?}"), format!("{:?}", error.status())] {
            assert!(!text.contains("xyzzy") && !text.contains("eHl6enk"), "{text}");
        }
    }
}
