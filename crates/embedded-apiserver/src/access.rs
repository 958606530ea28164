//! Authentication and authorization: tokens, and a list of denials that can change at any time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use parking_lot::RwLock;

use crate::filter::Filter;
use crate::request::{Target, Verb};
use crate::status::{GroupResource, Status};
use crate::upgrade;

/// Tokens and denials. Everything that is not denied is allowed.
///
/// ```
/// # use embedded_apiserver::{ApiServer, Denial, Verb};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let server = ApiServer::start();
/// let denial = server.access().deny(Denial::verbs([Verb::Watch]).resource("pods"));
/// // … clients that watch pods now get a 403 …
/// server.access().allow(denial);
/// # }
/// ```
pub struct Access {
    tokens: RwLock<HashMap<String, Arc<str>>>,
    denials: RwLock<Vec<(DenialId, Denial)>>,
    /// Whether requests on sockets need a token.
    required: bool,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens are secrets: only their number is shown.
        f.debug_struct("Access")
            .field("tokens", &self.tokens.read().len())
            .field("denials", &*self.denials.read())
            .finish_non_exhaustive()
    }
}

/// A rule that forbids matching requests. A request matches if all conditions are met.
#[derive(Debug, Clone, Default)]
pub struct Denial(Filter);

/// The id of a denial, with which it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenialId(u64);

impl Denial {
    /// Denies everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// Denies only these verbs.
    pub fn verbs(verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self(Filter { verbs: verbs.into_iter().collect(), ..Filter::default() })
    }

    /// Matches only this resource, such as `pods` or `pods/status`.
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.0.resource = Some(resource.into());
        self
    }

    /// Matches only this API group.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.0.group = Some(group.into());
        self
    }

    /// Matches only this namespace.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.0.namespace = Some(namespace.into());
        self
    }

    /// Matches only this user.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.0.user = Some(user.into());
        self
    }
}

/// The user of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User(pub(crate) Arc<str>);

/// The user of in-process clients, and of the initial token.
pub(crate) const ADMIN: &str = "kubernetes-admin";

/// The user of requests without a token, if none is required.
const ANONYMOUS: &str = "system:anonymous";

/// The header that names the impersonated user (`kubectl --as`). Groups have no effect.
const IMPERSONATE_USER: &str = "impersonate-user";

/// The common prefix of the impersonation headers.
const IMPERSONATE: &str = "impersonate-";

impl Access {
    pub(crate) fn new(required: bool) -> Self {
        Self { tokens: RwLock::default(), denials: RwLock::default(), required }
    }

    /// Authenticates requests with `token` as `user`.
    pub fn add_token(&self, token: impl Into<String>, user: impl Into<Arc<str>>) {
        self.tokens.write().insert(token.into(), user.into());
    }

    /// Revokes a token: requests with it receive a 401 from now on. Open watches continue, as on a
    /// real server.
    pub fn revoke_token(&self, token: &str) {
        self.tokens.write().remove(token);
    }

    /// Adds a denial, effective immediately.
    pub fn deny(&self, denial: Denial) -> DenialId {
        let mut denials = self.denials.write();
        let id = DenialId(denials.last().map_or(1, |(DenialId(last), _)| last + 1));
        denials.push((id, denial));
        id
    }

    /// Removes a denial.
    pub fn allow(&self, id: DenialId) {
        self.denials.write().retain(|(other, _)| *other != id);
    }

    /// Removes all denials.
    pub fn allow_everything(&self) {
        self.denials.write().clear();
    }

    /// Returns the user that a request over a socket acts as.
    ///
    /// It fails closed: a header that affects access and cannot be read is an error, never ignored.
    pub(crate) fn authenticate(&self, headers: &HeaderMap) -> Result<User, Status> {
        let token = match bearer_token(headers)? {
            Some(token) => Some(Cow::Borrowed(token)),
            None => upgrade::bearer_token(headers)?.map(Cow::Owned),
        };
        let user = match token {
            // Anonymous access is for requests without a token. A wrong token is an error.
            Some(token) => {
                self.tokens.read().get(&*token).cloned().ok_or_else(Status::unauthorized)?
            }
            None if self.required => return Err(Status::unauthorized()),
            None => Arc::from(ANONYMOUS),
        };
        match impersonated(headers)? {
            Some(name) => self.impersonate(&user, name),
            None => Ok(User(user)),
        }
    }

    fn impersonate(&self, user: &str, name: &str) -> Result<User, Status> {
        let allowed = match user {
            ADMIN => true,
            // Where no token is required, the anonymous user has the administrator's rights to
            // impersonate. It cannot become the administrator, however: operations that need the
            // token still do.
            ANONYMOUS => !self.required && name != ADMIN,
            _ => false,
        };
        if allowed {
            return Ok(User(Arc::from(name)));
        }
        let why = format!(
            "User {user:?} cannot impersonate resource \"users\" in API group \"\" at the cluster \
             scope"
        );
        Err(Status::forbidden(GroupResource { group: "", resource: "users" }, name, why))
    }

    /// Returns an error if the user may not do this.
    pub(crate) fn authorize(&self, user: &User, target: &Target) -> Result<(), Status> {
        let denials = self.denials.read();
        if !denials.iter().any(|(_, denial)| denial.0.fits(&user.0, Some(target))) {
            return Ok(());
        }
        Err(forbidden(user, target))
    }
}

/// Returns the bearer token of a request, parsed as a real server does: the scheme in any case,
/// then one space. Other schemes and empty tokens are ignored.
fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>, Status> {
    let Some(header) = headers.get(AUTHORIZATION) else { return Ok(None) };
    let text = header.to_str().map_err(|_| Status::unauthorized())?;
    let mut parts = text.trim().split(' ');
    let bearer = parts.next().is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"));
    Ok(parts.next().filter(|token| bearer && !token.is_empty()))
}

/// Returns the name of the impersonated user, if there is one.
fn impersonated(headers: &HeaderMap) -> Result<Option<&str>, Status> {
    let name = headers.get(IMPERSONATE_USER).map_or(&b""[..], HeaderValue::as_bytes);
    let name = str::from_utf8(name)
        .map_err(|_| Status::bad_request("the header Impersonate-User is not UTF-8"))?;
    if !name.is_empty() {
        return Ok(Some(name));
    }
    let other = headers.keys().find(|key| key.as_str().starts_with(IMPERSONATE));
    match other.filter(|key| *key != IMPERSONATE_USER) {
        // The request is meant to have fewer rights than its token, so it must not run with all of
        // them.
        Some(header) => {
            Err(Status::internal(format!("requested {header} without impersonating a user")))
        }
        None => Ok(None),
    }
}

/// Returns the error of Kubernetes for a forbidden request.
pub(crate) fn forbidden(user: &User, target: &Target) -> Status {
    let resource = target.resource_path();
    let is_namespace = target.resource.group.is_empty() && target.resource.plural == "namespaces";
    // To authorization, a namespace is in itself.
    let own = target.name.as_ref().filter(|_| is_namespace);
    let scope = match target.namespace.as_ref().or(own) {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let why = format!(
        "User {:?} cannot {} resource {resource:?} in API group {:?} {scope}",
        &*user.0, target.verb, target.resource.group
    );
    Status::forbidden(target.resource.group_resource(), target.name(), why)
}
