mod go;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn render(template: &str, object: &Value) -> Result<String, SyntaxError> {
    let event =
        json!({"type": "UPDATE", "key": "default/web", "resourceVersion": "11", "initial": false});
    Template::parse(template)?.render(object, &event)
}

fn pod() -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "shop"}},
        "spec": {"containers": [{"name": "app", "image": "shop:1"}], "args": ["a", "b"], "replicas": 3},
        "data": {"password": "aHVudGVyMg=="},
    })
}

#[test]
fn the_event_is_a_variable() {
    let template = "{{$event.type}} {{.metadata.name}}{{range .spec.containers}} {{.name}}@{{$event.resourceVersion}}{{end}}";
    assert_eq!(render(template, &pod()).as_deref(), Ok("UPDATE web app@11"));
    assert_eq!(render("{{if $event.initial}}old{{else}}new{{end}}", &pod()).as_deref(), Ok("new"));
    assert_eq!(render("{{$event.nothing}}", &pod()).as_deref(), Ok("<no value>"));
}

#[test]
fn what_is_missing_is_no_error() {
    for (template, expected) in [
        ("{{.status.phase}}", "<no value>"),
        ("{{.a.b.c.d}}", "<no value>"),
        ("{{index .metadata.annotations \"a\"}}", "<no value>"),
        ("{{index .a 0 \"b\"}}", "<no value>"),
        ("{{len .metadata.annotations}}", "0"),
        ("{{with .status.phase}}{{.}}{{else}}unknown{{end}}", "unknown"),
        ("{{.status.phase | default \"unknown\" | upper}}", "UNKNOWN"),
        ("{{if eq .status.phase \"Running\"}}up{{else}}down{{end}}", "down"),
        ("{{.status.phase | upper}}.", "."),
        // Numbers of any kind can be compared.
        ("{{eq .spec.replicas 3.0}} {{lt .spec.replicas 3.5}}", "true true"),
    ] {
        assert_eq!(render(template, &pod()).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn functions_that_go_does_not_have() {
    for (template, expected) in [
        ("{{.data.password | base64decode}}", "hunter2"),
        (
            "{{json .metadata.labels}} {{toJson .spec.args}}",
            r#"{"app.kubernetes.io/name":"shop"} ["a","b"]"#,
        ),
        ("{{upper \"Ab\"}}{{lower \"Ab\"}}", "ABab"),
        ("{{default \"x\" .metadata.name}} {{default \"x\" \"\"}}", "web x"),
        (
            "{{exists . \"spec\" \"args\" 1}} {{exists . \"spec\" \"args\" 2}} {{exists . \"x\"}}",
            "true false false",
        ),
        ("{{join \", \" .spec.args}} {{join \",\" .nothing}}", "a, b "),
        (
            "{{range split \"-\" \"a-b\"}}<{{.}}>{{end}} {{index (split \":\" \"x:y\") 1}}",
            "<a><b> y",
        ),
        (
            "{{contains \"e\" \"web\"}} {{hasPrefix \"w\" \"web\"}} {{hasSuffix \"w\" \"web\"}}",
            "true true false",
        ),
        (
            "{{replace \"e\" \"o\" .metadata.name}} {{trim \" a \"}} {{quote \"a\\\"\"}}",
            "wob a \"a\\\"\"",
        ),
    ] {
        assert_eq!(render(template, &pod()).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn a_mistake_is_shown_where_it_is() {
    for (template, place, problem) in [
        ("{{.metadata.name", 0, "this {{ is not closed"),
        ("{{if .a}}x", 2, "{{if}} without {{end}}"),
        ("x{{end}}", 1, "{{end}} without {{if}}"),
        ("{{.metadata.labels.app-name}}", 22, "index .metadata.labels \"app-name\""),
        ("{{.spec.args[0]}}", 12, "index .spec.containers 0"),
        ("{{metadata.name}}", 2, "write .metadata"),
        ("{{event.type}}", 2, "write $event"),
        ("{{uper .metadata.name}}", 2, "the functions are and, or,"),
        ("{{$pod.name}}", 2, "the variable $pod is not known here"),
        ("{{eq len .x 3}}", 5, "len takes 1 argument, not 0"),
        ("{{not 1 2}}", 2, "not takes 1 argument"),
        ("{{range .a}}{{define \"x\"}}{{end}}{{end}}", 14, "templates within templates"),
        ("{{\"a\\z\"}}", 4, "this escape is not known"),
        ("{{.spec.containers.name}}", 2, "look at its elements with range"),
        ("{{.metadata.name.first}}", 2, "a text has no field first"),
        ("{{index .spec.args 7}}", 2, "there is no element 7 in a list of 2"),
        ("{{lt .status.ready 3}}", 2, "`default` gives it a value"),
        ("{{eq .spec.replicas \"3\"}}", 2, "a number cannot be compared with a text"),
        ("{{range .metadata.name}}{{end}}", 8, "range wants a list or a map, not a text"),
        ("{{base64decode \"hunter2!\"}}", 2, "not encoded with base64"),
    ] {
        let error = render(template, &pod()).expect_err(template).to_string();
        assert!(error.contains(problem), "{template}: {error}");
        assert_eq!(error.lines().nth(2).unwrap().len() - 5, place, "{template}: {error}");
    }
}

#[test]
fn a_template_comes_to_an_end() {
    let long = json!({"x": "a".repeat(1_000_000), "list": vec!["b"; 100_000]});
    for template in [
        "{{range 1000000000}}{{end}}",
        "{{range 1000}}{{range 1000}}{{range 1000}}x{{end}}{{end}}{{end}}",
        "{{$x := \"ab\"}}{{range 100}}{{$x = print $x $x}}{{end}}",
        "{{range 1000}}{{$.x}}{{end}}",
        "{{range 10000}}{{if eq $.x $.x}}{{end}}{{end}}",
        "{{replace \"\" .x .x}}",
        "{{join .x .list}}",
        "{{range 100000}}{{$y := slice $.list 0}}{{end}}",
        "{{range 100000}}{{json $.list | len}}{{end}}",
    ] {
        assert!(render(template, &long).is_err(), "{template}");
    }
    let deep = format!("{}{}", "{{if 1}}".repeat(1000), "{{end}}".repeat(1000));
    assert!(Template::parse(&deep).is_err());
    let deep = format!("{{{{{}1{}}}}}", "(".repeat(1000), ")".repeat(1000));
    assert!(Template::parse(&deep).is_err());
    assert!(Template::parse(&"{{if 1}}{{else ".repeat(1000)).is_err());
    assert!(Template::parse(&"x".repeat(100_000)).is_err());
    assert_eq!(render("{{printf \"%100000000d\" 1}}", &long).map(|text| text.len()), Ok(1000));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(
        parts in prop::collection::vec(
            prop_oneof![
                Just("{{"), Just("}}"), Just("{{- "), Just(" -}}"), Just("if "), Just("else"), Just("end"),
                Just("range "), Just("with "), Just("$x"), Just(" := "), Just("."), Just(".spec.args"), Just(" "),
                Just("\""), Just("`"), Just("'"), Just("\\"), Just("|"), Just("("), Just(")"), Just("printf "),
                Just("\"%-5.2v%*d%\""), Just("slice "), Just("index "), Just("1"), Just("-3"), Just("/*"), Just("*/"),
                Just("ö"), Just("{{end}}"), Just("{{range .spec.args}}"), Just("{{.}}"), Just("break"), Just("1e"), Just("0x"),
            ],
            0..14,
        ),
    ) {
        let _ = render(&parts.concat(), &pod());
    }

    #[test]
    fn printf_does_not_panic(format in "(%[-+# 0]{0,2}[0-9*]{0,2}(\\.[0-9*]?)?[a-zA-Zö%]?|x){0,4}", value in any::<i64>()) {
        let object = json!({"n": value, "f": value as f64 / 3.0, "s": "ö\u{ad}x", "l": [1, "a", null]});
        let quoted = Value::from(format);
        let template = format!("{{{{printf {quoted} .n .f .s .l .missing}}}}");
        render(&template, &object).map_err(|error| TestCaseError::fail(error.to_string()))?;
    }
}
