//! Objects that do not match their type: only the bad one is affected, and it is named.

use embedded_apiserver::{Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::list_watch::KubeListWatch;
use serde_json::json;

use super::running::{Book, Running};
use super::scene::{Listed, Maps, maps_of, server, settle};
use super::script::{End, Script, bookmark, event, list, stored};

#[tokio::test(start_paused = true)]
async fn i8_an_object_that_does_not_decode_is_cached() {
    for listed in [true, false] {
        let server = server();
        for name in ["a", "b", "c"] {
            server.add(name, "1");
        }
        let verb = if listed { Verb::List } else { Verb::Watch };
        server.faults().on(verb).after_events(1).inject(Fault::WrongType);
        let source = maps_of(&server);
        let running = if listed {
            Running::from_source(server, Listed(source), |builder| builder)
        } else {
            Running::from_source(server, source, |builder| builder)
        };
        let book = Book::keep(&running.informer);
        let running = running.sync().await;
        settle().await;
        assert_eq!(running.names(), ["a", "b", "c"]);
        assert_eq!(book.news().len(), 4);
        // Only `decode` returns an error.
        assert_eq!(running.errors.len(), 0);
        let object = running.informer.lister().get(("default", "b")).unwrap();
        let error = object.decode().unwrap_err();
        assert!(error.is_decode() && error.to_string().contains("default/b"), "{error}");
        assert_eq!(object.labels().get("value"), Some("1"));
        assert!(running.informer.lister().get(("default", "a")).unwrap().decode().is_ok());
        // The next state is fine.
        running.server.change("b", "2");
        settle().await;
        let object = running.informer.lister().get(("default", "b")).unwrap();
        assert_eq!(object.decode().unwrap().data.as_ref().unwrap()["value"], "2");
    }
}

#[tokio::test(start_paused = true)]
async fn i8_b12_items_without_metadata_are_reported() {
    let bad = [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": 7}),
        json!({"apiVersion": "v1", "kind": "ConfigMap"}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "labelled", "namespace": "default", "resourceVersion": "44", "labels": [1],
        }}),
    ];
    for listed in [true, false] {
        let server = server();
        let script = Script::default();
        let mut items = vec![stored("a", "1", "40")];
        items.extend(bad.clone());
        items.push(stored("b", "1", "41"));
        if listed {
            script.list(&list("50", "", items));
            script.watch([], End::Silent);
        } else {
            let mut lines: Vec<_> = items.iter().map(|item| event("ADDED", item)).collect();
            lines.push(bookmark("50", Some("true")));
            script.watch(lines, End::Silent);
        }
        let source = KubeListWatch::of::<ConfigMap>(script.client(&server));
        let running = if listed {
            Running::from_source(server, Listed(source), |builder| builder)
        } else {
            Running::from_source(server, source, |builder| builder)
        };
        let running = running.sync().await;
        // client-go drops the whole list.
        assert_eq!(running.names(), ["a", "b"]);
        assert_eq!(running.informer.status().failed, 3, "listed: {listed}");
        let failed = running.informer.failed();
        assert_eq!(failed.len(), 3);
        assert!(failed.iter().all(kube_informer::Error::is_unreadable));
        let named: Vec<_> = failed.iter().filter_map(kube_informer::Error::key).collect();
        assert_eq!(named.len(), 1);
        assert_eq!(named[0].to_string(), "default/labelled");
        assert_eq!(running.errors.nexts(), ["skip"; 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn i8_a_failed_object_is_listed_until_stored_or_deleted() {
    let unreadable = |version: &str| {
        let mut map = stored("a", "1", version);
        map["metadata"]["labels"] = json!([1]);
        map
    };
    let server = server();
    let script = Script::default();
    script.watch(
        [
            event("ADDED", &stored("a", "1", "40")),
            bookmark("50", Some("true")),
            event("MODIFIED", &unreadable("51")),
            event("ADDED", &stored("b", "1", "52")),
        ],
        End::Silent,
    );
    let source = KubeListWatch::of::<ConfigMap>(script.client(&server));
    let running = Running::from_source(server, source, |builder| builder);
    let book = Book::keep(&running.informer);
    let running = running.sync().await;
    settle().await;
    assert_eq!(running.informer.status().failed, 1);
    assert_eq!(running.informer.resource_version(), *"52");
    assert_eq!(book.news(), ["add a initially", "synced", "add b"]);
    assert!(book.is_right(&running.informer));
    // Silence; the next watch delivers its delete.
    script.watch([event("DELETED", &unreadable("53"))], End::Silent);
    super::scene::seconds(80).await;
    assert_eq!(running.informer.status().failed, 0);
    assert_eq!(book.news(), ["miss a"]);
    assert_eq!(running.names(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn i20_control_characters_in_names_are_escaped_in_reports() {
    let (good, bad) = ("a\n\u{1b}[2J", format!("b\r\u{202e}{}", "x".repeat(1 << 20)));
    let mut unreadable = stored(&bad, "1", "41");
    unreadable["metadata"]["labels"] = json!([1]);
    let server = server();
    let script = Script::default();
    script.watch(
        [
            event("ADDED", &stored(good, "1", "40")),
            event("ADDED", &unreadable),
            bookmark("50", Some("true")),
        ],
        End::Silent,
    );
    let source = KubeListWatch::of::<ConfigMap>(script.client(&server));
    let running = Running::from_source(server, source, |builder| builder).sync().await;
    let object = running.informer.lister().get(("default", good)).unwrap();
    assert_eq!((object.name(), object.key().name()), (good, good));
    let report = &running.errors.all()[0];
    assert_eq!(report.error.key().unwrap().name(), bad);
    for text in [
        report.to_string(),
        format!("{report:?}"),
        report.error.key().unwrap().to_string(),
        format!("{object:?}"),
    ] {
        assert!(text.len() < 2000 && text.chars().all(|c| matches!(c, ' '..='~' | '…')), "{text}");
    }
    assert!(report.to_string().contains(r"default/b\r\u{202e}xxx"), "{report}");
}

/// If they ended the watch, a list would follow.
#[tokio::test(start_paused = true)]
async fn r51_r54_events_of_another_kind_or_type_are_skipped() {
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {
        "name": "a", "namespace": "default", "resourceVersion": "60",
    }});
    for initial in [true, false] {
        let server = server();
        let script = Script::default();
        let strange = vec![
            event("MODIFIED", &job),
            event("DELETED", &job),
            event("PATCHED", &stored("a", "2", "61")),
            event("BOOKMARK", &job),
        ];
        let mut lines = vec![event("ADDED", &stored("a", "1", "40"))];
        let end = bookmark("50", Some("true"));
        if initial {
            lines.extend(strange);
            lines.push(end);
        } else {
            lines.push(end);
            lines.extend(strange);
        }
        script.watch(lines, End::Silent);
        let source = KubeListWatch::of::<ConfigMap>(script.client(&server));
        let running = Running::from_source(server, source, |builder| builder);
        let book = Book::keep(&running.informer);
        let running = running.sync().await;
        settle().await;
        assert_eq!(running.errors.nexts(), ["skip"; 4], "initial: {initial}");
        assert_eq!(book.news(), ["add a initially", "synced"]);
        assert_eq!(running.names(), ["a"]);
        // Their versions do not count, and their names are not listed as failed.
        assert_eq!(running.informer.resource_version(), *"50");
        let failed = running.informer.failed();
        assert!(
            !failed.is_empty() && failed.iter().all(|error| error.key().is_none()),
            "{failed:?}"
        );
        assert!(running.informer.is_live());
        let texts: Vec<_> = running.errors.all().iter().map(ToString::to_string).collect();
        assert!(texts[0].contains("an event is of kind \"Job\" of \"batch/v1\""), "{}", texts[0]);
        assert!(texts[2].contains("an event is of the unknown type \"PATCHED\""), "{}", texts[2]);
        assert!(texts[2].ends_with("skipping this object"), "{}", texts[2]);
    }
}

#[tokio::test(start_paused = true)]
async fn i19_objects_too_deep_and_too_long_end_no_process() {
    let server = server();
    server.add("a", "1");
    server.add("b", "1");
    server.faults().on(Verb::Watch).inject(Fault::TooDeep { levels: 10_000 });
    let running = Running::synced(server).await;
    settle().await;
    // The bad one is listed as failed, by its name; the others are not affected.
    assert_eq!(running.names(), ["b"]);
    let failed: Vec<_> =
        running.informer.failed().iter().map(|error| error.key().cloned()).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].as_ref().map(kube_informer::ObjectKey::name), Some("a"));
    running.server.faults().on(Verb::Watch).inject(Fault::Oversized { bytes: 3 << 20 });
    running.server.change("a", "2");
    settle().await;
    running.server.change("a", "3");
    super::scene::seconds(60).await;
    assert!(super::scene::agrees(&running.server, &running.informer.lister()));
}
