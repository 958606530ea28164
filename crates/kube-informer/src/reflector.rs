//! Mirrors what a `ListWatch` says into a store.

mod store;

pub use store::ReflectorStore;
