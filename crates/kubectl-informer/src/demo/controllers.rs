//! The visible part of a cluster's controllers: deployments have pods, jobs complete, and
//! dependents are deleted with their owners.
//!
//! Each step examines all objects anew, and makes at most one change to each deployment, slow
//! enough for people to follow.

use std::time::Duration;

use serde_json::{Value, json};

use super::pod;
use super::world::{World, name, namespace, owned_by, owner};

const DEPLOYMENTS: &str = "deployments.apps";
const SETS: &str = "replicasets.apps";
const JOBS: &str = "jobs.batch";
const PODS: &str = "pods";

/// The label that tells the pods of one template from those of another.
const HASH: &str = "pod-template-hash";

/// Makes the server complete the pods of jobs.
const COMPLETE_AFTER: &str = "embedded-apiserver/complete-after-seconds";

/// Takes the next step. Returns whether more is to be done.
pub(super) fn step(world: &mut World) -> bool {
    let [deployments, mut sets, mut jobs, cron_jobs, mut pods] =
        [DEPLOYMENTS, SETS, JOBS, "cronjobs.batch", PODS].map(|resource| world.list(resource));
    // Dependents are deleted with their owners.
    forget_orphans(world, SETS, "Deployment", &mut sets, &deployments);
    forget_orphans(world, JOBS, "CronJob", &mut jobs, &cron_jobs);
    forget_orphans(world, PODS, "ReplicaSet", &mut pods, &sets);
    forget_orphans(world, PODS, "Job", &mut pods, &jobs);
    let mut busy = false;
    for deployment in &deployments {
        busy |= roll_out(world, deployment, &sets, &pods);
    }
    for job in &jobs {
        run_job(world, job, &pods);
    }
    for pod in pods.iter().filter(|pod| pod::is_failing(pod)) {
        restart(world, pod);
        busy = true;
    }
    busy
}

/// Deletes the objects whose owner of this kind no longer exists.
fn forget_orphans(
    world: &World,
    resource: &str,
    kind: &str,
    objects: &mut Vec<Value>,
    owners: &[Value],
) {
    objects.retain(|object| {
        let reference = &object["metadata"]["ownerReferences"][0];
        let has_owner = owners.iter().any(|owner| owner["metadata"]["uid"] == reference["uid"]);
        let orphan = reference["kind"] == kind && !has_owner;
        if orphan {
            world.delete(resource, object);
        }
        !orphan
    });
}

/// Brings a deployment one pod closer to its desired state. Returns whether it had not reached that
/// state yet.
fn roll_out(world: &mut World, deployment: &Value, sets: &[Value], pods: &[Value]) -> bool {
    let own_sets = owned(sets, deployment);
    let hash = hash(&deployment["spec"]["template"]);
    let found = own_sets.iter().find(|set| set["metadata"]["labels"][HASH] == hash.as_str());
    let Some(current) = found else {
        create_set(world, deployment, Duration::ZERO);
        return true;
    };
    let running = |set: &Value| -> Vec<&Value> {
        owned(pods, set).into_iter().filter(|pod| !pod::is_over(pod)).collect()
    };
    let new = running(current);
    let old_sets: Vec<_> = own_sets.iter().filter(|set| name(set) != name(current)).collect();
    let old: Vec<_> = old_sets.iter().flat_map(|set| running(set)).collect();
    let desired = deployment["spec"]["replicas"].as_u64().unwrap_or(1) as usize;
    let ready = |pods: &[&Value]| pods.iter().filter(|pod| pod::is_ready(pod)).count();

    let surge = usize::from(!old.is_empty());
    if new.len() < desired && new.len() + old.len() < desired.saturating_add(surge) {
        let made = pod::of_template(world, current, &current["spec"]["template"]);
        if let Some(made) = world.create(made) {
            let message = format!("Created pod: {}", name(&made));
            world.tell(current, "replicaset-controller", "SuccessfulCreate", &message);
        }
    } else if let Some(last) = new.last().filter(|_| new.len() > desired) {
        world.delete(PODS, last);
    } else if let Some(unready) = old.iter().find(|pod| !pod::is_ready(pod)) {
        world.delete(PODS, unready);
    } else if let Some(first) = old.first().filter(|_| ready(&new) + ready(&old) > desired) {
        world.delete(PODS, first);
    }
    for set in &old_sets {
        if running(set).is_empty() {
            world.delete(SETS, set);
        } else {
            report_set(world, set, running(set).len(), &running(set));
        }
    }
    report_set(world, current, desired.min(new.len() + 1), &new);
    report_deployment(world, deployment, desired, &new, &old);
    !old.is_empty() || new.len() != desired || ready(&new) != desired
}

/// Creates the replica set for a deployment's template.
pub(super) fn create_set(world: &mut World, deployment: &Value, age: Duration) -> Option<Value> {
    let hash = hash(&deployment["spec"]["template"]);
    let mut template = deployment["spec"]["template"].clone();
    // The template may lack labels: the server does not validate the deployments that users create.
    let labels = template.pointer_mut("/metadata/labels")?;
    labels.as_object_mut()?.insert(HASH.to_owned(), hash.as_str().into());
    let labels = labels.clone();
    let mut metadata = owned_by(deployment, &labels);
    metadata["name"] = format!("{}-{hash}", name(deployment)).into();
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata,
        "spec": {
            "replicas": deployment["spec"]["replicas"], "selector": {"matchLabels": labels},
            "template": template,
        },
    });
    let set = world.create_aged(set, age)?;
    if age.is_zero() {
        let message = format!("Scaled up replica set {} from 0 to 1", name(&set));
        world.tell(deployment, "deployment-controller", "ScalingReplicaSet", &message);
    }
    Some(set)
}

/// Hashes a template into the letters and digits that Kubernetes uses.
fn hash(template: &Value) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let fnv = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    let hash = template.to_string().bytes().fold(2_166_136_261, fnv);
    let digits = hash.to_string().into_bytes();
    digits.iter().map(|digit| char::from(LETTERS[usize::from(*digit) % LETTERS.len()])).collect()
}

fn report_set(world: &World, set: &Value, desired: usize, pods: &[&Value]) {
    let mut set = set.clone();
    if set["spec"]["replicas"] != desired && set["spec"].is_object() {
        set["spec"]["replicas"] = desired.into();
        let Some(updated) = world.update(set) else { return };
        set = updated;
    }
    let ready = pods.iter().filter(|pod| pod::is_ready(pod)).count();
    let mut status = json!({
        "replicas": pods.len(), "fullyLabeledReplicas": pods.len(),
        "observedGeneration": set["metadata"]["generation"],
    });
    if ready > 0 {
        status["readyReplicas"] = ready.into();
        status["availableReplicas"] = ready.into();
    }
    world.update_status(&set, status);
}

fn report_deployment(
    world: &World,
    deployment: &Value,
    desired: usize,
    new: &[&Value],
    old: &[&Value],
) {
    let ready = new.iter().chain(old).filter(|pod| pod::is_ready(pod)).count();
    let conditions = &deployment["status"]["conditions"];
    let condition = |at: usize, kind: &str, met: bool, reasons: [&str; 2]| {
        let status = if met { "True" } else { "False" };
        let (reason, before) = (reasons[usize::from(met)], &conditions[at]);
        let changed = before["status"] != status || before["reason"] != reason;
        let kept = |field: &str, changed: bool| match &before[field] {
            Value::String(time) if !changed => time.clone(),
            _ => world.now(),
        };
        json!({
            "type": kind, "status": status, "reason": reason,
            "lastTransitionTime": kept("lastTransitionTime", before["status"] != status),
            "lastUpdateTime": kept("lastUpdateTime", changed),
        })
    };
    let done = old.is_empty() && new.len() == desired && ready >= desired;
    let available = ["MinimumReplicasUnavailable", "MinimumReplicasAvailable"];
    let progress = if done { "NewReplicaSetAvailable" } else { "ReplicaSetUpdated" };
    let mut status = json!({
        "observedGeneration": deployment["metadata"]["generation"],
        "conditions": [
            condition(0, "Available", ready >= desired, available),
            condition(1, "Progressing", true, ["", progress]),
        ],
    });
    let all = new.len() + old.len();
    let missing = desired.saturating_sub(ready);
    for (field, count) in [
        ("replicas", all),
        ("updatedReplicas", new.len()),
        ("readyReplicas", ready),
        ("availableReplicas", ready),
        ("unavailableReplicas", missing),
    ] {
        if count > 0 {
            status[field] = count.into();
        }
    }
    world.update_status(deployment, status);
}

/// Creates a job's pod, and completes the job when the pod has completed.
fn run_job(world: &mut World, job: &Value, pods: &[Value]) {
    if job["status"]["completionTime"].is_string() {
        return;
    }
    let Some(own) = owned(pods, job).first().copied() else {
        let mut made = pod::of_template(world, job, &job["spec"]["template"]);
        made["metadata"]["annotations"] = json!({COMPLETE_AFTER: world.rng.u32(3..7).to_string()});
        if let Some(made) = world.create(made) {
            let message = format!("Created pod: {}", name(&made));
            world.tell(job, "job-controller", "SuccessfulCreate", &message);
        }
        return;
    };
    let started = match &job["status"]["startTime"] {
        Value::String(started) => started.clone(),
        _ => world.now(),
    };
    if !pod::is_over(own) {
        let ready = u8::from(pod::is_ready(own));
        let status = json!({"active": 1, "ready": ready, "startTime": started});
        return world.update_status(job, status);
    }
    let now = world.now();
    let condition = json!({
        "type": "Complete", "status": "True", "reason": "CompletionsReached",
        "lastProbeTime": now, "lastTransitionTime": now,
    });
    let status = json!({
        "succeeded": 1, "startTime": started, "completionTime": now, "conditions": [condition],
    });
    world.update_status(job, status);
    world.tell(job, "job-controller", "Completed", "Job completed");
}

/// Restarts a failed container: immediately, or after a delay if it fails repeatedly.
fn restart(world: &mut World, pod: &Value) {
    let container = &pod["status"]["containerStatuses"][0];
    let again = container["restartCount"].as_u64().unwrap_or(0) % 2 == 1;
    let backs_off = container["state"]["waiting"].is_object();
    let status = match (backs_off, again) {
        (true, _) if world.rng.u8(..4) > 0 => return,
        (false, again) if again || world.rng.bool() => {
            let message = format!(
                "Back-off restarting failed container in pod {}_{}",
                name(pod),
                namespace(pod)
            );
            world.tell(pod, "kubelet", "BackOff", &message);
            pod::backing_off(world, pod)
        }
        _ => pod::restarted(world, pod),
    };
    world.update_status(pod, status);
}

fn owned<'a>(objects: &'a [Value], by: &Value) -> Vec<&'a Value> {
    let uid = by["metadata"]["uid"].as_str();
    objects.iter().filter(|object| owner(object).is_some() && owner(object) == uid).collect()
}
