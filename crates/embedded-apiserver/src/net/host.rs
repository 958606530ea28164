//! Protects plain HTTP against requests from web pages.
//!
//! A web page cannot open a socket, but it can make its visitor's browser send requests to loopback
//! addresses. Where no token is required, two checks stop it. A name that resolves to 127.0.0.1
//! (DNS rebinding) is not an accepted host. And a page's own host, which browsers send as `Origin`,
//! differs from the host of the request. TLS needs neither check, because no browser trusts the
//! certificate.

use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderValue, Request, StatusCode, Uri};

use crate::status::Status;

/// The requests that a socket accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostRule {
    /// All requests: the socket has TLS.
    Any,
    /// Requests to any host, except those from a page of another host.
    SameOrigin,
    /// Requests of `SameOrigin` to a loopback host, as `kubectl proxy` accepts them.
    Loopback,
}

impl HostRule {
    /// Returns the rule for a socket on an address.
    pub(super) fn of(has_tls: bool, ip: IpAddr) -> Self {
        match (has_tls, ip.is_loopback()) {
            (true, _) => Self::Any,
            (false, true) => Self::Loopback,
            // The names of a machine that others can reach are not known here.
            (false, false) => Self::SameOrigin,
        }
    }

    /// Rejects a request that a web page of another host may have sent.
    pub(super) fn check<B>(self, request: &Request<B>) -> Result<(), Status> {
        if self == Self::Any {
            return Ok(());
        }
        // HTTP/2 requests and requests to proxies have the host in the URI. A `Host` header must
        // agree.
        let in_header = request.headers().get(HOST).map(host_of_header).transpose()?;
        let in_uri = request.uri().authority().map(|authority| bare(authority.host()));
        let host = match (in_uri, in_header) {
            (Some(uri), Some(header)) if uri != header => {
                return Err(refused("two hosts", &header));
            }
            (Some(host), _) | (None, Some(host)) => host,
            (None, None) => return Err(refused("no host", "")),
        };
        if self == Self::Loopback && !is_loopback(&host) {
            return Err(refused("the host", &host));
        }
        match request.headers().get(ORIGIN).map(host_of_origin) {
            Some(origin) if origin.as_ref() != Some(&host) => {
                Err(refused("the origin", &origin.unwrap_or_default()))
            }
            _ => Ok(()),
        }
    }
}

fn host_of_header(value: &HeaderValue) -> Result<String, Status> {
    let authority = Authority::try_from(value.as_bytes());
    authority.map(|authority| bare(authority.host())).map_err(|_| refused("an unreadable host", ""))
}

/// Returns `None` for the opaque origin `null` and for anything unreadable.
fn host_of_origin(value: &HeaderValue) -> Option<String> {
    let origin = Uri::try_from(value.as_bytes()).ok()?;
    origin.scheme()?;
    origin.host().map(bare)
}

/// Returns a host in lower case, and an IPv6 address without its brackets.
fn bare(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn refused(what: &str, name: &str) -> Status {
    let message = format!(
        "{what} {name:?} is not allowed on plain HTTP: connect to localhost or to a loopback \
         address, and from no web page of another host"
    );
    Status::new(StatusCode::FORBIDDEN, "Forbidden", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [HostRule; 3] = [HostRule::Any, HostRule::SameOrigin, HostRule::Loopback];

    /// Returns whether each of the rules accepts a request.
    fn taken(uri: &str, headers: &[(&str, &str)]) -> [bool; 3] {
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        RULES.map(|rule| rule.check(&request).is_ok())
    }

    #[test]
    fn loopback_hosts_are_taken_by_name_and_by_address() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:6443", "127.1.2.3", "[::1]:1", "[::1]"]
        {
            assert_eq!(taken("/api", &[("host", host)]), [true; 3], "{host}");
            assert_eq!(taken(&format!("http://{host}/api"), &[]), [true; 3], "{host}");
        }
    }

    #[test]
    fn other_hosts_are_refused_on_loopback() {
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "10.0.0.1:80"] {
            assert_eq!(taken("/api", &[("host", host)]), [true, true, false], "{host}");
        }
        for headers in [&[][..], &[("host", "")], &[("host", "a b")]] {
            assert_eq!(taken("/api", headers), [true, false, false], "{headers:?}");
        }
        let both = taken("http://localhost/api", &[("host", "evil.example")]);
        assert_eq!(both, [true, false, false]);
    }

    #[test]
    fn pages_of_other_hosts_are_refused() {
        let from = |origin| taken("/api", &[("host", "localhost:1"), ("origin", origin)]);
        assert_eq!(from("http://localhost:3000"), [true; 3]);
        for origin in ["http://evil.example", "null", "localhost", "", "http://127.0.0.1.nip.io"] {
            assert_eq!(from(origin), [true, false, false], "{origin:?}");
        }
    }
}
