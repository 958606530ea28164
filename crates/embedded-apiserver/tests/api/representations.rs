//! Partial objects, and compression.

use std::io::Read;

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Client, MAPS, map, name};

const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

fn full(name: &str) -> Value {
    let mut map = map(name);
    map["metadata"]["labels"] = json!({"x": "y"});
    map["data"] = json!({"secret": "not for those who want metadata"});
    map
}

#[tokio::test(start_paused = true)]
async fn partial_objects_have_their_metadata_and_nothing_else() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let made = client.post(MAPS, full("a")).await.ok();
    let partial = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": made["metadata"],
    });
    let got = client.get_as(&format!("{MAPS}/a"), PARTIAL).await;
    assert_eq!((got.header("content-type"), got.json()), ("application/json", partial.clone()));
    let list = client.get_as(MAPS, PARTIAL_LIST).await.ok();
    let want = json!({
        "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "items": [partial],
    });
    assert_eq!(list, want);
    let older = PARTIAL.replace("v=v1", "v=v1beta1");
    let got = client.get_as(&format!("{MAPS}/a"), &older).await.ok();
    assert_eq!(got["apiVersion"], "meta.k8s.io/v1beta1");
}

#[tokio::test(start_paused = true)]
async fn partial_watches_are_of_partial_objects_bookmarks_included() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let path = format!("{MAPS}?watch=1&allowWatchBookmarks=true");
    let mut watch = client.watch_as(&path, PARTIAL).await;
    let end = watch.event().await;
    assert_eq!(
        (end.kind.as_str(), &end.object["kind"]),
        ("BOOKMARK", &json!("PartialObjectMetadata"))
    );
    let made = client.post(MAPS, full("a")).await.ok();
    client.delete(&format!("{MAPS}/a")).await.ok();
    let events = watch.events(2).await;
    assert_eq!(events[0].object["metadata"], made["metadata"]);
    for event in &events {
        assert_eq!(event.object["kind"], "PartialObjectMetadata");
        assert_eq!(event.object.as_object().unwrap().len(), 3);
    }
    assert_eq!(events[1].kind, "DELETED");
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_write_can_be_partial_too() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    let headers = [("accept", PARTIAL)];
    let made = client.request("POST", MAPS, &headers, full("a").to_string()).await;
    assert_eq!((made.code, &made.json()["kind"]), (201, &json!("PartialObjectMetadata")));
    assert_eq!(made.json().get("data"), None);
}

/// The first supported representation is chosen, as kubectl depends on.
#[tokio::test(start_paused = true)]
async fn accept_is_a_list_of_wishes() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    server.create(full("a")).unwrap();
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for (accept, kind) in [
        (format!("{table},application/json"), "Table"),
        (format!("application/json;as=Table;v=v2;g=meta.k8s.io,{table}"), "Table"),
        (
            "application/json;as=Table;v=v2;g=meta.k8s.io,application/json".to_owned(),
            "ConfigMapList",
        ),
        ("application/cbor, application/json".to_owned(), "ConfigMapList"),
        ("text/html, */*;q=0.8".to_owned(), "ConfigMapList"),
        (String::new(), "ConfigMapList"),
    ] {
        let list = client.get_as(MAPS, &accept).await.ok();
        assert_eq!(list["kind"], kind, "{accept}");
    }
    assert_eq!(client.get_as(MAPS, "application/json;as=Table;v=v2;g=meta.k8s.io").await.code, 406);
}

#[tokio::test(start_paused = true)]
async fn large_lists_are_compressed_for_those_who_take_it() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for at in 0..50 {
        let mut map = map(&format!("m{at}"));
        map["data"] = json!({"x": "some text ".repeat(500)});
        server.create(map).unwrap();
    }
    let plain = client.get(MAPS).await;
    assert_eq!(plain.header("content-encoding"), "");
    let gzip = [("accept-encoding", "deflate, gzip;q=0.9")];
    let packed = client.request("GET", MAPS, &gzip, "").await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert!(packed.body.len() < plain.body.len() / 10);
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&*packed.body).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain.body);

    let none = [("accept-encoding", "gzip;q=0")];
    assert_eq!(client.request("GET", MAPS, &none, "").await.header("content-encoding"), "");
    let one = client.request("GET", &format!("{MAPS}?limit=1"), &gzip, "").await;
    assert_eq!(one.header("content-encoding"), "", "small answers are not worth it");
    assert_eq!(name(&one.json()["items"][0]), "m0");
}

/// Metadata of an object for a list, or of a list for an object, is a 406 with that reason.
#[tokio::test(start_paused = true)]
async fn metadata_is_asked_for_as_what_it_is() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    client.post(MAPS, map("a")).await.ok();
    let path = format!("{MAPS}/a");
    for (path, accept, what) in [
        (MAPS, PARTIAL, "you requested PartialObjectMetadata, but the requested object is a list"),
        (
            path.as_str(),
            PARTIAL_LIST,
            "you requested PartialObjectMetadataList, but the requested object is not a list",
        ),
    ] {
        let answer = client.get_as(path, accept).await;
        assert_eq!((answer.code, &answer.json()["message"]), (406, &json!(what)));
    }
}
