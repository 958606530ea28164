//! Fault injection over HTTP, under a path that no Kubernetes API has.
//!
//! # Architecture invariants
//! - It is served only if the server was built with it, and only to the administrator with the
//!   token. Anonymous access does not extend to it.
//! - It is exempt from faults and not recorded, so every fault can be removed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::access::{ADMIN, User};
use crate::body::Body;
use crate::codec::Codec;
use crate::faults::{Fault, FaultId};
use crate::inject::Faults;
use crate::inject::text::{Act, Order};
use crate::response;
use crate::server::{ApiServer, Shared};
use crate::status::Status;

const ROOT: &str = "/embedded";
const FAULTS: &str = "/embedded/faults";

/// The number of fired faults that are shown.
const FIRED_SHOWN: usize = 100;

/// Actions that break connections are delayed, so that the response arrives first.
const ANSWER_FIRST: Duration = Duration::from_millis(250);

/// Returns whether a path belongs to fault injection.
pub(crate) fn is_for(path: &str) -> bool {
    path.strip_prefix(ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Rejects all users except the administrator.
pub(crate) fn admit(user: &User, path: &str) -> Result<(), Status> {
    if &*user.0 == ADMIN {
        return Ok(());
    }
    let why = format!("{path} is for the administrator only: show the token");
    Err(Status::new(StatusCode::FORBIDDEN, "Forbidden", why))
}

/// Handles a request of the administrator.
pub(crate) fn answer(
    shared: &Arc<Shared>,
    method: &Method,
    path: &str,
    body: &Bytes,
) -> Result<Response<Body>, Status> {
    let path = path.trim_end_matches('/');
    let server = ApiServer { shared: Arc::clone(shared) };
    let faults = server.faults();
    let id = path.strip_prefix(FAULTS).and_then(|rest| rest.strip_prefix('/'));
    match (method, path, id) {
        (&Method::GET, ROOT, _) => {
            let text = Faults::TEXT_FORMS.to_owned();
            Ok(response::of_type(StatusCode::OK, "text/plain; charset=utf-8", text))
        }
        (&Method::GET, FAULTS, _) => Ok(pretty(&all(faults))),
        (&Method::POST, FAULTS, _) => {
            let text = std::str::from_utf8(body)
                .map_err(|_| Status::bad_request("the body is no UTF-8: send lines of text"))?;
            inject(&server, text).map(|done| pretty(&done))
        }
        (&Method::DELETE, FAULTS, _) => {
            let removed = faults.rules();
            faults.clear();
            Ok(pretty(&json!({"removed": removed.iter().map(shown).collect::<Vec<_>>()})))
        }
        (&Method::DELETE, _, Some(id)) => remove(faults, id).map(|gone| pretty(&gone)),
        (_, ROOT | FAULTS, _) | (_, _, Some(_)) => Err(Status::method_not_allowed()),
        _ => Err(not_found(format!("there is no {path}; there is {ROOT} and {FAULTS}"))),
    }
}

fn all(faults: Faults<'_>) -> Value {
    let fired = faults.fired();
    let last = fired.iter().skip(fired.len().saturating_sub(FIRED_SHOWN));
    let fired = last.map(|fired| {
        json!({
            "id": fired.id.0, "fault": fired.name, "request": fired.request,
            "resourceVersion": fired.revision.to_string(), "afterEvents": fired.after_events,
            "secondsSinceStart": fired.at.as_secs_f64(),
        })
    });
    json!({
        "rules": faults.rules().iter().map(shown).collect::<Vec<_>>(),
        "fired": fired.collect::<Vec<_>>(),
    })
}

fn shown((id, rule): &(FaultId, String)) -> Value {
    json!({"id": id.0, "rule": rule})
}

/// Injects all lines, or none if any is invalid.
fn inject(server: &ApiServer, text: &str) -> Result<Value, Status> {
    let faults = server.faults();
    let mut orders = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let order = faults.parse(line);
        let refused = |problem| Status::bad_request(format!("line {}: {problem}", at + 1));
        orders.push((line, order.map_err(refused)?));
    }
    if orders.is_empty() {
        return Err(Status::bad_request(format!(
            "no line has a fault in it; GET {ROOT} says what there is"
        )));
    }
    let (mut ids, mut at_once) = (Vec::new(), Vec::new());
    for (line, order) in orders {
        if matches!(order, Order::Now(_)) {
            at_once.push(line);
        }
        match order {
            Order::Now(act) if breaks_connections(&act) => later(server, act),
            order => {
                let made = faults.carry_out(order);
                ids.extend(made.map_err(|problem| Status::bad_request(problem.to_string()))?);
            }
        }
    }
    let mut rules = faults.rules();
    rules.retain(|(id, _)| ids.contains(id));
    Ok(json!({"injected": rules.iter().map(shown).collect::<Vec<_>>(), "atOnce": at_once}))
}

fn breaks_connections(act: &Act) -> bool {
    match act {
        Act::Fault(Fault::Restart | Fault::Down(_)) | Act::Upgrade => true,
        Act::Fault(Fault::Rollback { silent, .. }) => !silent,
        Act::Fault(_) | Act::Snapshot(_) | Act::Flaky(_) => false,
    }
}

fn later(server: &ApiServer, act: Act) {
    let shared = Arc::downgrade(&server.shared);
    tokio::spawn(async move {
        tokio::time::sleep(ANSWER_FIRST).await;
        if let Some(shared) = shared.upgrade() {
            // None of these can fail.
            drop(ApiServer { shared }.faults().carry_out(Order::Now(act)));
        }
    });
}

fn remove(faults: Faults<'_>, id: &str) -> Result<Value, Status> {
    let rules = faults.rules();
    let found = rules.iter().find(|(known, _)| known.to_string() == id);
    let gone = found.filter(|(known, _)| faults.remove(*known));
    let gone =
        gone.ok_or_else(|| not_found(format!("there is no rule {id}: it may have struck")))?;
    Ok(json!({"removed": [shown(gone)]}))
}

fn not_found(why: String) -> Status {
    Status::new(StatusCode::NOT_FOUND, "NotFound", why)
}

/// Returns a response with indented JSON.
fn pretty(value: &Value) -> Response<Body> {
    response::encoded(StatusCode::OK, Codec::Json, format!("{value:#}\n"))
}
