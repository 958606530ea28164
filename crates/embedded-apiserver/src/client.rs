//! A `kube::Client` that calls the server directly: no socket, no serialised connection, and time
//! that can be paused.

use std::sync::Arc;

use kube_client::Client;

use crate::access::ADMIN;
use crate::server::ApiServer;

impl ApiServer {
    /// A client in this process, as the administrator. Needs a tokio runtime.
    pub fn client(&self) -> Client {
        self.client_as(ADMIN)
    }

    /// A client in this process, as some user: for [`Denial::user`](crate::Denial::user).
    pub fn client_as(&self, user: impl Into<Arc<str>>) -> Client {
        Client::new(self.service_as(user), "default")
    }
}
