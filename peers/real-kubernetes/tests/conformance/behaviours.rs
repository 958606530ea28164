//! What both servers do. Each behaviour is one function, and two tests: on the embedded server, and on the real one.

mod access;
mod custom;
mod deletion;
mod discovery;
mod lists;
mod namespaces;
mod patches;
mod representations;
mod selectors;
mod status;
mod watch_starts;
mod watches;
mod writes;

/// The tests of behaviours: `embedded::…`, and `real::…`, which run where the real server is.
macro_rules! on_both {
    ($($behaviour:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test]
            async fn $behaviour() -> anyhow::Result<()> {
                crate::scene::on_embedded(stringify!($behaviour), super::$behaviour).await
            })*
        }
        mod real {
            $(#[tokio::test]
            async fn $behaviour() -> anyhow::Result<()> {
                crate::scene::on_real(stringify!($behaviour), super::$behaviour).await
            })*
        }
    };
}
use on_both;
