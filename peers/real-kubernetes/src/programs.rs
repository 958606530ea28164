//! The location of the programs, and a message if there are none.

use std::env;
use std::io::{Write as _, stderr};
use std::path::PathBuf;
use std::sync::Once;

/// The variable with the directory of kube-apiserver, etcd and the others; `cargo xtask real-kubernetes test` sets
/// it.
const VARIABLE: &str = "REAL_KUBERNETES";

/// Returns the directory with the programs. If there is none, prints one line saying that the test did not run.
///
/// No other place is searched, so that a plain `cargo test` takes no longer after they have been built.
pub fn programs() -> Option<PathBuf> {
    static SAID: Once = Once::new();
    let found = env::var_os(VARIABLE).map(PathBuf::from);
    if found.is_none() {
        SAID.call_once(|| {
            // Not `eprintln!`, whose output is shown only for failed tests. An error here has nowhere to go.
            let _ = writeln!(
                stderr(),
                "tests on the real Kubernetes were NOT run; `cargo xtask real-kubernetes test` runs them (wants Go)"
            );
        });
    }
    found
}

/// Returns the path of the real kubectl, if the programs are available.
pub fn kubectl() -> Option<PathBuf> {
    programs().map(|directory| directory.join("kubectl"))
}
