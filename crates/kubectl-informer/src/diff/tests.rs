mod properties;

use serde_json::{Value, json};

use super::*;

fn path(text: &str) -> Path {
    text.parse().unwrap()
}

/// Returns the lines without their padding.
fn lines(diff: &Diff<'_>) -> Vec<String> {
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    diff.render(None, false).lines().map(squeeze).collect()
}

fn assert_lines(old: &Value, new: &Value, expected: &[&str]) {
    assert_eq!(lines(&diff(old, new)), expected, "{old}\n{new}");
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "resourceVersion": "10",
            "finalizers": ["a", "b"],
            "managedFields": [{"manager": "kubectl", "time": "2024-01-01T00:00:00Z"}],
        },
        "spec": {"containers": [
            {"name": "app", "image": "shop:1", "args": ["-v", "--fast"]},
            {"name": "sidecar", "image": "envoy:1.30", "ports": [{"containerPort": 80}]},
        ]},
        "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"},
            {"type": "Ready", "status": "False", "lastTransitionTime": "2024-01-01T00:00:00Z",
             "lastProbeTime": null},
        ]},
    })
}

/// Returns the pod with different values at these JSON pointers. A `null` removes the value.
fn changed(changes: &[(&str, Value)]) -> Value {
    let mut pod = pod();
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        match pod.pointer_mut(parent).unwrap() {
            Value::Object(fields) if value.is_null() => drop(fields.remove(name)),
            Value::Object(fields) => drop(fields.insert(name.to_owned(), value.clone())),
            Value::Array(list) => match name.parse::<usize>() {
                Ok(at) if value.is_null() => drop(list.remove(at)),
                Ok(at) if at < list.len() => list[at] = value.clone(),
                _ => list.push(value.clone()),
            },
            _ => unreachable!("{pointer}"),
        }
    }
    pod
}

#[test]
fn a_pod_that_becomes_ready_is_a_few_lines() {
    let new = changed(&[
        ("/status/phase", json!("Running")),
        ("/status/conditions/1/status", json!("True")),
        ("/status/conditions/1/lastTransitionTime", json!("2024-01-01T00:00:09Z")),
        ("/metadata/resourceVersion", json!("11")),
        ("/metadata/labels", json!({"app.kubernetes.io/name": "shop", "tier": "front"})),
        ("/status/podIP", json!("10.0.0.1")),
    ]);
    assert_eq!(
        diff(&pod(), &new).render(Some(80), false),
        [
            "    + .metadata.labels['app.kubernetes.io/name']  shop\n",
            "    + .metadata.labels.tier             front\n",
            "    ~ .status.conditions[Ready].status  False → True\n",
            "    ~ .status.phase                     Pending → Running\n",
            "    + .status.podIP                     10.0.0.1\n",
        ]
        .concat()
    );
}

#[test]
fn elements_of_lists_are_compared_by_name() {
    // In a different order, which is noise.
    let conditions = json!([
        {"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:00:09Z"},
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"},
    ]);
    let new = changed(&[("/status/conditions", conditions)]);
    assert_lines(&pod(), &new, &["~ .status.conditions[Ready].status False → True"]);

    let new = changed(&[("/spec/containers/1", Value::Null)]);
    let removed = "- .spec.containers[sidecar] {image: envoy:1.30, ports: [{containerPort: 80}]}";
    assert_lines(&pod(), &new, &[removed]);
    let added = "+ .spec.containers[sidecar] {image: envoy:1.30, ports: [{containerPort: 80}]}";
    assert_lines(&new, &pod(), &[added]);
}

#[test]
fn an_element_that_is_but_its_name_is_shown_whole() {
    let new = changed(&[("/status/hostIPs", json!([{"ip": "10.0.0.7"}]))]);
    let old = changed(&[("/status/hostIPs", json!([]))]);
    assert_lines(&old, &new, &["+ .status.hostIPs[10.0.0.7] {ip: 10.0.0.7}"]);
}

#[test]
fn plain_values_come_and_go() {
    let new = changed(&[("/metadata/finalizers", json!(["b", "c"]))]);
    assert_lines(&pod(), &new, &["- .metadata.finalizers[] a", "+ .metadata.finalizers[] c"]);
    let new = changed(&[("/metadata/finalizers", json!(["b", "a"]))]);
    assert_lines(&pod(), &new, &["~ .metadata.finalizers [a, b] → [b, a]"]);
    let new = changed(&[("/metadata/finalizers", json!(["a", "b", "a"]))]);
    assert_lines(&pod(), &new, &["+ .metadata.finalizers[] a"]);
    let new = changed(&[("/metadata/finalizers", Value::Null)]);
    assert_lines(&pod(), &new, &["- .metadata.finalizers [a, b]"]);
}

#[test]
fn other_lists_are_compared_from_both_ends() {
    let rules = |verbs: &[&str]| {
        let rules: Vec<_> = verbs.iter().map(|verb| json!({"verbs": [verb]})).collect();
        json!({"rules": rules})
    };
    let old = rules(&["get", "list"]);
    assert_lines(&old, &rules(&["create", "get", "list"]), &["+ .rules[0] {verbs: [create]}"]);
    assert_lines(&old, &rules(&["get"]), &["- .rules[1] {verbs: [list]}"]);
    let expected = ["- .rules[0].verbs[] get", "+ .rules[0].verbs[] watch"];
    assert_lines(&old, &rules(&["watch", "list"]), &expected);
}

#[test]
fn null_is_as_good_as_nothing() {
    assert_lines(&json!({"a": null}), &json!({}), &[]);
    assert_lines(&json!({"a": null}), &json!({"a": 1}), &["+ .a 1"]);
    assert_lines(&Value::Null, &json!({"a": {"b": 1}, "c": {}}), &["+ .a.b 1", "+ .c {}"]);
    assert_lines(&json!([null]), &json!([1]), &["- [] null", "+ [] 1"]);
}

#[test]
fn types_can_change() {
    assert_lines(&json!({"a": 1}), &json!({"a": "1"}), &["~ .a 1 → \"1\""]);
    assert_lines(&json!({"a": {"b": 1}}), &json!({"a": [1]}), &["~ .a {b: 1} → [1]"]);
    assert_lines(&json!({"a": ""}), &json!({"a": " x"}), &["~ .a \"\" → \" x\""]);
}

#[test]
fn noise_is_named_only_if_nothing_else_changed() {
    let noise = [
        ("/metadata/resourceVersion", json!("11")),
        ("/metadata/managedFields", json!([])),
        (
            "/metadata/annotations",
            json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"}),
        ),
        ("/status/conditions/1/lastProbeTime", json!("2024-01-01T00:00:09Z")),
    ];
    let new = changed(&noise);
    let old = pod();
    assert!(diff(&old, &new).is_empty());
    assert_eq!(
        diff(&old, &new).only_noise().as_deref(),
        Some(
            "only metadata.annotations['kubectl.kubernetes.io/last-applied-configuration'], \
             status.conditions[Ready].lastProbeTime, metadata.managedFields and \
             metadata.resourceVersion changed"
        )
    );
    let new = changed(&[noise[0].clone(), ("/status/phase", json!("Running"))]);
    assert_eq!(diff(&old, &new).only_noise(), None);
    assert_eq!(diff(&old, &old).only_noise(), None);
}

#[test]
fn the_same_noise_in_several_elements_is_named_once() {
    let new = changed(&[
        ("/metadata/resourceVersion", json!("11")),
        ("/status/conditions/0/lastHeartbeatTime", json!("2024-01-01T00:00:09Z")),
        ("/status/conditions/1/lastHeartbeatTime", json!("2024-01-01T00:00:09Z")),
    ]);
    assert_eq!(
        diff(&pod(), &new).only_noise().as_deref(),
        Some("only status.conditions[*].lastHeartbeatTime and metadata.resourceVersion changed")
    );
    let mut reversed = pod();
    reversed["status"]["conditions"].as_array_mut().unwrap().reverse();
    let order = diff(&pod(), &reversed).only_noise();
    assert_eq!(order.as_deref(), Some("only the order of status.conditions changed"));
}

#[test]
fn names_of_noise_are_none_where_they_mean_something_else() {
    let old = json!({"data": {"renewTime": "1"}, "metadata": {"labels": {"lastUpdateTime": "1"}}});
    let new = json!({"data": {"renewTime": "2"}, "metadata": {"labels": {"lastUpdateTime": "2"}}});
    let expected = ["~ .metadata.labels.lastUpdateTime 1 → 2", "~ .data.renewTime 1 → 2"];
    assert_lines(&old, &new, &expected);
}

#[test]
fn a_path_narrows_it() {
    let old = pod();
    let new = changed(&[
        ("/status/phase", json!("Running")),
        ("/status/conditions/1/status", json!("True")),
        ("/spec/containers/0/image", json!("shop:2")),
        ("/spec/containers/2", json!({"name": "third", "image": "third:1"})),
        ("/metadata/finalizers", json!(["a"])),
        ("/metadata/resourceVersion", json!("11")),
    ]);
    for (narrow, expected) in [
        (
            ".status",
            vec![
                "~ .status.conditions[Ready].status False → True",
                "~ .status.phase Pending → Running",
            ],
        ),
        (".status.conditions[Ready]", vec!["~ .status.conditions[Ready].status False → True"]),
        (".status.conditions[1].status", vec!["~ .status.conditions[Ready].status False → True"]),
        (".status.conditions[-1].status", vec!["~ .status.conditions[Ready].status False → True"]),
        (
            ".status.conditions[?(@.type=='Ready')]",
            vec!["~ .status.conditions[Ready].status False → True"],
        ),
        (".status.conditions[PodScheduled]", vec![]),
        (
            ".spec.containers[*].image",
            vec![
                "~ .spec.containers[app].image shop:1 → shop:2",
                "+ .spec.containers[third].image third:1",
            ],
        ),
        (".spec.containers[third]", vec!["+ .spec.containers[third] {image: third:1}"]),
        (".metadata.finalizers[]", vec!["- .metadata.finalizers[] b"]),
        // If the path names it, it is not noise.
        (".metadata.resourceVersion", vec!["~ .metadata.resourceVersion 10 → 11"]),
        (".metadata.managedFields", vec![]),
    ] {
        assert_eq!(lines(&diff(&old, &new).under(&path(narrow))), expected, "{narrow}");
    }
    let noise = changed(&[("/metadata/resourceVersion", json!("11"))]);
    let only = |narrow| diff(&old, &noise).under(&path(narrow)).only_noise();
    assert_eq!(only("metadata").as_deref(), Some("only metadata.resourceVersion changed"));
    assert_eq!(only("status"), None);
}

#[test]
fn secrets_are_not_shown() {
    let secret = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"password": value},
            "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": value}},
        })
    };
    // "hunter2" and "correct horse".
    let (old, new) = (secret("aHVudGVyMg=="), secret("Y29ycmVjdCBob3JzZQ=="));
    let expected = ["~ .data.password (secret, 7 bytes) → (secret, 13 bytes)"];
    assert_lines(&old, &new, &expected);
    assert!(!format!("{:?}", diff(&old, &new)).contains("aHVu"));
    // Items of a list have no kind.
    let (mut old_item, mut new_item) = (old.clone(), new.clone());
    for item in [&mut old_item, &mut new_item] {
        item.as_object_mut().unwrap().remove("kind");
    }
    assert_lines(&old_item, &new_item, &expected);
    assert_lines(
        &Value::Null,
        &json!({"kind": "Secret", "stringData": {"a": "x"}}),
        &["+ .kind Secret", "+ .stringData.a (secret, 1 byte)"],
    );
    for narrow in [
        ".",
        "data",
        "data.password",
        "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration",
    ] {
        for (old, new) in [(&old, &new), (&Value::Null, &new), (&json!("x"), &new)] {
            let shown = diff(old, new).under(&path(narrow)).render(None, false);
            assert!(shown.contains("secret,") || shown.is_empty(), "{narrow}: {shown}");
            assert!(!shown.contains("Y29y") && !shown.contains("aHVu"), "{narrow}: {shown}");
        }
    }
}

#[test]
fn lines_fit_the_terminal() {
    let old = json!({"spec": {
        "image": "registry.example.com/a/long/way/to/the/image/of/the/shop:1.2.3-alpine",
        "message": "one\ntwo\nthree ".repeat(20),
        "averylongnameofafieldthatdoesnotfit": {"another.name/with-a-prefix-and-more-to-come": {"deep": {"deeper": 1}}},
    }});
    let new = json!({"spec": {
        "image": "registry.example.com/a/long/way/to/the/image/of/the/shop:1.2.4-alpine",
        "message": "one\ntwo\nthree ".repeat(20) + "four",
        "averylongnameofafieldthatdoesnotfit": {"another.name/with-a-prefix-and-more-to-come": {"deep": {"deeper": 2}}},
    }});
    let changes = diff(&old, &new);
    for width in [40, 80, 100, 200] {
        let shown = changes.render(Some(width), false);
        for line in shown.lines() {
            assert!(crate::cells::width(line) <= width, "{width}: {line}");
        }
        // The difference is visible, even if the rest is not.
        assert!(width < 80 || shown.contains("1.2.3") && shown.contains("1.2.4"), "{shown}");
    }
    assert!(changes.render(None, false).contains("three one\\ntwo"));
    assert!(!changes.render(None, false).contains('…'));
}

#[test]
fn colours_are_there_only_when_wanted() {
    let (old, new) = (json!({"a": 1, "b": 1}), json!({"a": 2, "c": "\u{1b}[2J"}));
    let changes = diff(&old, &new);
    assert!(!changes.render(Some(80), false).contains('\u{1b}'));
    assert_eq!(
        changes.render(Some(80), true),
        "    \u{1b}[33m~\u{1b}[0m .a  \u{1b}[31m1\u{1b}[0m \u{1b}[2m→\u{1b}[0m \u{1b}[32m2\u{1b}[0m\n    \
         \u{1b}[31m-\u{1b}[0m .b  \u{1b}[31m1\u{1b}[0m\n    \
         \u{1b}[32m+\u{1b}[0m .c  \u{1b}[32m\\u{1b}[2J\u{1b}[0m\n"
    );
}

#[test]
fn programs_get_json() {
    let old = json!({"status": {"phase": "Pending", "conditions": [{"type": "Ready", "x": 1}]}});
    let new = json!({"metadata": {"labels": {"a.b": "c"}}, "status": {"phase": "Running"}});
    assert_eq!(
        diff(&old, &new).to_json(),
        json!([
            {"op": "add", "path": ".metadata.labels['a.b']", "new": "c"},
            {"op": "remove", "path": ".status.conditions[Ready]", "old": {"type": "Ready", "x": 1}},
            {"op": "replace", "path": ".status.phase", "old": "Pending", "new": "Running"},
        ])
    );
}

#[test]
fn a_large_difference_is_cut_with_a_count() {
    let labels = |labels: usize| {
        let labels = (0..labels).map(|n| (format!("l{n:02}"), json!("x")));
        json!({"metadata": {"labels": labels.collect::<serde_json::Map<_, _>>()}})
    };
    let (old, few, more, many) = (labels(1), labels(31), labels(32), labels(90));
    assert_eq!(lines(&diff(&old, &few)).len(), 30);
    let cut = lines(&diff(&old, &more));
    assert_eq!((cut.len(), cut[29].as_str()), (31, "+ .metadata.labels.l30 x"));
    assert_eq!(cut[30], "… and 1 more change: -o json has all of them");
    let cut = diff(&old, &many).render(Some(40), false);
    assert_eq!(cut.lines().last().unwrap(), "    … and 59 more changes: -o json has …");
    assert_eq!(diff(&old, &many).to_json().as_array().unwrap().len(), 89);
}
