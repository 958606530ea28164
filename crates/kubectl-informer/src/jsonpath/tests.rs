use proptest::prelude::*;
use serde_json::json;

use super::*;

fn pod() -> Value {
    json!({
        "metadata": {
            "name": "web",
            "labels": {"app.kubernetes.io/name": "shop", "tier": "front"},
            "nul": null,
        },
        "spec": {
            "replicas": 3, "ratio": 0.25, "paused": false,
            "containers": [
                {"name": "app", "image": "shop:1", "ports": [{"containerPort": 80}, {"containerPort": 443}]},
                {"name": "side", "image": "envoy:1"},
            ],
            "args": ["a", "b", "c", "d"],
            "one": {"k": "v"},
        },
        "status": {"phase": "Running", "conditions": [
            {"type": "Scheduled", "status": "True", "n": 1},
            {"type": "Ready", "status": "False", "n": 2},
        ]},
    })
}

fn render(source: &str) -> Result<String, SyntaxError> {
    JsonPath::parse(source)?.render(&pod())
}

/// The expected output was produced by Kubernetes' own implementation.
#[test]
fn it_prints_what_kubectl_prints() {
    for (source, expected) in [
        ("{.metadata.name}", "web"),
        ("{$.metadata.name}", "web"),
        ("{@.metadata.name}", "web"),
        ("{ .metadata.name }", "web"),
        (r#"{.metadata.name}{"\t"}{.status.phase}{"\n"}"#, "web\tRunning\n"),
        ("text {.metadata.name} more", "text web more"),
        ("{.spec.containers[*].image}", "shop:1 envoy:1"),
        ("{.spec.containers[0].image}", "shop:1"),
        ("{.spec.containers[-1].name}", "side"),
        ("{.spec.containers[0:1].name}", "app"),
        ("{.spec.args[1:3]}", "b c"),
        ("{.spec.args[:2]}", "a b"),
        ("{.spec.args[2:]}", "c d"),
        ("{.spec.args[-2:]}", "c d"),
        ("{.spec.args[::2]}", "a c"),
        ("{.spec.args[0:4:3]}", "a d"),
        ("{.spec.args[0,2]}", "a c"),
        ("{.spec.args[*]}", "a b c d"),
        ("{.spec.args}", "[\"a\",\"b\",\"c\",\"d\"]"),
        (
            "{.spec}",
            "{\"args\":[\"a\",\"b\",\"c\",\"d\"],\"containers\":[{\"image\":\"shop:1\",\"name\":\"app\",\"ports\":[{\"containerPort\":80},{\"containerPort\":443}]},{\"image\":\"envoy:1\",\"name\":\"side\"}],\"one\":{\"k\":\"v\"},\"paused\":false,\"ratio\":0.25,\"replicas\":3}",
        ),
        ("{.spec['replicas']}", "3"),
        ("{.spec['replicas','ratio']}", "3 0.25"),
        ("{.metadata['name','missing']}", "web"),
        (r"{.metadata.labels.app\.kubernetes\.io/name}", "shop"),
        (r"{.metadata.labels['app\.kubernetes\.io/name']}", "shop"),
        ("{.missing}", ""),
        ("{.missing.deep}", ""),
        ("{.metadata.nul}", "null"),
        ("{.spec.paused}", "false"),
        ("{.spec.ratio}", "0.25"),
        (r#"{range .spec.containers[*]}{.name}={.image}{"\n"}{end}"#, "app=shop:1\nside=envoy:1\n"),
        (
            "{range .spec.containers[*]}[{.name}]{range .ports[*]}{.containerPort},{end}{end}!",
            "[app]80,443,[side]!",
        ),
        (r#"{range .spec.args[*]}{@}{" "}{end}"#, "a b c d "),
        ("{range .missing[*]}x{end}y", "y"),
        (r#"{.status.conditions[?(@.type=="Ready")].status}"#, "False"),
        ("{.status.conditions[?(@.type=='Ready')].status}", "False"),
        (r#"{.status.conditions[?(@.type!="Ready")].type}"#, "Scheduled"),
        ("{.status.conditions[?(@.n>1)].type}", "Ready"),
        ("{.status.conditions[?(@.n>=1)].type}", "Scheduled Ready"),
        ("{.status.conditions[?(@.n<2)].type}", "Scheduled"),
        ("{.status.conditions[?(@.n<=2)].type}", "Scheduled Ready"),
        ("{.spec.containers[?(@.ports)].name}", "app"),
        ("{.spec.containers[?(@.ports[0].containerPort==80)].name}", "app"),
        ("{..image}", "shop:1 envoy:1"),
        ("{..containerPort}", "80 443"),
        ("{.spec..name}", "app side"),
        ("{.spec.one.*}", "v"),
        ("{.spec.one}", "{\"k\":\"v\"}"),
        (r#"{"a"}{'b'}{"\u00e4 \x41"}"#, "abä A"),
        ("{.spec.containers[*].ports[*].containerPort}", "80 443"),
        ("{.spec.containers[*]['name','image']}", "app side shop:1 envoy:1"),
        ("{.spec.containers[*].name}{.spec.args[0]}", "app sidea"),
        (r#"{range .status.conditions[?(@.status=="True")]}{.type}{end}"#, "Scheduled"),
        ("{.metadata.name}}", "web}"),
        ("{.a..b..c}", ""),
    ] {
        assert_eq!(render(source).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn it_is_kinder_than_kubectl() {
    for (source, expected) in [
        (".metadata.name", "web"),
        ("metadata.name", "web"),
        ("{.metadata.labels['app.kubernetes.io/name']}", "shop"),
        ("{.metadata.labels.app.kubernetes.io/name}", "shop"),
        ("{.status.conditions[Ready].status}", "False"),
        ("{.spec.args[9]}.", "."),
        ("{.spec.args[2:9]}", "c d"),
        ("{.spec.args[3:1]}.", "."),
        (r#"{range .spec.args[*]}{.}{" "}{end}"#, "a b c d "),
        (
            r#"{.spec.containers[?(@.name=="app")].ports[?(@.containerPort>100)]}"#,
            r#"{"containerPort":443}"#,
        ),
    ] {
        assert_eq!(render(source).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn a_mistake_is_shown_where_it_is() {
    for (source, place, problem) in [
        ("{.metadata.name", 0, "brace is not closed"),
        ("{range .spec.args[*]}x", 0, "{range} without {end}"),
        ("x{end}", 1, "{end} without {range}"),
        ("{\"abc}", 1, "this \" is not closed"),
        ("{.spec.args[1}", 11, "bracket is not closed"),
        ("{.spec.args[1:2:0]}", 12, "no slice"),
        ("{foo}", 1, "expected a path"),
        ("{.a b}", 4, "brace is not closed with } here"),
        ("{.a[?(@.b==c)]}", 11, "expected a text in quotes"),
        ("", 0, "a path is missing"),
    ] {
        let error = render(source).expect_err(source).to_string();
        assert!(error.contains(problem), "{source}: {error}");
        assert_eq!(error.lines().nth(2).unwrap().len() - 5, place, "{source}: {error}");
    }
}

#[test]
fn it_comes_to_an_end() {
    let ranges = "{range ..}".repeat(20) + "x" + &"{end}".repeat(20);
    assert!(render(&ranges).is_err());
    assert!(render(&"{range .a}".repeat(100)).is_err());
    assert!(render(&format!("{{{}}}", "..".repeat(40))).is_err());
    assert!(render(&format!("{{.spec[{}*]}}", "*,".repeat(1000))).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(source in "(\\{|\\}|range |end|\\.|\\.\\.|spec|args|\\[|\\]|[0-9:,*'\"?@()=<> ö\\\\-]){0,14}") {
        let _ = render(&source);
    }
}
