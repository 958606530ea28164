//! What is done, but not all of it.

use super::Known;

pub(super) const KNOWN: &[Known] = &[
    Known {
        what: "Most defaults of a spec are not filled in",
        why: "only those are that kubectl and controllers look at",
        places: &[
            ("kinds/*", "missing body.spec*"),
            ("kinds/podtemplate-*", "missing body.template.*"),
            ("kinds/rolebinding-*", "missing body.subjects[u].apiGroup"),
            ("kinds/autoscaler-table", "body.rows*.cells*"),
            ("finalizers/pod*", "missing body.spec.*"),
            ("status/*", "missing body.spec.*"),
            ("metadata/service-with-digit", "missing body.spec.*"),
        ],
    },
    Known {
        what: "Labels, annotations and finalizers that some kinds are given are not there",
        why: "they are for controllers that are not there either: the protection of volumes, jobs, daemon sets",
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
        what: "An empty list stays what it was sent as",
        why: "the real server stores protobuf, which has none, and shows `null` or nothing",
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
        what: "The generation of an endpoint slice counts what that of others does",
        why: "the real server counts changes of its labels, too, and only there",
        places: &[("kinds/slice-label", "body.metadata.generation")],
    },
    Known {
        what: "Fields that a kind has not are kept, whatever `fieldValidation` says",
        why: "there are no schemas of the built-in kinds; config maps, secrets and all metadata are checked",
        places: &[("bodies/unknown-fields", "extra body.colour"), ("bodies/strict", "code")],
    },
    Known {
        what: "Custom objects are not checked against their schema",
        why: "no schemas, no pruning, no CEL",
        places: &[("custom/wrong-type", "code")],
    },
    Known {
        what: "Some rules of definitions are not checked",
        why: "they are about the schema",
        places: &[
            ("definitions/two-storages", "missing body.details.causes[01]"),
            ("definitions/no-schema", "missing body.details.causes[01]"),
            ("definitions/no-schema", "body.message"),
        ],
    },
    Known {
        what: "Whoever may not do anything with a resource that does not exist is told so (404), not that he may not (403)",
        why: "what is denied is denied for resources that are served",
        places: &[("access/unknown-resource", "code")],
    },
    Known {
        what: "`PUT` to a collection of custom objects is 405, not 400",
        why: "as for other resources",
        places: &[("custom/put-collection", "code")],
    },
    Known {
        what: "Discovery is JSON, whatever `Accept` says",
        why: "clients that ask for it take JSON",
        places: &[("discovery/xml*", "code"), ("discovery/table", "code")],
    },
    Known {
        what: "A new node has no status",
        why: "the real server shows the fields that are never left out, with nothing in them; a kubelet fills them in",
        places: &[("kinds/node-*", "missing body.status")],
    },
    Known {
        what: "Events may be about objects in other namespaces, and be changed in any way",
        why: "of what an object says beside its metadata little is checked",
        places: &[("events/patch", "code"), ("events/elsewhere", "code")],
    },
    Known {
        what: "A pod that is deleted goes at once",
        why: "there is no kubelet that would end it; with `Builder::pods_run` there is, and it takes its time",
        places: &[
            ("pods/delete-slowly", "body.metadata.deletionGracePeriodSeconds"),
            ("pods/going", "code"),
            ("pods/delete-faster", "code"),
            ("pods/delete-at-last", "code"),
        ],
    },
    Known {
        what: "A spec may be anything",
        why: "there are no rules for it: a pod may have no containers",
        places: &[("pods/without-*", "code")],
    },
];
