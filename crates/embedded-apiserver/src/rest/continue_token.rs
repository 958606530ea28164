//! The continue token of a list: the version, and the key where the next page starts.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::status::Status;
use crate::store::Key;

/// The position at which a list continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContinueToken {
    /// `None` for the latest version, after the token's own has expired.
    pub(crate) version: Option<u64>,
    /// The first key that may be on the page.
    pub(crate) start: Key,
    /// The number of remaining objects if known, so that pages need not count them.
    pub(crate) remaining: Option<usize>,
}

/// kube-apiserver's encoding, extended by the count.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Encoded {
    v: String,
    rv: i64,
    start: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<usize>,
}

const FORMAT: &str = "meta.k8s.io/v1";

impl ContinueToken {
    pub(crate) fn encode(&self) -> String {
        let encoded = Encoded {
            v: FORMAT.to_owned(),
            rv: self.version.map_or(-1, u64::cast_signed),
            start: format!("{}/{}", self.start.namespace(), self.start.name()),
            left: self.remaining,
        };
        let json = serde_json::to_vec(&encoded).expect("texts and numbers can be encoded");
        URL_SAFE_NO_PAD.encode(json)
    }

    pub(crate) fn decode(token: &str) -> Result<Self, Status> {
        let invalid = |why: String| {
            Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let json = URL_SAFE_NO_PAD.decode(token).map_err(|error| invalid(error.to_string()))?;
        let encoded: Encoded =
            serde_json::from_slice(&json).map_err(|error| invalid(error.to_string()))?;
        if encoded.v != FORMAT {
            return Err(invalid(format!(
                "server does not recognize this encoded version {}",
                encoded.v
            )));
        }
        let (namespace, name) = encoded.start.split_once('/').ok_or_else(|| {
            invalid("encoded start key empty (version meta.k8s.io/v1)".to_owned())
        })?;
        let version = match encoded.rv {
            0 => {
                return Err(invalid(
                    "incorrect encoded start resourceVersion (version meta.k8s.io/v1)".to_owned(),
                ));
            }
            rv => u64::try_from(rv).ok(),
        };
        Ok(Self { version, start: Key::new(namespace, name), remaining: encoded.left })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_the_round_trip() {
        for version in [None, Some(7)] {
            let start = Key::new("default", "nginx").successor();
            let token = ContinueToken { version, start, remaining: Some(3) };
            assert_eq!(ContinueToken::decode(&token.encode()), Ok(token));
        }
    }

    #[test]
    fn a_bad_token_is_refused_with_its_reason() {
        let long = "a".repeat(100);
        for bad in ["", "!", "abc", &long, &URL_SAFE_NO_PAD.encode("{}")] {
            let status = ContinueToken::decode(bad).expect_err("it is no token");
            assert_eq!(status.code, 400);
            assert!(status.message.starts_with("invalid continue token: "), "{}", status.message);
        }
        let zero = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a/b"}"#);
        assert!(ContinueToken::decode(&zero).is_err());
    }
}
