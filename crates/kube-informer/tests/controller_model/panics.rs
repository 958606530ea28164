//! Only the model's reconciler may panic.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

/// The message of an intentional panic.
pub(crate) const ON_PURPOSE: &str = "the model's reconciler panics on purpose";

thread_local! {
    /// Each run has its own thread, with all of its tasks.
    static OTHERS: Cell<usize> = const { Cell::new(0) };
}

/// Counts unintentional panics, and suppresses the output of intentional ones.
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

/// Returns the number of unintentional panics.
pub(crate) fn others() -> usize {
    OTHERS.get()
}
