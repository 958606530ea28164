//! The HTTP interface by raw requests: what is promised to every client, whatever it is written in.

mod harness;
mod paths;
