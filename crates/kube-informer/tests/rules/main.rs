//! client-go's numbered rules (docs/client-go.md): checks that the document is complete and names
//! existing tests, and tests the rules that no other test covers.

mod document;
mod errors;
mod factory;
mod informer;
mod parts;
mod queue;
mod reflector;
mod scene;
mod transform;
