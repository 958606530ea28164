//! Custom resources: typed, dynamic, and installed long after the informer was started.

use std::time::Duration;

use kube::core::{ApiResource, DynamicObject};
use kube::{CustomResource, CustomResourceExt};
use kube_informer::SharedInformerFactory;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::scene::{Errors, requests, seconds, server, settle, within};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "shop.example.com", version = "v1", kind = "Order", namespaced)]
struct OrderSpec {
    customer: String,
}

fn order(name: &str) -> serde_json::Value {
    let order = Order::new(name, OrderSpec { customer: "Ada".to_owned() });
    serde_json::to_value(order).expect("it is JSON")
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_typed_and_shared_with_dynamic_ones() {
    let server = server();
    server.create(serde_json::to_value(Order::crd()).unwrap()).unwrap();
    server.create(order("o-1")).unwrap();
    server
        .create(json!({
            "apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": "odd"},
            "spec": {"customer": 7},
        }))
        .unwrap();
    let factory = SharedInformerFactory::new(server.client());
    let orders = factory.informer::<Order>();
    let dynamic = factory.dynamic(&ApiResource::erase::<Order>(&()));
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(requests(&server).len(), 1);
    let order = orders.lister().get(("default", "o-1")).unwrap();
    assert_eq!(order.decode().unwrap().spec.customer, "Ada");
    // An invalid order is cached, and an error only when it is decoded.
    let odd = orders.lister().get(("default", "odd")).unwrap();
    assert!(odd.decode().unwrap_err().is_decode());
    let odd: DynamicObject =
        (*dynamic.lister().get(("default", "odd")).unwrap().decode().unwrap()).clone();
    assert_eq!(odd.data["spec"]["customer"], 7);
}

#[tokio::test(start_paused = true)]
async fn fa7_a_resource_that_is_not_served_is_waited_for_and_told_of() {
    let server = server();
    let errors = Errors::default();
    let factory =
        SharedInformerFactory::builder(server.client()).on_error(errors.recorder()).build();
    let orders = factory.informer::<Order>();
    factory.start();
    let error = factory.wait_for_sync().await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("CustomResourceDefinition") && text.contains("\"orders\""), "{text}");
    server.create(serde_json::to_value(Order::crd()).unwrap()).unwrap();
    server.create(order("o-1")).unwrap();
    within(Duration::from_secs(61), "it is there", || orders.lister().len() == 1).await;
    seconds(5).await;
    let before = errors.len();
    seconds(600).await;
    assert_eq!(errors.len(), before);
    settle().await;
}
