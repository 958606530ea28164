//! The built-in resources of Kubernetes 1.36, one row each.

use std::borrow::Cow;
use std::sync::Arc;

use super::scale::{ScalePaths, SelectorField};
use super::{NameRule, Resource, events};

/// Returns all built-in resources, in no particular order.
pub(crate) fn builtin() -> Vec<Resource> {
    [core(), workloads(), networking(), access(), storage(), extension()].concat()
}

fn core() -> Vec<Resource> {
    const POD_FIELDS: &[&str] = &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ];
    group(
        "",
        "v1",
        [
            namespaced("bindings", "Binding").unstored(),
            namespaced("configmaps", "ConfigMap").short("cm"),
            namespaced("endpoints", "Endpoints").short("ep"),
            namespaced("events", "Event").short("ev").fields(events::CORE_FIELDS),
            namespaced("limitranges", "LimitRange").short("limits"),
            cluster("namespaces", "Namespace")
                .short("ns")
                .status()
                .named(NameRule::Label)
                .fields(&["status.phase"]),
            cluster("nodes", "Node").short("no").status().fields(&["spec.unschedulable"]),
            namespaced("persistentvolumeclaims", "PersistentVolumeClaim").short("pvc").status(),
            cluster("persistentvolumes", "PersistentVolume").short("pv").status(),
            namespaced("pods", "Pod").short("po").all().status().generation().fields(POD_FIELDS),
            namespaced("podtemplates", "PodTemplate").generation(),
            namespaced("replicationcontrollers", "ReplicationController")
                .short("rc")
                .all()
                .status()
                .scale(SelectorField::Labels)
                .generation()
                .fields(&["status.replicas"]),
            namespaced("resourcequotas", "ResourceQuota").short("quota").status(),
            namespaced("secrets", "Secret").fields(&["type"]),
            namespaced("serviceaccounts", "ServiceAccount").short("sa"),
            // Since 1.36 a service's name may start with a digit: any DNS-1123 label.
            namespaced("services", "Service")
                .short("svc")
                .all()
                .status()
                .named(NameRule::Label)
                .fields(&["spec.clusterIP", "spec.type"]),
        ],
    )
}

fn workloads() -> Vec<Resource> {
    let apps = group(
        "apps",
        "v1",
        [
            namespaced("controllerrevisions", "ControllerRevision"),
            namespaced("daemonsets", "DaemonSet").short("ds").all().status().generation(),
            namespaced("deployments", "Deployment")
                .short("deploy")
                .all()
                .status()
                .scale(SelectorField::LabelSelector)
                .generation(),
            namespaced("replicasets", "ReplicaSet")
                .short("rs")
                .all()
                .status()
                .scale(SelectorField::LabelSelector)
                .generation(),
            namespaced("statefulsets", "StatefulSet")
                .short("sts")
                .all()
                .status()
                .scale(SelectorField::LabelSelector)
                .generation()
                .named(NameRule::Label),
        ],
    );
    let batch = group(
        "batch",
        "v1",
        [
            namespaced("cronjobs", "CronJob").short("cj").all().status().generation(),
            namespaced("jobs", "Job").all().status().generation().fields(&["status.successful"]),
        ],
    );
    let autoscaling = group(
        "autoscaling",
        "v2",
        [namespaced("horizontalpodautoscalers", "HorizontalPodAutoscaler")
            .short("hpa")
            .all()
            .status()],
    );
    let policy = group(
        "policy",
        "v1",
        [namespaced("poddisruptionbudgets", "PodDisruptionBudget")
            .short("pdb")
            .status()
            .generation()
            .needs_version()],
    );
    let scheduling = group(
        "scheduling.k8s.io",
        "v1",
        [cluster("priorityclasses", "PriorityClass").short("pc").generation()],
    );
    let node =
        group("node.k8s.io", "v1", [cluster("runtimeclasses", "RuntimeClass").needs_version()]);
    [apps, batch, autoscaling, policy, scheduling, node].concat()
}

fn networking() -> Vec<Resource> {
    let networking = group(
        "networking.k8s.io",
        "v1",
        [
            cluster("ingressclasses", "IngressClass").generation(),
            namespaced("ingresses", "Ingress").short("ing").status().generation(),
            // The name is the address itself, which may be an IPv6 address.
            cluster("ipaddresses", "IPAddress").short("ip").named(NameRule::PathSegment),
            namespaced("networkpolicies", "NetworkPolicy").short("netpol").generation(),
            cluster("servicecidrs", "ServiceCIDR").status(),
        ],
    );
    let discovery = group(
        "discovery.k8s.io",
        "v1",
        [namespaced("endpointslices", "EndpointSlice").generation()],
    );
    [networking, discovery].concat()
}

fn access() -> Vec<Resource> {
    let rbac = group(
        "rbac.authorization.k8s.io",
        "v1",
        [
            cluster("clusterrolebindings", "ClusterRoleBinding").named(NameRule::PathSegment),
            cluster("clusterroles", "ClusterRole").named(NameRule::PathSegment),
            namespaced("rolebindings", "RoleBinding").named(NameRule::PathSegment),
            namespaced("roles", "Role").named(NameRule::PathSegment),
        ],
    );
    let certificates = group(
        "certificates.k8s.io",
        "v1",
        [cluster("certificatesigningrequests", "CertificateSigningRequest")
            .short("csr")
            .status()
            .named(NameRule::PathSegment)
            .fields(&["spec.signerName"])],
    );
    [rbac, certificates].concat()
}

fn storage() -> Vec<Resource> {
    let storage = group(
        "storage.k8s.io",
        "v1",
        [
            cluster("csidrivers", "CSIDriver").needs_version(),
            cluster("csinodes", "CSINode").needs_version(),
            namespaced("csistoragecapacities", "CSIStorageCapacity").needs_version(),
            cluster("storageclasses", "StorageClass").short("sc"),
            cluster("volumeattachments", "VolumeAttachment").status().needs_version(),
            cluster("volumeattributesclasses", "VolumeAttributesClass").short("vac"),
        ],
    );
    let coordination =
        group("coordination.k8s.io", "v1", [namespaced("leases", "Lease").needs_version()]);
    let events = group(
        events::GROUP,
        "v1",
        [namespaced("events", "Event").short("ev").fields(events::NEW_FIELDS)],
    );
    [storage, coordination, events].concat()
}

fn extension() -> Vec<Resource> {
    let admission = [
        cluster("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
        cluster("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
        cluster("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
        cluster("validatingadmissionpolicies", "ValidatingAdmissionPolicy").status(),
        cluster("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
        cluster("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    ];
    let admission =
        admission.map(|row| row.category("api-extensions").generation().needs_version());
    let definitions = [cluster("customresourcedefinitions", "CustomResourceDefinition")
        .short("crd")
        .short("crds")
        .category("api-extensions")
        .status()
        .generation()
        .needs_version()];
    [
        group("admissionregistration.k8s.io", "v1", admission),
        group("apiextensions.k8s.io", "v1", definitions),
    ]
    .concat()
}

fn group<const N: usize>(
    group: &'static str,
    version: &'static str,
    mut rows: [Resource; N],
) -> Vec<Resource> {
    for row in &mut rows {
        row.group = Cow::Borrowed(group);
        row.version = Cow::Borrowed(version);
        row.table = match group {
            // Both share a table: an event that is written through one group can be read through
            // the other.
            "" | events::GROUP => Arc::from(&*row.plural),
            group => Arc::from(format!("{}.{group}", row.plural)),
        };
    }
    rows.into()
}

pub(super) fn namespaced(plural: &'static str, kind: &'static str) -> Resource {
    Resource { namespaced: true, ..cluster(plural, kind) }
}

pub(super) fn cluster(plural: &'static str, kind: &'static str) -> Resource {
    Resource {
        group: Cow::Borrowed(""),
        version: Cow::Borrowed(""),
        kind: Cow::Borrowed(kind),
        list_kind: Cow::Owned(format!("{kind}List")),
        plural: Cow::Borrowed(plural),
        singular: Cow::Owned(kind.to_ascii_lowercase()),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: false,
        status: false,
        scale: None,
        generation: false,
        unconditional_update: true,
        name_rule: NameRule::Subdomain,
        selectable: Arc::from([]),
        columns: Vec::new(),
        custom: false,
        stored: true,
        schema: None,
        table: Arc::from(""),
    }
}

/// The optional attributes of a row, in addition to its two names and its scope.
impl Resource {
    fn short(mut self, name: &'static str) -> Self {
        self.short_names.push(Cow::Borrowed(name));
        self
    }

    fn category(mut self, name: &'static str) -> Self {
        self.categories.push(Cow::Borrowed(name));
        self
    }

    /// Includes the resource in `kubectl get all`.
    fn all(self) -> Self {
        self.category("all")
    }

    fn status(mut self) -> Self {
        self.status = true;
        self
    }

    fn scale(mut self, selector: SelectorField) -> Self {
        self.scale = Some(ScalePaths::builtin(selector));
        self
    }

    fn generation(mut self) -> Self {
        self.generation = true;
        self
    }

    fn unstored(mut self) -> Self {
        self.stored = false;
        self
    }

    fn needs_version(mut self) -> Self {
        self.unconditional_update = false;
        self
    }

    fn named(mut self, rule: NameRule) -> Self {
        self.name_rule = rule;
        self
    }

    fn fields(mut self, labels: &'static [&'static str]) -> Self {
        self.selectable = labels.iter().copied().map(Cow::Borrowed).collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn find(group: &str, plural: &str) -> Resource {
        let mut found = builtin().into_iter().filter(|r| r.group == group && r.plural == plural);
        found.next().unwrap_or_else(|| panic!("{plural}.{group} is in the table"))
    }

    #[test]
    fn no_two_rows_share_a_plural_or_a_kind_within_a_group() {
        let (mut plurals, mut kinds) = (HashSet::new(), HashSet::new());
        for row in builtin() {
            assert!(plurals.insert((row.group.clone(), row.plural.clone())), "{row:?}");
            assert!(kinds.insert((row.group.clone(), row.kind.clone())), "{row:?}");
        }
    }

    #[test]
    fn every_row_is_spelled_as_kubernetes_spells_names() {
        for row in builtin() {
            assert!(row.plural.bytes().all(|b| b.is_ascii_lowercase()), "{row:?}");
            assert!(row.kind.starts_with(|c: char| c.is_ascii_uppercase()), "{row:?}");
            assert_eq!(row.list_kind, format!("{}List", row.kind));
            assert!(row.plural.starts_with(&row.singular[..row.singular.len() - 1]), "{row:?}");
            assert!(!row.version.is_empty() && !row.custom);
            let core_like = row.group.is_empty() || row.group == events::GROUP;
            let table = row.group_resource().to_string();
            assert_eq!(&*row.table, if core_like { &*row.plural } else { &*table });
        }
    }

    #[test]
    fn short_names_are_unique_but_for_the_two_events() {
        let mut seen = HashSet::new();
        for row in builtin().into_iter().filter(|row| row.group != events::GROUP) {
            for name in row.short_names {
                assert!(seen.insert(name.clone()), "{name} is taken");
            }
        }
    }

    #[test]
    fn both_groups_of_events_share_one_table() {
        assert_eq!(find("", "events").table, find(events::GROUP, "events").table);
    }

    #[test]
    fn rows_differ_where_kubernetes_has_them_differ() {
        let pods = find("", "pods");
        assert!(pods.namespaced && pods.status && pods.generation && pods.unconditional_update);
        let nodes = find("", "nodes");
        assert!(!nodes.namespaced && nodes.status && !nodes.generation);
        assert!(!find("coordination.k8s.io", "leases").unconditional_update);
        assert!(!find("", "configmaps").generation);
        assert!(find("discovery.k8s.io", "endpointslices").generation);
        assert_eq!(find("", "namespaces").name_rule, NameRule::Label);
        assert_eq!(find("rbac.authorization.k8s.io", "roles").name_rule, NameRule::PathSegment);
        assert_eq!(*find("", "secrets").selectable, ["type"]);
        assert!(find("apps", "replicasets").selectable.is_empty());
    }
}
