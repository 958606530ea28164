use futures_util::stream;

use super::*;
use crate::{ResourceVersion, Transform};

/// A source of two objects of which the second cannot be transformed.
struct Two;

fn object(name: &str, version: u64) -> Object {
    let json = format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}}}}"#);
    Object::from_json(json).unwrap()
}

impl ListWatch for Two {
    fn name(&self) -> &'static str {
        "two"
    }
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream>> {
        let end = ListItem::End {
            resource_version: options.resource_version.unwrap_or_default(),
            continue_token: Some("more".into()),
        };
        let items = [ListItem::Object(object("good", 1)), ListItem::Object(object("bad", 2)), end];
        Box::pin(async { Ok(stream::iter(items.map(Ok)).boxed()) })
    }
    fn watch(&self, _: WatchOptions) -> BoxFuture<'_, Result<WatchStream>> {
        let bookmark = WatchItem::Bookmark {
            resource_version: ResourceVersion::from(9),
            initial_events_end: true,
        };
        let items = [
            Ok(WatchItem::Added(object("good", 1))),
            Ok(WatchItem::Modified(object("bad", 2))),
            Ok(WatchItem::Deleted(object("bad", 3))),
            Ok(bookmark),
            Err(Error::stopped()),
        ];
        Box::pin(async { Ok(stream::iter(items).boxed()) })
    }
    fn streams_lists(&self) -> bool {
        false
    }
}

/// Decoding stands in for a transform: both happen in the packer.
fn repacked() -> Repacked {
    let packer = Packer::new(Transform::default(), None, false);
    Repacked::new(Arc::new(Two), Arc::new(packer))
}

#[tokio::test]
async fn what_is_not_an_object_is_passed_on() {
    let source = repacked();
    assert_eq!((source.name(), source.streams_lists()), ("two", false));
    let options = ListOptions { resource_version: Some("7".into()), ..ListOptions::default() };
    let items: Vec<_> = source.list(options).await.unwrap().collect().await;
    assert!(
        matches!(&items[2], Ok(ListItem::End { resource_version, continue_token: Some(token) })
        if *resource_version == "7" && token == "more")
    );
    let items: Vec<_> = source.watch(WatchOptions::default()).await.unwrap().collect().await;
    assert!(matches!(&items[3], Ok(WatchItem::Bookmark { initial_events_end: true, .. })));
    assert!(items[4].as_ref().unwrap_err().is_stopped());
}
