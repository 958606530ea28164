//! The HTTP interface by raw requests: what is promised to every client, whatever it is written in.

mod deletion;
mod harness;
mod namespaces;
mod objects;
mod paths;
mod status;
mod writes;
