//! Requests out, bytes in, events out: all that is known of HTTP and of what servers send.
//!
//! Nothing here panics on any bytes, and nothing is buffered beyond [`OBJECT_BYTES_MAX`] and one
//! chunk. A bad object becomes a value that says so, not the end of a stream.

// How messages of protobuf are written.
mod protobuf;

// What is asked.
mod endpoint;
mod query;
mod request;
mod target;

// Whether that is answered, and what is said if not.
mod response;
mod status;
mod transport;

// What comes.
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
/// For modules that are given one and only pass it on.
pub(crate) use kube_client::{Api, Client};
pub(crate) use list::ListReader;
pub(crate) use query::{ListQuery, WatchQuery};
pub(crate) use request::{Call, Encoding, Verb, request};
pub(crate) use response::{Answer, accept};
pub(crate) use status::RETRY_AFTER_MAX;
pub(crate) use target::Target;
pub(crate) use transport::{failed, timed_out};
pub(crate) use watch::WatchReader;

/// The largest object that is read. etcd takes no request over 1.5 MiB unless told otherwise, and
/// JSON can be several times as long as what is stored. Beyond this something is wrong, and the
/// process should not run out of memory over it.
pub(crate) const OBJECT_BYTES_MAX: usize = 64 << 20;

/// What a buffer may keep for the next object once a large one has left it.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// Gives back what one large object has left behind.
fn shrink(buffer: &mut Vec<u8>) {
    if buffer.capacity() > BUFFER_BYTES_KEPT && buffer.len() < BUFFER_BYTES_KEPT {
        buffer.shrink_to(BUFFER_BYTES_KEPT);
    }
}
