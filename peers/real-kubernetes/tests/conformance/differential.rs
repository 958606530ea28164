//! The same requests to both servers, and what is different about the answers.

mod compare;
mod known;
mod normal;
mod requests;
mod run;
mod script;
