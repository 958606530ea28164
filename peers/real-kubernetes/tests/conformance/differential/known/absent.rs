//! Missing features.

use super::Known;

pub(super) const KNOWN: &[Known] = &[
    Known {
        what: "CBOR, and responses in YAML, get a 406 or 415, or JSON if the client accepts that too",
        why: "clients can send YAML, but receive only JSON and protobuf; errors list these. (The real \
              server closes the connection when it receives protobuf for a custom resource.)",
        places: &[
            ("bodies/as-protobuf", "body.message"),
            ("custom/as-protobuf", "code"),
            ("custom/as-text", "body.message"),
            ("custom/protobuf", "body.message"),
            ("custom/xml", "body.message"),
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
        what: "`serviceaccounts/token`, and the resource `componentstatuses`",
        why: "there are no tokens of service accounts, and no components",
        places: &[
            ("discovery/*", "missing body.*resources[componentstatuses]"),
            ("discovery/*", "missing body.resources[*/*]"),
            ("discovery/*", "missing body.*.subresources*"),
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
        what: "Warnings about unknown or duplicate fields, duplicate owners, endpoints, which are \
              deprecated, and jobs that are deleted without their pods",
        why: "they are meant for people, and tests do not show them",
        places: &[
            ("bodies/twice", "missing warnings*"),
            ("bodies/unknown-fields", "missing warnings*"),
            ("metadata/owner-twice", "missing warnings*"),
            ("metadata/unknown-fields", "missing warnings*"),
            ("kinds/endpoints-*", "missing warnings*"),
            ("kinds/job-delete", "missing warnings*"),
        ],
    },
];
