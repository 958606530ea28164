//! Estimates the size of a type's objects from a sample.

use kube_informer::{Object, Untyped};
use serde_json::{Map, Value};

/// The memory that a cache needs for an object besides the object itself: its map entries, and its
/// share of labels and owners.
const ENTRY_BYTES: u64 = 160;

/// The averages of a sample, and the number of all objects.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Sample {
    pub(super) objects: u64,
    /// Whether there are more objects, and the server does not say how many.
    pub(super) at_least: bool,
    pub(super) sampled: u64,
    /// The bytes of an object as the server sends it.
    pub(super) json: u64,
    /// The bytes of an object in a cache that is too small for compression, which is an upper
    /// bound.
    pub(super) cached: u64,
    /// The bytes of an object of which only the metadata is cached.
    pub(super) metadata: u64,
}

impl Sample {
    /// Computes the averages from a page of a list.
    pub(super) fn of(page: &Value) -> Self {
        let none = Vec::new();
        let items = page["items"].as_array().unwrap_or(&none);
        let remaining = page["metadata"]["remainingItemCount"].as_u64();
        let more = page["metadata"]["continue"].as_str().is_some_and(|token| !token.is_empty());
        let sampled = items.len() as u64;
        let sum = |size: fn(&Value) -> u64| {
            items.iter().map(size).sum::<u64>().checked_div(sampled).unwrap_or(0)
        };
        let cached = sum(packed);
        Self {
            objects: sampled + remaining.unwrap_or(0),
            at_least: more && remaining.is_none(),
            sampled,
            json: sum(|item| item.to_string().len() as u64),
            cached,
            // The metadata includes a kind, which list items do not have, so that it may be larger.
            metadata: sum(|item| packed(&metadata_of(item))).min(cached),
        }
    }

    /// Returns the size of a cache of all objects.
    pub(super) fn cache(&self) -> u64 {
        self.objects * self.cached
    }

    /// Returns the size of a cache of their metadata.
    pub(super) fn metadata_cache(&self) -> u64 {
        self.objects * self.metadata
    }
}

fn packed(item: &Value) -> u64 {
    // An object that cannot be cached takes no memory.
    let object = Object::<Untyped>::from_json(item.to_string());
    object.map_or(0, |object| object.memory() as u64 + ENTRY_BYTES)
}

fn metadata_of(item: &Value) -> Value {
    let mut only = Map::new();
    only.insert("apiVersion".into(), "meta.k8s.io/v1".into());
    only.insert("kind".into(), "PartialObjectMetadata".into());
    only.insert("metadata".into(), item["metadata"].clone());
    Value::Object(only)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn averages_are_of_the_sample_and_counts_of_all() {
        let item = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1",
            "managedFields": [{"manager": "somebody", "fieldsV1": {"a": "b".repeat(1000)}}]},
            "data": {"k": "v".repeat(3000)}});
        let page = json!({"metadata": {"remainingItemCount": 8, "continue": "x"},
            "items": [item, item]});
        let sample = Sample::of(&page);
        assert_eq!((sample.objects, sample.sampled, sample.at_least), (10, 2, false));
        assert!(sample.json > 4000 && sample.json < 4500, "{sample:?}");
        assert!(sample.cached > 3000 && sample.cached < 4000, "{sample:?}");
        assert!(sample.metadata < 1000, "{sample:?}");
        assert_eq!(sample.cache(), 10 * sample.cached);
        assert_eq!(Sample::of(&json!({"items": []})), Sample::default());
        assert!(Sample::of(&json!({"metadata": {"continue": "x"}, "items": [{}]})).at_least);
        assert_eq!(Sample::of(&json!("nonsense")), Sample::default());
    }
}
