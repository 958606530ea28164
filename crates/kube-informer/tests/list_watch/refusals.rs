//! Error responses.

use embedded_apiserver::{Denial, Fault, Verb};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{ApiResource, GroupVersionKind};
use kube_informer::list_watch::{ListOptions, WatchOptions};
use kube_informer::{KubeListWatch, ListWatch};

use crate::support::{
    add, event, list, list_all, list_error, maps, server, watch_error, watch_from,
};

#[tokio::test(start_paused = true)]
async fn forbidden_names_what_to_grant() {
    let server = server();
    let denial = Denial::verbs([Verb::Watch]).resource("deployments").group("apps").user("bob");
    server.access().deny(denial);
    let source = KubeListWatch::of::<Deployment>(server.client_as("bob")).namespace("default");
    assert!(list_all(&source).await.objects.is_empty());
    let error = watch_from(&source, "1").await.err().unwrap();
    assert!(error.is_forbidden());
    let text = error.to_string();
    assert!(text.starts_with("cannot watch deployments.apps in namespace \"default\" (403): "));
    assert!(
        text.contains(
            "the verb \"watch\" on the resource \"deployments\" of the API group \"apps\""
        )
    );
    assert!(text.contains("it says: deployments.apps is forbidden: User \"bob\""), "{text}");

    server.access().deny(Denial::verbs([Verb::List]).resource("configmaps"));
    let error = list_error(&KubeListWatch::of::<ConfigMap>(server.client())).await;
    assert!(error.is_forbidden());
    assert!(
        error.to_string().starts_with("cannot list configmaps cluster-wide (403): "),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn not_found_names_what_is_not_served() {
    let server = server();
    let named = |group: &str, version: &str, plural: &str| {
        let gvk = GroupVersionKind::gvk(group, version, "Wire");
        KubeListWatch::new(server.client(), &ApiResource::from_gvk_with_plural(&gvk, plural))
    };
    // An unknown group, version or resource, and a namespace for a cluster-scoped resource.
    for (source, what) in [
        (named("test.example", "v1", "wires"), "group \"test.example\", version \"v1\""),
        (named("apps", "v9", "deployments"), "version \"v9\""),
        (named("apps", "v1", "deploymentz"), "plural \"deploymentz\""),
        (
            KubeListWatch::of::<Node>(server.client()).namespace("default"),
            "do its objects have namespaces",
        ),
    ] {
        for error in [list_error(&source).await, watch_from(&source, "1").await.err().unwrap()] {
            assert!(error.is_not_found(), "{error}");
            assert!(error.to_string().contains("CustomResourceDefinition installed"), "{error}");
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_is_none_is_repeated_with_what_the_server_says() {
    let server = server();
    let error = list_error(&maps(&server).labels("a b c")).await.to_string();
    assert!(error.contains("cannot list configmaps in namespace \"default\" (400)"), "{error}");
    assert!(error.contains("labels \"a b c\"") && error.contains("it says: "), "{error}");
    let source = maps(&server).fields("nope=1");
    let error = watch_from(&source, "1").await.err().unwrap().to_string();
    assert!(error.contains("fields \"nope=1\""), "{error}");
}

#[tokio::test(start_paused = true)]
async fn expired_is_the_same_as_a_status_and_as_an_event() {
    // Faults 40 and 41.
    let server = server();
    let source = maps(&server);
    let version = add(&server, "default", "a");
    server.faults().on(Verb::List).inject(Fault::Gone);
    let listed = list_error(&source).await;
    server.faults().on(Verb::Watch).inject(Fault::Gone);
    let opened = watch_from(&source, &version).await.err().unwrap();
    server.faults().on(Verb::Watch).after_events(1).inject(Fault::Gone);
    let mut watch = watch_from(&source, "1").await.unwrap();
    assert_eq!(event(&mut watch).await.unwrap(), "added default/a");
    let inside = watch_error(&mut watch).await;
    for error in [&listed, &opened, &inside] {
        assert!(error.is_expired(), "{error}");
        assert!(error.to_string().contains("no longer has the version"), "{error}");
    }
    assert!(inside.to_string().starts_with("cannot watch configmaps in namespace \"default\" any"));
}

#[tokio::test(start_paused = true)]
async fn what_was_compacted_is_expired() {
    let server = server();
    for name in ["a", "b", "c"] {
        add(&server, "default", name);
    }
    let mut options = ListOptions::default();
    options.limit = Some(1);
    let source = maps(&server);
    options.continue_token = list(&source, options.clone()).await.unwrap().token;
    let newest = add(&server, "default", "d");
    server.store().compact(newest.parse().unwrap());
    assert!(list(&source, options).await.unwrap_err().is_expired());
    let error = match watch_from(&source, "1").await {
        Ok(mut watch) => watch_error(&mut watch).await,
        Err(error) => error,
    };
    assert!(error.is_expired(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn l3_too_many_requests_says_how_long_to_wait() {
    // Fault 42.
    let server = server();
    let date = "Fri, 31 Dec 2999 23:59:59 GMT";
    for (asked, told) in [
        ("5", Some("wait 5 s")),
        ("0", None),
        ("-1", None),
        ("soon", None),
        ("99999999999999999999999", Some("wait 300 s")),
        (date, Some("wait 300 s")),
    ] {
        server.faults().any().inject(Fault::status_retry_after(429, asked));
        let error = list_error(&maps(&server)).await;
        assert!(error.is_too_many_requests());
        assert_eq!(error.to_string().contains("wait "), told.is_some(), "{error}");
        assert!(error.to_string().contains(told.unwrap_or_default()), "{error}");
    }
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::status_retry_after(429, "7"));
    let mut watch = watch_from(&maps(&server), "1").await.unwrap();
    let error = watch_error(&mut watch).await;
    assert!(error.is_too_many_requests() && error.to_string().contains("wait 7 s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_new_is_told_apart_from_other_timeouts() {
    // Fault 44.
    let server = server();
    let mut options = ListOptions::default();
    options.resource_version = Some("999999".into());
    let error = list(&maps(&server), options).await.unwrap_err();
    assert_eq!(error.status().unwrap().code, 504);
    assert!(error.to_string().contains("has not come as far as the version"), "{error}");
    server.faults().any().inject(Fault::status(504));
    let error = list_error(&maps(&server)).await;
    assert!(error.to_string().contains("the server failed with "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn every_other_code_is_told() {
    // Fault 43.
    let server = server();
    for code in [400, 401, 405, 406, 409, 422, 500, 502, 503] {
        // After a 406 the request is repeated once for JSON only.
        let times = if code == 406 { 2 } else { 1 };
        server.faults().any().times(times).inject(Fault::status(code));
        let error = list_error(&maps(&server)).await;
        assert_eq!(error.status().unwrap().code, code);
        assert!(error.to_string().contains(&format!("({code})")), "{error}");
        assert_eq!(error.is_unauthorized(), code == 401);
        server.faults().on(Verb::Watch).after_events(0).inject(Fault::status(code));
        let mut watch = watch_from(&maps(&server), "1").await.unwrap();
        assert_eq!(watch_error(&mut watch).await.status().unwrap().code, code);
    }
}

#[tokio::test(start_paused = true)]
async fn a_proxy_is_recognised() {
    // Faults 20 and 34: an HTML page with any code, and a login page with a 200.
    let server = server();
    for code in [403, 404, 502, 503] {
        server.faults().any().inject(Fault::html(code));
        let error = list_error(&maps(&server)).await;
        assert_eq!(error.status().unwrap().code, code);
        assert!(!error.to_string().contains('<'), "{error}");
    }
    let source = maps(&server);
    server.faults().any().times(2).inject(Fault::html(200));
    for error in
        [list_error(&source).await, source.watch(WatchOptions::default()).await.err().unwrap()]
    {
        assert!(error.to_string().contains("\"text/html"), "{error}");
        assert!(error.to_string().contains("a proxy's"), "{error}");
    }
    for content_type in ["application/vnd.kubernetes.other", "text/plain", "application/cbor"] {
        server.faults().any().inject(Fault::content_type(content_type));
        let error = list_error(&source).await;
        assert!(error.to_string().contains(content_type), "{error}");
    }
    // The fault's body is JSON.
    server.faults().any().inject(Fault::content_type("application/vnd.kubernetes.protobuf"));
    let error = list_error(&source).await;
    assert!(error.to_string().contains("no list in protobuf"), "{error}");
    // Fault 35.
    server.faults().any().inject(Fault::content_type("application/json; charset=UTF-8"));
    assert!(list_all(&source).await.objects.is_empty());
}
