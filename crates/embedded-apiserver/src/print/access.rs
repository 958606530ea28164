//! RBAC.

use serde_json::Value;

use super::read::{age, items, name, text as string};
use super::{AGE, NAME, Printer, text, wide};

/// Role bindings and cluster role bindings.
pub(super) static BINDING: Printer = Printer {
    columns: &[
        NAME,
        text("Role", "The kind and name of the role that is given."),
        AGE,
        wide("Users", "The users that it is given to."),
        wide("Groups", "The groups that it is given to."),
        wide("ServiceAccounts", "The service accounts that it is given to."),
    ],
    cells: |object, now| {
        let role = &object["roleRef"];
        vec![
            name(object).into(),
            format!("{}/{}", string(&role["kind"]), string(&role["name"])).into(),
            age(object, now).into(),
            subjects(object, "User").into(),
            subjects(object, "Group").into(),
            subjects(object, "ServiceAccount").into(),
        ]
    },
};

fn subjects(object: &Value, kind: &str) -> String {
    let shown = |subject: &Value| match kind {
        "ServiceAccount" => {
            format!("{}/{}", string(&subject["namespace"]), string(&subject["name"]))
        }
        _ => string(&subject["name"]).to_owned(),
    };
    let all = items(&object["subjects"]).iter();
    all.filter(|subject| subject["kind"] == kind).map(shown).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{assert_columns, assert_rows};

    #[test]
    fn bindings_show_the_role_and_who_has_it() {
        for plural in ["rolebindings", "clusterrolebindings"] {
            assert_columns(
                "rbac.authorization.k8s.io",
                plural,
                &[
                    ("Name", "string", 0),
                    ("Role", "string", 0),
                    ("Age", "string", 0),
                    ("Users", "string", 1),
                    ("Groups", "string", 1),
                    ("ServiceAccounts", "string", 1),
                ],
            );
            assert_rows(
                "rbac.authorization.k8s.io",
                plural,
                [
                    (
                        "of all kinds",
                        json!({
                            "metadata": {"name": "a"},
                            "roleRef": {"kind": "Role", "name": "reader"},
                            "subjects": [
                                {"kind": "User", "name": "jane"}, {"kind": "Group", "name": "ops"},
                                {"kind": "ServiceAccount", "namespace": "x", "name": "bot"},
                                {"kind": "User", "name": "joe"}, {"kind": "Alien", "name": "e"}, 7,
                            ],
                        }),
                        json!(["a", "Role/reader", "<unknown>", "jane, joe", "ops", "x/bot"]),
                    ),
                    ("bare", json!({}), json!(["", "/", "<unknown>", "", "", ""])),
                ],
            );
        }
    }

    #[test]
    fn roles_show_when_they_were_created() {
        for plural in ["roles", "clusterroles"] {
            assert_rows(
                "rbac.authorization.k8s.io",
                plural,
                [(
                    "any",
                    json!({"metadata": {"name": "a", "creationTimestamp": "2025-12-31T23:00:00Z"}}),
                    json!(["a", "2025-12-31T23:00:00Z"]),
                )],
            );
        }
    }
}
