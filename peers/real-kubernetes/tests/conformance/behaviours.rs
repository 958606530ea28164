//! Behaviours that both servers share. Each is one function and two tests: on the embedded server, and on the real
//! one.

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
mod websockets;
mod writes;

/// Defines the tests of behaviours: `embedded::…`, and `real::…`, which run if the real server is available.
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
