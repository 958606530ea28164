//! A typed custom resource: the derive is enough, there is no code to generate.

#[allow(dead_code, reason = "no example uses all of it")]
#[path = "shared/cluster.rs"]
mod cluster;

use kube::{CustomResource, CustomResourceExt};
use kube_informer::{Event, SharedInformerFactory};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "shop.example.com", version = "v1", kind = "Order", namespaced)]
struct OrderSpec {
    customer: String,
    cents: u64,
}

fn main() -> anyhow::Result<()> {
    cluster::run(example)
}

async fn example(cluster: cluster::Cluster) -> anyhow::Result<()> {
    cluster.given([
        serde_json::to_value(Order::crd())?,
        order("o-1", &json!({"customer": "Ada", "cents": 1200}), "true"),
        order("o-2", &json!({"customer": "Grace", "cents": 800}), "true"),
        order("o-3", &json!({"customer": "Nobody", "cents": 9900}), "false"),
        order("o-4", &json!("whatever"), "true"),
    ])?;
    let factory = SharedInformerFactory::new(cluster.client());
    let orders = factory.builder_for::<Order>().namespace("default").labels("paid=true").build();

    let mut turnover = 0;
    let bookkeeper = orders.handler().for_each(move |event| {
        let Event::Added { object, .. } = event else { return };
        match object.decode() {
            Ok(order) => {
                turnover += order.spec.cents;
                println!("{} paid {}, turnover {turnover}", order.spec.customer, order.spec.cents);
            }
            // The object is cached all the same, and affects no other object.
            Err(error) => println!("not an Order: {error}"),
        }
    });

    factory.start();
    bookkeeper.wait_for_sync().await?;
    println!("that was the past, this is now");

    cluster.play().await?;
    factory.shutdown().await;
    Ok(())
}

fn order(name: &str, spec: &serde_json::Value, paid: &str) -> serde_json::Value {
    json!({
        "apiVersion": "shop.example.com/v1", "kind": "Order",
        "metadata": {"namespace": "default", "name": name, "labels": {"paid": paid}},
        "spec": spec,
    })
}
