//! Parses requests: the path and method determine a verb on a resource, the query its options.

use std::fmt;
use std::num::{IntErrorKind, ParseIntError};
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode, Uri};
use percent_encoding::percent_decode_str;

use crate::kinds::{Registry, Resource, Subresource};
use crate::limits::{CONTINUE_BYTES_MAX, SELECTOR_BYTES_MAX, URI_BYTES_MAX};
use crate::status::Status;

/// A verb on a resource, as in RBAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Reads an object.
    Get,
    /// Reads objects.
    List,
    /// Watches changes.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes parts of an object.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes objects.
    DeleteCollection,
}

impl Verb {
    /// Returns the verb as RBAC spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request for a resource.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) verb: Verb,
    pub(crate) resource: Arc<Resource>,
    /// The resource that stores the objects. It differs only for events, which two groups share.
    pub(crate) storage: Arc<Resource>,
    /// `None` for all namespaces, or for a cluster-scoped resource.
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<Subresource>,
    pub(crate) query: Query,
}

impl Target {
    /// Returns the target of a request about a stored object. Returns `None` if its resource is not
    /// served any more.
    pub(crate) fn stored(
        registry: &Registry,
        verb: Verb,
        table: &str,
        (namespace, name): (&str, &str),
    ) -> Option<Self> {
        // Two groups share the events. The core group comes first.
        let resource = registry.iter().find(|resource| &*resource.table == table)?;
        Some(Self {
            verb,
            resource: Arc::clone(resource),
            storage: Arc::clone(registry.storage_of(resource)),
            namespace: resource.namespaced.then(|| namespace.to_owned()),
            name: Some(name.to_owned()),
            subresource: None,
            query: Query::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn is_status(&self) -> bool {
        self.subresource == Some(Subresource::Status)
    }

    /// Returns whether the request may take any time, and ignores `timeout`.
    pub(crate) fn is_long_running(&self) -> bool {
        self.verb == Verb::Watch || self.subresource.is_some_and(Subresource::is_long_running)
    }

    /// Returns the resource as access rules name it: `pods` or `pods/status`.
    pub(crate) fn resource_path(&self) -> String {
        let plural = &self.resource.plural;
        match self.subresource {
            None => plural.to_string(),
            Some(subresource) => format!("{plural}/{}", subresource.as_str()),
        }
    }
}

/// Finds the target of a request. Returns `None` if the path is not that of a resource (discovery,
/// health).
pub(crate) fn route(
    method: &Method,
    uri: &Uri,
    registry: &Registry,
) -> Result<Option<Target>, Status> {
    if uri.path_and_query().is_some_and(|all| all.as_str().len() > URI_BYTES_MAX) {
        let message = format!("the request's URI is longer than {URI_BYTES_MAX} bytes");
        return Err(Status::new(StatusCode::URI_TOO_LONG, "BadRequest", message));
    }
    let Some(mut path) = ResourcePath::parse(uri.path())? else { return Ok(None) };
    let mut query = Query::parse(uri.query().unwrap_or_default())?;
    if path.watch {
        query.watch = true;
        query.select_name(path.name.take());
    }
    let Some(resource) = registry.get(&path.group, &path.version, &path.resource) else {
        // Nothing is known about a group that is not built in, not even that it may exist.
        return if registry.is_built_in(&path.group) {
            Err(Status::no_such_resource())
        } else {
            Ok(None)
        };
    };
    if path.namespace.is_some() && !resource.namespaced {
        return Err(Status::no_such_resource());
    }
    let subresource = match path.subresource.as_deref() {
        None => None,
        Some(name) => {
            let mut known = Subresource::of(resource).into_iter().filter(|_| path.name.is_some());
            match known.find(|subresource| subresource.as_str() == name) {
                Some(found) => Some(found),
                // The custom object may exist, but it has no such subresource.
                None if resource.custom => {
                    let name = path.name.as_deref().unwrap_or_default();
                    return Err(Status::not_found(resource.group_resource(), name));
                }
                None => return Err(Status::no_such_resource()),
            }
        }
    };
    let verb = match subresource {
        None => verb_of(method, path.name.is_some(), query.watch)
            .filter(|verb| *verb != Verb::DeleteCollection || resource.deletes_collections())
            .filter(|verb| resource.stored || *verb == Verb::Create),
        Some(subresource) => {
            subresource_verb(method).filter(|verb| subresource.verbs().contains(&verb.as_str()))
        }
    };
    let verb = verb.ok_or_else(Status::method_not_allowed)?;
    // For a namespaced resource, writes and reads of a single object need a namespace in the path.
    if resource.namespaced && path.namespace.is_none() && !matches!(verb, Verb::List | Verb::Watch)
    {
        return Err(if path.name.is_some() {
            Status::no_such_resource()
        } else {
            Status::method_not_allowed()
        });
    }
    Ok(Some(Target {
        verb,
        resource: Arc::clone(resource),
        storage: Arc::clone(registry.storage_of(resource)),
        namespace: path.namespace,
        name: path.name,
        subresource,
        query,
    }))
}

fn verb_of(method: &Method, named: bool, watch: bool) -> Option<Verb> {
    Some(match (method.as_str(), named) {
        ("GET", true) => Verb::Get,
        ("GET", false) if watch => Verb::Watch,
        ("GET", false) => Verb::List,
        ("POST", false) => Verb::Create,
        ("PUT", true) => Verb::Update,
        ("PATCH", true) => Verb::Patch,
        ("DELETE", true) => Verb::Delete,
        ("DELETE", false) => Verb::DeleteCollection,
        _ => return None,
    })
}

fn subresource_verb(method: &Method) -> Option<Verb> {
    Some(match method.as_str() {
        "GET" => Verb::Get,
        "POST" => Verb::Create,
        "PUT" => Verb::Update,
        "PATCH" => Verb::Patch,
        "DELETE" => Verb::Delete,
        _ => return None,
    })
}

/// The parts of a path below `/api/v1` or `/apis/{group}/{version}`.
struct ResourcePath {
    group: String,
    version: String,
    namespace: Option<String>,
    resource: String,
    name: Option<String>,
    subresource: Option<String>,
    /// Whether the path starts with `watch/`, the deprecated form of `?watch=true`.
    watch: bool,
}

impl ResourcePath {
    fn parse(path: &str) -> Result<Option<Self>, Status> {
        // Decoded as a whole, as on a real server: an escaped slash is a separator.
        let Ok(path) = percent_decode_str(path).decode_utf8() else {
            return Err(Status::bad_request(format!("the path {path:?} is not UTF-8")));
        };
        let mut parts = path.trim_matches('/').split('/').map(str::to_owned).peekable();
        let (group, version) = match parts.next().as_deref() {
            Some("api") => (Some(String::new()), parts.next()),
            Some("apis") => (parts.next(), parts.next()),
            _ => return Ok(None),
        };
        let (Some(group), Some(version)) = (group, version) else { return Ok(None) };
        let watch = parts.next_if(|part| part == "watch").is_some();
        let Some(first) = parts.next() else { return Ok(None) };
        let mut rest: Vec<String> = parts.collect();
        // The rest of the path is for the server behind a proxy.
        let subresource_at = if first == "namespaces" { 3 } else { 1 };
        if rest.get(subresource_at).is_some_and(|part| part == "proxy") {
            rest.truncate(subresource_at + 1);
        }
        let found = |namespace, resource, name, subresource| {
            Some(Self { group, version, namespace, resource, name, subresource, watch })
        };
        let mut rest = rest.into_iter();
        let (second, third, fourth, fifth, more) =
            (rest.next(), rest.next(), rest.next(), rest.next(), rest.next().is_some());
        if more {
            return Err(Status::no_such_resource());
        }
        // `namespaces/x` and its own subresources address the namespace itself. Deeper paths are
        // inside it.
        Ok(match (first.as_str(), second, third) {
            ("namespaces", Some(namespace), Some(resource))
                if !matches!(resource.as_str(), "status" | "finalize") =>
            {
                found(Some(namespace), resource, fourth, fifth)
            }
            (_, _, _) if fourth.is_some() => return Err(Status::no_such_resource()),
            (_, name, subresource) => found(None, first, name, subresource),
        })
    }
}

/// `resourceVersionMatch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
    /// Any other value, for the error.
    Unknown(String),
}

/// The known options of a request. Others are ignored, as on a real server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pub(crate) watch: bool,
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    pub(crate) limit: usize,
    pub(crate) continue_token: Option<String>,
    pub(crate) resource_version: String,
    pub(crate) version_match: Option<VersionMatch>,
    pub(crate) bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) dry_run: Vec<String>,
    pub(crate) field_manager: String,
    pub(crate) field_validation: String,
    pub(crate) force: Option<bool>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) grace_period: Option<i64>,
    pub(crate) propagation_policy: Option<String>,
    pub(crate) include_object: String,
    /// The options of logs, which no other request has, as they were sent.
    pub(crate) log: Vec<(&'static str, String)>,
}

/// The options of logs.
const LOG_OPTIONS: [&str; 8] = [
    "container",
    "follow",
    "limitBytes",
    "previous",
    "sinceSeconds",
    "sinceTime",
    "tailLines",
    "timestamps",
];

impl Query {
    fn parse(query: &str) -> Result<Self, Status> {
        let mut out = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            out.set(&name, &value)?;
        }
        for (name, selector) in
            [("labelSelector", &out.label_selector), ("fieldSelector", &out.field_selector)]
        {
            if selector.len() > SELECTOR_BYTES_MAX {
                let message = format!("{name} is longer than {SELECTOR_BYTES_MAX} bytes");
                return Err(Status::bad_request(message));
            }
        }
        if out.continue_token.as_ref().is_some_and(|token| token.len() > CONTINUE_BYTES_MAX) {
            let message = format!("continue is longer than {CONTINUE_BYTES_MAX} bytes");
            return Err(Status::bad_request(message));
        }
        Ok(out)
    }

    /// Restricts the selection to an object, as a name in the deprecated form of a watch does.
    fn select_name(&mut self, name: Option<String>) {
        let Some(name) = name else { return };
        let escaped = name.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=");
        if !self.field_selector.is_empty() {
            self.field_selector.push(',');
        }
        self.field_selector.push_str("metadata.name=");
        self.field_selector.push_str(&escaped);
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Status> {
        match name {
            "watch" => self.watch = boolean(value),
            "labelSelector" => value.clone_into(&mut self.label_selector),
            "fieldSelector" => value.clone_into(&mut self.field_selector),
            "limit" => self.limit = usize::try_from(integer(value)?).unwrap_or(0),
            "continue" => self.continue_token = Some(value.to_owned()).filter(|t| !t.is_empty()),
            "resourceVersion" => value.clone_into(&mut self.resource_version),
            "resourceVersionMatch" => {
                self.version_match = match value {
                    "" => None,
                    "Exact" => Some(VersionMatch::Exact),
                    "NotOlderThan" => Some(VersionMatch::NotOlderThan),
                    other => Some(VersionMatch::Unknown(other.to_owned())),
                }
            }
            "allowWatchBookmarks" => self.bookmarks = boolean(value),
            "sendInitialEvents" => self.send_initial_events = Some(boolean(value)),
            "timeoutSeconds" => {
                let seconds = u64::try_from(integer(value)?).ok().filter(|&seconds| seconds > 0);
                self.timeout = seconds.map(Duration::from_secs);
            }
            "dryRun" => self.dry_run.push(value.to_owned()),
            "fieldManager" => value.clone_into(&mut self.field_manager),
            "fieldValidation" => value.clone_into(&mut self.field_validation),
            "force" => self.force = Some(boolean(value)),
            "orphanDependents" => self.orphan_dependents = Some(boolean(value)),
            "gracePeriodSeconds" => self.grace_period = Some(integer(value)?),
            "propagationPolicy" => self.propagation_policy = Some(value.to_owned()),
            "includeObject" => value.clone_into(&mut self.include_object),
            other => {
                if let Some(known) = LOG_OPTIONS.iter().find(|known| **known == other) {
                    self.log.push((*known, value.to_owned()));
                }
            }
        }
        Ok(())
    }
}

/// Parses a boolean. Kubernetes treats any value but these as true: `?watch` alone is a watch.
pub(crate) fn boolean(value: &str) -> bool {
    !matches!(value, "false" | "0")
}

pub(crate) fn integer(value: &str) -> Result<i64, Status> {
    match value {
        "" => Ok(0),
        value => value.parse().map_err(|error: ParseIntError| {
            let why = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Status::bad_request(format!("strconv.ParseInt: parsing {value:?}: {why}"))
        }),
    }
}

/// Parses a resourceVersion in a query. "" and "0" are 0, which stands for any version.
pub(crate) fn parse_version(version: &str) -> Result<u64, Status> {
    match version {
        "" => Ok(0),
        version => version.parse().map_err(|_| {
            Status::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {version:?}: \
                 strconv.ParseUint: parsing {version:?}: invalid syntax"
            ))
        }),
    }
}
