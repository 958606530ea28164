//! The columns that kubectl prints for a type.

use embedded_apiserver::Columns;
use http::Request;
use kube_client::Client;
use serde_json::Value;

use crate::discovery::Type;

/// Returns the columns of a type. Those of built-in types are known; those of custom resources come
/// from their definition. Without permission to read it, the columns are name and age, as for a
/// definition without columns.
pub(crate) async fn columns(client: &Client, of: &Type) -> Columns {
    // Only groups with a domain can come from a custom resource definition.
    if of.group.contains('.')
        && let Some(definition) = definition(client, of).await
        && let Ok(columns) = Columns::custom(&definition, &of.version)
    {
        return columns;
    }
    Columns::built_in(&of.group, &of.plural)
}

async fn definition(client: &Client, of: &Type) -> Option<Value> {
    let path = format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}.{}",
        of.plural, of.group
    );
    client.request(Request::get(path).body(Vec::new()).ok()?).await.ok()
}
