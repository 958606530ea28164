//! Paged lists: limit and continue.

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::harness::{Client, MAPS, failure, labelled, map, names, version};

async fn filled(server: &ApiServer, count: usize) -> Client {
    let client = Client::of(server);
    for at in 0..count {
        let parity = if at % 2 == 0 { "even" } else { "odd" };
        let map = labelled(&format!("m{at}"), json!({"parity": parity}));
        client.post(MAPS, map).await.ok();
    }
    client
}

fn token(list: &Value) -> &str {
    list["metadata"]["continue"].as_str().unwrap_or_default()
}

/// All pages are of the first one's version, whatever is written in the meantime.
#[tokio::test(start_paused = true)]
async fn pages_are_of_one_version_while_writes_go_on() {
    let server = ApiServer::start();
    let client = filled(&server, 7).await;
    let at = server.store().revision();
    let mut path = format!("{MAPS}?limit=3");
    let mut seen = Vec::new();
    for (count, remaining) in [(3, json!(4)), (3, json!(1)), (1, Value::Null)] {
        let page = client.get(&path).await.ok();
        assert_eq!((names(&page).len(), version(&page)), (count, at));
        assert_eq!(page["metadata"]["remainingItemCount"], remaining);
        assert_eq!(token(&page).is_empty(), remaining.is_null());
        seen.extend(names(&page).into_iter().map(str::to_owned));
        path = format!("{MAPS}?limit=3&continue={}", token(&page));
        client.post(MAPS, map(&format!("m9-{}", seen.len()))).await.ok();
        client.delete(&format!("{MAPS}/m{}", seen.len() - 1)).await.ok();
        client.merge(&format!("{MAPS}/m5"), json!({"data": {"n": seen.len().to_string()}})).await;
    }
    assert_eq!(seen, ["m0", "m1", "m2", "m3", "m4", "m5", "m6"]);
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_selection_is_full_and_counts_nothing() {
    let server = ApiServer::start();
    let client = filled(&server, 7).await;
    let odd = format!("{MAPS}?labelSelector=parity%3Dodd&limit=2");
    let first = client.get(&odd).await.ok();
    assert_eq!(names(&first), ["m1", "m3"]);
    // Only complete lists are counted: a selection would have to be searched.
    assert_eq!(first["metadata"].get("remainingItemCount"), None);
    let second = client.get(&format!("{odd}&continue={}", token(&first))).await.ok();
    assert_eq!((names(&second), token(&second)), (vec!["m5"], ""));
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_not_reached_gives_no_token() {
    let server = ApiServer::start();
    let client = filled(&server, 2).await;
    for limit in [0, 2, 3] {
        let list = client.get(&format!("{MAPS}?limit={limit}")).await.ok();
        let metadata = list["metadata"].as_object().unwrap();
        assert_eq!((names(&list).len(), metadata.len()), (2, 1), "{limit}: {metadata:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_takes_no_version_beside_its_own() {
    let server = ApiServer::start();
    let client = filled(&server, 3).await;
    let first = client.get(&format!("{MAPS}?limit=1")).await.ok();
    let next = format!("{MAPS}?limit=1&continue={}", token(&first));
    let refused = client.get(&format!("{next}&resourceVersion=5")).await;
    let message = "specifying resource version is not allowed when using continue";
    assert_eq!(refused.json(), failure(400, "BadRequest", message, json!(null)));
    let second = client.get(&format!("{next}&resourceVersion=0")).await.ok();
    // Any version is acceptable, and the watch cache returns the complete list.
    assert_eq!(names(&second), ["m1", "m2"]);
}

#[tokio::test(start_paused = true)]
async fn tokens_that_are_none_are_400() {
    let server = ApiServer::start();
    let client = Client::of(&server);
    for bad in ["abc", "%21", "e30", "eyJ2IjoieCJ9"] {
        let refused = client.get(&format!("{MAPS}?continue={bad}")).await;
        let status = refused.failed(400);
        let message = status["message"].as_str().unwrap();
        assert!(
            message.starts_with("invalid continue token: continue key is not valid: "),
            "{message}"
        );
    }
    assert_eq!(
        client.get(&format!("{MAPS}?continue=e30")).await.message(),
        "invalid continue token: continue key is not valid: server does not recognize this \
         encoded version "
    );
}

/// A token outlives its version only for a while. Then the client receives an error with another
/// token, which continues the list if the client accepts an inconsistent one.
#[tokio::test(start_paused = true)]
async fn a_token_that_has_expired_leads_on_inconsistently_if_the_client_wants() {
    let server = ApiServer::start();
    let client = filled(&server, 6).await;
    let first = client.get(&format!("{MAPS}?limit=2")).await.ok();
    client.delete(&format!("{MAPS}/m0")).await.ok();
    client.delete(&format!("{MAPS}/m3")).await.ok();
    client.post(MAPS, map("m7")).await.ok();
    server.store().compact(server.store().revision());

    let expired = client.get(&format!("{MAPS}?limit=2&continue={}", token(&first))).await;
    let status = expired.failed(410);
    assert_eq!(status["reason"], "Expired");
    assert_eq!(
        status["message"],
        "The provided continue parameter is too old to display a consistent list result. You can \
         start a new list without the continue parameter, or use the continue token in this \
         response to retrieve the remainder of the results. Continuing with the provided token \
         results in an inconsistent list - objects that were created, modified, or deleted \
         between the time the first chunk was returned and now may show up in the list."
    );
    let second = client.get(&format!("{MAPS}?limit=2&continue={}", token(&status))).await.ok();
    let now = server.store().revision();
    assert_eq!((names(&second), version(&second)), (vec!["m2", "m4"], now));
    assert_eq!(second["metadata"]["remainingItemCount"], 2);
    // From here on, the list is consistent again.
    client.delete(&format!("{MAPS}/m5")).await.ok();
    let third = client.get(&format!("{MAPS}?limit=2&continue={}", token(&second))).await.ok();
    assert_eq!((names(&third), version(&third)), (vec!["m5", "m7"], now));
    assert_eq!(token(&third), "");
}

#[tokio::test(start_paused = true)]
async fn history_ages_out_of_reach() {
    let server = ApiServer::builder().history_window(std::time::Duration::from_secs(60)).build();
    let client = filled(&server, 4).await;
    let first = client.get(&format!("{MAPS}?limit=2")).await.ok();
    let next = format!("{MAPS}?limit=2&continue={}", token(&first));
    for at in 0..30 {
        tokio::time::advance(std::time::Duration::from_secs(5)).await;
        client.merge(&format!("{MAPS}/m0"), json!({"data": {"at": at.to_string()}})).await.ok();
        let code = client.get(&next).await.code;
        match at {
            0..10 => assert_eq!(code, 200, "after {at}"),
            16.. => assert_eq!(code, 410, "after {at}"),
            _ => {}
        }
    }
}
