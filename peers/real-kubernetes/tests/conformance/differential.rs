//! Sends the same requests to both servers, and compares the responses.

mod compare;
mod known;
mod normal;
mod requests;
mod run;
mod script;
