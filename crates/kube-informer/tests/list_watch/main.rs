//! Lists and watches of an API server through kube's client: requests, responses and errors.

mod broken;
mod encodings;
mod lists;
mod refusals;
mod sockets;
mod support;
mod watches;
