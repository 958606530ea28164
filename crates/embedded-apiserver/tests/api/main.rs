//! The HTTP interface by raw requests: what is promised to every client, whatever it is written in.

mod deletion;
mod harness;
mod lists;
mod namespaces;
mod objects;
mod pages;
mod paths;
mod selectors;
mod status;
mod writes;
