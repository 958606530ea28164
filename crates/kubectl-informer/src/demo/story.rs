//! The events in the cluster: changes by people, pipelines and accidents.

use serde_json::{Value, json};

use super::pod;
use super::world::{World, name, namespace, owned_by, owner};

/// One event in the story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beat {
    /// A deployment gets a new image.
    Release,
    /// A deployment is scaled up or down.
    Scale,
    /// The container of a pod fails.
    Crash,
    /// The cron job starts a job.
    Report,
    /// A pod gains or loses a label.
    Label,
    /// A pod gets an annotation.
    Annotate,
    /// A config map is edited.
    Configure,
    /// A database moves to its next phase.
    Maintain,
}

/// The frequency of each event in a round.
const ROUND: [Beat; 14] = [
    Beat::Release,
    Beat::Scale,
    Beat::Scale,
    Beat::Crash,
    Beat::Report,
    Beat::Label,
    Beat::Label,
    Beat::Label,
    Beat::Annotate,
    Beat::Configure,
    Beat::Configure,
    Beat::Maintain,
    Beat::Maintain,
    Beat::Maintain,
];

/// The deployments that the story changes, with their minimum and maximum number of pods. Those
/// that users add are left alone.
const SIZES: [(&str, u64, u64); 3] = [("web", 2, 4), ("api", 1, 3), ("worker", 1, 3)];

const LABELS: [(&str, &str); 3] = [("canary", "true"), ("tier", "gold"), ("reviewed", "yes")];

/// The events that remain in this round.
#[derive(Debug)]
pub(super) struct Story {
    left: Vec<Beat>,
}

impl Default for Story {
    /// Starts with pods, which most people look at first. One is changed, then some are replaced,
    /// so that users see every kind of event within seconds.
    fn default() -> Self {
        Self { left: vec![Beat::Scale, Beat::Crash, Beat::Release, Beat::Label] }
    }
}

impl Story {
    /// Lets one event happen. While a larger change is in progress, only small ones happen, and
    /// less often.
    pub(super) fn go_on(&mut self, world: &mut World, busy: bool) {
        if busy {
            if world.rng.u8(..3) == 0 {
                label(world);
            }
            return;
        }
        if self.left.is_empty() {
            self.left = ROUND.to_vec();
            world.rng.shuffle(&mut self.left);
        }
        match self.left.pop().unwrap_or(Beat::Label) {
            Beat::Release => release(world),
            Beat::Scale => scale(world),
            Beat::Crash => crash(world),
            Beat::Report => report(world),
            Beat::Label => label(world),
            Beat::Annotate => annotate(world),
            Beat::Configure => configure(world),
            Beat::Maintain => maintain(world),
        }
    }
}

/// Returns a random one of the story's deployments.
fn deployment(world: &mut World) -> Option<(Value, u64, u64)> {
    let (name, min, max) = SIZES[world.rng.usize(..SIZES.len())];
    Some((world.server.get("deployments.apps", "default", name)?, min, max))
}

fn release(world: &mut World) {
    let Some((mut deployment, ..)) = deployment(world) else { return };
    let path = "/spec/template/spec/containers/0/image";
    let Some(image) = deployment.pointer_mut(path) else { return };
    if let Some(next) = image.as_str().and_then(next_version) {
        *image = next.into();
        world.update(deployment);
    }
}

/// Returns the next version of an image: `nginx:1.29.4` for `nginx:1.29.3`.
fn next_version(image: &str) -> Option<String> {
    let (rest, last) = image.rsplit_once(['.', ':'])?;
    let next = last.parse::<u32>().ok()? % 9 + 1;
    let separator = &image[rest.len()..=rest.len()];
    Some(format!("{rest}{separator}{next}"))
}

fn scale(world: &mut World) {
    let Some((mut deployment, min, max)) = deployment(world) else { return };
    let Some(replicas) = deployment["spec"]["replicas"].as_u64() else { return };
    let wanted = match replicas {
        few if few <= min => few + 1,
        many if many >= max => many - 1,
        some if world.rng.bool() => some + 1,
        some => some - 1,
    };
    deployment["spec"]["replicas"] = wanted.into();
    world.update(deployment);
}

fn crash(world: &mut World) {
    let Some(unlucky) = running_pod(world) else { return };
    let status = pod::crashed(world, &unlucky);
    world.update_status(&unlucky, status);
}

/// Returns a random ready pod that has an owner.
fn running_pod(world: &mut World) -> Option<Value> {
    let mut pods = world.list("pods");
    pods.retain(|pod| pod::is_ready(pod) && owner(pod).is_some());
    world.one(pods)
}

fn label(world: &mut World) {
    let Some(mut pod) = running_pod(world) else { return };
    let (key, value) = LABELS[world.rng.usize(..LABELS.len())];
    let Some(labels) = pod["metadata"]["labels"].as_object_mut() else { return };
    if labels.remove(key).is_none() {
        labels.insert(key.to_owned(), value.into());
    }
    world.update(pod);
}

fn annotate(world: &mut World) {
    let Some(mut pod) = running_pod(world) else { return };
    let now = world.now();
    if !pod["metadata"]["annotations"].is_object() {
        pod["metadata"]["annotations"] = json!({});
    }
    pod["metadata"]["annotations"]["demo.example.com/checked-at"] = now.into();
    world.update(pod);
}

fn configure(world: &mut World) {
    const WORDS: [(&str, &[&str]); 4] = [
        ("logLevel", &["debug", "info", "warn"]),
        ("timeoutSeconds", &["10", "30", "60"]),
        ("darkMode", &["on", "off"]),
        ("newCheckout", &["on", "off"]),
    ];
    let maps = world.list("configmaps");
    let mut known: Vec<(Value, &str, &str)> = Vec::new();
    for map in &maps {
        for (key, words) in WORDS {
            let old = map["data"][key].as_str();
            let others = words.iter().filter(|word| old.is_some_and(|old| old != **word));
            known.extend(others.map(|word| (map.clone(), key, *word)));
        }
    }
    let Some((mut map, key, value)) = world.one(known) else { return };
    map["data"][key] = value.into();
    world.update(map);
}

/// Starts to upgrade a database, or completes an upgrade in progress.
fn maintain(world: &mut World) {
    let databases = world.list("databases.demo.example.com");
    let unready = databases.iter().find(|database| database["status"]["phase"] != "Ready").cloned();
    if let Some(mut database) = unready {
        database["status"] = json!({"phase": "Ready"});
        world.update(database);
        return;
    }
    let Some(mut database) = world.one(databases) else { return };
    let Some(version) = database["spec"]["version"].as_str().and_then(next_version) else { return };
    database["spec"]["version"] = version.into();
    database["status"] = json!({"phase": "Upgrading"});
    world.update(database);
}

/// Starts the cron job's job for this minute, and deletes the previous one.
fn report(world: &mut World) {
    let Some(cron_job) = world.server.get("cronjobs.batch", "default", "report") else { return };
    let uid = cron_job["metadata"]["uid"].as_str();
    let minutes = world.server.now().as_second() / 60;
    let this = format!("{}-{minutes}", name(&cron_job));
    for job in world.list("jobs.batch").iter().filter(|job| owner(job) == uid) {
        if job["status"]["completionTime"].is_null() || name(job) == this {
            return;
        }
        world.delete("jobs.batch", job);
    }
    let template = &cron_job["spec"]["jobTemplate"]["spec"]["template"];
    let mut metadata = owned_by(&cron_job, &template["metadata"]["labels"]);
    metadata["name"] = this.into();
    let job = world.create(json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
        "spec": {"parallelism": 1, "completions": 1, "backoffLimit": 6, "template": template},
    }));
    let Some(job) = job else { return };
    let message = format!("Created job {}", name(&job));
    world.tell(&cron_job, "cronjob-controller", "SuccessfulCreate", &message);
    let status = json!({"lastScheduleTime": world.now(), "active": [{
        "apiVersion": "batch/v1", "kind": "Job", "namespace": namespace(&job), "name": name(&job),
        "uid": job["metadata"]["uid"],
    }]});
    world.update_status(&cron_job, status);
}
