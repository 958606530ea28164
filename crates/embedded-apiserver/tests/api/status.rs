//! Every error is a `Status` with the code, reason, message and details of a real server. Clients
//! act on code, reason and details; people and tests read the message.

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Client, JSON_PATCH, MAPS, MERGE_PATCH, failure, map, version};

const NAME_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// A request with a body and its content type, and the expected response.
struct Case(&'static str, String, &'static str, &'static str, Value);

async fn check(server: &ApiServer, cases: Vec<Case>) {
    let client = Client::of(server);
    for Case(method, path, content_type, body, want) in cases {
        let answer = client.request(method, &path, &[("content-type", content_type)], body).await;
        assert_eq!(answer.json(), want, "{method} {path} {body}");
        assert_eq!(json!(answer.code), want["code"], "{method} {path} {body}");
        assert_eq!(answer.header("content-type"), "application/json");
    }
}

fn case(method: &'static str, path: impl Into<String>, body: &'static str, want: Value) -> Case {
    Case(method, path.into(), "application/json", body, want)
}

fn bad_request(message: &str) -> Value {
    failure(400, "BadRequest", message, json!(null))
}

/// Returns the error for an invalid field of an object, or of a request's options.
fn invalid(what: &str, name: &str, field: &str, reason: &str, why: &str) -> Value {
    let message = format!("{what} {name:?} is invalid: {field}: {why}");
    let mut details = json!({"causes": [{"reason": reason, "message": why, "field": field}]});
    let (kind, group) = what.split_once('.').unwrap_or((what, ""));
    for (key, value) in [("kind", kind), ("group", group), ("name", name)] {
        if !value.is_empty() {
            details[key] = json!(value);
        }
    }
    failure(422, "Invalid", &message, details)
}

fn a_map() -> (ApiServer, String) {
    let server = ApiServer::start();
    let uid = server.create(map("a")).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    (server, uid)
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_not_understood_are_400() {
    let (server, _) = a_map();
    let unrecognized = |why: &str| {
        bad_request(&format!(
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get \
             version/kind; json parse error: {why}"
        ))
    };
    let a = format!("{MAPS}/a");
    let merge = |body, want| Case("PATCH", a.clone(), MERGE_PATCH, body, want);
    check(
        &server,
        vec![
            case("POST", MAPS, "", unrecognized("unexpected end of JSON input")),
            case(
                "POST",
                MAPS,
                r#"{"metadata":{"name":"#,
                unrecognized("unexpected end of JSON input"),
            ),
            case("POST", MAPS, "[1]", unrecognized("it is not a JSON object")),
            case(
                "POST",
                MAPS,
                r#"{"metadata":{"name":5}}"#,
                bad_request(
                    "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot \
                     unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
                ),
            ),
            case(
                "POST",
                MAPS,
                r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b"}}"#,
                bad_request(
                    "Pod in version \"v1\" cannot be handled as a ConfigMap: it is no ConfigMap",
                ),
            ),
            case(
                "POST",
                MAPS,
                r#"{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"b"}}"#,
                bad_request(
                    "the API version in the data (v2) does not match the expected API version (v1)",
                ),
            ),
            case(
                "POST",
                MAPS,
                r#"{"metadata":{"name":"b","namespace":"x"}}"#,
                bad_request(
                    "the namespace of the provided object does not match the namespace sent on \
                     the request",
                ),
            ),
            case(
                "PUT",
                &a,
                r#"{"metadata":{"name":"b"}}"#,
                bad_request("the name of the object (b) does not match the name on the URL (a)"),
            ),
            case("PUT", &a, "{}", bad_request(UNDETERMINABLE)),
            merge(r#"{"metadata":{"name":null}}"#, bad_request(UNDETERMINABLE)),
            merge(
                "[]",
                bad_request(
                    "error decoding patch: json: cannot unmarshal array into Go value of type \
                     map[string]interface {}",
                ),
            ),
        ],
    )
    .await;
    assert_eq!(server.count("configmaps", ""), 1);
}

const UNDETERMINABLE: &str =
    "the name of the object (a based on URL) was undeterminable: name must be provided";

#[tokio::test(start_paused = true)]
async fn objects_and_namespaces_that_do_not_exist_are_404() {
    let server = ApiServer::start();
    let missing = |resource: &str, group: &str| {
        let what = if group.is_empty() { resource.into() } else { format!("{resource}.{group}") };
        let mut details = json!({"name": "x", "kind": resource});
        if !group.is_empty() {
            details["group"] = json!(group);
        }
        failure(404, "NotFound", &format!("{what} \"x\" not found"), details)
    };
    let x = format!("{MAPS}/x");
    let deployment = "/apis/apps/v1/namespaces/default/deployments/x";
    check(
        &server,
        vec![
            case("GET", &x, "", missing("configmaps", "")),
            case("PUT", &x, r#"{"metadata":{"name":"x"}}"#, missing("configmaps", "")),
            Case("PATCH", x.clone(), MERGE_PATCH, "{}", missing("configmaps", "")),
            case("DELETE", &x, "", missing("configmaps", "")),
            case("GET", deployment, "", missing("deployments", "apps")),
            // The missing namespace takes precedence over other errors of the object.
            case(
                "POST",
                "/api/v1/namespaces/x/configmaps",
                r#"{"metadata":{"name":"Foo"}}"#,
                missing("namespaces", ""),
            ),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_way_is_409() {
    let (server, uid) = a_map();
    let details = json!({"name": "a", "kind": "configmaps"});
    let exists = failure(409, "AlreadyExists", "configmaps \"a\" already exists", details.clone());
    let conflict = |what: &str, why: &str| {
        let message = format!("Operation cannot be fulfilled on {what} \"a\": {why}");
        failure(409, "Conflict", &message, json!({"name": "a", "kind": what}))
    };
    let modified = conflict(
        "configmaps",
        "the object has been modified; please apply your changes to the latest version and try \
         again",
    );
    let other_uid = conflict(
        "ConfigMap",
        &format!(
            "the UID in the precondition (x) does not match the UID in record ({uid}). The object \
             might have been deleted and then recreated"
        ),
    );
    let version = version(&server.get("configmaps", "default", "a").unwrap());
    let other_version = conflict(
        "ConfigMap",
        &format!(
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion in \
             record ({version}). The object might have been modified"
        ),
    );
    let uid_of_another = conflict(
        "configmaps",
        &format!("Precondition failed: UID in precondition: xx, UID in object meta: {uid}"),
    );
    let a = format!("{MAPS}/a");
    let stale = r#"{"metadata":{"name":"a","resourceVersion":"1"}}"#;
    let future = r#"{"metadata":{"name":"a","resourceVersion":"9999999"}}"#;
    let patch = r#"{"metadata":{"resourceVersion":"1"}}"#;
    check(
        &server,
        vec![
            case("POST", MAPS, r#"{"metadata":{"name":"a"}}"#, exists.clone()),
            case("POST", format!("{MAPS}?dryRun=All"), r#"{"metadata":{"name":"a"}}"#, exists),
            case("PUT", &a, stale, modified.clone()),
            case("PUT", &a, future, modified.clone()),
            Case("PATCH", a.clone(), MERGE_PATCH, patch, modified),
            case("PUT", &a, r#"{"metadata":{"name":"a","uid":"xx"}}"#, uid_of_another),
            case("DELETE", &a, r#"{"preconditions":{"uid":"x"}}"#, other_uid),
            case("DELETE", &a, r#"{"preconditions":{"resourceVersion":"1"}}"#, other_version),
        ],
    )
    .await;
    assert!(server.get("configmaps", "default", "a").is_some());
}

#[tokio::test(start_paused = true)]
async fn versions_that_are_forgotten_are_410() {
    let (server, _) = a_map();
    let store = server.store();
    let (old, now) = (store.revision() - 1, store.revision());
    store.compact(now);
    let list = format!("{MAPS}?resourceVersion={old}&resourceVersionMatch=Exact");
    let message = "The resourceVersion for the provided list is too old.";
    let want = failure(410, "Expired", message, json!(null));
    check(&server, vec![case("GET", list, "", want)]).await;
}

#[tokio::test(start_paused = true)]
async fn bodies_and_objects_that_are_too_large_are_413() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let path = "/api/v1/namespaces/default/podtemplates";
    for (bytes, limit) in [(3 * 1024 * 1024, 3_145_728), (1536 * 1024, 1_572_864)] {
        let big = json!({"metadata": {"name": "big"}, "template": {"x": "a".repeat(bytes)}});
        let message = format!("Request entity too large: limit is {limit}");
        let want = failure(413, "RequestEntityTooLarge", &message, json!(null));
        assert_eq!(client.post(path, big).await.json(), want);
    }
    assert_eq!(server.count("podtemplates", ""), 0);
}

#[tokio::test(start_paused = true)]
async fn representations_that_are_not_served_are_406_and_415() {
    const ALL: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let (server, _) = a_map();
    let client = Client::of(&server);
    for accept in ["text/html", "application/foo", "application/cbor"] {
        let message = "406: Not Acceptable\n\nAvailable representations: application/json, \
                       application/vnd.kubernetes.protobuf, application/json;stream=watch, \
                       application/vnd.kubernetes.protobuf;stream=watch";
        let want = failure(406, "NotAcceptable", message, json!({}));
        let answer = client.get_as(MAPS, accept).await;
        assert_eq!((answer.code, answer.json()), (406, want));
    }
    let unknown = |accepted: &str| {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: \
             {accepted}"
        );
        failure(415, "UnsupportedMediaType", &message, json!(null))
    };
    let a = format!("{MAPS}/a");
    check(
        &server,
        vec![
            Case("POST", MAPS.to_owned(), "text/html", "{}", unknown(ALL)),
            Case("PUT", a.clone(), "application/cbor", "{}", unknown(ALL)),
            Case(
                "PATCH",
                a,
                "application/json",
                "{}",
                failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", json!({})),
            ),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn objects_that_break_a_rule_are_422_and_say_which() {
    let (server, _) = a_map();
    let value = |value: &str, why: &str| format!("Invalid value: {value:?}: {why}");
    let a = format!("{MAPS}/a");
    let merge = |body, want| Case("PATCH", a.clone(), MERGE_PATCH, body, want);
    check(
        &server,
        vec![
            case(
                "POST",
                MAPS,
                r#"{"metadata":{"name":"Foo"}}"#,
                invalid(
                    "ConfigMap",
                    "Foo",
                    "metadata.name",
                    "FieldValueInvalid",
                    &value("Foo", NAME_RULE),
                ),
            ),
            case(
                "POST",
                MAPS,
                "{}",
                invalid(
                    "ConfigMap",
                    "",
                    "metadata.name",
                    "FieldValueRequired",
                    "Required value: name or generateName is required",
                ),
            ),
            merge(
                r#"{"metadata":{"uid":"q"}}"#,
                invalid(
                    "ConfigMap",
                    "a",
                    "metadata.uid",
                    "FieldValueInvalid",
                    &value("q", "field is immutable"),
                ),
            ),
            merge(
                r#"{"metadata":{"deletionTimestamp":"2001-01-01T00:00:00Z"}}"#,
                invalid(
                    "ConfigMap",
                    "a",
                    "metadata.deletionTimestamp",
                    "FieldValueInvalid",
                    &value("2001-01-01T00:00:00Z", "field is immutable"),
                ),
            ),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_repeated_is_said_once_and_listed_as_often_as_it_occurs() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let body = json!({"metadata": {"name": "a", "finalizers": ["x", "x"],
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": ""},
        {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": ""},
    ]}});
    let status = client.post(MAPS, body).await.failed(422);
    let causes = status["details"]["causes"].as_array().unwrap();
    let message = status["message"].as_str().unwrap();
    for cause in causes {
        let (field, why) = (cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap());
        assert_eq!(message.matches(&format!("{field}: {why}")).count(), 1, "{field}: {why}");
    }
    let same = |at: &Value| causes.iter().filter(|cause| *cause == at).count();
    assert!(causes.iter().any(|cause| same(cause) == 2), "{status}");
}

#[tokio::test(start_paused = true)]
async fn options_that_break_a_rule_are_422_too() {
    let (server, _) = a_map();
    let dry_run = |options: &str| {
        let why = "Unsupported value: [\"x\"]: supported values: \"All\"";
        let what = format!("{options}.meta.k8s.io");
        invalid(&what, "", "dryRun", "FieldValueNotSupported", why)
    };
    let propagation = invalid(
        "DeleteOptions.meta.k8s.io",
        "",
        "propagationPolicy",
        "FieldValueNotSupported",
        "Unsupported value: \"Foo\": supported values: \"Foreground\", \"Background\", \"Orphan\", \
         \"nil\"",
    );
    let a = format!("{MAPS}/a");
    let named = r#"{"metadata":{"name":"a"}}"#;
    check(
        &server,
        vec![
            case("POST", format!("{MAPS}?dryRun=x"), named, dry_run("CreateOptions")),
            case("PUT", format!("{a}?dryRun=x"), named, dry_run("UpdateOptions")),
            Case("PATCH", format!("{a}?dryRun=x"), MERGE_PATCH, "{}", dry_run("PatchOptions")),
            case("DELETE", format!("{a}?dryRun=x"), "", dry_run("DeleteOptions")),
            case("DELETE", format!("{a}?propagationPolicy=Foo"), "", propagation),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn patches_that_do_not_apply_are_422_without_more_words() {
    let (server, _) = a_map();
    let message = "the server rejected our request due to an error in our request";
    let want = failure(422, "Invalid", message, json!({}));
    let a = format!("{MAPS}/a");
    let patch = |body| Case("PATCH", a.clone(), JSON_PATCH, body, want.clone());
    check(
        &server,
        vec![
            patch(r#"[{"op":"test","path":"/data","value":"x"}]"#),
            patch(r#"[{"op":"remove","path":"/data/x"}]"#),
            patch(r#"[{"op":"frob","path":"/data","value":"x"}]"#),
            patch(r#"[{"op":"test","path":"/metadata/resourceVersion","value":"1"}]"#),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn watches_beyond_the_limit_are_429_until_one_ends() {
    let server = ApiServer::builder().watches_max(1).build();
    let client = Client::of(&server);
    let path = format!("{MAPS}?watch=1");
    let first = client.watch(&path).await;
    let second = client.get(&path).await;
    let details = json!({"retryAfterSeconds": 1});
    let message = "1 watches are open already";
    assert_eq!(second.json(), failure(429, "TooManyRequests", message, details));
    assert_eq!((second.code, second.header("retry-after")), (429, "1"));
    drop(first);
    client.watch(&path).await;
}
