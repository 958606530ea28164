//! Selectors: the objects that they match, and the errors of invalid ones.

use anyhow::Result;
use serde_json::json;

use super::super::run::compare;
use super::super::script::Script;
use super::MAPS;

#[tokio::test]
async fn label_selectors_mean_the_same() -> Result<()> {
    let mut script = Script::new("labels");
    for (name, labels) in [
        ("a", json!({"colour": "red", "size": "1"})),
        ("b", json!({"colour": "blue", "example.com/owner": "me"})),
        ("c", json!({"size": "2", "empty": ""})),
        ("d", json!(null)),
    ] {
        let map = json!({"metadata": {"name": name, "labels": labels}});
        script.post(&format!("scene-{name}"), MAPS, map);
    }
    for (name, selector) in [
        ("equal", "colour=red"),
        ("equal-twice", "colour==red"),
        ("not-equal", "colour!=red"),
        ("exists", "colour"),
        ("exists-not", "!colour"),
        ("in", "colour in (red, blue)"),
        ("notin", "colour notin (red)"),
        ("in-nothing", "colour in ()"),
        ("and", "colour,size=1"),
        ("greater", "size>1"),
        ("less", "size<2"),
        ("greater-than-a-word", "size>x"),
        ("prefix", "example.com/owner=me"),
        ("empty-value", "empty="),
        ("empty", ""),
        ("spaces", " colour = red "),
        ("comma-first", ",colour"),
        ("comma-last", "colour,"),
        ("equal-nothing-left", "=red"),
        ("two-words", "colour red"),
        ("in-without-end", "colour in (red"),
        ("in-without-begin", "colour in red)"),
        ("bad-key", "co lour!=red"),
        ("bad-key-2", "a/b/c=red"),
        ("bad-value", "colour=a b"),
        ("bad-value-2", "colour=-"),
        ("operator-alone", "!"),
        ("parenthesis", "("),
        ("same-twice", "colour=red,colour=blue"),
        ("not-not", "!!colour"),
    ] {
        let escaped = escaped(selector);
        script.get(name, &format!("{MAPS}?labelSelector={escaped}"));
    }
    compare(script).await
}

#[tokio::test]
async fn field_selectors_mean_the_same() -> Result<()> {
    const PODS: &str = "/api/v1/namespaces/<ns>/pods";
    let mut script = Script::new("fields");
    for name in ["a", "b"] {
        script.post(&format!("scene-{name}"), MAPS, json!({"metadata": {"name": name}}));
    }
    for (name, selector) in [
        ("name", "metadata.name=a"),
        ("name-twice", "metadata.name==a"),
        ("not-name", "metadata.name!=a"),
        ("namespace", "metadata.namespace=<ns>"),
        ("other-namespace", "metadata.namespace=default"),
        ("both", "metadata.name=a,metadata.namespace=<ns>"),
        ("unknown", "spec.colour=red"),
        ("unknown-and-known", "metadata.name=a,metadata.labels=x"),
        ("uid", "metadata.uid=x"),
        ("no-operator", "metadata.name"),
        ("empty", ""),
        ("empty-value", "metadata.name="),
        ("in", "metadata.name in (a)"),
        ("escaped", r"metadata.name=a\,b"),
        ("escape-wrong", r"metadata.name=a\b"),
        ("comma-last", "metadata.name=a,"),
        ("invalid-name", "metadata.name=A/B"),
    ] {
        let escaped = escaped(selector);
        script.get(name, &format!("{MAPS}?fieldSelector={escaped}"));
    }
    for (name, selector) in [
        ("pod-node", "spec.nodeName="),
        ("pod-phase", "status.phase!=Running"),
        ("pod-unknown", "spec.image=x"),
        ("pod-restart-policy", "spec.restartPolicy=Always"),
    ] {
        let escaped = escaped(selector);
        script.get(name, &format!("{PODS}?fieldSelector={escaped}"));
    }
    script.get(
        "namespace-phase",
        "/api/v1/namespaces?fieldSelector=status.phase%3DActive,metadata.name%3D<ns>",
    );
    script.get(
        "node-unschedulable",
        "/api/v1/nodes?labelSelector=none&fieldSelector=spec.unschedulable%3Dfalse",
    );
    script.get("secret-type", "/api/v1/namespaces/<ns>/secrets?fieldSelector=type%3DOpaque");
    script.get(
        "event-reason",
        "/api/v1/namespaces/<ns>/events?fieldSelector=reason%3DA,involvedObject.kind%3DPod",
    );
    script.get("event-unknown", "/api/v1/namespaces/<ns>/events?fieldSelector=message%3DA");
    compare(script).await
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            // Placeholders of variables are kept.
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out.replace("%3Cns%3E", "<ns>")
}
