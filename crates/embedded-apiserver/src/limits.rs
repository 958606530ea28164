//! Limits on everything that a client can make grow. Each is a constant with its rationale. Those
//! that tests need small are also options of [`Builder`](crate::Builder).

use std::time::Duration;

/// The longest name of a field manager, as in Kubernetes.
pub const FIELD_MANAGER_BYTES_MAX: usize = 128;

/// Authors of creations that are remembered, so that their objects share them. Others cost an allocation per object.
pub(crate) const CREATORS_MAX: usize = 32;

/// The largest request body: kube-apiserver's limit, twice etcd's limit on a value.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// The largest stored object: etcd's default limit on a request.
pub const OBJECT_BYTES_MAX: usize = 1536 * 1024;

/// The longest path and query. It fits a label selector with a few hundred names. Go's server
/// limits only the headers as a whole.
pub const URI_BYTES_MAX: usize = 64 * 1024;

/// The longest label or field selector: a few thousand terms, matched against every object.
pub const SELECTOR_BYTES_MAX: usize = 32 * 1024;

/// The longest continue token: a namespace and a name, quoted and in base64.
pub const CONTINUE_BYTES_MAX: usize = 4 * 1024;

/// The largest `Accept` header. Browsers and kubectl send a few hundred bytes.
pub const ACCEPT_BYTES_MAX: usize = 4 * 1024;

/// All headers of an HTTP/1 request. Go's default is 1 MiB; no known client needs 64 KiB.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;

/// The number of field errors in a response: more than anyone reads, and few enough that the
/// response to a body of invalid labels is not a hundred times its size.
pub const FIELD_ERRORS_MAX: usize = 100;

/// The bytes of a value, and of the text about it, that a field error repeats.
pub const FIELD_TEXT_BYTES_MAX: usize = 2 * 1024;

/// The total number of list items that a JSON patch may shift. Each insertion at the front of a
/// long list moves all of its items.
pub const JSON_PATCH_SHIFTED_MAX: usize = 10_000_000;

/// The maximum nesting of JSON in a request: the recursion limit of `serde_json`, which keeps a
/// body of brackets from exhausting the stack. Kubernetes' own objects stay below 40.
pub const JSON_DEPTH_MAX: usize = 128;

/// The maximum nesting of a stored object. Clients with the limit above can then read it inside a
/// list, an event or the row of a table.
pub const OBJECT_DEPTH_MAX: usize = JSON_DEPTH_MAX - 8;

/// The total bytes that a JSON patch may copy and move: kube-apiserver's limit. Copies of copies
/// double in size each time.
pub const JSON_PATCH_COPY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// The number of operations in a JSON patch: kube-apiserver's limit.
pub const JSON_PATCH_OPERATIONS_MAX: usize = 10_000;

/// The owners of an object that garbage collection follows. An object with more is never collected:
/// each of its owners would cost a look at all the others.
pub const OWNERS_MAX: usize = 256;

/// The objects that garbage collection looks at in one step, between which other tasks run.
pub const COLLECTED_AT_ONCE_MAX: usize = 64;

/// The number of objects on a page of a list, however large the `limit`: a page is collected under
/// a lock.
pub const PAGE_ITEMS_MAX: usize = 1_000_000;

/// The number of open watches. Each takes about 2 KB; a large cluster has about ten thousand.
pub const WATCHES_MAX: usize = 10_000;

/// The number of open connections: one for each watch of an HTTP/1 client, with some to spare.
pub const CONNECTIONS_MAX: usize = 12_000;

/// The number of concurrent requests on an HTTP/2 connection: kube-apiserver's limit. Clients queue
/// further requests.
pub const STREAMS_MAX: u32 = 1_000;

/// The bytes of an HTTP/2 response that are buffered for its reader. A few events fit; a thousand
/// watches that are not read hold 64 MB.
pub const STREAM_BYTES_MAX: usize = 64 * 1024;

/// How long a connection may be without a request: the time after which kube-apiserver closes idle
/// connections. It also limits clients that send a header byte by byte.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(90);

/// The largest message of a WebSocket client, which has nothing to send but pings and a close.
pub const WEBSOCKET_RECEIVED_BYTES_MAX: usize = 4 * 1024;

/// The time that requests get to finish when a listener shuts down.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// The number of events that may be written between two reads of a watcher before it is
/// disconnected. A lagging watcher costs no memory, because it is only a position in the history.
/// The limit exists for fidelity: a client that does not read is disconnected, as by a real server.
pub const WATCH_LAG_MAX: usize = 100_000;

/// The bytes of superseded states that are retained for watches and paged lists, whatever the
/// window.
pub const HISTORY_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// How long superseded states are retained: the interval at which kube-apiserver compacts etcd.
pub const HISTORY_WINDOW: Duration = Duration::from_secs(5 * 60);

/// The time between bookmarks of a quiet watch: about the same as kube-apiserver's.
pub const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// The duration of a watch without `timeoutSeconds`. kube-apiserver ends such watches after 30 to
/// 60 minutes.
pub const WATCH_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How long a list waits for a version that does not exist yet. kube-apiserver's watch cache
/// responds with a 504 after three seconds.
pub const FRESH_WAIT: Duration = Duration::from_secs(3);

/// The size from which responses are compressed for clients that accept it: kube-apiserver's
/// threshold, below which compression costs more than it saves.
pub const GZIP_BYTES_MIN: usize = 128 * 1024;

/// The number of requests, and of deliveries to watches, that are recorded. The oldest are dropped.
pub const RECORD_MAX: usize = 100_000;

/// The bytes of requests that are recorded: a hundred thousand requests of the usual length, or a
/// thousand of the longest.
pub const RECORD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The number of unauthenticated requests that are recorded: enough to see what a misconfigured
/// client attempts. Anyone who can reach the socket can send them.
pub const RECORD_REFUSED_MAX: usize = 1_000;

/// The bytes of the URI, and of each other text, that are recorded of such a request.
pub const RECORD_REFUSED_BYTES_MAX: usize = 256;

/// The number of lines of a log that are sent at once: those of some three hours.
pub const LOG_LINES_MAX: u64 = 10_000;

/// The number of events about simulated pods, enough for some 200 pods. A real server keeps events
/// for an hour.
pub const POD_EVENTS_MAX: usize = 1_000;

/// The number of versions that a kubeconfig reserves for the writes of one run, so that the next
/// run does not reuse any even if this one is killed: forty days at 20,000 writes per second. For
/// 100,000 runs, versions stay below 2^53, from which clients that parse them as floating-point
/// numbers fail.
pub const VERSIONS_RESERVED: u64 = 1 << 36;

/// The number of fault rules that are written as text: more than anyone types.
pub const FAULT_RULES_MAX: usize = 1_000;

/// The largest annotation of an oversized object that can be requested in text: as much as a
/// machine can spare, and far more than any client should accept.
pub const FAULT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The deepest nesting that can be requested in text.
pub const FAULT_LEVELS_MAX: usize = 1_000_000;

/// The number of named snapshots. Each holds all objects of its time.
pub const SNAPSHOTS_MAX: usize = 16;

/// The attempts at a read-modify-write without a resourceVersion before it fails with a 409.
pub const WRITE_RETRIES_MAX: usize = 32;
