//! A `kube::Client` that calls the server directly: without a socket or an HTTP connection, and
//! with time that can be paused.

use std::sync::Arc;

use kube_client::Client;

use crate::access::ADMIN;
use crate::server::ApiServer;

impl ApiServer {
    /// Returns an in-process client for the administrator. Requires a tokio runtime.
    pub fn client(&self) -> Client {
        self.client_as(ADMIN)
    }

    /// Returns an in-process client for a user, such as one of a
    /// [`Denial::user`](crate::Denial::user).
    pub fn client_as(&self, user: impl Into<Arc<str>>) -> Client {
        Client::new(self.service_as(user), "default")
    }
}
