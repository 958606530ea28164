//! What was asked and what was delivered to whom: the oracle of tests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::limits::RECORD_MAX;
use crate::request::Verb;
use crate::store::{EventType, Key};

/// One request, in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Numbers requests from 1 on; deliveries name it.
    pub id: u64,
    /// Time since the server's start.
    pub at: Duration,
    /// The newest version when the request came.
    pub revision: u64,
    /// Who asked; empty if nobody that is known.
    pub user: String,
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub uri: String,
    /// The verb, if it is about a resource.
    pub verb: Option<Verb>,
    /// The resource, such as `pods` or `pods/status`; empty if it is about none.
    pub resource: String,
    /// The namespace; empty if it names none.
    pub namespace: String,
    /// The object's name; empty if it names none.
    pub name: String,
    /// The HTTP status of the answer; None if there is none (yet), or the connection failed.
    pub status: Option<u16>,
    /// The faults that struck it, by name.
    pub faults: Vec<String>,
}

/// One event that a watch was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// [`RequestRecord::id`] of the watch.
    pub watch: u64,
    /// What the event said.
    pub event_type: EventType,
    /// Whom it was about; None for bookmarks and errors.
    pub key: Option<Arc<Key>>,
    /// The version in it; 0 for errors.
    pub version: u64,
    /// The fault that made its line another, by name: a client may not have been able to read it.
    pub fault: Option<&'static str>,
}

/// The last requests and deliveries.
#[derive(Debug, Default)]
pub(crate) struct Record {
    ids: AtomicU64,
    requests: Mutex<VecDeque<RequestRecord>>,
    deliveries: Mutex<VecDeque<Delivery>>,
}

impl Record {
    /// Keeps a request, under the id that it is given.
    pub(crate) fn request(&self, mut request: RequestRecord) -> u64 {
        let mut requests = self.requests.lock();
        request.id = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        let id = request.id;
        push_bounded(&mut requests, request);
        id
    }

    /// Completes a request that is still remembered.
    pub(crate) fn amend(&self, id: u64, change: impl FnOnce(&mut RequestRecord)) {
        let mut requests = self.requests.lock();
        let at = requests.partition_point(|request| request.id < id);
        if let Some(request) = requests.get_mut(at).filter(|request| request.id == id) {
            change(request);
        }
    }

    pub(crate) fn delivery(&self, delivery: Delivery) {
        push_bounded(&mut self.deliveries.lock(), delivery);
    }

    pub(crate) fn requests(&self) -> Vec<RequestRecord> {
        self.requests.lock().iter().cloned().collect()
    }

    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        self.deliveries.lock().iter().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.requests.lock().clear();
        self.deliveries.lock().clear();
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() == RECORD_MAX {
        queue.pop_front();
    }
    queue.push_back(item);
}
