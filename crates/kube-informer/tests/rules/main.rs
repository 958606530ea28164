//! client-go's numbered rules (docs/client-go.md): that the document is complete and names tests
//! that exist, and tests of the rules that no other test shows.

mod document;
mod errors;
mod factory;
mod informer;
mod parts;
mod queue;
mod reflector;
mod scene;
mod transform;
