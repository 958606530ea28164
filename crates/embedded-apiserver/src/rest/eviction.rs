//! Evictions: deletions of pods that respect disruption budgets.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::Call;
use super::delete::{DeleteOptions, delete_one};
use super::owners::{self, Proposal};
use super::unstored::{decode, set_condition, status_target, success};
use super::write::{self, modify, served};
use crate::apply::{Author, Operation};
use crate::body::Body;
use crate::kinds::Subresource;
use crate::object::{self, Object};
use crate::print;
use crate::request::Target;
use crate::selector::LabelSelector;
use crate::server::Shared;
use crate::status::{Cause, GroupResource, Status};
use crate::store::{Key, PageRequest};

const BUDGETS: (&str, &str) = ("policy", "poddisruptionbudgets");

/// The evicted pods that a budget may list until its controller has seen their deletion, as in
/// Kubernetes.
const DISRUPTED_PODS_MAX: usize = 2000;

pub(super) fn create(shared: &Arc<Shared>, call: &Call) -> Result<Response<Body>, Status> {
    let target = &call.target;
    let asked_dry = write::check_options(&target.query, "CreateOptions")?;
    let eviction = decode(call, &Subresource::Eviction.resource(&target.resource))?;
    if object::meta_text(&eviction, "name") != target.name() {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let options = eviction.get("deleteOptions").cloned().unwrap_or_default();
    let (options, dry_run) = DeleteOptions::of_eviction(options, asked_dry)?;
    let pods = status_target(shared, ("", "pods"), target.namespace(), target.name())?;
    let key = Key::new(target.namespace(), target.name());
    let found = shared.store.get(&pods.resource.table, &key);
    let found =
        found.ok_or_else(|| Status::not_found(pods.resource.group_resource(), target.name()))?;
    let pod = served(&pods, &found);
    if !is_expendable(&pod) {
        permit(shared, &pods, &pod, dry_run)?;
    }
    if dry_run {
        delete_one(shared, &pods, &options, true)?;
        return success(call);
    }
    options.check_preconditions(&pods, &pod)?;
    let now = shared.clock.now_text();
    let author = owners::author(call, Operation::Update);
    let evicted = modify(shared, &pods, &author, false, |live| {
        let mut new = live.object.clone();
        let condition = json!({
            "type": "DisruptionTarget", "status": "True", "lastProbeTime": null,
            "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
        });
        set_condition(&mut new, condition, &now);
        // The condition is the server's. The client does not own it.
        Ok(Proposal { object: new, managers: Some(live.managers()) })
    })?;
    // The condition is a new version of the pod.
    delete_one(shared, &pods, &options.at_version(evicted.version()), false)?;
    success(call)
}

/// Returns whether budgets do not protect a pod: it does not run, or is being deleted.
fn is_expendable(pod: &Object) -> bool {
    let phase = pod.get("status").and_then(|status| status["phase"].as_str());
    matches!(phase, Some("Succeeded" | "Failed" | "Pending"))
        || object::metadata(pod).contains_key("deletionTimestamp")
}

fn is_ready(pod: &Object) -> bool {
    let conditions = pod.get("status").and_then(|status| status["conditions"].as_array());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Takes a disruption from the budget of a pod, or returns an error if there is none left.
fn permit(shared: &Arc<Shared>, pods: &Target, pod: &Object, dry_run: bool) -> Result<(), Status> {
    let budgets = budgets(shared, pods, pod)?;
    let (name, budget) = match &*budgets {
        [] => return Ok(()),
        [budget] => budget,
        _ => {
            let why = "This pod has more than one PodDisruptionBudget, which the eviction \
                       subresource does not support.";
            return Err(Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", why));
        }
    };
    if !is_ready(pod) && allows_unhealthy(budget) {
        return Ok(());
    }
    let now = shared.clock.now_text();
    if dry_run {
        return check(name, budget);
    }
    let target = status_target(shared, BUDGETS, pods.namespace(), name)?;
    // A real server sends this as a request of its own.
    let author = Author::server("kube-apiserver", &target.resource.api_version(), "status");
    let taken = modify(shared, &target, &author, false, |live| {
        check(name, live.object)?;
        Ok(disrupted(live.object.clone(), pods.name(), &now).into())
    });
    taken.map(drop)
}

/// Returns the budgets whose selector matches a pod, by name.
fn budgets(shared: &Shared, pods: &Target, pod: &Object) -> Result<Vec<(String, Object)>, Status> {
    let table = status_target(shared, BUDGETS, pods.namespace(), "")?.resource;
    let labels = object::metadata(pod).get("labels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    let labels: Vec<_> =
        labels.map(|(name, value)| (name, value.as_str().unwrap_or_default())).collect();
    let page = PageRequest { namespace: Some(pods.namespace()), ..PageRequest::default() };
    let found = shared.store.list(&table.table, None, &page).into_iter().flat_map(|p| p.items);
    let budgets = found.map(|budget| (budget.key().name().to_owned(), budget.to_map()));
    Ok(budgets.filter(|(_, budget)| selects(budget, &labels)).collect())
}

/// Returns whether the selector of a budget matches. A budget without a selector matches nothing.
fn selects(budget: &Object, labels: &[(&String, &str)]) -> bool {
    let Some(selector) = budget.get("spec").map(|spec| &spec["selector"]) else { return false };
    selector.is_object()
        && print::requirements(selector)
            .and_then(|text| LabelSelector::parse(&text).ok())
            .is_some_and(|selector| selector.matches(labels))
}

fn number(budget: &Object, field: &str) -> i64 {
    budget.get("status").and_then(|status| status[field].as_i64()).unwrap_or(0)
}

/// Returns whether a budget allows the eviction of a pod that is not ready.
fn allows_unhealthy(budget: &Object) -> bool {
    let policy = budget.get("spec").map(|spec| &spec["unhealthyPodEvictionPolicy"]);
    let desired = number(budget, "desiredHealthy");
    policy.is_some_and(|policy| *policy == "AlwaysAllow")
        || (number(budget, "currentHealthy") >= desired && desired > 0)
}

/// Checks that a budget allows one more disruption.
fn check(name: &str, budget: &Object) -> Result<(), Status> {
    let generation = object::metadata(budget).get("generation").and_then(Value::as_i64);
    if number(budget, "observedGeneration") < generation.unwrap_or(0) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(too_many(why, 10));
    }
    let what = GroupResource { group: "policy", resource: "poddisruptionbudget" };
    let allowed = number(budget, "disruptionsAllowed");
    if allowed < 0 {
        return Err(Status::forbidden(
            what,
            name,
            "pdb disruptions allowed is negative".to_owned(),
        ));
    }
    let disrupted = budget.get("status").and_then(|status| status["disruptedPods"].as_object());
    if disrupted.is_some_and(|pods| pods.len() > DISRUPTED_PODS_MAX) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Status::forbidden(what, name, why.to_owned()));
    }
    if allowed > 0 { Ok(()) } else { Err(too_many(reason(name, budget), 0)) }
}

/// Returns why a budget allows no disruption.
fn reason(name: &str, budget: &Object) -> String {
    let conditions = budget.get("status").and_then(|status| status["conditions"].as_array());
    let condition = conditions.into_iter().flatten().find(|c| c["type"] == "DisruptionAllowed");
    let text = |field: &str| condition.and_then(|c| c[field].as_str()).unwrap_or_default();
    let (why, message) = (text("reason"), text("message"));
    let explained = text("status") == "False" && !message.is_empty();
    let budget_text = format!("The disruption budget {name}");
    let (current, desired) = (number(budget, "currentHealthy"), number(budget, "desiredHealthy"));
    if explained && why == "SyncFailed" {
        format!(
            "{budget_text} does not allow evicting pods currently because it failed sync: {message}"
        )
    } else if current <= desired {
        format!("{budget_text} needs {desired} healthy pods and has {current} currently")
    } else if explained {
        format!("{budget_text} does not allow evicting pods currently ({why}): {message}")
    } else {
        format!("{budget_text} does not allow evicting pods currently")
    }
}

fn too_many(why: String, retry_after: u32) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut status = Status::too_many_requests(message, retry_after);
    status.details.get_or_insert_default().causes.push(Cause {
        reason: "DisruptionBudget".to_owned(),
        message: why,
        field: String::new(),
    });
    status
}

/// Returns a budget after one more disruption.
fn disrupted(mut budget: Object, pod: &str, now: &str) -> Object {
    let left = number(&budget, "disruptionsAllowed") - 1;
    let observed = number(&budget, "observedGeneration");
    let status = budget.entry("status").or_insert_with(|| json!({}));
    status["disruptionsAllowed"] = left.into();
    if !status["disruptedPods"].is_object() {
        status["disruptedPods"] = json!({});
    }
    status["disruptedPods"][pod] = now.into();
    if left == 0 {
        let condition = json!({
            "type": "DisruptionAllowed", "status": "False", "observedGeneration": observed,
            "reason": "InsufficientPods", "message": "",
        });
        set_condition(&mut budget, condition, now);
    }
    budget
}
