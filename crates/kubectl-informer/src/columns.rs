//! The columns that kubectl shows of a type.

use embedded_apiserver::Columns;
use http::Request;
use kube_client::Client;
use serde_json::Value;

use crate::discovery::Type;

/// Those of Kubernetes' own types are known; those of custom resources are in their definition. Who may
/// not read that gets name and age, as of a type that defines none.
pub(crate) async fn columns(client: &Client, of: &Type) -> Columns {
    // Only groups with a domain have definitions.
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
