use std::fmt;
use std::sync::Arc;

use super::*;
use crate::wire::{Target, Verb};

fn call() -> Call {
    let target = Target::from_path("/api/v1/pods", None).unwrap();
    Call { verb: Verb::List, target: Arc::new(target) }
}

/// A layer with a message that hides the next one.
#[derive(Debug)]
struct Layer(&'static str, Option<Box<dyn StdError + Send + Sync>>);
impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
impl StdError for Layer {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.1.as_deref().map(|source| source as _)
    }
}

fn made(error: impl StdError + Send + Sync + 'static) -> Error {
    failed(kube_client::Error::Service(Box::new(error)), &call())
}

#[test]
fn refused_is_found_at_any_depth() {
    let kind = io::ErrorKind::ConnectionRefused;
    for error in [
        made(io::Error::from(kind)),
        made(Layer("client error", Some(Box::new(io::Error::from(kind))))),
        made(Layer("a", Some(Box::new(Layer("b", Some(Box::new(io::Error::from(kind)))))))),
    ] {
        assert!(error.is_connection_refused(), "{error}");
        assert!(error.to_string().contains("cannot list pods cluster-wide: nobody listens"));
    }
}

#[test]
fn the_kind_of_the_error_decides() {
    let cause = |kind: io::ErrorKind| made(io::Error::from(kind)).cause().clone();
    assert!(matches!(cause(io::ErrorKind::TimedOut), Cause::Timeout));
    for kind in [
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::UnexpectedEof,
        io::ErrorKind::BrokenPipe,
        io::ErrorKind::Other,
    ] {
        assert!(matches!(cause(kind), Cause::Broken), "{kind}");
    }
    assert!(matches!(made(Layer("strange", None)).cause(), Cause::Broken));
}

#[test]
fn what_the_layers_say_is_said_once() {
    let inner = io::Error::new(io::ErrorKind::InvalidData, "invalid peer certificate");
    let error = made(Layer("client error (Connect)", Some(Box::new(inner))));
    assert_eq!(
        error.to_string(),
        "cannot list pods cluster-wide: cannot connect (invalid peer certificate)"
    );
    let error = made(Layer("the same", Some(Box::new(Layer("the same", None)))));
    assert!(error.to_string().ends_with("(the same)"), "{error}");
    // The message of rustls for a server that was killed.
    let error = made(Layer("peer closed the connection: https://docs.rs/rustls/manual", None));
    assert!(error.to_string().ends_with("(peer closed the connection)"), "{error}");
}

#[test]
fn i20_what_credentials_plugins_say_is_not_repeated() {
    let error = kube_client::Error::Auth(AuthError::ExecPluginFailed);
    assert!(failed(error, &call()).to_string().contains("no credentials could be had"));
    let hidden = Layer(
        "x",
        Some(Box::new(AuthError::InvalidBasicAuth(
            http::HeaderValue::from_bytes(b"\n").unwrap_err(),
        ))),
    );
    assert!(made(hidden).to_string().contains("no credentials could be had"));
    let error = made(Layer("sent Authorization: Bearer xyzzy", None));
    assert!(!error.to_string().contains("xyzzy"), "{error}");
}

#[test]
fn waiting_in_vain_is_a_timeout() {
    let error = timed_out(&call(), Duration::from_secs(30), false);
    assert!(matches!(error.cause(), Cause::Timeout));
    assert!(error.to_string().starts_with("cannot list pods cluster-wide: no answer within 30 s"));
    let error = timed_out(&call(), Duration::from_secs(75), true);
    assert!(error.to_string().ends_with("nothing came for 75 s"), "{error}");
}

#[test]
fn the_clients_error_is_the_source() {
    let kind = io::ErrorKind::ConnectionRefused;
    let error = made(Layer("client error", Some(Box::new(io::Error::from(kind)))));
    let source = error.source().unwrap();
    assert!(source.is::<kube_client::Error>());
    assert_eq!(find::<io::Error>(source).map(io::Error::kind), Some(kind));
}

#[test]
fn i20_what_may_quote_a_token_or_a_body_is_no_source() {
    let unreadable = || serde_json::from_str::<u8>("\"xyzzy\"").unwrap_err();
    let utf8 = String::from_utf8(b"xyzzy\xff".to_vec()).unwrap_err();
    for error in [
        kube_client::Error::Auth(AuthError::ExecPluginFailed),
        kube_client::Error::Service(Box::new(AuthError::ExecPluginFailed)),
        kube_client::Error::Service(Box::new(Layer("a", Some(Box::new(unreadable()))))),
        kube_client::Error::Service(Box::new(Layer("Authorization: Bearer xyzzy", None))),
        kube_client::Error::SerdeError(unreadable()),
        kube_client::Error::FromUtf8(utf8),
    ] {
        let error = failed(error, &call());
        assert!(error.source().is_none(), "{:?}", error.source());
    }
}
