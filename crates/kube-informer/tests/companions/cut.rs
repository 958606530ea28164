//! A process that is killed at any point at which it waits: before a request is processed, before its response
//! arrives, and at any await in the program's code.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tower_service::Service;

/// Passes this many points; at the next one it never continues.
#[derive(Clone)]
pub(crate) struct Life {
    left: Arc<AtomicUsize>,
}

impl Life {
    pub(crate) fn of(points: usize) -> Self {
        Self { left: Arc::new(AtomicUsize::new(points)) }
    }

    pub(crate) fn endless() -> Self {
        Self::of(usize::MAX)
    }

    /// Passes a point, or stays there.
    pub(crate) async fn point(&self) {
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if taken.is_err() {
            pending::<Infallible>().await;
        }
    }

    /// A client for which sending a request and receiving its answer are points.
    pub(crate) fn client(&self, client: Client) -> Client {
        Client::new(Mortal { life: self.clone(), client }, "default")
    }
}

struct Mortal {
    life: Life,
    client: Client,
}

impl Service<Request<Body>> for Mortal {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (life, client) = (self.life.clone(), self.client.clone());
        Box::pin(async move {
            life.point().await;
            let answer = client.send(request).await;
            life.point().await;
            answer
        })
    }
}
