//! Kubernetes' built-in types as static tables, and what can be done by them: reading protobuf into any serde type,
//! and writing JSON as protobuf.
//!
//! Kubernetes' protobuf is not that of a `.proto` file alone: names of fields in JSON, which structs are inlined, and which zero
//! values count are in the tags of Go's structs. The tables have both. They are generated from the published Go
//! modules into `schema.txt`, and are ready when a program starts: nothing is parsed or allocated.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use serde_json::json;
//!
//! let bytes = kube_schema::to_vec(&json!({
//!     "apiVersion": "v1",
//!     "kind": "Pod",
//!     "metadata": {"name": "web"},
//!     "spec": {"containers": [{"name": "nginx", "resources": {"limits": {"cpu": "100m"}}}]},
//! }))?;
//! let pod: Pod = kube_schema::from_slice(&bytes)?;
//! assert_eq!(pod.spec.unwrap().containers[0].name, "nginx");
//! # Ok::<(), kube_schema::Error>(())
//! ```
//!
//! - [`message`] finds the [`Message`] of a kind, [`Message::field`] and [`Message::field_named`] a [`Field`] of it.
//! - [`from_slice`] reads a body, [`Message::decode`] a bare message, [`Deserializer`] is what both use.
//! - [`to_vec`] writes a body, [`Message::encode`] a bare message, byte for byte as Go does.
//! - [`Envelope`] is what is around a body, [`WatchFrame`] what is around an event.
//! - [`Fields`] are those of a message as they are written.
//!
//! A field that is not in the tables, because the server is newer, is skipped. A kind that is not in them is an error
//! ([`Error::is_unknown_kind`]): custom resources have no protobuf.

mod base64;
mod error;
mod time;
mod wire;

mod table;

mod envelope;
mod fields;

mod de;
mod encode;

pub use de::{Deserializer, from_slice};
pub use encode::to_vec;
pub use envelope::{
    ENVELOPE_CLOSING, Envelope, MEDIA_TYPE, WatchFrame, field_len, push_field, push_field_opening,
};
pub use error::Error;
pub use fields::{FieldValue, Fields, RawField};
pub use table::{Field, Form, ListType, Message, PatchStrategy, Shape, Type, kinds, message};
