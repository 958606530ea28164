//! A live debug page for [`kube_informer`]: what each informer does, in a browser.
//!
//! The page draws the way of an event, from the API server through reflector, queue and store to the handlers and work
//! queues, and shows what is wrong, in words, with the time until the next attempt. It consists of one document without
//! external parts, fed by server-sent events.
//!
//! A [`DebugPage`] is a `tower` service, which axum mounts as it is:
//!
//! ```
//! use axum::Router;
//! # use embedded_apiserver::ApiServer;
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_informer::SharedInformerFactory;
//! use kube_informer_debug::DebugPage;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! # let client = ApiServer::start().client();
//! let factory = SharedInformerFactory::new(client);
//! let pods = factory.informer::<Pod>();
//! factory.start();
//!
//! let page = DebugPage::new(&factory);
//! println!("http://127.0.0.1:8080/debug{}", page.path_and_token());
//! let app: Router = Router::new().nest_service("/debug", page);
//! # }
//! ```
//!
//! Programs without a web server use `DebugPage::listen`, behind the feature `listen`.
//!
//! # Access
//!
//! By default the page answers only requests that are addressed to `localhost` or a loopback address, that no page of
//! another site has made, and whose URL contains a random token. The content of objects is hidden, unless the program
//! [shows](Builder::show_objects) it, and values of Secrets are hidden even then. Everything is shown as text: the document's
//! policy forbids browsers to parse it as HTML.
//!
//! # Cost
//!
//! While no page is open, nothing: no handler is registered and no task runs, unless the program keeps a
//! [history](Builder::history). While one is open, each informer has one more handler, and everything is read four times a
//! second. A browser that reads slowly skips messages, and is disconnected after ten seconds. Informers never wait for it.

mod words;

mod admission;
mod changes;
mod document;

mod log;
mod readings;

mod timeline;

mod pulse;

mod body;
mod objects;

mod page;

#[cfg(feature = "listen")]
mod listen;

pub use body::Body;
#[cfg(feature = "listen")]
pub use listen::Listening;
pub use page::{Builder, DebugPage};
