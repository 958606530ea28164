//! Lists and watches of an API server, through kube's client: what is asked, what comes back, and
//! what is said when it does not.

mod broken;
mod encodings;
mod lists;
mod refusals;
mod sockets;
mod support;
mod watches;
