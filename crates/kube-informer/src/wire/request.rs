//! Requests, and their names in errors.

use std::fmt;
use std::sync::Arc;

use http::header::{ACCEPT, ACCEPT_ENCODING};
use kube_client::client::Body;

use super::Target;
use crate::{Error, Result};

const PROTOBUF_OBJECT: &str = "application/vnd.kubernetes.protobuf,application/json";
/// A server that cannot reduce objects to their metadata sends them whole.
const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const PROTOBUF_METADATA_LIST: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
     application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// For watches, and for responses that are one object.
const METADATA_OBJECT: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const PROTOBUF_METADATA_OBJECT: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
     application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// An action on a resource, named as in RBAC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verb {
    List,
    Watch,
    Get,
    Create,
    Patch,
    Update,
}

impl Verb {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Get => "get",
            Verb::Create => "create",
            Verb::Patch => "patch",
            Verb::Update => "update",
        }
    }
}

/// A request, formatted for errors as in `list pods in namespace "web"`.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) verb: Verb,
    pub(crate) target: Arc<Target>,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.verb.as_str(), self.target.group_resource())?;
        match &self.target.namespace {
            Some(namespace) => write!(f, "in namespace {namespace:?}"),
            None => f.write_str("cluster-wide"),
        }
    }
}

/// An encoding of bodies. A request offers this one, and JSON as a fallback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encoding {
    Json,
    Protobuf,
}

/// Returns the media types that a call accepts, in order of preference.
pub(super) fn accepted(call: &Call, offered: Encoding) -> &'static str {
    let is_list = call.verb == Verb::List;
    match (offered, call.target.metadata_only) {
        (Encoding::Json, false) => "application/json",
        (Encoding::Json, true) if is_list => METADATA_LIST,
        (Encoding::Json, true) => METADATA_OBJECT,
        (Encoding::Protobuf, false) => PROTOBUF_OBJECT,
        (Encoding::Protobuf, true) if is_list => PROTOBUF_METADATA_LIST,
        (Encoding::Protobuf, true) => PROTOBUF_METADATA_OBJECT,
    }
}

/// Creates the request for a list or watch with this query string.
pub(crate) fn request(call: &Call, query: &str, offered: Encoding) -> Result<http::Request<Body>> {
    let mut request = http::Request::get(format!("{}?{query}", call.target.path()?))
        .header(ACCEPT, accepted(call, offered))
        // Not gzip, although a list would be smaller: servers compress each event of a watch separately, and
        // the layer that kube adds to clients only reads the first.
        .header(ACCEPT_ENCODING, "identity")
        .body(Body::empty())
        .map_err(|_| Error::invalid(format!("cannot {call}: the selectors are too long")))?;
    // kube names its tracing span after this.
    request.extensions_mut().insert(call.verb.as_str());
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(verb: Verb, target: Target) -> Call {
        Call { verb, target: Arc::new(target) }
    }

    #[test]
    fn a_call_is_named_as_rbac_names_it() {
        let pods = Target::from_path("/api/v1/pods", None).unwrap();
        assert_eq!(call(Verb::List, pods).to_string(), "list pods cluster-wide");
        let path = "/apis/apps/v1/namespaces/web/deployments";
        let deployments = Target::from_path(path, Some("web")).unwrap();
        assert_eq!(
            call(Verb::Watch, deployments).to_string(),
            "watch deployments.apps in namespace \"web\""
        );
    }

    #[test]
    fn selectors_of_any_length_are_a_request_or_an_error() {
        let mut pods = Target::from_path("/api/v1/pods", None).unwrap();
        pods.labels = "a".repeat(1 << 20);
        let query = super::super::ListQuery::default().text(&pods);
        let error = request(&call(Verb::List, pods), &query, Encoding::Json).unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
    }

    #[test]
    fn compression_is_declined_and_metadata_asked_for() {
        let pods = Target::from_path("/api/v1/pods", None).unwrap();
        let meta = Target { metadata_only: true, ..pods.clone() };
        let accept = |verb, target: &Target, offered| {
            let request = request(&call(verb, target.clone()), "", offered).unwrap();
            assert_eq!(request.headers()[ACCEPT_ENCODING], "identity");
            request.headers()[ACCEPT].to_str().unwrap().to_owned()
        };
        for verb in [Verb::List, Verb::Watch] {
            let json = accept(verb, &pods, Encoding::Json);
            assert_eq!(json, "application/json");
            let protobuf = "application/vnd.kubernetes.protobuf";
            assert_eq!(accept(verb, &pods, Encoding::Protobuf), format!("{protobuf},{json}"));
            let kind = match verb {
                Verb::List => "PartialObjectMetadataList",
                _ => "PartialObjectMetadata",
            };
            let partial = format!(";as={kind};g=meta.k8s.io;v=v1");
            let json = format!("{json}{partial},{json}");
            assert_eq!(accept(verb, &meta, Encoding::Json), json);
            let both = format!("{protobuf}{partial},{json}");
            assert_eq!(accept(verb, &meta, Encoding::Protobuf), both);
        }
    }
}
