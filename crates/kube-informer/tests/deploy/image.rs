//! The Dockerfile, as far as it can be checked without Docker.

use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;

use super::NAME;
use super::manifests::typed;

const DOCKERFILE: &str = include_str!("../../../../Dockerfile");

#[tokio::test]
async fn image_runs_as_the_user_of_the_deployment() {
    let deployment: Deployment = typed("deployments.apps", NAME);
    let pod = deployment.spec.template.spec.unwrap();
    let context = pod.security_context.unwrap();
    let (user, group) = (context.run_as_user.unwrap(), context.run_as_group.unwrap());
    assert!(user > 0 && group > 0 && context.run_as_non_root == Some(true));
    assert!(DOCKERFILE.lines().any(|line| line == format!("USER {user}:{group}")));
    let image = pod.containers[0].image.as_deref().unwrap();
    let build = format!("docker build --target operator --tag {image} .");
    assert!(DOCKERFILE.contains(&build), "the Dockerfile does not say how {image} is built");
}

#[test]
fn image_consists_of_programs_that_exist() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("[profile.dist]"));
    let builds: Vec<&str> =
        DOCKERFILE.lines().filter_map(|line| line.strip_prefix("RUN cargo build ")).collect();
    assert_eq!(
        builds,
        [
            "--locked --profile dist --package kubectl-informer",
            "--locked --profile dist --package kube-informer --example operator",
        ]
    );
    assert!(root.join("crates/kube-informer/examples/operator.rs").exists());
    for copied in
        ["/source/target/dist/kubectl-informer ", "/source/target/dist/examples/operator "]
    {
        assert!(DOCKERFILE.contains(&format!("COPY --from=build {copied}")), "{copied}");
    }
}
