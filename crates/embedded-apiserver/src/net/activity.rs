//! Tracks whether a connection is in use, by its number of open requests.

use std::future::pending;

use tokio::sync::watch;
use tokio::time::{Duration, sleep};

/// The requests of a connection. Clones share the count.
#[derive(Clone, Default)]
pub(super) struct Activity(watch::Sender<Requests>);

#[derive(Clone, Copy, Default)]
struct Requests {
    open: usize,
    /// The total number of requests, so that one that starts and ends between two checks is
    /// noticed.
    ever: u64,
}

/// A request whose response has not ended. Dropping it ends it.
pub(super) struct OpenRequest(Activity);

impl Activity {
    /// Counts a request.
    pub(super) fn begin(&self) -> OpenRequest {
        self.0.send_modify(|requests| {
            requests.open += 1;
            requests.ever += 1;
        });
        OpenRequest(self.clone())
    }

    /// Waits until the first request is overdue. Never returns once it has arrived.
    pub(super) async fn until_late(&self, patience: Duration) {
        let mut requests = self.0.subscribe();
        tokio::select! {
            biased;
            _ = reached(&mut requests, |requests| requests.ever > 0) => pending().await,
            () = sleep(patience) => {}
        }
    }

    /// Waits until no request has been open for `patience`.
    pub(super) async fn until_idle(&self, patience: Duration) {
        let mut requests = self.0.subscribe();
        loop {
            let seen = reached(&mut requests, |requests| requests.open == 0).await;
            tokio::select! {
                biased;
                _ = reached(&mut requests, |requests| requests.ever > seen.ever) => {}
                () = sleep(patience) => return,
            }
        }
    }
}

/// Waits for a state and returns a copy, because a reference to it would hold a lock.
async fn reached(
    requests: &mut watch::Receiver<Requests>,
    state: impl FnMut(&Requests) -> bool,
) -> Requests {
    match requests.wait_for(state).await.map(|now| *now) {
        Ok(now) => now,
        // The connection, which owns the sender, is gone.
        Err(_) => pending().await,
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.0.send_modify(|requests| requests.open -= 1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(90);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_only_between_requests() {
        let (activity, begin) = (Activity::default(), Instant::now());
        let (first, second) = (activity.begin(), activity.begin());
        let requests = async {
            drop(first);
            sleep(PATIENCE * 3).await;
            drop(second);
            sleep(PATIENCE / 2).await;
            drop(activity.begin());
            pending::<()>().await;
        };
        tokio::select! {
            () = requests => {}
            () = activity.until_idle(PATIENCE) => {}
        }
        assert_eq!(begin.elapsed(), PATIENCE * 3 + PATIENCE / 2 + PATIENCE);
    }
}
