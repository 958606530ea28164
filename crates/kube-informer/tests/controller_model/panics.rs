//! Panics that nothing but the model's reconciler may cause.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

/// The message of a panic that is part of the test.
pub(crate) const ON_PURPOSE: &str = "the model's reconciler panics on purpose";

thread_local! {
    /// A run has a thread of its own, with all of its tasks.
    static OTHERS: Cell<usize> = const { Cell::new(0) };
}

/// Counts the panics that are not on purpose, and leaves those that are out of the output.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref() == Some(&ON_PURPOSE) {
                return;
            }
            OTHERS.set(OTHERS.get() + 1);
            report(info);
        }));
    });
    OTHERS.set(0);
}

/// Returns how many panics were not on purpose.
pub(crate) fn others() -> usize {
    OTHERS.get()
}
