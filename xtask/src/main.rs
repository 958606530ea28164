//! What developers of this repository run now and then: `cargo xtask …`. One module a task.

fn main() {}
