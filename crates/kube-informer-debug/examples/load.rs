//! Measures what an open page costs an informer that receives 10,000 events per second.
//!
//!     cargo run --release -p kube-informer-debug --example load [SECONDS] [serve]
//!
//! The informer and its handlers have a thread of their own, whose CPU time is read; the page has another. Phases without and with
//! an open page alternate. With `serve`, it only prints the address of the page and runs, for a browser.

use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use kube_informer::list_watch::{
    ListItem, ListOptions, ListStream, WatchItem, WatchOptions, WatchStream,
};
use kube_informer::{ListWatch, Object, Result, SharedInformer, SharedInformerFactory};
use kube_informer_debug::DebugPage;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

const OBJECTS: u64 = 1000;
const EVENTS_PER_TICK: u64 = 100;
const TICK: Duration = Duration::from_millis(10);
const PHASES: usize = 3;

/// A source whose objects change 10,000 times per second, in turn.
struct Busy;

fn object(number: u64, version: u64) -> Object {
    let padding = "x".repeat(1000);
    let json = format!(
        r#"{{"metadata":{{"name":"pod-{number}","namespace":"load","uid":"{number}","resourceVersion":"{version}"}},"spec":{{"n":{version},"padding":"{padding}"}}}}"#
    );
    Object::from_json(json).expect("it has metadata")
}

impl ListWatch for Busy {
    fn name(&self) -> &'static str {
        "busy pods"
    }
    fn list(&self, _: ListOptions) -> BoxFuture<'_, Result<ListStream>> {
        let end = ListItem::End { resource_version: "1".into(), continue_token: None };
        let objects = (0..OBJECTS).map(|number| ListItem::Object(object(number, 1)));
        let items: Vec<_> = objects.chain([end]).collect();
        async { Ok(stream::iter(items).map(Ok).boxed()) }.boxed()
    }
    fn watch(&self, _: WatchOptions) -> BoxFuture<'_, Result<WatchStream>> {
        let ticks =
            stream::unfold((tokio::time::interval(TICK), 2_u64), |(mut ticks, first)| async move {
                ticks.tick().await;
                let events = (first..first + EVENTS_PER_TICK)
                    .map(|version| Ok(WatchItem::Modified(object(version % OBJECTS, version))));
                Some((stream::iter(events), (ticks, first + EVENTS_PER_TICK)))
            });
        async { Ok(ticks.flatten().boxed()) }.boxed()
    }
    fn streams_lists(&self) -> bool {
        false
    }
}

/// The CPU time of the calling thread.
fn cpu_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

/// The memory of this process, in megabytes.
fn memory() -> f64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0.0);
    pages * 4096.0 / 1e6
}

/// Runs the informer on a thread of its own, which publishes its CPU time.
fn informer(cpu: Arc<AtomicU64>, ready: oneshot::Sender<SharedInformer>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let informer: SharedInformer = SharedInformer::from_source(Busy).build();
        informer.handler().name("a handler").for_each(drop);
        informer.start();
        informer.wait_for_sync().await.expect("it syncs");
        drop(ready.send(informer.clone()));
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            cpu.store(cpu_time().as_micros() as u64, Ordering::Relaxed);
        }
    });
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let seconds = words.next().map_or(Ok(20), |word| word.parse())?;
    let phase = Duration::from_secs(seconds);
    let cpu = Arc::new(AtomicU64::new(0));
    let (tell, ready) = oneshot::channel();
    let published = cpu.clone();
    thread::spawn(move || informer(published, tell));
    let informer = ready.await?;
    // The page of a factory without informers, and of this one.
    let factory = SharedInformerFactory::new(embedded_apiserver::ApiServer::start().client());
    let page = DebugPage::builder(&factory).informer(&informer).show_objects(true).build();
    let page = page.listen("127.0.0.1:0").await?;
    if words.next().is_some() {
        println!("debug page on {}", page.url());
        tokio::time::sleep(phase).await;
        return Ok(());
    }
    let address = page.address();
    let path = page.url().replace(&format!("http://{address}/?"), "/stream?");
    for number in 0..2 * PHASES {
        let open = number % 2 == 1;
        let socket = if open { Some(TcpStream::connect(address).await?) } else { None };
        let reader = socket.map(|mut socket| {
            let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
            tokio::spawn(async move {
                let (mut total, mut buffer) = (0, vec![0; 1 << 16]);
                socket.write_all(request.as_bytes()).await?;
                while let Ok(read @ 1..) = socket.read(&mut buffer).await {
                    total += read;
                }
                Ok::<usize, std::io::Error>(total)
            })
        });
        // Handlers come and go within this time.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (begin, events, used) =
            (Instant::now(), informer.status().requests.events, cpu.load(Ordering::Relaxed));
        tokio::time::sleep(phase).await;
        let events = informer.status().requests.events - events;
        let used = cpu.load(Ordering::Relaxed) - used;
        println!(
            "{}: {:.0} events/s, {:.2} µs of CPU time per event, {:.1} MB",
            if open { "page open" } else { "no page  " },
            events as f64 / begin.elapsed().as_secs_f64(),
            used as f64 / events as f64,
            memory()
        );
        if let Some(reader) = reader {
            reader.abort();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}
