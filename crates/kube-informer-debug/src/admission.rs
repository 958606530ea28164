//! The requests that are answered.
//!
//! A page of another site cannot open a socket, but it can make its visitor's browser send requests to loopback
//! addresses. Three checks stop it: the host must be a loopback address or a name that the program allows, so that no
//! name of an attacker can point here (DNS rebinding); the origin must be the same; and the URL must contain a token.

use std::net::IpAddr;

use http::header::{HOST, HeaderMap, ORIGIN};
use http::uri::Authority;
use http::{Request, StatusCode};

/// The number of random bytes of a token.
const TOKEN_BYTES: usize = 16;

pub(crate) struct Admission {
    /// `None` if no token is required.
    pub(crate) token: Option<Box<str>>,
    /// Names that are allowed besides those of loopback, in lower case.
    pub(crate) hosts: Vec<String>,
}

/// The reason why a request is not answered.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal(pub(crate) StatusCode, pub(crate) &'static str);

const HOST_REFUSED: Refusal = Refusal(
    StatusCode::FORBIDDEN,
    "This host name is not allowed: use localhost or 127.0.0.1, or allow the name in the program (`Builder::host`).",
);

const ORIGIN_REFUSED: Refusal =
    Refusal(StatusCode::FORBIDDEN, "Requests from pages of other sites are not answered.");

const TOKEN_REFUSED: Refusal = Refusal(
    StatusCode::UNAUTHORIZED,
    "The token is missing or wrong: use the whole URL that the program printed.",
);

impl Admission {
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        let headers = request.headers();
        let authority = authority(request).ok_or(HOST_REFUSED)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let host = host.to_ascii_lowercase();
        if !is_loopback(&host) && !self.hosts.contains(&host) {
            return Err(HOST_REFUSED);
        }
        if !is_same_site(headers, &authority) {
            return Err(ORIGIN_REFUSED);
        }
        match &self.token {
            Some(token) if !has_token(request.uri().query(), token) => Err(TOKEN_REFUSED),
            _ => Ok(()),
        }
    }
}

/// Returns a token that cannot be guessed.
pub(crate) fn random_token() -> Box<str> {
    use std::fmt::Write as _;

    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    let mut token = String::with_capacity(2 * TOKEN_BYTES);
    for byte in bytes {
        let _ = write!(token, "{byte:02x}");
    }
    token.into()
}

/// Returns the host and port of a request. HTTP/2 has them in the URI; if there is a header too, they must agree.
fn authority<B>(request: &Request<B>) -> Option<Authority> {
    let mut headers = request.headers().get_all(HOST).iter();
    let header = headers.next().map(|value| Authority::try_from(value.as_bytes()));
    if headers.next().is_some() {
        return None;
    }
    match (request.uri().authority(), header) {
        (Some(uri), None) => Some(uri.clone()),
        (None, Some(Ok(header))) => Some(header),
        (Some(uri), Some(Ok(header))) if *uri == header => Some(header),
        _ => None,
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Returns whether a browser sent the request for a page of the same site, or for the address bar.
fn is_same_site(headers: &HeaderMap, authority: &Authority) -> bool {
    let origins = headers.get_all(ORIGIN).iter().map(|origin| origin.to_str().unwrap_or_default());
    let own = |origin: &str| {
        let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        place.is_some_and(|place| place.eq_ignore_ascii_case(authority.as_str()))
    };
    let fetched = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    origins.into_iter().all(own) && matches!(fetched, None | Some("same-origin" | "none"))
}

/// Returns whether the query contains the token. The comparison takes the same time wherever they differ.
fn has_token(query: Option<&str>, token: &str) -> bool {
    let query = query.unwrap_or_default().as_bytes();
    let mut given = form_urlencoded::parse(query).filter(|(name, _)| name == "token");
    given.next().is_some_and(|(_, given)| {
        let (given, token) = (given.as_bytes(), token.as_bytes());
        let differences = given.iter().zip(token).fold(0, |found, (a, b)| found | (a ^ b));
        given.len() == token.len() && differences == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(uri: &str, headers: &[(&str, &str)]) -> Result<(), Refusal> {
        let admission =
            Admission { token: Some("s3cret".into()), hosts: vec!["page.example".into()] };
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        admission.check(&request.body(()).unwrap())
    }

    #[test]
    fn hosts_of_this_machine_and_allowed_ones_are_accepted() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:9", "[::1]:9", "page.example:443"] {
            assert_eq!(checked("/?token=s3cret", &[("host", host)]), Ok(()), "{host}");
            assert_eq!(checked(&format!("http://{host}/?token=s3cret"), &[]), Ok(()), "{host}");
        }
    }

    #[test]
    fn other_hosts_are_refused() {
        for host in ["evil.example", "127.0.0.1.nip.io", "10.0.0.1", "", "a b", "localhost@evil"] {
            let refused = checked("/?token=s3cret", &[("host", host)]);
            assert_eq!(refused, Err(HOST_REFUSED), "{host}");
        }
        assert_eq!(checked("/?token=s3cret", &[]), Err(HOST_REFUSED));
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(checked("/?token=s3cret", &two), Err(HOST_REFUSED));
        let other = checked("http://localhost/?token=s3cret", &[("host", "evil.example")]);
        assert_eq!(other, Err(HOST_REFUSED));
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let from =
            |name, value| checked("/?token=s3cret", &[("host", "localhost:1"), (name, value)]);
        assert_eq!(from("origin", "http://localhost:1"), Ok(()));
        for origin in ["http://localhost:2", "http://evil.example", "null", "", "localhost:1"] {
            assert_eq!(from("origin", origin), Err(ORIGIN_REFUSED), "{origin}");
        }
        assert_eq!(from("sec-fetch-site", "same-origin"), Ok(()));
        assert_eq!(from("sec-fetch-site", "none"), Ok(()));
        assert_eq!(from("sec-fetch-site", "cross-site"), Err(ORIGIN_REFUSED));
        assert_eq!(from("sec-fetch-site", "same-site"), Err(ORIGIN_REFUSED));
    }

    #[test]
    fn the_token_must_match() {
        for query in ["/", "/?token=", "/?token=s3cre", "/?token=s3crets", "/?tokens=s3cret"] {
            assert_eq!(checked(query, &[("host", "localhost")]), Err(TOKEN_REFUSED), "{query}");
        }
        let open = Admission { token: None, hosts: Vec::new() };
        let request = Request::get("/").header("host", "localhost").body(()).unwrap();
        assert_eq!(open.check(&request), Ok(()));
    }

    #[test]
    fn random_tokens_differ() {
        assert_eq!(random_token().len(), 2 * TOKEN_BYTES);
        assert_ne!(random_token(), random_token());
    }
}
