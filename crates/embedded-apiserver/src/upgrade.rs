//! Upgrades: requests to continue a connection with another protocol. Only WebSocket is supported.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{
    CONNECTION, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::status::Status;

/// The only version of WebSocket that was ever in wide use.
pub(crate) const WEBSOCKET_VERSION: &str = "13";

/// The start of the subprotocol that contains a bearer token. Scripts in browsers can set no other
/// header of a WebSocket.
const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// The protocol with which a client wants to continue its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upgrade {
    /// HTTP, as before.
    Http,
    WebSocket,
    /// A protocol that is not supported, such as SPDY.
    Unsupported,
}

/// The way in which a body is sent as WebSocket messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Messages {
    /// Each line is a text message.
    Lines,
    /// Each chunk that is preceded by its length, in four bytes, is a binary message.
    Frames,
}

impl Upgrade {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let asks = headers.get_all(CONNECTION).iter().any(|value| {
            value.to_str().is_ok_and(|value| value.to_ascii_lowercase().contains("upgrade"))
        });
        let Some(protocol) = headers.get(UPGRADE).filter(|_| asks) else { return Self::Http };
        match protocol.to_str().map(str::to_ascii_lowercase).as_deref() {
            Ok("websocket") => Self::WebSocket,
            // A client that offers HTTP/2 must be prepared for a server that ignores the offer.
            Ok("h2c") => Self::Http,
            _ => Self::Unsupported,
        }
    }
}

/// Returns the headers that accept the handshake of a WebSocket, or the error of an invalid one.
///
/// As on a real server, a watch needs a valid `Origin` and accepts any subprotocol, but only one.
pub(crate) fn accept_websocket(headers: &HeaderMap) -> Result<HeaderMap, Status> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(key) = text(&SEC_WEBSOCKET_KEY).filter(|key| !key.is_empty()) else {
        return Err(Status::bad_request("the header Sec-WebSocket-Key is missing"));
    };
    if text(&SEC_WEBSOCKET_VERSION) != Some(WEBSOCKET_VERSION) {
        let why = format!("the header Sec-WebSocket-Version is not {WEBSOCKET_VERSION}");
        return Err(Status::bad_request(why));
    }
    if !text(&ORIGIN).is_some_and(is_origin) {
        let why = "a WebSocket needs the header Origin with a URL: any, such as that of the server";
        return Err(Status::new(StatusCode::FORBIDDEN, "Forbidden", why));
    }
    let accept = derive_accept_key(key.as_bytes());
    let accept = HeaderValue::try_from(accept).map_err(Status::internal)?;
    let mut out = HeaderMap::from_iter([
        (UPGRADE, HeaderValue::from_static("websocket")),
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (SEC_WEBSOCKET_ACCEPT, accept),
    ]);
    match *protocols(headers).filter(|p| !p.starts_with(BEARER_PROTOCOL)).collect::<Vec<_>>() {
        [] => {}
        [protocol] => {
            let protocol = HeaderValue::from_str(protocol).map_err(Status::internal)?;
            out.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        _ => {
            let why = "the header Sec-WebSocket-Protocol offers more than one subprotocol";
            return Err(Status::bad_request(why));
        }
    }
    Ok(out)
}

/// Returns the bearer token among the subprotocols of a WebSocket, if there is one.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<Option<String>, Status> {
    if Upgrade::of(headers) != Upgrade::WebSocket {
        return Ok(None);
    }
    let mut tokens = protocols(headers).filter_map(|p| p.strip_prefix(BEARER_PROTOCOL));
    let Some(token) = tokens.next() else { return Ok(None) };
    // The server responds with one of the subprotocols, and must not return the token.
    let others = protocols(headers).any(|protocol| !protocol.starts_with(BEARER_PROTOCOL));
    let token = URL_SAFE_NO_PAD.decode(token).ok().and_then(|token| String::from_utf8(token).ok());
    match token.filter(|token| !token.is_empty()) {
        Some(token) if others && tokens.next().is_none() => Ok(Some(token)),
        _ => Err(Status::unauthorized()),
    }
}

/// Returns the subprotocols that a client offers.
fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).map(str::trim).filter(|protocol| !protocol.is_empty())
}

/// Returns whether a text is an absolute URL or path.
fn is_origin(text: &str) -> bool {
    text.starts_with('/') || text.parse::<Uri>().is_ok_and(|uri| uri.scheme().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: [(&str, &str); 5] = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-version", "13"),
        ("origin", "https://localhost"),
    ];

    /// Returns the headers of a handshake with one of them changed, or removed if it is empty.
    fn with(name: &str, value: &str) -> HeaderMap {
        let asked = ASKED.into_iter().filter(|(asked, _)| *asked != name);
        let changed = Some((name, value)).filter(|(_, value)| !value.is_empty());
        let header = |(name, value): (&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
        };
        asked.chain(changed).map(header).collect()
    }

    fn bearer(token: &str) -> String {
        format!("{BEARER_PROTOCOL}{}", URL_SAFE_NO_PAD.encode(token))
    }

    #[test]
    fn upgrades_are_recognized_by_two_headers() {
        assert_eq!(Upgrade::of(&with("x", "")), Upgrade::WebSocket);
        assert_eq!(Upgrade::of(&with("connection", "")), Upgrade::Http);
        assert_eq!(Upgrade::of(&with("connection", "close")), Upgrade::Http);
        assert_eq!(Upgrade::of(&with("upgrade", "")), Upgrade::Http);
        assert_eq!(Upgrade::of(&with("upgrade", "h2c")), Upgrade::Http);
        assert_eq!(Upgrade::of(&with("upgrade", "SPDY/3.1")), Upgrade::Unsupported);
    }

    #[test]
    fn a_handshake_is_accepted_with_its_key_and_subprotocol() {
        let accepted = accept_websocket(&with("x", "")).unwrap();
        // The example of RFC 6455.
        assert_eq!(accepted[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(!accepted.contains_key(SEC_WEBSOCKET_PROTOCOL));
        let protocol = "base64.binary.k8s.io";
        for offered in [protocol.to_owned(), format!("{}, {protocol}", bearer("t"))] {
            let accepted = accept_websocket(&with("sec-websocket-protocol", &offered)).unwrap();
            assert_eq!(accepted[SEC_WEBSOCKET_PROTOCOL], protocol);
        }
    }

    #[test]
    fn invalid_handshakes_are_refused() {
        for (name, value, code) in [
            ("sec-websocket-key", "", 400),
            ("sec-websocket-version", "", 400),
            ("sec-websocket-version", "8", 400),
            ("sec-websocket-protocol", "a, b", 400),
            ("origin", "", 403),
            ("origin", "null", 403),
        ] {
            let refused = accept_websocket(&with(name, value)).unwrap_err();
            assert_eq!(refused.code, code, "{name}: {value}");
        }
    }

    #[test]
    fn a_subprotocol_can_be_the_token() {
        let token = |offered: &str| bearer_token(&with("sec-websocket-protocol", offered));
        assert_eq!(token("a").unwrap(), None);
        assert_eq!(token(&format!("a, {}", bearer("t"))).unwrap().as_deref(), Some("t"));
        for refused in [
            bearer("t"),
            format!("a, {}", bearer("")),
            format!("a, {}, {}", bearer("t"), bearer("t")),
            format!("a, {BEARER_PROTOCOL}%"),
        ] {
            assert_eq!(token(&refused).unwrap_err().code, 401, "{refused}");
        }
        let mut plain = with("sec-websocket-protocol", &format!("a, {}", bearer("t")));
        plain.remove(UPGRADE);
        assert_eq!(bearer_token(&plain).unwrap(), None);
    }
}
