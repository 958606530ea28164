//! An error is logged when it starts, when it changes and when it clears, not once per retry.

use embedded_apiserver::{ApiServer, Fault, Verb};
use tracing::subscriber::DefaultGuard;

use super::log::Log;
use super::reflecting::reflect;
use super::scene::{Listed, Maps, maps_of, seconds, server};

fn watching(server: &ApiServer) -> (Log, DefaultGuard) {
    server.add("a", "1");
    Log::capture()
}

#[tokio::test(start_paused = true)]
async fn repeated_errors_are_logged_once() {
    let server = server();
    let (log, _guard) = watching(&server);
    let reflecting = reflect(Listed(maps_of(&server)));
    seconds(2).await;
    assert_eq!(log.lines(), [""; 0], "all is well");

    server.faults().on(Verb::Watch).nth(1).times(20).inject(Fault::status(503));
    server.drop_watches();
    seconds(1500).await;
    let errors = reflecting.errors.len();
    assert_eq!(errors, 20, "it was tried again and again");
    let lines = log.lines();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(lines[0].starts_with("WARN configmaps: cannot watch configmaps"), "{}", lines[0]);
    assert!(lines[0].contains("503"), "{}", lines[0]);
    // Logged again when the reaction changes.
    assert!(
        lines[1].starts_with("WARN") && lines[1].contains("polling with lists"),
        "{}",
        lines[1]
    );
    assert!(lines[2].starts_with("INFO configmaps: recovered from: "), "{}", lines[2]);

    server.faults().on(Verb::Watch).nth(1).times(2).inject(Fault::status(503));
    server.faults().on(Verb::Watch).nth(3).times(2).inject(Fault::status(403));
    server.drop_watches();
    seconds(1500).await;
    assert_eq!(reflecting.errors.len() - errors, 4);
    let lines = log.lines();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(lines[0].contains("503") && lines[1].contains("403"), "{lines:#?}");
    assert!(lines[2].starts_with("INFO configmaps: recovered"), "{}", lines[2]);
    reflecting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_is_no_warning() {
    let server = server();
    let (log, _guard) = watching(&server);
    let reflecting = reflect(maps_of(&server));
    seconds(2).await;
    server.faults().on(Verb::Watch).after_events(0).inject(Fault::Gone);
    seconds(5).await;
    let lines = log.lines();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines.iter().all(|line| line.starts_with("INFO ")), "{lines:#?}");
    reflecting.stop().await;
}
