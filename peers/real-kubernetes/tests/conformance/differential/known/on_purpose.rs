//! What is better, or clearer, another way.

use super::Known;

pub(super) const KNOWN: &[Known] = &[
    Known {
        what: "What a client got wrong is 400, where the real server says 500",
        why: "a resourceVersion that is no number, or one on an object to be created, is the client's \
              mistake: clients try again after a 500, and would for ever",
        places: &[
            ("create/get-version-of-no-number", "code"),
            ("create/with-a-version", "code"),
            ("watch-end/word", "code"),
            ("watch-end/negative", "code"),
        ],
    },
    Known {
        what: "An update with a resourceVersion that is no number is a conflict (409), where the real server says 500",
        why: "it is not the newest version, whatever it is",
        places: &[("update/version-of-no-number", "code")],
    },
    Known {
        what: "A request without a token is 401",
        why: "as on a real server with `--anonymous-auth=false`; `Builder::anonymous` lets everybody in",
        places: &[("access/anonymous-*", "code")],
    },
    Known {
        what: "Messages do not repeat what was sent",
        why: "the real server shows the body that it cannot read, and the whole of an object that a patch spoils: \
              secrets among them",
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
        what: "What is wrong with JSON, or with a kind, is said in other words",
        why: "the real server's are those of Go's decoder and of its own types and source files; code and reason \
              are the same",
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
        what: "A cause is named once",
        why: "the real server checks metadata several times on an update, and repeats what it finds",
        places: &[
            ("finalizers/one-more", "missing body.details.causes[01]"),
            ("update/with-times", "missing body.details.causes[01]"),
            ("patch/merge-uid", "missing body.details.causes[01]"),
            ("patch/merge-invalid-label", "missing body.details.causes[0*]"),
        ],
    },
    Known {
        what: "The columns of tables are described in other words",
        why: "kubectl does not show them; the names, types, formats, priorities and cells are the same",
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
        what: "`/version` says that it is another program",
        why: "people should see it",
        places: &[("paths/version", "body.*")],
    },
    Known {
        what: "A definition is established when it is made, and gone when it is deleted",
        why: "the real server takes a moment for each, and shows what it has got to; nothing is gained by waiting",
        places: &[("custom/define", "*body.status.*"), ("custom/undefine", "body.kind")],
    },
];
