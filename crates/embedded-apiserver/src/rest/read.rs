//! Get and list.

use std::sync::Arc;

use http::{Response, StatusCode};
use tokio::time::timeout;

use super::continue_token::ContinueToken;
use super::{Call, compressed};
use crate::body::Body;
use crate::limits::{FRESH_WAIT, PAGE_ITEMS_MAX};
use crate::matcher::Matcher;
use crate::request::{Query, Target, VersionMatch, parse_version};
use crate::response::encoded;
use crate::server::Shared;
use crate::status::{FieldError, Status};
use crate::store::{Key, PageRequest, Revision, Unreadable};
use crate::view::{ListMeta, View};

pub(super) async fn get(
    shared: &Arc<Shared>,
    call: &Call,
    view: &View,
) -> Result<Response<Body>, Status> {
    let revision = find(shared, &call.target).await?;
    Ok(encoded(StatusCode::OK, view.codec(), view.object(&revision)?))
}

/// Returns the object that a get is about, no older than the version that it asks for.
pub(super) async fn find(shared: &Arc<Shared>, target: &Target) -> Result<Arc<Revision>, Status> {
    fresh(shared, parse_version(&target.query.resource_version)?).await?;
    let key = Key::new(target.namespace(), target.name());
    let found = shared.store.get(&target.resource.table, &key);
    found.ok_or_else(|| Status::not_found(target.resource.group_resource(), target.name()))
}

/// The start and the version of a list.
struct Position {
    /// `None` for the latest version.
    version: Option<u64>,
    start: Option<Key>,
    remaining: Option<usize>,
    limit: usize,
    continued: bool,
}

pub(super) async fn list(
    shared: &Arc<Shared>,
    call: &Call,
    view: &View,
) -> Result<Response<Body>, Status> {
    let query = &call.target.query;
    check_options(query)?;
    let position = position(query)?;
    let matcher = Matcher::new(&call.target)?;
    if position.version.is_none() && !position.continued {
        fresh(shared, parse_version(&query.resource_version)?).await?;
    }
    let start = position.start.as_ref();
    let recount = position.continued && position.remaining.is_none();
    let request = PageRequest { start, limit: position.limit, recount, ..matcher.page() };
    let page = shared
        .store
        .list(&call.target.resource.table, position.version, &request)
        .map_err(|error| unreadable(error, &position))?;
    let mut meta = ListMeta { version: page.version, ..ListMeta::default() };
    if page.more
        && let Some(last) = page.items.last()
    {
        let before = position.remaining.or(page.total);
        meta.remaining = before.and_then(|before| before.checked_sub(page.items.len()));
        let token = ContinueToken {
            version: Some(page.version),
            start: last.key().successor(),
            remaining: meta.remaining,
        };
        meta.continue_token = Some(token.encode());
    }
    let (body, len) = view.list(&meta, page.items)?;
    Ok(compressed(call, view.codec(), body, len))
}

/// Checks that the options can be combined, with Kubernetes' wording.
pub(super) fn check_options(query: &Query) -> Result<(), Status> {
    const MATCH: &str = "resourceVersionMatch";
    let mut errors = Vec::new();
    if let Some(version_match) = &query.version_match {
        if query.resource_version.is_empty() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(MATCH, why));
        }
        if query.continue_token.is_some() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(MATCH, why));
        }
        if let VersionMatch::Unknown(other) = version_match {
            let known = ["Exact", "NotOlderThan", ""];
            errors.push(FieldError::not_supported(MATCH, other.as_str(), &known));
        }
        if *version_match == VersionMatch::Exact && query.resource_version == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(MATCH, why));
        }
    }
    if query.send_initial_events.is_some() {
        let why = "sendInitialEvents is forbidden for list";
        errors.push(FieldError::forbidden("sendInitialEvents", why));
    }
    invalid_options(&errors)
}

/// Returns the error for options that cannot be combined.
pub(super) fn invalid_options(errors: &[FieldError]) -> Result<(), Status> {
    match errors {
        [] => Ok(()),
        errors => Err(Status::invalid("meta.k8s.io", "ListOptions", "", errors)),
    }
}

fn position(query: &Query) -> Result<Position, Status> {
    let limit = query.limit.min(PAGE_ITEMS_MAX);
    if let Some(token) = &query.continue_token {
        let token = ContinueToken::decode(token)?;
        if !matches!(query.resource_version.as_str(), "" | "0") {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        return Ok(Position {
            version: token.version,
            start: Some(token.start),
            remaining: token.remaining,
            limit: if query.resource_version == "0" { 0 } else { limit },
            continued: true,
        });
    }
    let asked = parse_version(&query.resource_version)?;
    let exact = match query.version_match {
        Some(VersionMatch::Exact) => true,
        // Before resourceVersionMatch existed, a limit implied an exact match. It still does.
        None => limit > 0 && asked > 0,
        _ => false,
    };
    Ok(Position {
        version: exact.then_some(asked),
        start: None,
        remaining: None,
        // The watch cache, which serves "0", ignores the limit.
        limit: if query.resource_version == "0" { 0 } else { limit },
        continued: false,
    })
}

/// Waits for a limited time until the store has reached a version.
pub(super) async fn fresh(shared: &Arc<Shared>, version: u64) -> Result<(), Status> {
    let mut revision = shared.store.subscribe_revision();
    let reached = timeout(FRESH_WAIT, revision.wait_for(|newest| *newest >= version));
    match reached.await {
        Ok(_) => Ok(()),
        Err(_) => Err(Status::too_large_version(version, shared.store.revision())),
    }
}

fn unreadable(error: Unreadable, position: &Position) -> Status {
    match (error, position) {
        (Unreadable::Gone, _) => Status::no_such_resource(),
        (Unreadable::Future { newest }, position) => {
            Status::too_large_version(position.version.unwrap_or_default(), newest)
        }
        (Unreadable::Expired { .. }, Position { continued: true, start: Some(start), .. }) => {
            let token = ContinueToken { version: None, start: start.clone(), remaining: None };
            let mut status = Status::expired(
                "The provided continue parameter is too old to display a consistent list result. \
                 You can start a new list without the continue parameter, or use the continue \
                 token in this response to retrieve the remainder of the results. Continuing with \
                 the provided token results in an inconsistent list - objects that were created, \
                 modified, or deleted between the time the first chunk was returned and now may \
                 show up in the list.",
            );
            status.continue_token = Some(token.encode());
            status
        }
        (Unreadable::Expired { .. }, _) => {
            Status::expired("The resourceVersion for the provided list is too old.")
        }
    }
}
