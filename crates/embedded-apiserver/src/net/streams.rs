//! The tasks that HTTP/2 spawns for the requests on a connection.

use std::pin::pin;

use hyper::rt::Executor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::Connection;

/// An executor of tasks that end with their connection, and make no progress once it is frozen.
#[derive(Clone)]
pub(super) struct Streams {
    pub(super) tasks: TaskTracker,
    pub(super) connection: Connection,
    /// Cancelled when the connection is gone.
    pub(super) gone: CancellationToken,
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let Self { tasks, connection, gone } = self.clone();
        tasks.spawn(async move {
            let mut stream = pin!(stream);
            tokio::select! {
                biased;
                () = gone.cancelled() => {}
                () = connection.until_frozen() => gone.cancelled().await,
                () = &mut stream => {}
            }
        });
    }
}
