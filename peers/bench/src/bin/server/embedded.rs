//! The embedded server, filled without HTTP.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};
use embedded_apiserver::{ApiServer, Fault, Listening, Status, Verb};
use peers_bench::data;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::{Server, version};

/// Most machines have two cores, and more writers would contend for the store's lock.
const WRITERS: usize = 2;

pub(crate) struct Embedded {
    server: ApiServer,
    _listening: Listening,
}

impl Embedded {
    /// Serves over TLS, as clusters do, and writes a kubeconfig.
    pub(crate) fn start(runtime: &Runtime, kubeconfig: &Path) -> Result<Self> {
        let _inside = runtime.enter();
        let builder = ApiServer::builder().seed(1).keep_managed_fields(true);
        // Events for a client that is not reading are kept in the history.
        let server = builder.history_window(Duration::from_secs(3600)).build();
        let listening = runtime.block_on(server.listen("127.0.0.1:0"))?;
        listening.write_kubeconfig(kubeconfig)?;
        Ok(Self { server, _listening: listening })
    }

    fn make(&self, pod: Value) -> Result<usize> {
        self.server.create(pod.clone()).map_err(|status| refused(&status))?;
        let made = self.server.update_status(pod).map_err(|status| refused(&status))?;
        Ok(made.to_string().len())
    }
}

fn refused(status: &Status) -> anyhow::Error {
    anyhow!("the server refused a pod: {status}")
}

impl Server for Embedded {
    fn prepare(&self) -> Result<()> {
        for namespace in data::namespaces() {
            self.server.create(namespace).map_err(|status| refused(&status))?;
        }
        Ok(())
    }

    fn create(&self, numbers: Range<usize>) -> Result<usize> {
        let (from, to) = (numbers.start, numbers.end);
        let bytes = std::thread::scope(|scope| {
            let writer = |writer: usize| {
                scope.spawn(move || -> Result<usize> {
                    let mut bytes = 0;
                    for number in (from..to).skip(writer).step_by(WRITERS) {
                        bytes = self.make(data::pod(number, 1))?;
                    }
                    Ok(bytes)
                })
            };
            let writers: Vec<_> = (0..WRITERS).map(writer).collect();
            let ended = writers
                .into_iter()
                .map(|writer| writer.join().map_err(|_| anyhow!("a writer panicked")).flatten());
            ended.collect::<Result<Vec<usize>>>()
        })?;
        // No watch needs the history before this point.
        self.server.store().compact(self.server.store().revision());
        Ok(bytes.into_iter().max().unwrap_or(0))
    }

    fn create_sentinel(&self) -> Result<()> {
        self.make(data::sentinel(0)).map(drop)
    }

    fn change_all(&self, pods: &[Value]) -> Result<()> {
        std::thread::scope(|scope| {
            let writer = |writer: usize| {
                scope.spawn(move || -> Result<()> {
                    pods.iter()
                        .skip(writer)
                        .step_by(WRITERS)
                        .try_for_each(|pod| self.change(pod).map(drop))
                })
            };
            let writers: Vec<_> = (0..WRITERS).map(writer).collect();
            writers.into_iter().try_for_each(|writer| {
                writer.join().map_err(|_| anyhow!("a writer panicked")).flatten()
            })
        })
    }

    fn change(&self, pod: &Value) -> Result<u64> {
        let changed = self.server.update_status(pod.clone());
        version(&changed.map_err(|status| refused(&status))?)
    }

    fn expire(&self) -> Result<()> {
        // Earlier events are not needed any more either.
        self.server.store().compact(self.server.store().revision());
        let watches = self.server.faults().on(Verb::Watch).resource("pods");
        watches.after_events(0).inject(Fault::Gone);
        Ok(())
    }
}
