//! The roles against the requests that the embedded server records.

use std::collections::BTreeSet;

use embedded_apiserver::{ApiServer, Fault, RequestRecord, Verb};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::wait::await_condition;
use rustix::process::Signal;
use serde_json::Value;

use super::manifests::typed;
use super::{NAME, USER, deployed, site, start};

/// A permission: group, resource, verb, and the only name and namespace that it is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Permission {
    group: String,
    resource: String,
    verb: String,
    name: Option<String>,
    namespace: Option<String>,
}

impl Permission {
    fn allows(&self, request: &RequestRecord) -> bool {
        let group = match request.uri.strip_prefix("/apis/") {
            Some(rest) => rest.split('/').next().unwrap_or_default(),
            None => "",
        };
        self.group == group
            && self.resource == request.resource
            && request.verb.is_some_and(|verb| self.verb == verb.as_str())
            && self.name.as_ref().is_none_or(|name| *name == request.name)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == request.namespace)
    }
}

/// Returns the permissions of a role; `namespace` is that of its binding.
fn permissions(rules: &[PolicyRule], namespace: Option<&str>) -> Vec<Permission> {
    let mut all = Vec::new();
    for rule in rules {
        let names = rule.resource_names.as_deref().unwrap_or_default();
        let names: Vec<Option<String>> =
            if names.is_empty() { vec![None] } else { names.iter().cloned().map(Some).collect() };
        for group in rule.api_groups.as_deref().unwrap_or_default() {
            for resource in rule.resources.as_deref().unwrap_or_default() {
                for (verb, name) in
                    rule.verbs.iter().flat_map(|verb| names.iter().map(move |name| (verb, name)))
                {
                    all.push(Permission {
                        group: group.clone(),
                        resource: resource.clone(),
                        verb: verb.clone(),
                        name: name.clone(),
                        namespace: namespace.map(str::to_owned),
                    });
                }
            }
        }
    }
    all
}

/// Lets an operator do all that it does: publish, repair, refuse, refuse again, clean up and end.
async fn exercise(server: &ApiServer) {
    // As a server without streaming lists does. The informers then request plain ones.
    for resource in ["websites", "configmaps", "services"] {
        server.faults().on(Verb::Watch).user(USER).resource(resource).inject(Fault::status(422));
    }
    let mut operator = start(server).await;
    let kind = GroupVersionKind::gvk("example.com", "v1", "Website");
    let resource = ApiResource::from_gvk_with_plural(&kind, "websites");
    let sites: Api<DynamicObject> = Api::namespaced_with(server.client(), "default", &resource);
    let settled = async |what: fn(&Value) -> bool| {
        let is = move |site: Option<&DynamicObject>| site.is_some_and(|site| what(&site.data));
        await_condition(sites.clone(), "hello", is).await.unwrap();
    };

    server.create(site(80)).unwrap();
    settled(|site| site["status"]["conditions"][0]["status"] == "True").await;
    for (resource, field) in [("configmaps", "data"), ("services", "spec")] {
        let mut child = server.get(resource, "default", "hello").unwrap();
        child[field] = serde_json::json!({});
        server.update(child).unwrap();
    }
    // Printed after the children have been restored; each of them was first created.
    let mut written = Vec::new();
    while written.len() < 4 {
        let line = operator.line().await;
        if line.contains(" is written: ") {
            written.push(line);
        }
    }
    for port in [0, -1] {
        // The same event twice is a series.
        let mut site = server.get("websites.example.com", "default", "hello").unwrap();
        site["spec"]["port"] = port.into();
        server.update(site).unwrap();
        let note = format!("{port} is no port");
        while server.get("websites.example.com", "default", "hello").unwrap()["status"]["conditions"]
            [0]["message"]
            != note.as_str()
        {
            operator.line().await; // whenever it writes a status, it prints a line
        }
    }
    server.delete("websites.example.com", "default", "hello").unwrap();
    let gone = |site: Option<&DynamicObject>| site.is_none();
    await_condition(sites, "hello", gone).await.unwrap();
    operator.end(Signal::TERM).await;
}

#[tokio::test]
async fn rules_allow_exactly_the_requests_of_the_operator() {
    let cluster: ClusterRole = typed("clusterroles.rbac.authorization.k8s.io", "");
    let own: Role = typed("roles.rbac.authorization.k8s.io", NAME);
    let mut allowed = permissions(&cluster.rules.unwrap(), None);
    allowed.extend(permissions(&own.rules.unwrap(), Some(NAME)));

    let server = deployed();
    exercise(&server).await;
    let requests = server.requests();
    let requests: Vec<_> = requests.iter().filter(|request| request.user == USER).collect();
    assert!(!requests.is_empty());

    let denied: BTreeSet<String> = requests
        .iter()
        .filter(|request| !allowed.iter().any(|permission| permission.allows(request)))
        .map(|request| format!("{} {}", request.method, request.uri))
        .collect();
    assert_eq!(denied, BTreeSet::new(), "the rules lack these");
    let unused: Vec<&Permission> = allowed
        .iter()
        .filter(|permission| !requests.iter().any(|request| permission.allows(request)))
        .collect();
    assert_eq!(unused, Vec::<&Permission>::new(), "no request needs these rules");
    let lease = server.get("leases.coordination.k8s.io", NAME, NAME).expect("the operator led");
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    assert_eq!(holder, "", "SIGTERM ends it gracefully: the lease is released");
}

#[test]
fn permissions_are_matched_in_full() {
    let rule = PolicyRule {
        api_groups: Some(vec!["apps".into()]),
        resources: Some(vec!["deployments".into()]),
        resource_names: Some(vec!["web".into()]),
        verbs: vec!["get".into()],
        ..PolicyRule::default()
    };
    let [permission] = &*permissions(&[rule], Some("shop")) else { panic!("one permission") };
    let request = RequestRecord {
        id: 1,
        at: std::time::Duration::ZERO,
        revision: 1,
        user: USER.to_owned(),
        method: "GET".to_owned(),
        uri: "/apis/apps/v1/namespaces/shop/deployments/web".to_owned(),
        verb: Some(Verb::Get),
        resource: "deployments".to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        status: Some(200),
        faults: Vec::new(),
    };
    assert!(permission.allows(&request));
    let changes: [fn(&mut RequestRecord); 5] = [
        |request| request.uri = "/api/v1/namespaces/shop/deployments/web".to_owned(),
        |request| request.resource = "deployments/status".to_owned(),
        |request| request.verb = Some(Verb::Delete),
        |request| request.name = "db".to_owned(),
        |request| request.namespace = "default".to_owned(),
    ];
    for change in changes {
        let mut other = request.clone();
        change(&mut other);
        assert!(!permission.allows(&other), "{other:?}");
    }
}
