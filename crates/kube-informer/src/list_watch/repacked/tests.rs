use futures_util::stream;
use serde_json::json;

use super::*;
use crate::{ResourceVersion, Transform};

/// A source of two objects of which the second cannot be transformed.
struct Two;

fn object(name: &str, version: u64) -> Object {
    let metadata = json!({"name": name, "resourceVersion": version.to_string()});
    let data = if name == "good" { json!(1) } else { json!(null) };
    Object::from_json(json!({"metadata": metadata, "data": data}).to_string()).unwrap()
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

/// Bad objects have no data, which this transform cannot do without.
#[derive(serde::Serialize, serde::Deserialize)]
struct WithData {
    metadata: serde_json::Value,
    data: u32,
}

fn repacked() -> Repacked {
    let transform = Transform::map(|object: &mut WithData| object.data += 1);
    Repacked::new(Arc::new(Two), Arc::new(Packer::new(transform, None, false)))
}

fn is_bad(error: &Error) -> bool {
    error.is_unreadable() && error.key().is_some_and(|key| key.name() == "bad")
}

#[tokio::test]
async fn objects_are_packed_again_and_a_bad_one_is_one_bad_one() {
    let source = repacked();
    let items: Vec<_> = source.list(ListOptions::default()).await.unwrap().collect().await;
    let Ok(ListItem::Object(good)) = &items[0] else { panic!("{items:?}") };
    assert_eq!(good.field::<u32>("data").unwrap(), Some(2));
    assert!(matches!(&items[1], Ok(ListItem::Unreadable(error)) if is_bad(error)));

    let items: Vec<_> = source.watch(WatchOptions::default()).await.unwrap().collect().await;
    assert!(matches!(&items[0], Ok(WatchItem::Added(good)) if good.name() == "good"));
    for (at, version, was_deleted) in [(1, "2", false), (2, "3", true)] {
        let Ok(WatchItem::Unreadable { error, resource_version, deleted }) = &items[at] else {
            panic!("{items:?}")
        };
        assert!(is_bad(error), "{error}");
        assert_eq!((resource_version.as_str(), *deleted), (version, was_deleted));
    }
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
