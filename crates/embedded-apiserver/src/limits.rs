//! A limit on everything that a client can make grow. Each is a constant with its reason; the ones
//! that a test wants small are also options of [`Builder`](crate::Builder).

use std::time::Duration;

/// The name of a field manager, as in Kubernetes.
pub const FIELD_MANAGER_BYTES_MAX: usize = 128;

/// The largest request body: what kube-apiserver accepts, twice etcd's limit on a value.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// The largest object that is stored: etcd's default limit on a request.
pub const OBJECT_BYTES_MAX: usize = 1536 * 1024;

/// The longest path and query. A label selector with some hundred names fits; the longest that
/// Go's server would read is its whole header limit.
pub const URI_BYTES_MAX: usize = 64 * 1024;

/// The longest label or field selector: some thousand terms, matched against every object.
pub const SELECTOR_BYTES_MAX: usize = 32 * 1024;

/// The longest continue token: a namespace and a name, quoted and in base64.
pub const CONTINUE_BYTES_MAX: usize = 4 * 1024;

/// The largest `Accept` header: browsers send some hundred bytes, kubectl too.
pub const ACCEPT_BYTES_MAX: usize = 4 * 1024;

/// All headers of one HTTP/1 request: Go's default is 1 MiB; no client that we know needs 64 KiB.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;

/// Errors about fields that one answer lists: more than anybody reads, and few enough that a body of
/// bad labels is not answered with a hundred times its size.
pub const FIELD_ERRORS_MAX: usize = 100;

/// Bytes of a value, and of the words about it, that such an error repeats.
pub const FIELD_TEXT_BYTES_MAX: usize = 2 * 1024;

/// Items of lists that the operations of one JSON patch may shift, all in all: each insertion at the
/// front of a long list moves everything in it.
pub const JSON_PATCH_SHIFTED_MAX: usize = 10_000_000;

/// How deep JSON in a request may nest: the recursion limit of `serde_json`, which keeps a body of
/// brackets from using up the stack. Kubernetes' own objects stay under 40.
pub const JSON_DEPTH_MAX: usize = 128;

/// How deep an object that is stored may nest. Clients whose limit is the one above can then read it
/// within a list, an event, or the row of a table.
pub const OBJECT_DEPTH_MAX: usize = JSON_DEPTH_MAX - 8;

/// Bytes that a JSON patch may copy and move, all in all: kube-apiserver's limit. A copy of a copy is
/// twice the size each time.
pub const JSON_PATCH_COPY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Operations in one JSON patch: kube-apiserver's limit.
pub const JSON_PATCH_OPERATIONS_MAX: usize = 10_000;

/// Objects on one page of a list, however large the `limit`: the page is collected under a lock.
pub const PAGE_ITEMS_MAX: usize = 1_000_000;

/// Watches open at once. Each costs about 2 KB; ten thousand is what a large cluster has.
pub const WATCHES_MAX: usize = 10_000;

/// Connections open at once, one for each watch of an HTTP/1 client and then some.
pub const CONNECTIONS_MAX: usize = 12_000;

/// Requests at once on one HTTP/2 connection: kube-apiserver's limit. Clients wait with more.
pub const STREAMS_MAX: u32 = 1_000;

/// Bytes of one HTTP/2 response that wait for its reader. Some events fit; a thousand watches that
/// are not read hold 64 MB.
pub const STREAM_BYTES_MAX: usize = 64 * 1024;

/// How long a connection may take to its first request, and an HTTP/1 connection to any next one:
/// the time after which kube-apiserver closes idle connections. It bounds clients that send a header
/// byte by byte as well.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(90);

/// How long requests may take to end when a listener shuts down.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Events that may be written between two reads of a watcher before it is cut off. A watcher costs
/// no memory while it lags (it is a position in the history), so this is about honesty: a client
/// that does not read learns of it as it would from a real server.
pub const WATCH_LAG_MAX: usize = 100_000;

/// Superseded states kept for watches and paged lists, whatever the window says.
pub const HISTORY_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// How long superseded states are kept: etcd's compaction interval under kube-apiserver.
pub const HISTORY_WINDOW: Duration = Duration::from_secs(5 * 60);

/// Time between bookmarks on a quiet watch: about kube-apiserver's.
pub const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// The longest watch when the client does not say: kube-apiserver ends them after 30 to 60 minutes.
pub const WATCH_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How long a list waits for a version that does not exist yet: kube-apiserver's watch cache waits
/// three seconds before it answers 504.
pub const FRESH_WAIT: Duration = Duration::from_secs(3);

/// Responses from this size on are compressed for clients that ask: kube-apiserver's threshold,
/// below which the time costs more than the bytes.
pub const GZIP_BYTES_MIN: usize = 128 * 1024;

/// Requests, and deliveries to watches, that the record keeps; older ones are forgotten.
pub const RECORD_MAX: usize = 100_000;

/// Bytes of requests that the record keeps, whatever their number: a hundred thousand requests of the
/// usual length, and a thousand of the longest.
pub const RECORD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Requests without a known user that the record keeps: enough to see what a misconfigured client
/// tries. Anybody who reaches the socket can send them.
pub const RECORD_REFUSED_MAX: usize = 1_000;

/// The beginning of the URI (and of each other text) that is kept of such a request.
pub const RECORD_REFUSED_BYTES_MAX: usize = 256;

/// Events about pods that run: some 200 pods' worth. A real server keeps them for an hour.
pub const POD_EVENTS_MAX: usize = 1_000;

/// Writes of one run that a kubeconfig sets versions aside for, so that the next run gives none of them
/// again even if this one is killed: forty days at 20,000 writes per second. Versions stay below
/// 2^53, which is where clients that read them as floating-point numbers fail, for 100,000 runs.
pub const VERSIONS_RESERVED: u64 = 1 << 36;

/// Rules of faults that are written as text: more than anybody types.
pub const FAULT_RULES_MAX: usize = 1_000;

/// The largest annotation of an oversized object that can be asked for in text: as much as a machine
/// has to spare, and far more than any client should take.
pub const FAULT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The same for objects that nest.
pub const FAULT_LEVELS_MAX: usize = 1_000_000;

/// Snapshots that are kept by name: each holds all objects of its time.
pub const SNAPSHOTS_MAX: usize = 16;

/// Tries of one read-modify-write without a resourceVersion before it gives up with a 409.
pub const WRITE_RETRIES_MAX: usize = 32;
