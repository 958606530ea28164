//! Checks one type: whether it can be listed and watched, whether lists stream, and how large its
//! objects are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use kube_informer::list_watch::{WatchItem, WatchOptions};
use kube_informer::{Error, KubeListWatch, ListWatch as _, ResourceVersion};
use serde_json::Value;
use tokio::time::timeout;

use super::ask::{ask, path};
use super::sample::Sample;
use crate::connect::Cluster;
use crate::discovery::Type;

/// The maximum number of objects in a sample, and their approximate size limit in bytes.
const SAMPLE_MAX: u64 = 500;
const SAMPLE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The time limit for a streamed list without objects.
const STREAM_WAIT: Duration = Duration::from_secs(3);

/// A field selector that matches no object, so that its list takes no time.
const NOBODY: &str = "metadata.name=kubectl-informer-doctor";

/// The results for a type.
pub(super) struct Checked {
    pub(super) of: Type,
    pub(super) list: Result<(), Error>,
    /// `None` until a watch has been tried.
    pub(super) watch: Option<Result<(), Error>>,
    pub(super) streams: Streams,
    pub(super) sample: Option<Sample>,
    /// Whether its resource versions can be compared.
    pub(super) decimal: Option<bool>,
}

impl Checked {
    pub(super) fn is_well(&self) -> bool {
        self.list.is_ok() && matches!(self.watch, Some(Ok(())))
    }
}

/// Whether a server streams lists.
#[derive(Clone, Debug)]
pub(super) enum Streams {
    Yes,
    /// The server rejects the request.
    Refused(String),
    /// The server ignores the parameter, and only watches.
    Ignored,
    Untried,
}

/// A finding that applies to all types: a server that ignores the parameter once always does.
#[derive(Default)]
pub(super) struct Streaming {
    ignored: AtomicBool,
}

pub(super) async fn check(
    cluster: &Cluster,
    of: &Type,
    namespace: Option<&str>,
    streaming: &Streaming,
) -> Checked {
    let mut checked = Checked {
        of: of.clone(),
        list: Ok(()),
        watch: None,
        streams: Streams::Untried,
        sample: None,
        decimal: None,
    };
    let version = match page(cluster, of, namespace, 1).await {
        Ok(first) => {
            let version =
                first["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
            checked.decimal =
                Some(!version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()));
            checked.sample = Some(sample(cluster, of, namespace, &first).await);
            version
        }
        Err(error) => {
            checked.list = Err(error);
            String::new()
        }
    };
    let source = source(cluster, of, namespace);
    let mut options = WatchOptions::default();
    options.timeout = Some(Duration::from_secs(1));
    if !version.is_empty() {
        options.resource_version = Some(ResourceVersion::from(version));
    }
    // The response's status tells whether the watch is permitted.
    checked.watch = Some(source.watch(options).await.map(drop));
    if checked.is_well() {
        checked.streams = streams(source, streaming).await;
    }
    checked
}

/// Returns a type's source of lists and watches.
pub(super) fn source(cluster: &Cluster, of: &Type, namespace: Option<&str>) -> KubeListWatch {
    let namespace = namespace.filter(|_| of.namespaced).unwrap_or_default();
    KubeListWatch::new(cluster.client.clone(), &of.resource()).namespace(namespace)
}

pub(super) async fn page(
    cluster: &Cluster,
    of: &Type,
    namespace: Option<&str>,
    limit: u64,
) -> Result<Value, Error> {
    let path = path(of, namespace, &format!("limit={limit}"));
    Ok(ask(&cluster.client, &path).await?.body)
}

/// Samples one page, as large as is useful, unless the first object is the only one.
async fn sample(cluster: &Cluster, of: &Type, namespace: Option<&str>, first: &Value) -> Sample {
    let sample = Sample::of(first);
    if sample.objects <= sample.sampled && !sample.at_least {
        return sample;
    }
    let limit = SAMPLE_BYTES_MAX.checked_div(sample.json).unwrap_or(SAMPLE_MAX);
    let more = page(cluster, of, namespace, limit.clamp(10, SAMPLE_MAX)).await;
    more.map_or(sample, |page| Sample::of(&page))
}

async fn streams(source: KubeListWatch, streaming: &Streaming) -> Streams {
    if streaming.ignored.load(Ordering::Relaxed) {
        return Streams::Ignored;
    }
    let mut options = WatchOptions::default();
    options.send_initial_events = true;
    options.timeout = Some(STREAM_WAIT);
    let source = source.fields(NOBODY);
    let mut events = match source.watch(options).await {
        Ok(events) => events,
        Err(error) => return Streams::Refused(error.to_string()),
    };
    let end = async {
        while let Some(event) = events.next().await {
            match event {
                Ok(WatchItem::Bookmark { initial_events_end: true, .. }) => return Streams::Yes,
                Ok(_) => {}
                Err(error) => return Streams::Refused(error.to_string()),
            }
        }
        Streams::Ignored
    };
    let streams = timeout(STREAM_WAIT, end).await.unwrap_or(Streams::Ignored);
    if matches!(streams, Streams::Ignored) {
        streaming.ignored.store(true, Ordering::Relaxed);
    }
    streams
}

#[cfg(test)]
mod tests {
    use embedded_apiserver::{ApiServer, Fault, Verb};
    use k8s_openapi::api::core::v1::Pod;
    use tokio::time::Instant;

    use super::*;

    async fn of(server: &ApiServer, streaming: &Streaming) -> Streams {
        streams(KubeListWatch::of::<Pod>(server.client()), streaming).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_streams_says_so_at_once() {
        let (server, streaming, begin) = (ApiServer::start(), Streaming::default(), Instant::now());
        assert!(matches!(of(&server, &streaming).await, Streams::Yes));
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_refuses_is_asked_again_for_other_types() {
        let (server, streaming) = (ApiServer::start(), Streaming::default());
        server.faults().on(Verb::Watch).nth(1).inject(Fault::status(422));
        assert!(
            matches!(of(&server, &streaming).await, Streams::Refused(why) if why.contains("422"))
        );
        assert!(matches!(of(&server, &streaming).await, Streams::Yes));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_ignores_it_is_waited_for_only_once() {
        let (server, streaming, begin) = (ApiServer::start(), Streaming::default(), Instant::now());
        server.faults().on(Verb::Watch).nth(1).inject(Fault::EndBookmarkMissing);
        assert!(matches!(of(&server, &streaming).await, Streams::Ignored));
        assert!(begin.elapsed() <= STREAM_WAIT);
        let begin = Instant::now();
        assert!(matches!(of(&server, &streaming).await, Streams::Ignored));
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }
}
