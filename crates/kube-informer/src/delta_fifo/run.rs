//! The processing loop of a program that is built from the parts.

use std::future::{Future, pending};
use std::pin::pin;

use tokio::task::coop::consume_budget;

use crate::{DeltaFifo, Deltas, Reflector};

impl Reflector<DeltaFifo> {
    /// Fills the queue and calls `process` with everything that is popped from it, until `stop` completes. The
    /// counterpart of client-go's low-level controller, `cache.New(config).Run(stop)`.
    ///
    /// `process` usually calls [`Indexer::process`](crate::Indexer::process). A queue in strict order delivers
    /// changes in batches, as [`pop_batch`](DeltaFifo::pop_batch) does.
    ///
    /// Once `stop` completes, `process` is not called again: the queue is closed, and changes that are still
    /// queued are dropped. Closing the queue also ends this, once the queue is empty. Everything runs in the
    /// calling task: the reflector queues nothing while `process` runs, and a panic in `process` reaches the
    /// caller.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube_informer::{DeltaFifo, Event, Indexer, KubeListWatch, Reflector};
    /// # use tokio_util::sync::CancellationToken;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// # let client = embedded_apiserver::ApiServer::start().client();
    /// # let stop = CancellationToken::new();
    ///
    /// let mut pods = Indexer::<Pod>::new();
    /// let queue = DeltaFifo::in_order(pods.lister().cast());
    /// Reflector::new(KubeListWatch::of::<Pod>(client), queue)
    ///     .on_error(|report| eprintln!("{report}"))
    ///     .process_until(stop.cancelled(), |deltas| {
    ///         for event in pods.process(deltas) {
    ///             println!("{event:?}");
    /// #           assert!(matches!(event, Event::Synced));
    /// #           stop.cancel();
    ///         }
    ///     })
    ///     .await;
    /// # }
    /// ```
    pub async fn process_until(self, stop: impl Future, mut process: impl FnMut(Deltas)) {
        let queue = self.store().clone();
        let mut stop = pin!(stop);
        let mut reflecting = pin!(self.run_until(pending::<()>()));
        loop {
            tokio::select! {
                biased;
                _ = &mut stop => break,
                _ = &mut reflecting => break,
                deltas = queue.pop_batch() => match deltas {
                    Some(deltas) => process(deltas),
                    None => break,
                },
            }
            consume_budget().await;
        }
        queue.close();
    }
}
