//! kube-rs, a client that we did not write: all its verbs, discovery, watchers, controllers.

mod api;
mod controller;
mod discovery;
mod document;
mod harness;
mod metadata;
mod reflectors;
mod subresources;
mod waiting;
mod watchers;
