//! Any bytes as the JSON of an object: the scanner takes nothing that is not JSON, and what it takes is read as
//! `serde_json` reads it.

#![no_main]

use kube_informer::Object;
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use serde_json::Value;

const PATHS: [&str; 4] = ["spec.nodeName", "metadata.name", "spec.containers[0].image", "status"];

fuzz_target!(|data: &[u8]| {
    let Ok(object) = <Object>::from_json(data) else { return };
    assert!(serde_json::from_slice::<IgnoredAny>(data).is_ok(), "this is not JSON");
    kube_informer_fuzz::describe(&object);
    // Keys that repeat, strings that are not UTF-8, and numbers and nesting beyond limits are `serde_json`'s to refuse.
    let Ok(theirs) = serde_json::from_slice::<Unique>(data) else { return };
    let theirs = theirs.0;
    assert_eq!(theirs["metadata"]["name"], object.name());
    for path in PATHS {
        let pointer = format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
        let expected = theirs.pointer(&pointer).filter(|value| !value.is_null());
        let found = object.field::<Value>(path).expect("what was read whole is read in part");
        assert_eq!(found.filter(|value| !value.is_null()).as_ref(), expected, "{path}");
    }
});

/// A value without keys that repeat.
struct Unique(Value);

impl<'de> serde::Deserialize<'de> for Unique {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Unique;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("JSON without keys that repeat")
            }
            fn visit_bool<E>(self, value: bool) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }
            fn visit_str<E>(self, value: &str) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }
            fn visit_unit<E>(self) -> Result<Unique, E> {
                Ok(Unique(Value::Null))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> Result<Unique, A::Error> {
                let mut all = Vec::new();
                while let Some(Unique(item)) = items.next_element()? {
                    all.push(item);
                }
                Ok(Unique(all.into()))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut members: A,
            ) -> Result<Unique, A::Error> {
                let mut all = serde_json::Map::new();
                while let Some((key, Unique(value))) = members.next_entry::<String, Unique>()? {
                    if all.insert(key, value).is_some() {
                        return Err(serde::de::Error::custom("a key repeats"));
                    }
                }
                Ok(Unique(all.into()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
