//! The page as a service, without a browser: who is let in, what is shown, and what it costs.

mod page;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use embedded_apiserver::ApiServer;
use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_informer::{SharedInformer, SharedInformerFactory, Transform};
use kube_informer_debug::{Builder, DebugPage};
use serde_json::json;
use tokio::time::{Instant, advance};

use page::{Page, Stream, TOKEN};

/// A server with a config map, and a synced informer of config maps.
async fn scene() -> (ApiServer, SharedInformerFactory, SharedInformer<ConfigMap>) {
    let server = ApiServer::start();
    server.create(map("first", "1")).unwrap();
    let factory = SharedInformerFactory::new(server.client());
    let maps = factory.informer::<ConfigMap>();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    (server, factory, maps)
}

fn map(name: &str, value: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value},
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
    })
}

fn page(builder: Builder) -> Page {
    Page(builder.token(TOKEN).build())
}

#[tokio::test(start_paused = true)]
async fn the_document_has_a_strict_policy() {
    let (_server, factory, _maps) = scene().await;
    let answer = page(DebugPage::builder(&factory)).get("/?").await;
    assert_eq!(answer.status, StatusCode::OK);
    let policy = &answer.headers["content-security-policy"];
    let policy = policy.to_str().unwrap();
    for part in
        ["default-src 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(answer.headers["referrer-policy"], "no-referrer");
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
    let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert!(answer.text().contains(&format!("<script nonce=\"{nonce}\">")));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_answered_without_token_or_to_other_sites() {
    let (_server, factory, _maps) = scene().await;
    let page = page(DebugPage::builder(&factory));
    for path in ["/", "/stream", "/object", "/event", "/failed"] {
        let status = async |headers: &[(&str, &str)], token: &str| {
            page.send(Method::GET, &format!("{path}?token={token}"), headers).await.status
        };
        assert_eq!(status(&[("host", "localhost:1")], "").await, StatusCode::UNAUTHORIZED);
        assert_eq!(status(&[("host", "localhost:1")], "wrong").await, StatusCode::UNAUTHORIZED);
        assert_eq!(status(&[("host", "evil.example")], TOKEN).await, StatusCode::FORBIDDEN);
        let other = [("host", "localhost:1"), ("origin", "http://evil.example")];
        assert_eq!(status(&other, TOKEN).await, StatusCode::FORBIDDEN);
    }
    let random = Page(DebugPage::new(&factory));
    assert_eq!(random.get("/?").await.status, StatusCode::UNAUTHORIZED);
    let path = random.0.path_and_token();
    assert_eq!(
        random.send(Method::GET, &path, &[("host", "127.0.0.1")]).await.status,
        StatusCode::OK
    );
    assert!(!format!("{:?}", random.0).contains(path.split_once('=').unwrap().1));
    let open = Page(DebugPage::builder(&factory).without_token().host("Page.example").build());
    assert_eq!(open.0.path_and_token(), "/");
    let host = [("host", "page.example:443"), ("origin", "https://page.example:443")];
    assert_eq!(open.send(Method::GET, "/", &host).await.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn axum_mounts_the_page() {
    let (_server, factory, _maps) = scene().await;
    let page = page(DebugPage::builder(&factory));
    let app: axum::Router = axum::Router::new().nest_service("/debug", page.0);
    for (path, expected) in [
        ("/debug", StatusCode::OK),
        ("/debug/", StatusCode::OK),
        ("/debug/object", StatusCode::NOT_FOUND),
        ("/other", StatusCode::NOT_FOUND),
    ] {
        let answer = page::call(
            app.clone(),
            Method::GET,
            &format!("{path}?token={TOKEN}"),
            &[("host", "localhost")],
        )
        .await;
        assert_eq!(answer.status, expected, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_sees_informers_handlers_and_events() {
    let (server, factory, maps) = scene().await;
    maps.handler().name("counts").for_each(drop);
    let page = page(DebugPage::builder(&factory).title("shop"));
    let mut stream = page.open().await;
    let hello = stream.next("hello").await;
    assert_eq!(hello["about"]["title"], "shop");
    let informer = &hello["informers"][0];
    assert_eq!((&informer["name"], &informer["state"]), (&json!("configmaps"), &json!("watching")));
    assert_eq!((&informer["synced"], &informer["objects"]), (&json!(true), &json!(1)));
    let handlers = informer["handlers"].as_array().unwrap();
    assert_eq!(handlers.len(), 1, "the page's own handler is not shown: {handlers:?}");
    assert_eq!(handlers[0]["name"], "counts");

    server.create(map("second", "1")).unwrap();
    let event = stream.event().await;
    assert_eq!((&event["what"], &event["name"]), (&json!("add"), &json!("second")));
    server.delete("configmaps", "default", "second").unwrap();
    assert_eq!(stream.event().await["what"], "delete");
}

#[tokio::test(start_paused = true)]
async fn trouble_is_told_in_words_with_the_next_attempt() {
    let (server, factory, _maps) = scene().await;
    let page = page(DebugPage::builder(&factory));
    let mut stream = page.open().await;
    stream.next("hello").await;
    server.refuse_connections();
    let refused = json!("The server refuses connections");
    let beat = stream.beat(|beat| beat["informers"][0]["trouble"] == refused).await;
    let informer = &beat["informers"][0];
    assert_eq!(informer["level"], "bad");
    assert!(informer["next_ms"].is_u64(), "{informer}");
    assert!(informer["advice"].as_str().unwrap().contains("server runs"));
    server.accept_connections();
    let beat = stream.beat(|beat| beat["marks"].to_string().contains("Live again")).await;
    assert_eq!(beat["informers"][0]["level"], "ok");
}

#[tokio::test(start_paused = true)]
async fn objects_are_hidden_unless_the_program_shows_them() {
    let (server, factory, _maps) = scene().await;
    let object = "/object?informer=configmaps&namespace=default&name=first";
    let (hiding, showing) =
        (page(DebugPage::builder(&factory)), page(DebugPage::builder(&factory).show_objects(true)));
    for (page, shown) in [(&hiding, false), (&showing, true)] {
        let mut stream = page.open().await;
        stream.next("hello").await;
        let value = format!("value-{shown}");
        server.update(map("first", &value)).unwrap();
        let event = stream.event().await;
        let detail = page.get(&format!("/event?seq={}", event["seq"])).await;
        assert_eq!(detail.text().contains(&value), shown, "{}", detail.text());
        let found = page.get(object).await;
        assert_eq!(found.text().contains(&value), shown, "{}", found.text());
        assert_eq!(found.json()["labels"], json!([["app", "web"]]));
        assert_eq!(found.json()["history"][0]["what"], "update");
    }
}

#[tokio::test(start_paused = true)]
async fn values_of_secrets_stay_hidden() {
    const BEFORE: &str = "aHVudGVyMQ==";
    const AFTER: &str = "aHVudGVyMg==";
    let secret = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "data": {"password": value},
            "metadata": {"name": "login", "namespace": "default"},
        })
    };
    let server = ApiServer::start();
    server.create(secret(BEFORE)).unwrap();
    let factory = SharedInformerFactory::new(server.client());
    let _secrets = factory.informer::<Secret>();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    let shows =
        |secrets| page(DebugPage::builder(&factory).show_objects(true).show_secrets(secrets));
    let object = "/object?informer=secrets&namespace=default&name=login";
    let hiding = shows(false);
    let mut stream = hiding.open().await;
    stream.next("hello").await;
    server.update(secret(AFTER)).unwrap();
    let seq = stream.event().await["seq"].clone();
    let detail = hiding.get(&format!("/event?seq={seq}")).await.text();
    assert!(detail.contains("data.password") && detail.contains("(hidden, 12 bytes)"), "{detail}");
    let all = detail + &hiding.get(object).await.text();
    assert!(!all.contains(BEFORE) && !all.contains(AFTER), "{all}");
    assert!(shows(true).get(object).await.text().contains(AFTER));
}

#[tokio::test(start_paused = true)]
async fn hostile_names_are_json_text() {
    let name = "<img src=x onerror=alert(1)>\u{202e}\u{1b}[31m\"\n\ndata: {}";
    let (informer, change) = page::hostile(name);
    informer.start();
    informer.wait_for_sync().await.unwrap();
    let (_server, factory, _maps) = scene().await;
    let page = page(DebugPage::builder(&factory).informer(&informer).show_objects(true));
    let mut stream = page.open().await;
    let hello = stream.next("hello").await;
    assert_eq!(hello["informers"][1]["name"], name);
    change.notify_one();
    let event = stream.event().await;
    assert_eq!(event["name"], name);
    let query = page::encoded(name);
    let found = page.get(&format!("/object?informer={query}&name={query}")).await;
    assert_eq!(found.headers["content-type"], "application/json");
    assert_eq!(found.json()["name"], name);
}

#[tokio::test(start_paused = true)]
async fn objects_that_could_not_be_kept_are_listed() {
    let server = ApiServer::start();
    server.create(map("bad", "1")).unwrap();
    let factory = SharedInformerFactory::new(server.client());
    let refuse = Transform::try_map(|_: &mut ConfigMap| Err("it is refused"));
    let _maps = factory.builder_for::<ConfigMap>().transform(refuse).build();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    let found = page(DebugPage::builder(&factory)).get("/failed?informer=configmaps").await.json();
    assert_eq!((&found["count"], &found["failed"][0]["key"]), (&json!(1), &json!("default/bad")));
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_dropped() {
    let (_server, factory, _maps) = scene().await;
    let page = page(DebugPage::builder(&factory));
    let mut stream = page.open().await;
    stream.next("hello").await;
    stream.next("beat").await;
    advance(Duration::from_secs(9)).await;
    // Of all the messages in the meantime, only the latest is there.
    let begin = Instant::now();
    stream.next("beat").await;
    stream.next("beat").await;
    assert!(begin.elapsed() > Duration::ZERO);
    advance(Duration::from_secs(11)).await;
    assert!(stream.ended().await);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_open_pages_is_bounded() {
    let (_server, factory, _maps) = scene().await;
    let page = page(DebugPage::builder(&factory));
    let mut streams: Vec<Stream> = Vec::new();
    for _ in 0..16 {
        let mut stream = page.open().await;
        stream.next("hello").await;
        streams.push(stream);
    }
    assert_eq!(page.get("/stream?").await.status, StatusCode::SERVICE_UNAVAILABLE);
    // Readers that do not read take no place.
    advance(Duration::from_secs(11)).await;
    page.open().await.next("hello").await;
}

#[tokio::test(start_paused = true)]
async fn without_an_open_page_nothing_is_registered() {
    let (server, factory, maps) = scene().await;
    let page = page(DebugPage::builder(&factory));
    assert_eq!(maps.handlers().len(), 0);
    let mut stream = page.open().await;
    stream.next("hello").await;
    assert_eq!(maps.handlers().len(), 1);
    server.create(map("second", "1")).unwrap();
    stream.event().await;
    drop(stream);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(maps.handlers().len(), 0);
    let hello = page.open().await.next("hello").await;
    assert_eq!(hello["events"], json!([]), "nothing is kept");
}

#[tokio::test(start_paused = true)]
async fn a_history_is_kept_without_an_open_page() {
    let (server, factory, _maps) = scene().await;
    let page = page(DebugPage::builder(&factory).history(true));
    tokio::time::sleep(Duration::from_secs(2)).await;
    server.create(map("second", "1")).unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let hello = page.open().await.next("hello").await;
    assert_eq!(hello["events"][0]["name"], "second");
}

#[tokio::test(start_paused = true)]
async fn the_page_keeps_no_informer_running() {
    let (server, factory, maps) = scene().await;
    let page = page(DebugPage::builder(&factory).history(true));
    let mut stream = page.open().await;
    stream.next("hello").await;
    drop((factory, maps));
    let beat = stream.beat(|beat| beat["informers"] == json!([])).await;
    assert_eq!(beat["events"], json!([]));
    assert_eq!(server.watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn buttons_are_pressed_by_posts_only() {
    let (_server, factory, _maps) = scene().await;
    let pressed = Arc::new(AtomicUsize::new(0));
    let press = pressed.clone();
    let page = page(DebugPage::builder(&factory).button("Break it", "breaks it", move || {
        press.fetch_add(1, Ordering::Relaxed);
    }));
    assert_eq!(page.open().await.next("hello").await["about"]["buttons"][0]["label"], "Break it");
    let host = [("host", "localhost")];
    let path = |button: &str| format!("/press?button={button}&token={TOKEN}");
    assert_eq!(
        page.send(Method::GET, &path("Break+it"), &host).await.status,
        StatusCode::METHOD_NOT_ALLOWED
    );
    assert_eq!(page.send(Method::POST, &path("Other"), &host).await.status, StatusCode::NOT_FOUND);
    assert_eq!(pressed.load(Ordering::Relaxed), 0);
    assert_eq!(page.send(Method::POST, &path("Break+it"), &host).await.status, StatusCode::OK);
    assert_eq!(pressed.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_socket_of_its_own_is_for_this_machine_only() {
    let (_server, factory, _maps) = scene().await;
    let refused = DebugPage::new(&factory).listen("0.0.0.0:0").await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    let listening = DebugPage::new(&factory).listen("127.0.0.1:0").await.unwrap();
    let (address, url) = (listening.address(), listening.url());
    let path = url.strip_prefix(&format!("http://{address}")).unwrap();
    assert!(page::fetch(address, path).await.starts_with("HTTP/1.1 200"));
    assert!(page::fetch(address, "/").await.starts_with("HTTP/1.1 401"));
    drop(listening);
    page::until_refused(address).await;
}
