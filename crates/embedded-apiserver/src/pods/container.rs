//! The status of a container at each stage of its life.

use serde_json::{Value, json};

use super::identity;
use crate::print::read::text;

/// How a container terminated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// By itself, or when it was asked to.
    Done,
    /// It was still running at the end of the grace period.
    Killed,
}

/// Returns the status of a container that waits to start.
pub(super) fn waiting(spec: &Value, reason: &str) -> Value {
    json!({
        "name": spec["name"],
        "image": text(&spec["image"]),
        "imageID": "",
        "ready": false,
        "started": false,
        "restartCount": 0,
        "lastState": {},
        "state": {"waiting": {"reason": reason}},
    })
}

/// Returns the status of a running container. `ready` is whether it is ready as soon as it runs.
pub(super) fn running(spec: &Value, uid: &str, ready: bool, now: &str) -> Value {
    let image = full_image(text(&spec["image"]));
    let repository = image_repository(&image);
    let digest = identity::digest(&["image", &image]);
    json!({
        "name": spec["name"],
        "image": image,
        "imageID": format!("{repository}@sha256:{digest}"),
        "containerID": id(spec, uid),
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "lastState": {},
        "state": {"running": {"startedAt": now}},
    })
}

fn id(spec: &Value, uid: &str) -> String {
    format!("containerd://{}", identity::digest(&["container", uid, text(&spec["name"])]))
}

/// Returns the status of the container after it has terminated. One that has already terminated is
/// unchanged.
pub(super) fn ended(status: &Value, end: End, now: &str) -> Value {
    if is_terminated(status) {
        return status.clone();
    }
    let running = &status["state"]["running"];
    let state = if running.is_object() {
        let (code, reason) = match end {
            End::Done => (0, "Completed"),
            End::Killed => (137, "Error"),
        };
        json!({
            "exitCode": code, "reason": reason, "containerID": status["containerID"],
            "startedAt": running["startedAt"], "finishedAt": now,
        })
    } else {
        // The kubelet's wording for a container of which it finds no trace.
        json!({
            "exitCode": 137, "reason": "ContainerStatusUnknown",
            "message": "The container could not be located when the pod was terminated",
            "startedAt": null, "finishedAt": null,
        })
    };
    let mut ended = status.as_object().cloned().unwrap_or_default();
    ended.insert("ready".to_owned(), json!(false));
    ended.insert("started".to_owned(), json!(false));
    ended.insert("state".to_owned(), json!({"terminated": state}));
    Value::Object(ended)
}

pub(super) fn is_running(status: &Value) -> bool {
    status["state"]["running"].is_object()
}

pub(super) fn is_terminated(status: &Value) -> bool {
    status["state"]["terminated"].is_object()
}

/// Returns whether an init container keeps running beside the others.
pub(super) fn is_sidecar(spec: &Value) -> bool {
    text(&spec["restartPolicy"]) == "Always"
}

/// Returns an image as containerd names it: with a registry, and with a tag if it has no digest.
fn full_image(image: &str) -> String {
    let registry = match image.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => "",
        Some(_) => "docker.io/",
        None => "docker.io/library/",
    };
    let last = image.rsplit('/').next().unwrap_or_default();
    let tag = if last.contains([':', '@']) { "" } else { ":latest" };
    format!("{registry}{image}{tag}")
}

/// Returns an image without its tag and digest.
fn image_repository(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or_default();
    let last = image.rfind('/').map_or(0, |at| at + 1);
    image[last..].find(':').map_or(image, |at| &image[..last + at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_in_full() {
        for (image, full, repository) in [
            ("nginx", "docker.io/library/nginx:latest", "docker.io/library/nginx"),
            ("nginx:1.29", "docker.io/library/nginx:1.29", "docker.io/library/nginx"),
            ("me/app", "docker.io/me/app:latest", "docker.io/me/app"),
            ("localhost/app", "localhost/app:latest", "localhost/app"),
            ("r.io:5000/a/b:1", "r.io:5000/a/b:1", "r.io:5000/a/b"),
            ("r.io/a@sha256:ab", "r.io/a@sha256:ab", "r.io/a"),
        ] {
            assert_eq!(full_image(image), full);
            assert_eq!(image_repository(full), repository);
        }
    }

    #[test]
    fn a_container_ends_as_it_was() {
        let spec = json!({"name": "a", "image": "nginx"});
        let running = running(&spec, "u", true, "t1");
        let done = ended(&running, End::Done, "t2");
        assert_eq!(
            done["state"]["terminated"],
            json!({
                "exitCode": 0, "reason": "Completed", "containerID": running["containerID"],
                "startedAt": "t1", "finishedAt": "t2",
            })
        );
        assert_eq!((&done["ready"], &done["started"]), (&json!(false), &json!(false)));
        assert_eq!(ended(&done, End::Killed, "t3"), done);
        assert_eq!(ended(&running, End::Killed, "t2")["state"]["terminated"]["exitCode"], 137);
        let lost = ended(&waiting(&spec, "ContainerCreating"), End::Done, "t2");
        assert_eq!(lost["state"]["terminated"]["reason"], "ContainerStatusUnknown");
    }
}
