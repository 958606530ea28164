//! The HTTP interface by raw requests: the guarantees for clients in any language.

mod access;
mod custom;
mod deletion;
mod hardening;
mod harness;
mod lists;
mod namespaces;
mod objects;
mod pages;
mod paths;
mod protobuf;
mod real_answers;
mod record;
mod representations;
mod scale;
mod selectors;
mod status;
mod strategic;
mod tables;
mod watch_conformance;
mod watch_ends;
mod watch_starts;
mod watches;
mod writes;
