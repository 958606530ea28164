//! The code in the README and in the guides (`docs/controller-in-ten-minutes.md`,
//! `docs/coming-from-client-go.md` and `docs/coming-from-kube-runtime.md`) is part of the tests here, line by
//! line, and does what they say.

// As narrow as in the guides, where two columns are side by side.
#[rustfmt::skip]
mod client_go;
#[rustfmt::skip]
mod client_go_controllers;
#[rustfmt::skip]
mod kube_runtime;
#[rustfmt::skip]
mod kube_runtime_controllers;
#[rustfmt::skip]
mod readme;
mod ten_minutes;

#[allow(dead_code, reason = "no test uses all of it")]
#[path = "../shared/process.rs"]
mod process;

use embedded_apiserver::ApiServer;
use serde_json::{Value, json};

/// A server with three pods on two nodes, two of them with the same label.
fn server() -> ApiServer {
    let server = ApiServer::start();
    for (name, app, node) in [("web-0", "web", "a"), ("web-1", "web", "b"), ("db-0", "db", "b")] {
        server.create(pod("default", name, app, node)).unwrap();
    }
    server
}

fn pod(namespace: &str, name: &str, app: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": app},
                     "annotations": {"example.com/team": "shop"}},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "nginx:1.29"}]},
        "status": {"phase": "Running"},
    })
}

/// Returns the trimmed lines of a text, without empty ones.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// Returns the blocks of Rust in a guide.
fn blocks(guide: &str) -> Vec<Vec<&str>> {
    let mut blocks = Vec::new();
    let mut rest = guide.lines();
    while let Some(line) = rest.next() {
        if line == "```rust" {
            let block: Vec<&str> = rest.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(block.into_iter().map(str::trim).filter(|line| !line.is_empty()).collect());
        }
    }
    blocks
}

fn missing<'a>(guide: &'a str, source: &str) -> Vec<Vec<&'a str>> {
    let source = lines(source);
    let mut blocks = blocks(guide);
    blocks.retain(|block| !source.windows(block.len()).any(|window| window == &**block));
    blocks
}

#[test]
fn code_of_the_guides_is_up_to_date() {
    for (guide, source) in [
        (include_str!("../../../../README.md"), include_str!("readme.rs")),
        (
            include_str!("../../../../docs/controller-in-ten-minutes.md"),
            include_str!("ten_minutes.rs"),
        ),
        (
            include_str!("../../../../docs/coming-from-client-go.md"),
            concat!(include_str!("client_go.rs"), include_str!("client_go_controllers.rs")),
        ),
        (
            include_str!("../../../../docs/coming-from-kube-runtime.md"),
            concat!(include_str!("kube_runtime.rs"), include_str!("kube_runtime_controllers.rs")),
        ),
    ] {
        assert!(blocks(guide).len() > 2);
        let missing: Vec<String> =
            missing(guide, source).iter().map(|block| block.join("\n")).collect();
        assert_eq!(missing, [""; 0], "the guide has code that is not in the file beside this one");
    }
}

#[test]
fn missing_code_is_found() {
    let guide = "```rust\nlet a = 1;\n\nlet b = 2;\n```\ntext\n```rust\nlet c = 3;\n```\n```go\nd := 4\n```\n";
    let source = "fn f() {\n    let a = 1;\n    let b = 2;\n    let c = 4;\n}\n";
    assert_eq!(missing(guide, source), [["let c = 3;"]]);
}
