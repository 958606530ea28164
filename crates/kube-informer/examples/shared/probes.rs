//! The endpoints that a kubelet probes: `/livez` and `/readyz`, on the address in the variable `PROBES`. Without it
//! there are none.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use kube_informer::LeaderElector;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// The time that a leader without a lease has to end its work, as in Kubernetes' own controllers.
const TOLERANCE: Duration = Duration::from_secs(20);

/// Limits for probers: a kubelet needs far less.
const PROBERS_MAX: usize = 16;
const REQUEST_BYTES_MAX: u64 = 4096;
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(5);

/// Serves the probes of an operator.
///
/// It is ready while its caches are. It is alive unless it is stuck: a restart does not bring back an API server that
/// is away.
pub(crate) async fn start(
    elector: &LeaderElector,
    is_ready: impl Fn() -> bool + Send + Sync + 'static,
) -> anyhow::Result<()> {
    let Ok(address) = std::env::var("PROBES") else { return Ok(()) };
    let listener = TcpListener::bind(&address).await;
    let listener = listener.with_context(|| format!("PROBES={address}: cannot listen there"))?;
    eprintln!("probes on http://{}", listener.local_addr()?);
    let elector = elector.clone();
    tokio::spawn(serve(listener, move |path| match path {
        "/livez" => Some(elector.check(TOLERANCE).is_ok()),
        "/readyz" => Some(is_ready()),
        _ => None,
    }));
    Ok(())
}

/// Responds on a listener: 200 if the path is healthy, 503 if not, 404 if it is unknown.
pub(crate) async fn serve(
    listener: TcpListener,
    healthy: impl Fn(&str) -> Option<bool> + Send + Sync + 'static,
) {
    let (healthy, places) = (Arc::new(healthy), Arc::new(Semaphore::new(PROBERS_MAX)));
    loop {
        let place = places.clone().acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            sleep(Duration::from_secs(1)).await; // out of file descriptors, perhaps
            continue;
        };
        let healthy = healthy.clone();
        tokio::spawn(async move {
            let _place = place;
            // A prober that goes away or takes too long gets no answer.
            let _ = timeout(REQUEST_WAIT_MAX, answer(stream, &*healthy)).await;
        });
    }
}

async fn answer(stream: TcpStream, healthy: &impl Fn(&str) -> Option<bool>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut request = (&mut stream).take(REQUEST_BYTES_MAX);
    let (mut first, mut header) = (String::new(), String::new());
    request.read_line(&mut first).await?;
    // To the end of the headers: closing a connection with unread bytes resets it.
    while request.read_line(&mut header).await? > 0 && !header.trim().is_empty() {
        header.clear();
    }
    let status = match first.split_whitespace().nth(1).and_then(healthy) {
        Some(true) => "200 OK",
        Some(false) => "503 Service Unavailable",
        None => "404 Not Found",
    };
    let text = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}
