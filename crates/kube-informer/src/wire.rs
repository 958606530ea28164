//! HTTP requests and the decoding of responses: everything that depends on what servers send.
//!
//! Nothing here panics on any input, and no more than [`OBJECT_BYTES_MAX`] and one chunk is buffered. A bad
//! object becomes a value that says so; it does not end the stream.

// The encoding of protobuf messages.
mod protobuf;

// Requests.
mod endpoint;
mod query;
mod request;
mod target;

// Whether a request succeeded, and the error if not.
mod response;
mod status;
mod transport;

// The content of responses.
mod expected;
mod item;
mod items;
mod list;
mod payload;
mod watch;

pub(crate) use endpoint::{Endpoint, Patch};
pub use item::{ListItem, WatchItem};
pub(crate) use items::Items;
use items::Reader;
/// Re-exported for modules that only pass them on.
pub(crate) use kube_client::{Api, Client};
pub(crate) use list::ListReader;
pub(crate) use query::{ListQuery, WatchQuery};
pub(crate) use request::{Call, Encoding, Verb, request};
pub(crate) use response::{Answer, accept};
pub(crate) use status::RETRY_AFTER_MAX;
pub(crate) use target::Target;
pub(crate) use transport::{failed, timed_out};
pub(crate) use watch::WatchReader;

/// The size of the largest object that is read. etcd accepts no request over 1.5 MiB by default, and JSON can
/// be several times as long as the stored form. A larger object is a sign of a fault, which should not
/// exhaust the memory of the process.
pub(crate) const OBJECT_BYTES_MAX: usize = 64 << 20;

/// The capacity that a buffer may keep for the next object after a large one.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// Releases the memory that a large object has left behind.
fn shrink(buffer: &mut Vec<u8>) {
    if buffer.capacity() > BUFFER_BYTES_KEPT && buffer.len() < BUFFER_BYTES_KEPT {
        buffer.shrink_to(BUFFER_BYTES_KEPT);
    }
}
