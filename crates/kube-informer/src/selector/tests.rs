use embedded_apiserver::selector::LabelSelector as Oracle;
use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Selector {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    Labels::new(pairs.iter().copied())
}

#[test]
fn l1_everything_and_nothing_are_known_without_looking() {
    let any = labels(&[("nothing", ""), ("a", "b")]);
    let (everything, nothing) = (Selector::everything(), Selector::nothing());
    assert!(everything.is_everything() && !everything.is_nothing() && everything.matches(&any));
    assert!(nothing.is_nothing() && !nothing.is_everything() && !nothing.matches(&any));
    assert!(!nothing.matches(&Labels::default()));
    assert_eq!((parse(" \t"), parse("")), (everything.clone(), everything));
    assert_eq!(parse(&nothing.to_string()), nothing);
    assert!(parse("a,b=c,!a").is_nothing() && !parse("!a,b").is_nothing());
}

#[test]
fn requirements_are_met_as_kubernetes_has_it() {
    let have = labels(&[("app", "web"), ("empty", ""), ("n", "10"), ("tier", "front")]);
    for met in [
        "app",
        "empty",
        "!absent",
        "app=web",
        "app==web",
        "empty=",
        "empty in ()",
        "app!=api",
        "absent!=x",
        "app in (web,api)",
        "app notin (api)",
        "absent notin (x)",
        "n>9",
        "n<11",
        "app=web,tier=front",
        "example.com/x!=1",
    ] {
        assert!(have.matches(&parse(met)), "{met}");
    }
    for unmet in [
        "absent",
        "!app",
        "app=api",
        "absent=",
        "app in (api)",
        "absent in (x)",
        "app notin (web)",
        "app!=web",
        "n>10",
        "n<10",
        "app>1",
        "absent>1",
        "app=web,tier=back",
    ] {
        assert!(!have.matches(&parse(unmet)), "{unmet}");
    }
}

#[test]
fn parse_errors_have_a_position() {
    for (text, says) in [
        ("app in web", "'(' expected at character 8"),
        ("app in (web", "',' or ')' expected at character 12"),
        ("app in (a b)", "',' or ')' expected at character 11"),
        ("a,", "the name of a label expected at character 3"),
        (",a", "the name of a label expected at character 1"),
        ("a,,b", "the name of a label expected at character 3"),
        ("!", "the name of a label expected at character 2"),
        ("a b", "one of = == != in notin < > or a comma expected at character 3"),
        ("a)", "one of = == != in notin < > or a comma expected at character 2"),
        ("!a=b", "a comma expected at character 3"),
        ("a=b c", "a comma expected at character 5"),
        ("a=~", "the value of a label that is not"),
        ("A/b", "prefix of a label that is no DNS name at character 1"),
        ("/b", "prefix of a label"),
        ("a/b/c", "the name of a label that is not"),
        ("a>b", "a number of at most 64 bits expected at character 3"),
        ("a>99999999999999999999", "a number"),
        ("x=1,\u{e9}=1", "the name of a label that is not"),
        ("x=\u{e9} y", "the value of a label that is not"),
    ] {
        let error = text.parse::<Selector>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("{text:?} is not a label selector: ")), "{error}");
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn equivalent_selectors_are_equal() {
    assert_eq!(parse("a=1,b in (y,x,y)"), parse("b in (x , y), a in (1), a == 1"));
    assert_ne!(parse("a=1"), parse("a!=1"));
    assert_eq!(Selector::label("a", "1"), parse("a=1"));
    assert_eq!(format!("{:?}", parse("b , !a")), "Selector(!a,b)");
}

#[test]
fn selectors_of_kube_are_taken_over() {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
    let set = |values: &[&str]| values.iter().map(ToString::to_string).collect();
    let theirs: KubeSelector = [
        Expression::In("a".into(), set(&["2", "1"])),
        Expression::NotIn("b".into(), set(&["3"])),
        Expression::Equal("c".into(), "4".into()),
        Expression::NotEqual("d".into(), "5".into()),
        Expression::Exists("e".into()),
        Expression::DoesNotExist("f".into()),
    ]
    .into_iter()
    .collect();
    assert_eq!(Selector::from(theirs), parse("a in (1,2),b notin (3),c=4,d!=5,e,!f"));
    assert!(Selector::from(Expression::In("a".into(), set(&[]))).is_nothing());
    assert!(Selector::from(Expression::NotIn("a".into(), set(&[]))).is_everything());
    let spec = |operator: &str, values: Option<Vec<String>>| LabelSelector {
        match_labels: Some([("a".to_owned(), "1".to_owned())].into()),
        match_expressions: Some(vec![LabelSelectorRequirement {
            key: "b".into(),
            operator: operator.into(),
            values,
        }]),
    };
    let from_spec = Selector::from_spec(spec("NotIn", Some(vec!["2".into()]))).unwrap();
    assert_eq!(from_spec, parse("a=1,b!=2"));
    assert!(Selector::from_spec(LabelSelector::default()).unwrap().is_everything());
    assert!(Selector::from_spec(spec("Near", None)).is_err());
}

/// Mostly valid selectors, sometimes almost valid ones.
fn any_text() -> impl Strategy<Value = String> {
    let label = "[ab]|app|in|notin|x\\.y/a|A/b|-a|[a-c]{1,2}[/._-]?[a-c]?";
    let value = "|[ab]|in|notin|[0-9]{1,3}|-1|[a-c1]{0,2}[._-]?[a-c]?|~";
    let space = "[ \t\r\n]{0,2}";
    let list = proptest::collection::vec((space, value, space), 0..4).prop_map(|all| {
        let all: Vec<String> = all.into_iter().map(|(a, value, b)| a + &value + &b).collect();
        format!("({})", all.join(","))
    });
    let set = (label, space, "in|notin", space, list)
        .prop_map(|(label, a, op, b, list)| format!("{label} {a}{op}{b}{list}"));
    let compare = (label, space, "=|==|!=|<|>", space, value)
        .prop_map(|(label, a, op, b, value)| format!("{label}{a}{op}{b}{value}"));
    let exists = ("!?", space, label).prop_map(|(not, a, label)| not + &a + &label);
    let one = prop_oneof![4 => set, 4 => compare, 4 => exists, 1 => "[ab=!(),<> ]{0,5}"];
    (proptest::collection::vec(one, 0..4), space, space)
        .prop_map(|(all, a, b)| format!("{a}{}{b}", all.join(",")))
}

fn any_labels() -> impl Strategy<Value = Vec<(String, String)>> {
    proptest::collection::btree_map("[ab]|app|in|notin|x\\.y/a", "|[ab]|in|[0-9]{1,3}", 0..5)
        .prop_map(|labels| labels.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_api_server_means_the_same(text in any_text(), labels in any_labels()) {
        let (ours, theirs) = (text.parse::<Selector>(), Oracle::parse(&text));
        prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} {:?}", ours, theirs);
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            let matches = theirs.matches(&labels);
            prop_assert_eq!(ours.matches(&Labels::new(labels.clone())), matches);
            prop_assert!(!(ours.is_nothing() && matches));
            // The `Display` form has the same meaning, in both implementations.
            let shown = ours.to_string();
            prop_assert_eq!(Oracle::parse(&shown).unwrap().matches(&labels), matches, "{}", shown);
            prop_assert_eq!(shown.parse::<Selector>().unwrap(), ours);
        }
    }

    #[test]
    fn nothing_panics_on_any_text(text: String) {
        let _ = text.parse::<Selector>();
    }
}
