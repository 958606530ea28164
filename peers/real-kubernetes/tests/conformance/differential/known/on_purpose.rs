//! Intentional differences.

use super::Known;

pub(super) const KNOWN: &[Known] = &[
    Known {
        what: "Client mistakes get a 400 where the real server sends a 500",
        why: "a non-numeric resourceVersion, one on an object to be created, or an unknown field of an \
              applied configuration is the client's mistake; clients retry a 500, and would do so indefinitely",
        places: &[
            ("create/get-version-of-no-number", "code"),
            ("create/with-a-version", "code"),
            ("watch-end/word", "code"),
            ("watch-end/negative", "code"),
            ("apply/unknown-field", "code"),
            ("apply-lists/keyed-twice", "code"),
        ],
    },
    Known {
        what: "An update with a non-numeric resourceVersion gets a 409 where the real server sends a \
              500",
        why: "whatever it is, it is not the newest version",
        places: &[("update/version-of-no-number", "code")],
    },
    Known {
        what: "A request without a token gets a 401",
        why: "as on a real server with `--anonymous-auth=false`; `Builder::anonymous` accepts such \
              requests",
        places: &[("access/anonymous-*", "code")],
    },
    Known {
        what: "Messages do not quote the request",
        why: "the real server quotes a body that it cannot parse, and the whole object that a patch \
              makes invalid, even if it is a Secret",
        places: &[
            ("bodies/empty", "body.message"),
            ("bodies/no-json", "body.message"),
            ("bodies/wrong-version", "body.message"),
            ("custom/without-kind", "body.message"),
            ("patch/merge-wrong-type", "body.*message"),
            ("patch/merge-wrong-labels", "body.*message"),
            ("patch/merge-kind", "body.*message"),
            ("patch/json-wrong-type", "body.*message"),
        ],
    },
    Known {
        what: "Errors about invalid JSON or an invalid kind are worded differently",
        why: "the real server's messages come from Go's decoder and name its types and source files; \
              code and reason are the same",
        places: &[
            ("bodies/words", "body.message"),
            ("bodies/a-number", "body.message"),
            ("bodies/a-list", "body.message"),
            ("bodies/more-than-one", "body.message"),
            ("bodies/comma", "body.message"),
            ("bodies/another-kind", "body.message"),
            ("bodies/unknown-kind", "body.message"),
            ("bodies/another-version", "body.message"),
            ("bodies/another-group", "body.message"),
            ("bodies/kind-is-a-number", "body.message"),
            ("delete/another-kind", "body.message"),
            ("pages/continue-nonsense", "body.message"),
            ("update/another-kind", "body.message"),
            ("update/another-uid", "body.message"),
            ("representations/metadata-of-a-list", "body.message"),
            ("representations/metadata-list-of-one", "body.message"),
            ("representations/metadata-or-json", "body.message"),
            ("definitions/no-storage", "body.*message"),
            ("definitions/two-storages", "body.*message"),
            ("definitions/same-version-twice", "body.*message"),
        ],
    },
    Known {
        what: "Each cause is listed once",
        why: "the real server validates metadata several times in an update, and repeats its findings",
        places: &[
            ("finalizers/one-more", "missing body.details.causes[01]"),
            ("update/with-times", "missing body.details.causes[01]"),
            ("patch/merge-uid", "missing body.details.causes[01]"),
            ("apply/other-uid", "missing body.details.causes[01]"),
            ("patch/merge-invalid-label", "missing body.details.causes[0*]"),
        ],
    },
    Known {
        what: "The descriptions of table columns are worded differently",
        why: "kubectl does not show them; names, types, formats, priorities and cells are the same",
        places: &[
            ("kinds/*-table", "body.columnDefinitions*.description"),
            ("status/table", "body.columnDefinitions*.description"),
            ("namespaces/table", "body.columnDefinitions*.description"),
            ("representations/table*", "body.columnDefinitions*.description"),
            ("representations/kubectl", "body.columnDefinitions*.description"),
            ("custom/table", "body.columnDefinitions*.description"),
            ("events/table-*", "body.columnDefinitions*.description"),
            ("pods/running", "body.columnDefinitions*.description"),
            ("watch/table*", "events*.columnDefinitions*.description"),
        ],
    },
    Known {
        what: "`/version` identifies a different program",
        why: "users should be able to tell",
        places: &[("paths/version", "body.*")],
    },
    Known {
        what: "A definition is established as soon as it is created, and gone as soon as it is deleted",
        why: "the real server takes a moment for each, and shows its progress; waiting would serve \
              no purpose",
        places: &[("custom/define", "*body.status.*"), ("custom/undefine", "body.kind")],
    },
];
