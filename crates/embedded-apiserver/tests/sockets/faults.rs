//! Connection faults, as a client on a socket observes them.

use embedded_apiserver::{ApiServer, Fault, Verb};

use crate::client::Client;
use crate::ends::{make, next, watch};
use crate::{VERSIONS, both};

#[tokio::test]
async fn a_reset_in_the_middle_of_a_watch_breaks_it() {
    for version in VERSIONS {
        let server = ApiServer::start();
        for listening in both(&server).await {
            let mut body = watch(&server, &listening, version).await;
            make(&server, "a");
            assert!(next(&mut body).await.unwrap().unwrap().contains("ADDED"));
            server.faults().on(Verb::Watch).after_events(1).inject(Fault::Reset);
            assert!(next(&mut body).await.unwrap().is_err(), "{version:?}");
            assert_eq!(server.faults().fired().last().unwrap().name, "reset");
            server.delete("configmaps", "default", "a").unwrap();
        }
    }
}

/// Silence in both directions: nothing arrives any more, not even the end, until connections are
/// broken.
#[tokio::test]
async fn a_half_open_connection_is_silent_until_the_server_restarts() {
    for version in VERSIONS {
        let server = ApiServer::start();
        for listening in both(&server).await {
            let mut body = watch(&server, &listening, version).await;
            make(&server, "a");
            assert!(next(&mut body).await.unwrap().unwrap().contains("ADDED"));
            server.faults().on(Verb::Watch).after_events(1).inject(Fault::HalfOpen);
            while server.faults().pending() > 0 {
                tokio::task::yield_now().await;
            }
            make(&server, "b");
            server.restart();
            assert!(next(&mut body).await.unwrap().is_err(), "{version:?}: b came, or an end");
            for name in ["a", "b"] {
                server.delete("configmaps", "default", name).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_refused_request_loses_its_connection_and_the_next_one_is_answered() {
    for version in VERSIONS {
        let server = ApiServer::start();
        for listening in both(&server).await {
            server.faults().on(Verb::List).inject(Fault::Refused);
            let mut client = Client::new(&server, &listening, version).await;
            assert!(client.get("/api/v1/configmaps").await.is_err(), "{version:?}");
            let mut client = Client::new(&server, &listening, version).await;
            assert_eq!(client.get("/api/v1/configmaps").await.unwrap().status(), 200);
        }
    }
}
