//! Objects, and waiting.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use kube::core::Status;

pub(crate) fn map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

pub(crate) fn labelled(name: &str, label: (&str, &str)) -> ConfigMap {
    let mut map = map(name);
    map.metadata.labels = Some([(label.0.to_owned(), label.1.to_owned())].into());
    map
}

pub(crate) fn with_data(name: &str, value: &str) -> ConfigMap {
    let data = Some([("value".to_owned(), value.to_owned())].into());
    ConfigMap { data, ..map(name) }
}

/// Returns the `Status` of a failed request.
pub(crate) fn status<T: std::fmt::Debug>(outcome: kube::Result<T>) -> Status {
    match outcome {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("a Status was expected: {other:?}"),
    }
}

/// Lets paused time pass until a condition is met.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what}: not so after a long time");
}
