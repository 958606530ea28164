//! A record of requests and of deliveries to watches, which tests use as an oracle.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::limits::{RECORD_BYTES_MAX, RECORD_MAX, RECORD_REFUSED_BYTES_MAX, RECORD_REFUSED_MAX};
use crate::request::Verb;
use crate::store::{EventType, Key};

/// A request that the server received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// The request's number, counted from 1. Deliveries refer to it.
    pub id: u64,
    /// The time since the server started.
    pub at: Duration,
    /// The latest version when the request arrived.
    pub revision: u64,
    /// The user; empty if the request was rejected because it could not be authenticated.
    pub user: String,
    /// The HTTP method.
    pub method: String,
    /// The path and query. Truncated if the request could not be authenticated.
    pub uri: String,
    /// The verb, if the request concerns a resource.
    pub verb: Option<Verb>,
    /// The resource, such as `pods` or `pods/status`; empty if the request concerns none.
    pub resource: String,
    /// The namespace; empty if there is none.
    pub namespace: String,
    /// The object's name; empty if there is none.
    pub name: String,
    /// The HTTP status of the response; `None` if there is none yet, or if the connection failed.
    pub status: Option<u16>,
    /// The names of the faults that affected it.
    pub faults: Vec<String>,
}

/// An event that was sent to a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The [`RequestRecord::id`] of the watch.
    pub watch: u64,
    /// The type of the event.
    pub event_type: EventType,
    /// The object; `None` for bookmarks and errors.
    pub key: Option<Arc<Key>>,
    /// The event's resource version; 0 for errors.
    pub version: u64,
    /// The name of the fault that altered the event. The client may not have been able to read it.
    pub fault: Option<&'static str>,
}

/// The most recent requests and deliveries.
#[derive(Debug, Default)]
pub(crate) struct Record {
    requests: Mutex<Requests>,
    deliveries: Mutex<VecDeque<Delivery>>,
}

/// The most recent requests, limited in number and in bytes.
///
/// Requests that could not be authenticated are kept separately. A client without a token uses
/// little memory, and cannot evict the record of authenticated requests.
#[derive(Debug, Default)]
struct Requests {
    last_id: u64,
    of_users: Bounded,
    refused: Bounded,
}

/// A queue of requests in the order of their ids.
#[derive(Debug, Default)]
struct Bounded {
    queue: VecDeque<RequestRecord>,
    bytes: usize,
}

impl Record {
    /// Records an authenticated request, and returns its id.
    pub(crate) fn request(&self, request: RequestRecord) -> u64 {
        self.requests.lock().push(request)
    }

    /// Records the beginning of a request that could not be authenticated.
    pub(crate) fn refused(&self, request: RequestRecord) -> u64 {
        self.requests.lock().push_refused(request)
    }

    /// Updates a request, if it is still recorded.
    pub(crate) fn amend(&self, id: u64, change: impl FnOnce(&mut RequestRecord)) {
        self.requests.lock().amend(id, change);
    }

    pub(crate) fn delivery(&self, delivery: Delivery) {
        let mut deliveries = self.deliveries.lock();
        if deliveries.len() == RECORD_MAX {
            deliveries.pop_front();
        }
        deliveries.push_back(delivery);
    }

    pub(crate) fn requests(&self) -> Vec<RequestRecord> {
        let requests = self.requests.lock();
        let mut all: Vec<_> = requests.of_users.queue.iter().cloned().collect();
        all.extend(requests.refused.queue.iter().cloned());
        // Both halves are sorted, so the sort merges them.
        all.sort_by_key(|request| request.id);
        all
    }

    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        self.deliveries.lock().iter().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        let mut requests = self.requests.lock();
        requests.of_users = Bounded::default();
        requests.refused = Bounded::default();
        self.deliveries.lock().clear();
    }
}

impl Requests {
    fn push(&mut self, mut request: RequestRecord) -> u64 {
        self.last_id += 1;
        request.id = self.last_id;
        self.of_users.push(request, RECORD_MAX);
        self.last_id
    }

    fn push_refused(&mut self, request: RequestRecord) -> u64 {
        self.last_id += 1;
        let request = RequestRecord {
            id: self.last_id,
            method: beginning(&request.method),
            uri: beginning(&request.uri),
            // These repeat parts of the URI.
            resource: beginning(&request.resource),
            namespace: beginning(&request.namespace),
            name: beginning(&request.name),
            ..request
        };
        self.refused.push(request, RECORD_REFUSED_MAX);
        self.last_id
    }

    fn amend(&mut self, id: u64, change: impl FnOnce(&mut RequestRecord)) {
        for queue in [&mut self.of_users, &mut self.refused] {
            if let Some(request) = queue.get_mut(id) {
                return change(request);
            }
        }
    }
}

impl Bounded {
    fn push(&mut self, request: RequestRecord, max: usize) {
        self.bytes += request.bytes();
        self.queue.push_back(request);
        while self.queue.len() > max || self.bytes > RECORD_BYTES_MAX {
            let Some(oldest) = self.queue.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
    }

    fn get_mut(&mut self, id: u64) -> Option<&mut RequestRecord> {
        let at = self.queue.partition_point(|request| request.id < id);
        self.queue.get_mut(at).filter(|request| request.id == id)
    }
}

impl RequestRecord {
    /// Returns the memory that the request uses. `status` and `faults` change later and do not
    /// count: the names of faults are few and short.
    fn bytes(&self) -> usize {
        let texts =
            [&self.user, &self.method, &self.uri, &self.resource, &self.namespace, &self.name];
        size_of::<Self>() + texts.iter().map(|text| text.len()).sum::<usize>()
    }
}

/// Returns the beginning of a text, in a new allocation.
fn beginning(text: &str) -> String {
    let max = RECORD_REFUSED_BYTES_MAX.min(text.len());
    let end = (0..=max).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str) -> RequestRecord {
        RequestRecord {
            id: 0,
            at: Duration::ZERO,
            revision: 1,
            user: String::new(),
            method: "GET".to_owned(),
            uri: uri.to_owned(),
            verb: None,
            resource: String::new(),
            namespace: String::new(),
            name: uri.to_owned(),
            status: None,
            faults: Vec::new(),
        }
    }

    fn bytes_kept(record: &Record) -> usize {
        record.requests().iter().map(RequestRecord::bytes).sum()
    }

    #[test]
    fn memory_of_requests_is_bounded_in_bytes() {
        let record = Record::default();
        let uri = "x".repeat(256 * 1024);
        let sent = 2 * RECORD_BYTES_MAX / uri.len();
        for _ in 0..sent {
            record.request(request(&uri));
        }
        let kept = record.requests();
        assert!(bytes_kept(&record) <= RECORD_BYTES_MAX);
        assert!(kept.len() > sent / 8, "no more is forgotten than must be: {}", kept.len());
        assert_eq!(kept.last().unwrap().id, sent as u64);
    }

    #[test]
    fn refused_requests_take_little_and_push_nothing_out() {
        let record = Record::default();
        let known = record.request(request("/api"));
        let uri = "\u{e9}".repeat(30_000);
        for _ in 0..3 * RECORD_REFUSED_MAX {
            record.refused(request(&uri));
        }
        let kept = record.requests();
        assert_eq!((kept[0].id, kept.len()), (known, 1 + RECORD_REFUSED_MAX));
        assert!(kept.is_sorted_by(|a, b| a.id < b.id));
        assert!(bytes_kept(&record) < 2 * 1024 * 1024, "{} bytes", bytes_kept(&record));
        let last = kept.last().unwrap();
        assert!(uri.starts_with(&last.uri) && last.uri.len() >= RECORD_REFUSED_BYTES_MAX - 1);
        record.amend(last.id, |request| request.status = Some(401));
        assert_eq!(record.requests().last().unwrap().status, Some(401));
    }
}
