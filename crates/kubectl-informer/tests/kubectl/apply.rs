//! Commands of kubectl that change workloads, with strategic merge patches and the scale
//! subresource.

use crate::process::Kubectl;

fn deployment(image: &str, env: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
      - {{name: web, image: '{image}', env: [{env}]}}
      - {{name: log, image: log}}
"
    )
}

#[test]
fn apply_creates_changes_and_removes() {
    let Some(kubectl) = Kubectl::new("apply") else { return };
    let apply = |yaml: &str| {
        let (success, stdout, stderr) = kubectl.pipe(yaml, &["apply", "-f", "-"]);
        assert!(success, "{stdout}{stderr}");
        stdout
    };
    let first = deployment("web:1", "{name: A, value: '1'}, {name: B, value: '2'}");
    assert_eq!(apply(&first), "deployment.apps/web created\n");
    assert_eq!(apply(&first), "deployment.apps/web unchanged\n");
    // Another client's container stays, because no applied file ever contained it.
    let added =
        r#"{"spec": {"template": {"spec": {"containers": [{"name": "other", "image": "o"}]}}}}"#;
    assert_eq!(kubectl.run(&["patch", "deploy/web", "-p", added]), "deployment.apps/web patched\n");
    let second = deployment("web:2", "{name: C, value: '3'}, {name: A, value: '1'}");
    assert_eq!(apply(&second), "deployment.apps/web configured\n");
    let get = |path: &str| kubectl.run(&["get", "deploy/web", "-o", &format!("jsonpath={path}")]);
    let images = get("{.spec.template.spec.containers[*].image}");
    let mut images: Vec<_> = images.split(' ').collect();
    images.sort_unstable();
    assert_eq!(images, ["log", "o", "web:2"]);
    let web = "{.spec.template.spec.containers[?(@.name==\"web\")].env[*].name}";
    assert_eq!(get(web), "C A");
}

#[test]
fn commands_that_patch_by_default() {
    let Some(kubectl) = Kubectl::new("patches") else { return };
    kubectl.create(&deployment("web:1", ""));
    let get = |path: &str| kubectl.run(&["get", "deploy/web", "-o", &format!("jsonpath={path}")]);
    kubectl.run(&["set", "image", "deploy/web", "web=web:3"]);
    assert_eq!(get("{.spec.template.spec.containers[*].image}"), "web:3 log");
    kubectl.run(&["set", "env", "deploy/web", "--containers=log", "LEVEL=debug"]);
    assert_eq!(get("{.spec.template.spec.containers[1].env[0].value}"), "debug");
    kubectl.run(&["rollout", "restart", "deploy/web"]);
    assert!(get("{.spec.template.metadata.annotations}").contains("restartedAt"));
    kubectl.run(&["label", "deploy/web", "tier=front"]);
    kubectl.run(&["annotate", "deploy/web", "note=seen"]);
    assert_eq!(get("{.metadata.labels.tier} {.metadata.annotations.note}"), "front seen");
    let delete = r#"{"spec": {"template": {"spec": {"containers": [{"name": "log", "$patch": "delete"}]}}}}"#;
    kubectl.run(&["patch", "deploy/web", "-p", delete]);
    assert_eq!(get("{.spec.template.spec.containers[*].name}"), "web");
}

#[test]
fn scale_changes_the_replicas() {
    let Some(kubectl) = Kubectl::new("scale") else { return };
    kubectl.create(&deployment("web:1", ""));
    let scaled = kubectl.run(&["scale", "deployment", "web", "--replicas=3"]);
    assert_eq!(scaled, "deployment.apps/web scaled\n");
    let replicas = ["get", "deploy/web", "-o", "jsonpath={.spec.replicas}"];
    assert_eq!(kubectl.run(&replicas), "3");
    kubectl.fail(&["scale", "deploy/web", "--current-replicas=2", "--replicas=4"]);
    kubectl.run(&["scale", "deploy/web", "--current-replicas=3", "--replicas=0"]);
    assert_eq!(kubectl.run(&replicas), "0");
    let table = kubectl.run(&["get", "deploy/web", "--subresource=scale"]);
    assert!(table.starts_with("NAME") && table.contains("DESIRED"), "{table}");
    let missing = kubectl.fail(&["scale", "deploy/none", "--replicas=1"]);
    assert!(missing.contains("not found"), "{missing}");
}
