//! kube-rs as an independent client: all its verbs, discovery, watchers and controllers.

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
