//! Simplifications.

use super::Known;

pub(super) const KNOWN: &[Known] = &[
    Known {
        what: "Most defaults of a spec are not set",
        why: "only those that kubectl and controllers read are set",
        places: &[
            ("kinds/*", "missing body.spec*"),
            ("kinds/podtemplate-*", "missing body.template.*"),
            ("kinds/rolebinding-*", "missing body.subjects[u].apiGroup"),
            ("kinds/autoscaler-table", "body.rows*.cells*"),
            ("finalizers/pod*", "missing body.spec.*"),
            ("status/*", "missing body.spec.*"),
            ("subresources/scene-*", "missing body.spec.*"),
            ("subresources/scene-ready", "missing body.status.conditions*"),
            ("metadata/service-with-digit", "missing body.spec.*"),
        ],
    },
    Known {
        what: "Labels, annotations and finalizers that the real server adds to some kinds are missing",
        why: "they serve controllers that are missing too: volume protection, jobs, daemon sets",
        places: &[
            ("kinds/claim-*", "missing body*metadata.*"),
            ("kinds/claim-after", "code"),
            ("kinds/volume-*", "missing body*metadata.*"),
            ("kinds/volume-*", "missing body.status.lastPhaseTransitionTime"),
            ("kinds/volume-after", "code"),
            ("kinds/controller-*", "missing body*metadata.labels*"),
            ("kinds/daemonset-*", "missing body.metadata.annotations"),
            ("kinds/job-*", "missing body*metadata.labels*"),
            ("kinds/job-table", "body.rows*.cells*"),
        ],
    },
    Known {
        what: "An empty list is stored as it was sent",
        why: "the real server stores protobuf, which has no empty lists, and returns `null` or nothing",
        places: &[
            ("metadata/role-with-colon", "body.rules"),
            ("kinds/clusterrole-*", "body.rules"),
            ("kinds/endpoints-*", "extra body.subsets"),
            ("kinds/limitrange-*", "body.spec.limits"),
            ("kinds/slice-*", "body.endpoints"),
            ("kinds/slice-*", "missing body.ports"),
        ],
    },
    Known {
        what: "The generation of an endpoint slice counts the same changes as that of other kinds",
        why: "the real server also counts changes of labels, for this kind only",
        places: &[("kinds/slice-label", "body.metadata.generation")],
    },
    Known {
        what: "Unknown fields are kept, whatever `fieldValidation` says",
        why: "there are no schemas of the built-in kinds; only config maps, secrets and metadata are \
              validated",
        places: &[("bodies/unknown-fields", "extra body.colour"), ("bodies/strict", "code")],
    },
    Known {
        what: "Custom objects are not validated against their schema",
        why: "there are no schemas, no pruning and no CEL",
        places: &[("custom/wrong-type", "code")],
    },
    Known {
        what: "Some rules for definitions are not enforced",
        why: "they concern the schema",
        places: &[
            ("definitions/two-storages", "missing body.details.causes[01]"),
            ("definitions/no-schema", "missing body.details.causes[01]"),
            ("definitions/no-schema", "body.message"),
        ],
    },
    Known {
        what: "A request for a resource that does not exist gets a 404, even if the user has no \
              permissions (403 on the real server)",
        why: "denials apply only to resources that are served",
        places: &[("access/unknown-resource", "code")],
    },
    Known {
        what: "`PUT` to a collection of custom objects gets a 405, not a 400",
        why: "as for other resources",
        places: &[("custom/put-collection", "code")],
    },
    Known {
        what: "Discovery is always JSON, whatever `Accept` says",
        why: "all clients of discovery accept JSON",
        places: &[("discovery/xml*", "code"), ("discovery/table", "code")],
    },
    Known {
        what: "A new node has no status",
        why: "the real server returns the fields that are never omitted, empty; a kubelet fills them \
              in",
        places: &[("kinds/node-*", "missing body.status")],
    },
    Known {
        what: "Events may refer to objects in other namespaces, and may be changed in any way",
        why: "little apart from metadata is validated",
        places: &[("events/patch", "code"), ("events/elsewhere", "code")],
    },
    Known {
        what: "A deleted pod is removed at once",
        why: "there is no kubelet to terminate it; with `Builder::pods_run` there is one, and it \
              respects the grace period",
        places: &[
            ("pods/delete-slowly", "body.metadata.deletionGracePeriodSeconds"),
            ("pods/going", "code"),
            ("pods/delete-faster", "code"),
            ("pods/delete-at-last", "code"),
        ],
    },
    Known {
        what: "Specs are not validated",
        why: "there are no rules for them: a pod may have no containers",
        places: &[("pods/without-*", "code")],
    },
];
