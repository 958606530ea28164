//! A custom source, with the transforms and the storage of an informer.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use futures_util::{StreamExt, TryFutureExt};

use super::{ListItem, ListOptions, ListStream, ListWatch, WatchItem, WatchOptions, WatchStream};
use crate::error::Cause;
use crate::object::Packer;
use crate::{Error, Object, Result};

/// Applies a packer to every object of another source.
pub(crate) struct Repacked {
    source: Arc<dyn ListWatch>,
    packer: Arc<Packer>,
}

impl Repacked {
    pub(crate) fn new(source: Arc<dyn ListWatch>, packer: Arc<Packer>) -> Self {
        Self { source, packer }
    }
}

impl ListWatch for Repacked {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream>> {
        let packer = self.packer.clone();
        let again = move |item| match item {
            ListItem::Object(object) => {
                repack(&packer, object).map_or_else(ListItem::Unreadable, ListItem::Object)
            }
            other => other,
        };
        let listed = self.source.list(options);
        Box::pin(listed.map_ok(|items| items.map(move |item| item.map(&again)).boxed()))
    }

    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream>> {
        let packer = self.packer.clone();
        let again = move |item| match item {
            WatchItem::Added(object) => change(&packer, object, WatchItem::Added, false),
            WatchItem::Modified(object) => change(&packer, object, WatchItem::Modified, false),
            WatchItem::Deleted(object) => change(&packer, object, WatchItem::Deleted, true),
            other => other,
        };
        let watched = self.source.watch(options);
        Box::pin(watched.map_ok(|items| items.map(move |item| item.map(&again)).boxed()))
    }

    fn streams_lists(&self) -> bool {
        self.source.streams_lists()
    }
}

fn change(
    packer: &Packer,
    object: Object,
    event: fn(Object) -> WatchItem,
    deleted: bool,
) -> WatchItem {
    let resource_version = object.resource_version().clone();
    match repack(packer, object) {
        Ok(object) => event(object),
        Err(error) => WatchItem::Unreadable { error, resource_version, deleted },
    }
}

/// If packing fails, the error keeps the object's key.
fn repack(packer: &Packer, object: Object) -> Result<Object> {
    let key = object.key().clone();
    packer.repack(object).map_err(|error| match error.key() {
        Some(_) => error,
        None => Error::new(Cause::Unreadable { key: Some(key) }, error.to_string()),
    })
}

#[cfg(test)]
mod tests;
