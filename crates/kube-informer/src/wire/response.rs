//! Checks that a response can be read.

use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, Response, StatusCode};
use http_body_util::BodyExt;
use kube_client::client::Body;
use tokio::time::timeout;

use super::status::STATUS_BYTES_MAX;
use super::{Call, Encoding, status};
use crate::{Error, Result};

/// How long reading an error response may take. The part that has arrived by then is used.
const REFUSAL_WAIT_MAX: Duration = Duration::from_secs(5);
/// How much of a header is examined, and shown in errors.
const HEADER_CHARS_MAX: usize = 80;

/// A response that matches the request, judging by its head.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) body: Body,
    pub(crate) encoding: Encoding,
}

/// Checks the head of a response to a request that offered an encoding.
pub(crate) async fn accept(
    response: Response<Body>,
    call: &Call,
    offered: Encoding,
) -> Result<Answer> {
    let (head, body) = response.into_parts();
    let code = head.status;
    if code.is_client_error() || code.is_server_error() {
        let body = refusal(body).await;
        return Err(status::answered(code.as_u16(), &head.headers, &body, call));
    }
    if !matches!(code, StatusCode::OK | StatusCode::CREATED) {
        // Not followed: the token would go to an unknown host.
        let hint = if code.is_redirection() { ": is the server's address right?" } else { "" };
        let code = code.as_u16();
        return Err(Error::protocol(format!(
            "cannot {call}: the server answers {code} instead of 200{hint}"
        )));
    }
    check_encoding(&head.headers, call)?;
    let encoding = encoding(&head.headers, call, offered)?;
    Ok(Answer { body, encoding })
}

/// Reads as much of a body as arrives in time and within the limit.
async fn refusal(mut body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(data) = frame.into_data() else { continue };
            let room = STATUS_BYTES_MAX - bytes.len();
            bytes.extend_from_slice(&data[..data.len().min(room)]);
            if bytes.len() == STATUS_BYTES_MAX {
                break;
            }
        }
    };
    let _ = timeout(REFUSAL_WAIT_MAX, read).await;
    bytes
}

fn check_encoding(headers: &HeaderMap, call: &Call) -> Result<()> {
    match shown(headers, CONTENT_ENCODING).as_deref() {
        None | Some("" | "identity") => Ok(()),
        Some(encoding) => Err(Error::protocol(format!(
            "cannot {call}: the answer is encoded with {encoding:?}, which was not asked for: does a \
             proxy compress it?"
        ))),
    }
}

/// Returns the encoding that the content type declares: protobuf, or JSON in UTF-8. A response without a
/// content type is assumed to be JSON, which the reader verifies.
fn encoding(headers: &HeaderMap, call: &Call, offered: Encoding) -> Result<Encoding> {
    let Some(content_type) = shown(headers, CONTENT_TYPE) else { return Ok(Encoding::Json) };
    let mut parts = content_type.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default();
    if media_type == kube_schema::MEDIA_TYPE && offered == Encoding::Protobuf {
        return Ok(Encoding::Protobuf);
    }
    let utf8 = |charset: &str| matches!(charset.trim_matches('"'), "utf-8" | "utf8" | "us-ascii");
    if media_type == "application/json"
        && parts.filter_map(|part| part.strip_prefix("charset=")).all(utf8)
    {
        return Ok(Encoding::Json);
    }
    Err(Error::protocol(format!(
        "cannot {call}: the answer is {content_type:?} instead of JSON: is this address an API server's, \
         or a proxy's that wants a login?"
    )))
}

/// Returns the start of a header in lower case, without control characters.
fn shown(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = String::from_utf8_lossy(headers.get(name)?.as_bytes()).to_ascii_lowercase();
    let shown = value.trim().chars().filter(|c| !c.is_control());
    Some(shown.take(HEADER_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::wire::{Target, Verb};

    fn call() -> Call {
        let target = Target::from_path("/api/v1/pods", None).unwrap();
        Call { verb: Verb::List, target: Arc::new(target) }
    }

    async fn answer(code: u16, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer> {
        answer_to(Encoding::Json, code, headers, body).await
    }

    async fn answer_to(
        offered: Encoding,
        code: u16,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer> {
        let mut response = Response::builder().status(code);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        accept(response.body(Body::from(body.to_vec())).unwrap(), &call(), offered).await
    }

    #[tokio::test]
    async fn json_is_read_whatever_its_parameters() {
        for content_type in [
            "application/json",
            "application/json;charset=utf-8",
            "Application/JSON; charset=\"UTF-8\"",
            "application/json;stream=watch",
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        ] {
            let headers = [("content-type", content_type), ("content-encoding", "identity")];
            assert!(answer(200, &headers, b"{}").await.is_ok(), "{content_type}");
        }
        assert!(answer(200, &[], b"{}").await.is_ok());
    }

    #[tokio::test]
    async fn content_type_decides_where_protobuf_was_offered() {
        for (content_type, encoding) in [
            ("application/vnd.kubernetes.protobuf", Encoding::Protobuf),
            ("application/vnd.kubernetes.protobuf;stream=watch", Encoding::Protobuf),
            ("Application/vnd.Kubernetes.protobuf; as=PartialObjectMetadata", Encoding::Protobuf),
            ("application/json", Encoding::Json),
        ] {
            let headers = [("content-type", content_type)];
            let answer = answer_to(Encoding::Protobuf, 200, &headers, b"").await.unwrap();
            assert_eq!(answer.encoding, encoding, "{content_type}");
        }
        let headers = [("content-type", "application/cbor")];
        assert!(answer_to(Encoding::Protobuf, 200, &headers, b"").await.is_err());
    }

    #[tokio::test]
    async fn what_is_not_json_is_named() {
        for content_type in [
            "text/html; charset=utf-8",
            "application/vnd.kubernetes.protobuf",
            "application/cbor",
            "application/json-seq",
            "application/json; charset=latin1",
        ] {
            let error = answer(200, &[("content-type", content_type)], b"{}").await.unwrap_err();
            assert!(error.to_string().contains(content_type), "{error}");
            assert!(matches!(error.cause(), crate::error::Cause::Protocol));
        }
    }

    #[tokio::test]
    async fn what_is_compressed_is_named() {
        let headers = [("content-type", "application/json"), ("content-encoding", "GZIP")];
        let error = answer(200, &headers, b"\x1f\x8b").await.unwrap_err();
        assert!(error.to_string().contains("\"gzip\""), "{error}");
    }

    #[tokio::test]
    async fn a_redirect_is_an_error_and_its_address_is_not_repeated() {
        let headers = [("location", "https://elsewhere.example/?token=secret")];
        let error = answer(307, &headers, b"").await.unwrap_err();
        assert!(error.to_string().contains("307"), "{error}");
        assert!(!error.to_string().contains("elsewhere"), "{error}");
        assert!(answer(204, &[], b"").await.is_err());
    }

    #[tokio::test]
    async fn i19_a_refusal_of_any_length_is_read_in_part() {
        let error = answer(500, &[], &vec![b'x'; 4 << 20]).await.unwrap_err();
        assert_eq!(error.status().unwrap().code, 500);
        assert!(error.to_string().len() < 300, "{error}");
    }
}
