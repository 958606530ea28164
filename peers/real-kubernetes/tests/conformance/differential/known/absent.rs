//! Missing features.

use super::Known;

pub(super) const KNOWN: &[Known] = &[
    Known {
        what: "Server-side apply gets a 415",
        why: "the response lists the supported patch types",
        places: &[("patch/apply", "code")],
    },
    Known {
        what: "YAML and CBOR get a 406 or 415, or JSON if the client accepts that too",
        why: "only JSON and protobuf are supported; responses list them. (The real server closes the \
              connection when it receives protobuf for a custom resource.)",
        places: &[
            ("bodies/as-protobuf", "body.message"),
            ("bodies/as-yaml", "code"),
            ("bodies/as-text", "body.message"),
            ("bodies/as-xml", "body.message"),
            ("bodies/as-a-patch", "body.message"),
            ("bodies/as-anything", "body.message"),
            ("bodies/as-nonsense", "body.message"),
            ("delete/as-text", "body.message"),
            ("custom/as-protobuf", "code"),
            ("custom/as-text", "body.message"),
            ("custom/protobuf", "body.message"),
            ("custom/xml", "body.message"),
            ("custom/strategic", "body.message"),
            ("custom/nonsense-patch", "body.message"),
            ("representations/as-unknown*", "body.message"),
            ("representations/xml*", "body.message"),
            ("representations/text", "body.message"),
            ("representations/any-*", "body.message"),
            ("representations/nonsense", "body.message"),
            ("representations/yaml", "code"),
            ("watch-end/accept-xml", "body.message"),
        ],
    },
    Known {
        what: "Deletes with `Orphan` or `Foreground`, the default of jobs and replication \
              controllers, take effect at once",
        why: "there is no garbage collector to wait for, which would remove the finalizer",
        places: &[
            ("delete/orphan", "body.kind"),
            ("delete/orphan-waits", "code"),
            ("delete/foreground", "body.kind"),
            ("delete/foreground-waits", "code"),
            ("status/delete-options-foreground", "body.kind"),
            ("status/after-delete", "code"),
            ("kinds/controller-delete", "body.kind"),
            ("kinds/controller-after", "code"),
            ("kinds/job-delete", "body.kind"),
            ("kinds/job-after", "code"),
        ],
    },
    Known {
        what: "Subresources other than `status` and `scale`, and the resources `bindings` and `componentstatuses`",
        why: "there are no pods to log, exec or evict, and no schedulers to bind",
        places: &[
            ("discovery/*", "missing body.*resources[bindings]"),
            ("discovery/*", "missing body.*resources[componentstatuses]"),
            ("discovery/*", "missing body.resources[*/*]"),
            ("discovery/*", "missing body.*.subresources*"),
            ("namespaces/finalize-other", "code"),
        ],
    },
    Known {
        what: "Second versions of built-in resources, such as `autoscaling/v1`",
        why: "they would require conversion of objects",
        places: &[("discovery/autoscaling", "missing body.versions*")],
    },
    Known {
        what: "Schemas",
        why: "`/openapi` contains just enough for kubectl to create objects",
        places: &[("discovery/openapi-v3", "*body.paths.*"), ("discovery/openapi-v3", "type")],
    },
    Known {
        what: "`storageVersionHash` and the server's address in discovery",
        why: "the former concerns etcd, the latter the client's network",
        places: &[
            ("discovery/*", "missing *.storageVersionHash"),
            ("discovery/api*", "missing body.serverAddressByClientCIDRs*"),
            ("access/discovery", "missing body.serverAddressByClientCIDRs*"),
            ("custom/version", "missing *.storageVersionHash"),
        ],
    },
    Known {
        what: "A list of all paths at `/`",
        why: "no client needs it",
        places: &[("paths/root", "code")],
    },
    Known {
        what: "Warnings about unknown or duplicate fields, duplicate owners, and endpoints, which are \
              deprecated",
        why: "they are meant for people, and tests do not show them",
        places: &[
            ("bodies/twice", "missing warnings*"),
            ("bodies/unknown-fields", "missing warnings*"),
            ("metadata/owner-twice", "missing warnings*"),
            ("metadata/unknown-fields", "missing warnings*"),
            ("kinds/endpoints-*", "missing warnings*"),
        ],
    },
];
