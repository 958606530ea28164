//! From protobuf to an object.

use kube_schema::{Deserializer, Envelope};
use serde::Deserialize;
use serde_json::Value;

use super::pack::unreadable;
use super::{Object, Packer, Types};
use crate::Result;

impl Packer {
    /// Whether objects may come in protobuf. Transforms and decoders read JSON.
    pub(crate) fn takes_protobuf(&self) -> bool {
        !self.changes_objects()
    }

    /// Packs a bare message, without its envelope. Returns the errors that [`pack`](Self::pack) does.
    pub(crate) fn pack_protobuf(&self, message: &[u8], types: &Types) -> Result<Object> {
        let Types { api_version, kind } = types;
        let envelope = Envelope { api_version, kind, raw: message };
        let json = Deserializer::from_envelope(&envelope).and_then(Value::deserialize);
        let json = json.map_err(|error| unreadable(None, &error))?;
        self.pack(json.to_string().as_bytes(), None)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::Transform;
    use crate::object::{Decoder, decode};

    #[test]
    fn protobuf_and_json_make_the_same_object() {
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "a", "namespace": "web", "uid": "u", "resourceVersion": "7",
                "labels": {"app": "shop"}, "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z",
            },
            "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "100m"}}}], "nodeName": "n"},
            "status": {"phase": "Running"},
        });
        let packer = Packer::new(Transform::default(), None, false);
        let bytes = kube_schema::to_vec(&pod).unwrap();
        let types = Types { api_version: "v1".to_owned(), kind: "Pod".to_owned() };
        let message = Envelope::parse(&bytes).unwrap().raw;
        let object = packer.pack_protobuf(message, &types).unwrap();
        assert_eq!(object.to_json().unwrap(), pod.to_string());
        assert_eq!((object.key().as_str(), object.labels().get("app")), ("web/a", Some("shop")));
    }

    #[test]
    fn messages_that_cannot_be_read_are_unreadable_objects() {
        let packer = Packer::plain();
        let types = |kind: &str| Types { api_version: "v1".to_owned(), kind: kind.to_owned() };
        for (message, kind) in
            [(&b"\xff"[..], "Pod"), (b"", "Pod"), (b"\x0a\0", "Pod"), (b"", "Widget")]
        {
            let error = packer.pack_protobuf(message, &types(kind)).unwrap_err();
            assert!(error.is_unreadable(), "{error}");
        }
    }

    #[test]
    fn transforms_and_decoders_take_json() {
        let packer = |transform, decoder| Packer::new(transform, decoder, false);
        assert!(packer(Transform::default(), None).takes_protobuf());
        assert!(!packer(Transform::drop_fields(["status"]), None).takes_protobuf());
        let decoder: Decoder = |json| Ok(Arc::new(decode::<Value>(json)?));
        assert!(!packer(Transform::default(), Some(decoder)).takes_protobuf());
    }
}
