//! What is not there.

use super::Known;

pub(super) const KNOWN: &[Known] = &[
    Known {
        what: "Strategic merge patch and server-side apply are 415",
        why: "the answer says which patches there are",
        places: &[("patch/strategic", "code"), ("patch/apply", "code")],
    },
    Known {
        what: "YAML and CBOR are 406 and 415, or JSON where that is asked for, too",
        why: "JSON and protobuf are the codecs; answers name what there is. (The real server breaks the connection when \
              it is sent protobuf for a custom resource.)",
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
        what: "Deletes with `Orphan` or `Foreground`, which jobs and replication controllers have by default, are at once",
        why: "there is no garbage collector that would wait, and take the finalizer off",
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
        what: "Subresources but `status`, and the resources `bindings` and `componentstatuses`",
        why: "there are no pods to log, exec or evict, no schedulers to bind, and nothing scales",
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
        why: "objects would have to be converted",
        places: &[("discovery/autoscaling", "missing body.versions*")],
    },
    Known {
        what: "Schemas",
        why: "`/openapi` says just enough for kubectl to create objects",
        places: &[("discovery/openapi-v3", "*body.paths.*"), ("discovery/openapi-v3", "type")],
    },
    Known {
        what: "`storageVersionHash` and the server's address in discovery",
        why: "the one is about etcd, the other about which network a client is in",
        places: &[
            ("discovery/*", "missing *.storageVersionHash"),
            ("discovery/api*", "missing body.serverAddressByClientCIDRs*"),
            ("access/discovery", "missing body.serverAddressByClientCIDRs*"),
            ("custom/version", "missing *.storageVersionHash"),
        ],
    },
    Known {
        what: "A list of all paths at `/`",
        why: "nothing asks for it",
        places: &[("paths/root", "code")],
    },
    Known {
        what: "Warnings: of fields that are unknown or there twice, of owners that are named twice, of endpoints, which are deprecated",
        why: "they are for people, and nobody looks",
        places: &[
            ("bodies/twice", "missing warnings*"),
            ("bodies/unknown-fields", "missing warnings*"),
            ("metadata/owner-twice", "missing warnings*"),
            ("metadata/unknown-fields", "missing warnings*"),
            ("kinds/endpoints-*", "missing warnings*"),
        ],
    },
];
