//! Watches that are cut, and servers with fewer features.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{Stream, StreamExt, TryFutureExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::list_watch::{
    KubeListWatch, ListItem, ListOptions, ListStream, WatchItem, WatchOptions, WatchStream,
};
use kube_informer::{Error, Event, ListWatch, Object, Result};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::running::Running;
use super::scene::{Listed, Maps, asked, maps_of, seconds, server, settle};
use super::script::{End, Script, event, list, stored};

/// A load balancer that cuts every connection after 35 seconds, idle or not.
struct Cut(KubeListWatch);

impl ListWatch for Cut {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream>> {
        self.0.list(options)
    }
    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream>> {
        let cut = stream::once(async { Err(Error::connection("cut")) });
        let cut_off = move |items: WatchStream| {
            items.take_until(sleep(Duration::from_secs(35))).chain(cut).boxed()
        };
        Box::pin(self.0.watch(options).map_ok(cut_off))
    }
}

/// It used to be not live for more than half of the hour.
#[tokio::test(start_paused = true)]
async fn l1_idle_watches_cut_every_35_s_stay_live() {
    let server = server();
    let source = Cut(maps_of(&server));
    let running = Running::from_source(server, source, |builder| builder).sync().await;
    running.server.clear_record();
    let mut blind = 0;
    for second in 0..3600 {
        seconds(1).await;
        blind += u32::from(!running.informer.is_live());
        if second % 100 == 0 {
            running.server.add(&format!("m{second}"), "1");
        }
    }
    assert_eq!(blind, 0, "seconds of an hour");
    assert_eq!(running.names().len(), 36);
    // Only requests for the server's version, and no full list.
    let asked = asked(&running.server);
    assert!(asked.iter().all(|asked| asked.starts_with("watch") || asked == "list limit=1"));
    assert!(running.errors.nexts().iter().all(|next| *next == "resume"));
}

/// Some aggregated servers return lists without a version.
#[tokio::test(start_paused = true)]
async fn a_list_without_a_version_is_watched_from_the_start() {
    let (server, script) = (server(), Script::default());
    script.list(&list("", "", [stored("a", "1", "")]));
    script.watch([event("ADDED", &stored("b", "1", ""))], End::Silent);
    let source = Listed(KubeListWatch::of::<ConfigMap>(script.client(&server)));
    let running = Running::from_source(server, source, |builder| builder).sync().await;
    settle().await;
    assert_eq!(running.names(), ["a", "b"]);
    assert!(running.informer.is_live());
}

/// A source that lists nothing, and whose watch delivers this at once.
struct Says<S>(fn() -> S);

impl<S: Stream<Item = Result<WatchItem>> + Send + 'static> ListWatch for Says<S> {
    fn name(&self) -> &'static str {
        "said"
    }
    fn list(&self, _: ListOptions) -> BoxFuture<'_, Result<ListStream>> {
        let end = ListItem::End { resource_version: "1".into(), continue_token: None };
        Box::pin(async { Ok(stream::iter([Ok(end)]).boxed()) })
    }
    fn watch(&self, _: WatchOptions) -> BoxFuture<'_, Result<WatchStream>> {
        Box::pin(async { Ok((self.0)().boxed()) })
    }
    fn streams_lists(&self) -> bool {
        false
    }
}

fn modified(name: &str, version: u64) -> Result<WatchItem> {
    let map = stored(name, "1", &version.to_string()).to_string();
    Object::from_json(map).map(WatchItem::Modified)
}

#[tokio::test(start_paused = true)]
async fn h7_a_resync_comes_although_the_queue_is_never_empty() {
    let endless = Says(|| stream::iter(2..).map(|version| modified("a", version)));
    let running = Running::from_source(server(), endless, |builder| builder);
    let (tell, mut told) = mpsc::unbounded_channel();
    running.informer.handler().resync(Duration::from_secs(60)).for_each(move |event| {
        if let Event::Resynced(_) = event {
            let _ = tell.send(());
        }
    });
    let running = running.sync().await;
    // Paused time does not advance while there is work, and here there always is.
    tokio::time::advance(Duration::from_secs(60)).await;
    told.recv().await.expect("it runs");
    running.informer.shutdown().await;
}

/// The timer of a watch used to run out once between two bookmarks.
#[tokio::test(start_paused = true)]
async fn a_quiet_watch_wakes_up_for_bookmarks_alone() {
    static POLLS: AtomicUsize = AtomicUsize::new(0);
    const MINUTES: usize = 30;
    let quiet = Says(|| {
        let mut bookmarks = Box::pin(stream::unfold(2_u64, |version| async move {
            sleep(Duration::from_secs(60)).await;
            let (resource_version, initial_events_end) = (version.into(), false);
            Some((Ok(WatchItem::Bookmark { resource_version, initial_events_end }), version + 1))
        }));
        stream::poll_fn(move |context| {
            POLLS.fetch_add(1, Ordering::Relaxed);
            bookmarks.poll_next_unpin(context)
        })
    });
    let running = Running::from_source(server(), quiet, |builder| builder).sync().await;
    sleep(Duration::from_secs(60 * MINUTES as u64 + 30)).await;
    assert!(running.informer.is_live());
    // Each is taken, and the next is waited for; at first, the timer has to be set.
    let polls = POLLS.load(Ordering::Relaxed);
    assert!((2 * MINUTES..=2 * MINUTES + 3).contains(&polls), "{polls}");
}

/// Index functions run before anything is written: each sees the cache as it was before the batch.
#[tokio::test(start_paused = true)]
async fn c18_what_waits_is_written_at_once() {
    let three = Says(|| {
        let names = stream::iter(["a", "b", "c"]).zip(stream::iter(2..));
        names.map(|(name, version)| modified(name, version)).chain(stream::pending())
    });
    let running = Running::from_source(server(), three, |builder| builder);
    let lister = running.informer.lister();
    let index = running.informer.index_by("there", move |_| [lister.len().to_string()]).unwrap();
    let running = running.sync().await;
    settle().await;
    assert_eq!(running.names(), ["a", "b", "c"]);
    assert_eq!(index.keys("0").len(), 3, "{:?}", index.values());
}
