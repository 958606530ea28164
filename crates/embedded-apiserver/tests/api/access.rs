//! Authentication and authorization: 401 and 403.

use embedded_apiserver::{ApiServer, Denial, Verb};
use serde_json::json;
use tower_service::Service as _;

use crate::harness::{Client, MAPS, failure, map};

#[tokio::test(start_paused = true)]
async fn requests_without_a_known_token_are_401_wherever_they_go() {
    let server = ApiServer::builder().token("right").build();
    let client = Client::through(server.service());
    let unauthorized = failure(401, "Unauthorized", "Unauthorized", json!(null));
    for path in [MAPS, "/api/v1/foos", "/version", "/foo"] {
        for header in ["", "Bearer wrong", "Basic right", "right"] {
            let answer = client.request("GET", path, &[("authorization", header)], "").await;
            assert_eq!((answer.code, answer.json()), (401, unauthorized.clone()), "{path}");
        }
        assert_eq!(client.get(path).await.code, 401, "{path}");
    }
    let bearer = [("authorization", "Bearer right")];
    assert_eq!(client.request("GET", MAPS, &bearer, "").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn tokens_come_and_go_while_the_server_runs() {
    let server = ApiServer::start();
    let client = Client::through(server.service());
    let bearer = [("authorization", "Bearer t")];
    server.access().add_token("t", "jane");
    client.request("GET", MAPS, &bearer, "").await.ok();
    assert_eq!(server.requests().last().unwrap().user, "jane");
    server.access().revoke_token("t");
    assert_eq!(client.request("GET", MAPS, &bearer, "").await.code, 401);
}

/// `kubectl --as jane`.
#[tokio::test(start_paused = true)]
async fn the_administrator_may_act_as_others_and_nobody_else_may() {
    let server = ApiServer::builder().token("admin").build();
    server.access().add_token("t", "tom");
    server.access().deny(Denial::verbs([Verb::List]).user("jane"));
    let client = Client::through(server.service());
    let ask = async |token, name| {
        let headers = [("authorization", token), ("impersonate-user", name)];
        client.request("GET", MAPS, &headers, "").await
    };
    let answer = ask("Bearer admin", "jane").await;
    assert_eq!(answer.code, 403);
    assert!(answer.json()["message"].as_str().unwrap().contains("User \"jane\" cannot list"));
    assert_eq!(server.requests().last().unwrap().user, "jane");
    assert_eq!(ask("Bearer admin", "jim").await.code, 200);
    assert_eq!(ask("Bearer admin", "").await.code, 200);
    assert_eq!(server.requests().last().unwrap().user, "kubernetes-admin");

    let message = "users \"jane\" is forbidden: User \"tom\" cannot impersonate resource \"users\" in \
                   API group \"\" at the cluster scope";
    let answer = ask("Bearer t", "jane").await;
    let details = json!({"name": "jane", "kind": "users"});
    assert_eq!((answer.code, answer.json()), (403, failure(403, "Forbidden", message, details)));
    assert_eq!(ask("Bearer wrong", "jane").await.code, 401);
}

/// If an unreadable name were ignored, the request would have the administrator's rights.
#[tokio::test(start_paused = true)]
async fn impersonation_never_fails_open() {
    let server = ApiServer::builder().token("admin").build();
    let ask = async |header: &str, value: &[u8]| {
        let request = http::Request::get(MAPS)
            .header("authorization", "Bearer admin")
            .header(header, http::HeaderValue::from_bytes(value).unwrap());
        let request = request.body(http_body_util::Full::<bytes::Bytes>::default()).unwrap();
        server.service().call(request).await.unwrap().status().as_u16()
    };
    assert_eq!(ask("impersonate-user", b"jane\xff").await, 400);
    assert_eq!(server.requests().last().unwrap().user, "");
    assert_eq!(ask("impersonate-user", "Jos\u{e9}".as_bytes()).await, 200);
    assert_eq!(server.requests().last().unwrap().user, "Jos\u{e9}");
    for header in ["impersonate-group", "impersonate-uid", "impersonate-extra-scopes"] {
        assert_eq!(ask(header, b"viewers").await, 500, "{header} without a user");
    }
}

#[tokio::test(start_paused = true)]
async fn the_scheme_of_a_token_has_no_case() {
    let server = ApiServer::builder().token("right").build();
    let client = Client::through(server.service());
    for header in ["bearer right", "BEARER right", " Bearer right "] {
        client.request("GET", MAPS, &[("authorization", header)], "").await.ok();
    }
    for header in ["Bearer", "Bearer ", "Bearer  right", "Bearerright"] {
        let answer = client.request("GET", MAPS, &[("authorization", header)], "").await;
        assert_eq!(answer.code, 401, "{header:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn anonymous_access_is_not_for_wrong_tokens() {
    let server = ApiServer::builder().token("right").anonymous(true).build();
    let client = Client::through(server.service());
    client.get(MAPS).await.ok();
    assert_eq!(server.requests().last().unwrap().user, "system:anonymous");
    for header in ["Bearer wrong", "bearer wrong", "Bearer \u{e9}"] {
        let answer = client.request("GET", MAPS, &[("authorization", header)], "").await;
        assert_eq!(answer.code, 401, "{header:?}");
    }
    client.request("GET", MAPS, &[("authorization", "Bearer right")], "").await.ok();
    assert_eq!(server.requests().last().unwrap().user, "kubernetes-admin");
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_forbids_says_who_what_and_where() {
    let server = ApiServer::start();
    server.faults().inject_text("list configmaps user=jane status=403 times=2").unwrap();
    let jane = Client::through(server.service_as("jane"));
    let message = "configmaps is forbidden: User \"jane\" cannot list resource \"configmaps\" in API \
                   group \"\" in the namespace \"default\"";
    let expected = failure(403, "Forbidden", message, json!({"kind": "configmaps"}));
    let answer = jane.get(MAPS).await;
    assert_eq!((answer.code, answer.json()), (403, expected));
    Client::of(&server).get(MAPS).await.ok();
}

#[tokio::test(start_paused = true)]
async fn what_is_denied_is_403_and_says_who_what_and_where() {
    let server = ApiServer::start();
    server.create(map("a")).unwrap();
    let jane = Client::through(server.service_as("jane"));
    server.access().deny(Denial::all().user("jane"));
    let details = |name: &str, group: &str, kind: &str| {
        let mut details = json!({"kind": kind});
        if !name.is_empty() {
            details["name"] = json!(name);
        }
        if !group.is_empty() {
            details["group"] = json!(group);
        }
        details
    };
    for (path, message, details) in [
        (
            MAPS,
            "configmaps is forbidden: User \"jane\" cannot list resource \"configmaps\" in API \
             group \"\" in the namespace \"default\"",
            details("", "", "configmaps"),
        ),
        (
            "/api/v1/namespaces/default/configmaps/a",
            "configmaps \"a\" is forbidden: User \"jane\" cannot get resource \"configmaps\" in \
             API group \"\" in the namespace \"default\"",
            details("a", "", "configmaps"),
        ),
        (
            "/apis/apps/v1/deployments?watch=1",
            "deployments.apps is forbidden: User \"jane\" cannot watch resource \"deployments\" \
             in API group \"apps\" at the cluster scope",
            details("", "apps", "deployments"),
        ),
    ] {
        let answer = jane.get(path).await;
        assert_eq!(
            (answer.code, answer.json()),
            (403, failure(403, "Forbidden", message, details))
        );
    }
    Client::of(&server).get(MAPS).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_for_what_it_names_and_until_it_is_taken_back() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let access = server.access();
    let watches = access.deny(Denial::verbs([Verb::Watch]).resource("configmaps"));
    let elsewhere = access.deny(Denial::all().namespace("kube-system"));
    let status = access.deny(Denial::all().resource("pods/status").group(""));
    assert_eq!(client.get(&format!("{MAPS}?watch=1")).await.code, 403);
    client.get(MAPS).await.ok();
    assert_eq!(client.get("/api/v1/namespaces/kube-system/secrets").await.code, 403);
    let pod = "/api/v1/namespaces/default/pods/p";
    assert_eq!(client.get(&format!("{pod}/status")).await.code, 403);
    assert_eq!(client.get(pod).await.code, 404);
    access.allow(watches);
    access.allow(status);
    drop(client.watch(&format!("{MAPS}?watch=1")).await);
    assert_eq!(client.get(&format!("{pod}/status")).await.code, 404);
    assert_eq!(client.get("/api/v1/namespaces/kube-system/secrets").await.code, 403);
    access.allow(elsewhere);
    client.get("/api/v1/namespaces/kube-system/secrets").await.ok();
}

/// A real server authorizes a watch only when it starts.
#[tokio::test(start_paused = true)]
async fn a_watch_that_runs_goes_on_when_watching_is_denied() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let mut watch = client.watch(&format!("{MAPS}?watch=1")).await;
    server.access().deny(Denial::verbs([Verb::Watch]));
    server.create(map("a")).unwrap();
    assert_eq!(watch.event().await.brief().1, "a");
    assert_eq!(client.get(&format!("{MAPS}?watch=1")).await.code, 403);
    server.access().allow_everything();
    client.watch(&format!("{MAPS}?watch=1")).await;
}
