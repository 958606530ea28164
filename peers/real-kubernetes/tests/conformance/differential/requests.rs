//! The requests, by topic. A topic is a test; its requests are sent in the order of the file.

mod access;
mod apply;
mod bodies;
mod custom;
mod deletion;
mod discovery;
mod events;
mod kinds;
mod lists;
mod metadata;
mod namespaces;
mod objects;
mod paths;
mod pods;
mod representations;
mod selectors;
mod status;
mod subresources;
mod watches;

/// Most requests are about config maps, which have no validation of their own.
const MAPS: &str = "/api/v1/namespaces/<ns>/configmaps";
