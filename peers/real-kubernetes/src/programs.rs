//! Where the programs are, and what is said where there are none.

use std::env;
use std::io::{Write as _, stderr};
use std::path::PathBuf;
use std::sync::Once;

/// The directory of kube-apiserver, etcd and the others; `cargo xtask real-kubernetes test` sets it.
const VARIABLE: &str = "REAL_KUBERNETES";

/// The directory with the programs. Without one, says in one line of a test's run that it did not run.
///
/// They are not looked for anywhere else, so that a plain `cargo test` takes no longer where they are built.
pub fn programs() -> Option<PathBuf> {
    static SAID: Once = Once::new();
    let found = env::var_os(VARIABLE).map(PathBuf::from);
    if found.is_none() {
        SAID.call_once(|| {
            // Not `eprintln!`, which is shown for tests that fail only. There is nobody to tell if it fails.
            let _ = writeln!(
                stderr(),
                "tests on the real Kubernetes were NOT run; `cargo xtask real-kubernetes test` runs them (wants Go)"
            );
        });
    }
    found
}

/// The real kubectl, if there are programs.
pub fn kubectl() -> Option<PathBuf> {
    programs().map(|directory| directory.join("kubectl"))
}
