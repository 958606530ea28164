use proptest::prelude::*;
use serde_json::{Value, json};

use super::filter::{Comparison, Operand};
use super::*;

fn pod() -> Value {
    json!({
        "metadata": {
            "name": "web",
            "labels": {"app.kubernetes.io/name": "shop", "tier": "front"},
        },
        "spec": {"containers": [
            {"name": "app", "image": "shop:1", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
            {"name": "side.car", "image": "envoy:1"},
        ]},
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "Ready", "status": "False"},
            ],
        },
    })
}

fn found(path: &str) -> Vec<Value> {
    let path: Path = path.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
    path.find(&pod()).into_iter().cloned().collect()
}

#[test]
fn all_habits_are_understood() {
    for path in [
        "status.phase",
        ".status.phase",
        "{.status.phase}",
        "$.status.phase",
        "{$.status.phase}",
        " status.phase ",
        "status['phase']",
        "['status'][\"phase\"]",
        ".['status'].phase",
        "status[phase]",
    ] {
        assert_eq!(found(path), [json!("Running")], "{path}");
    }
}

#[test]
fn names_may_have_dots() {
    for path in [
        "metadata.labels['app.kubernetes.io/name']",
        "metadata.labels[\"app.kubernetes.io/name\"]",
        "metadata.labels[app.kubernetes.io/name]",
        r"metadata.labels.app\.kubernetes\.io/name",
        r"{.metadata.labels.app\.kubernetes\.io/name}",
        // Unambiguous, because labels have no subfields.
        "metadata.labels.app.kubernetes.io/name",
    ] {
        assert_eq!(found(path), [json!("shop")], "{path}");
    }
}

#[test]
fn elements_are_found_by_place_name_and_test() {
    for (path, expected) in [
        ("spec.containers[0].image", json!(["shop:1"])),
        ("spec.containers[-1].image", json!(["envoy:1"])),
        ("spec.containers[2].image", json!([])),
        ("spec.containers[-3].image", json!([])),
        ("spec.containers[*].image", json!(["shop:1", "envoy:1"])),
        ("spec.containers[].image", json!(["shop:1", "envoy:1"])),
        ("spec.containers.*.image", json!(["shop:1", "envoy:1"])),
        ("spec.containers[side.car].image", json!(["envoy:1"])),
        ("spec.containers['side.car'].image", json!(["envoy:1"])),
        ("spec.containers[app].ports[80/TCP].containerPort", json!([80])),
        ("status.conditions[Ready].status", json!(["False"])),
        ("status.conditions[?(@.type==\"Ready\")].status", json!(["False"])),
        ("status.conditions[?(@.type!='Ready')].status", json!(["True"])),
        ("spec.containers[?(@.ports)].name", json!(["app"])),
        ("spec.containers[?(@.ports[0].containerPort==80)].name", json!(["app"])),
        ("spec.containers[?(@.ports[0].containerPort>=80)].name", json!(["app"])),
        ("spec.containers[?(@.name<'b')].name", json!(["app"])),
        ("spec.containers[?(@.name==@.image)].name", json!([])),
        ("status.nothing.at.all", json!([])),
        ("status.phase.more", json!([])),
        ("metadata.labels.*", json!(["shop", "front"])),
    ] {
        assert_eq!(Value::from(found(path)), expected, "{path}");
    }
    assert_eq!(found("."), [pod()]);
    assert_eq!(found("{.}"), [pod()]);
}

#[test]
fn a_mistake_is_shown_where_it_is() {
    for (path, place, problem) in [
        ("", 0, "a path is missing"),
        ("status..phase", 7, "two dots in a row"),
        ("status.", 7, "name of a field is missing"),
        ("{.status", 8, "brace at the beginning is not closed"),
        ("status.conditions[Ready", 17, "bracket is not closed"),
        ("labels['a.b]", 7, "quote is not closed"),
        ("labels['a' b]", 11, "expected the end of the bracket"),
        ("containers[0:2]", 11, "slices"),
        ("containers[a[b]", 11, "no index and no name"),
        ("status.phase=Running", 12, "'=' does not belong in a path"),
        ("status phase", 7, "'p' does not belong in a path"),
        ("conditions[?(type=='x')]", 13, "expected @"),
        ("conditions[?(@.type==x)]", 21, "expected a text in quotes"),
        ("conditions[?(@.type=='x']", 24, "does not end here"),
        ("a\\", 0, "backslash"),
        ("status]", 6, "']' does not belong"),
    ] {
        let error = path.parse::<Path>().expect_err(path).to_string();
        assert!(error.contains(problem), "{path}: {error}");
        let mark = error.lines().nth(2).unwrap();
        assert_eq!(mark.len() - 5, place, "{path}: {error}");
    }
}

#[test]
fn it_is_shown_as_one_would_write_it() {
    for (path, shown) in [
        ("status.phase", ".status.phase"),
        ("status.conditions[ Ready ].status", ".status.conditions[Ready].status"),
        (
            "metadata.labels.app\\.kubernetes\\.io/name",
            ".metadata.labels['app.kubernetes.io/name']",
        ),
        ("data['it\\'s']", ".data['it\\'s']"),
        ("ports['8080']", ".ports['8080']"),
        ("ports[80/TCP]", ".ports[80/TCP]"),
        ("a.*[][-1]", ".a[*][*][-1]"),
        ("c[?( @.type == \"Ready\" )].x", ".c[?(@.type=='Ready')].x"),
        ("{.}", "."),
    ] {
        assert_eq!(path.parse::<Path>().unwrap().to_string(), shown, "{path}");
    }
}

#[test]
fn a_path_can_be_the_start_of_a_text() {
    for (text, shown, rest) in [
        ("status.phase=Running", ".status.phase", "=Running"),
        ("{.status.phase}=Running", ".status.phase", "=Running"),
        ("status.ready >= 3", ".status.ready", " >= 3"),
        ("a[x=y],b", ".a['x=y']", ",b"),
        ("a==b", ".a", "==b"),
    ] {
        let (path, end) = Path::parse_start(text, 0).unwrap();
        assert_eq!((path.to_string().as_str(), &text[end..]), (shown, rest), "{text}");
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        "[^\\p{C}\u{2028}\u{2029}]{1,5}"
            .prop_filter("is each", |name| name != "*")
            .prop_map(Step::Field),
        "[a-z0-9./'\\\\ \\[\\]]{0,5}".prop_map(Step::Named),
        any::<i64>().prop_map(Step::Index),
        Just(Step::Each),
        ("[a-z.]{1,3}", "[a-z'\\\\ ]{0,3}", 0_usize..6).prop_map(|(name, value, comparison)| {
            let literal = Operand::Literal(Value::String(value));
            let test = Some((Comparison::ALL[comparison].1, literal));
            Step::Where(Filter { steps: vec![Step::Field(name)], test })
        }),
    ]
}

/// Brackets do not distinguish fields from names of elements.
fn in_brackets(steps: &[Step]) -> Vec<Step> {
    let in_brackets = |step: &Step| match step {
        Step::Field(name) => Step::Named(name.clone()),
        Step::Where(Filter { steps, test }) => {
            Step::Where(Filter { steps: in_brackets(steps), test: test.clone() })
        }
        other => other.clone(),
    };
    steps.iter().map(in_brackets).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_shown_can_be_parsed(steps in prop::collection::vec(step(), 0..6)) {
        let path = Path::new(steps);
        let again = path.to_string().parse::<Path>();
        let again = again.map_err(|error| TestCaseError::fail(format!("{path}: {error}")))?;
        prop_assert_eq!(in_brackets(again.steps()), in_brackets(path.steps()), "{}", path);
    }

    #[test]
    fn nothing_panics(text in "[a-c.\\[\\]{}'\"*?@()=! 0-9:,\\\\ö$-]{0,20}") {
        if let Ok(path) = text.parse::<Path>() {
            path.find(&pod());
        }
    }
}
