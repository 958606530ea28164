//! A kind that is known only at run time, and the metadata of another.

#[allow(dead_code, reason = "no example uses all of it")]
#[path = "shared/cluster.rs"]
mod cluster;

use k8s_openapi::api::core::v1::Secret;
use kube::core::GroupVersionKind;
use kube::discovery;
use kube_informer::SharedInformerFactory;
use serde_json::json;

fn main() -> anyhow::Result<()> {
    cluster::run(example)
}

async fn example(cluster: cluster::Cluster) -> anyhow::Result<()> {
    cluster.given(certificates())?;
    let client = cluster.client();
    let gvk = GroupVersionKind::gvk("cert-manager.io", "v1", "Certificate");
    let (resource, _) = discovery::pinned_kind(&client, &gvk).await?;

    let factory = SharedInformerFactory::new(client);
    let certificates = factory.dynamic(&resource);
    let secrets = factory.metadata::<Secret>().lister(); // the server sends no secret data
    factory.start();
    factory.wait_for_sync().await?;

    for certificate in certificates.lister().list() {
        let hosts: Option<Vec<String>> = certificate.field("spec.dnsNames")?;
        let secret: Option<String> = certificate.field("spec.secretName")?;
        let issued = secret.and_then(|name| secrets.get(&certificate.key().sibling(&name)));
        println!("{} for {hosts:?} issued: {}", certificate.key(), issued.is_some());
    }
    factory.shutdown().await;
    Ok(())
}

fn certificates() -> [serde_json::Value; 4] {
    let certificate = |name: &str, host: &str| {
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"namespace": "default", "name": name},
            "spec": {"dnsNames": [host], "secretName": format!("{name}-tls")},
        })
    };
    [
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "certificates.cert-manager.io"},
            "spec": {
                "group": "cert-manager.io", "scope": "Namespaced",
                "names": {"plural": "certificates", "singular": "certificate", "kind": "Certificate"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        }),
        certificate("shop", "shop.example.com"),
        certificate("mail", "mail.example.com"),
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"namespace": "default", "name": "shop-tls"},
            "stringData": {"tls.crt": "…", "tls.key": "…"},
        }),
    ]
}
