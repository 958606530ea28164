//! `serve` as a process: what it prints, writes and returns.
#![cfg(unix)]

#[path = "shared/support.rs"]
mod support;
#[allow(dead_code, reason = "not every test needs all of it")]
#[path = "watch/terminal.rs"]
mod terminal;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use support::{PATIENCE, Reserved, Serving, directory, serve};
use terminal::Terminal;

/// Runs a `serve` that is expected to fail. Returns its error message.
fn refused(directory: &Path, arguments: &[&str]) -> String {
    let output = serve(directory, arguments).output().unwrap();
    let problem = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{problem}");
    assert_eq!(output.stdout, b"");
    assert!(problem.starts_with("error: "), "{problem}");
    problem
}

/// Sends a request over plain HTTP.
fn ask(serving: &Serving, path: &str, headers: &str) -> TcpStream {
    let (_, rest) = serving.line.split_once("http://").unwrap();
    let (address, _) = rest.split_once(',').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Returns the whole response, including the status line.
fn get(serving: &Serving, path: &str, headers: &str) -> String {
    let mut response = String::new();
    ask(serving, path, headers).read_to_string(&mut response).unwrap();
    response
}

/// Waits for the first line of a watch over plain HTTP. Returns an empty line if the watch ends
/// before it.
fn first_line(serving: &Serving, path: &str) -> String {
    let mut reader = BufReader::new(ask(serving, path, ""));
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap() > 0 && !line.starts_with('{') {
        line.clear();
    }
    line
}

#[test]
fn it_says_where_it_is_and_ends_on_a_signal() {
    for signal in ["TERM", "INT"] {
        let place = Reserved::new();
        let listen = ["--listen", &place.address];
        let mut serving = Serving::start(&format!("signal-{signal}"), &listen);
        let line = serving.line.clone();
        let line = line.strip_prefix("embedded Kubernetes API server on https://");
        let (address, file) = line.unwrap().split_once(", kubeconfig ").unwrap();
        assert_eq!((address, file), (&*place.address, "kubeconfig\n"));

        let kubeconfig = serving.kubeconfig();
        assert_eq!(fs::metadata(&kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&kubeconfig).unwrap().contains(address));

        let (rest, status) = serving.end(signal);
        assert_eq!((rest.as_str(), status.code()), ("", Some(0)), "{signal}");
        assert!(kubeconfig.exists());
        assert!(TcpStream::connect(address).is_err());
    }
}

#[test]
fn a_port_that_is_left_to_it_is_named() {
    let serving = Serving::start("any-port", &["--listen", "127.0.0.1:0"]);
    let (_, rest) = serving.line.split_once("https://127.0.0.1:").unwrap();
    let (port, _) = rest.split_once(',').unwrap();
    assert_ne!(port.parse::<u16>().unwrap(), 0);
}

/// Programs read the one line on standard output; users on a terminal get more help.
#[test]
fn in_a_terminal_it_says_how_to_use_and_to_end_it() {
    let directory = directory("serve-terminal");
    let mut terminal = Terminal::start(serve(&directory, &[]), 200);
    terminal.shows("embedded Kubernetes API server on https://127.0.0.1:");
    let file = directory.join("kubeconfig");
    terminal.shows(&format!("export KUBECONFIG={}; Ctrl-C ends it\r\n", file.display()));
    terminal.signal("INT");
    terminal.shows("\r\x1b[Kended: its objects are gone\r\n");
    assert_eq!(terminal.wait().code(), Some(0));
}

#[test]
fn nobody_to_read_its_line_is_no_error() {
    let directory = directory("broken-pipe");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut child = serve(&directory, &[]).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    while !directory.join("kubeconfig").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        std::thread::yield_now();
    }
    let kill = format!("kill -s TERM {}", child.id());
    Command::new("sh").args(["-c", &kill]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn data_is_there_at_the_start() {
    let data = r#"
apiVersion: v1
kind: ConfigMapList
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: first}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: second, namespace: kube-system}}
---
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "third"}, "spec": {"containers": []}}
"#;
    let file = directory("data").join("data.yaml");
    fs::write(&file, data).unwrap();
    let serving = Serving::start("data-good", &["--plain", "--data", file.to_str().unwrap()]);
    for (path, name) in [("configmaps", "first"), ("configmaps", "second"), ("pods", "third")] {
        let list = get(&serving, &format!("/api/v1/{path}"), "");
        assert!(list.contains(&format!(r#""name":"{name}""#)), "{list}");
    }
}

#[test]
fn a_demo_is_full_of_life() {
    let data = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\n";
    let file = directory("demo-data").join("data.yaml");
    fs::write(&file, data).unwrap();
    let demo = Serving::start("demo", &["--plain", "--demo", "--data", file.to_str().unwrap()]);
    let maps = get(&demo, "/api/v1/configmaps", "");
    let (_, mine) = maps.split_once(r#""name":"mine""#).unwrap();
    let (_, version) = mine.split_once(r#""resourceVersion":""#).unwrap();
    let (version, _) = version.split_once('"').unwrap();
    // The state right after the data was loaded: from then on the demo changes objects, and this
    // request may come late.
    let query = format!("resourceVersion={version}&resourceVersionMatch=Exact");
    let pods = get(&demo, &format!("/api/v1/pods?{query}"), "");
    assert_eq!(pods.matches(r#""phase":"Running""#).count(), 8, "{pods}");
    assert!(get(&demo, "/apis/apps/v1/deployments", "").contains(r#""name":"web""#));
    assert!(get(&demo, "/apis/demo.example.com/v1/databases", "").contains(r#""name":"orders""#));
    // The demo makes a change: it updates an existing pod, or creates a new one.
    let patience = PATIENCE.as_secs();
    let query = format!("watch=1&resourceVersion={version}&timeoutSeconds={patience}");
    assert_ne!(first_line(&demo, &format!("/api/v1/pods?{query}")), "");
}

#[test]
fn data_that_is_wrong_is_named() {
    let directory = directory("data-bad");
    let file = directory.join("data.yaml");
    let arguments = ["--data", file.to_str().unwrap()];
    let problem = refused(&directory, &arguments);
    assert!(problem.contains("data.yaml: No such file"), "{problem}");

    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    for (second, why) in [
        ("apiVersion: v1\nkind: Nonsense\nmetadata: {name: a}", "\"Nonsense\""),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A}", "Invalid value: \"A\""),
        (map, "already exists"),
        ("just text", "object"),
        ("a: [", ""),
    ] {
        fs::write(&file, format!("{map}---\n{second}\n")).unwrap();
        let problem = refused(&directory, &arguments);
        assert!(problem.contains("data.yaml"), "{problem}");
        assert!(problem.contains("document 2: "), "{problem}");
        assert!(problem.contains(why), "{problem}");
    }
    fs::write(&file, b"\xff\xfe").unwrap();
    assert!(refused(&directory, &arguments).contains("data.yaml"));
    assert!(!directory.join("kubeconfig").exists());
}

#[test]
fn addresses_that_do_not_do_are_named() {
    let directory = directory("addresses");
    let used = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = used.local_addr().unwrap().to_string();
    let problem = refused(&directory, &["--listen", &address]);
    assert!(problem.contains(&address) && problem.contains("in use"), "{problem}");
    assert!(problem.contains("--listen 127.0.0.1:0"), "{problem}");

    let problem = refused(&directory, &["--listen", "0.0.0.0:0"]);
    assert!(problem.contains("0.0.0.0:0") && problem.contains("this machine"), "{problem}");
    for nonsense in ["6443", "127.0.0.1", "127.0.0.1:65536", ""] {
        let problem = refused(&directory, &["--listen", nonsense]);
        assert!(problem.contains(&format!("--listen {nonsense}")), "{problem}");
    }
    assert!(!directory.join("kubeconfig").exists());
}

#[test]
fn a_kubeconfig_of_others_is_left_alone() {
    let directory = directory("kubeconfigs");
    let file = directory.join("kubeconfig");
    fs::write(&file, "apiVersion: v1\nkind: Config\n").unwrap();
    let problem = refused(&directory, &[]);
    assert!(problem.contains("kubeconfig exists") && problem.contains("--kubeconfig"), "{problem}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "apiVersion: v1\nkind: Config\n");

    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(refused(&directory, &[]).contains("cannot write the kubeconfig kubeconfig"));
    let problem = refused(&directory, &["--kubeconfig", "missing/file"]);
    assert!(problem.contains("missing/file") && problem.contains("directory"), "{problem}");
}

/// Returns the kubeconfig that a run with these arguments leaves behind.
fn left(directory: &Path, arguments: &[&str]) -> String {
    let mut serving = Serving::start_in(directory.to_owned(), arguments);
    serving.end("KILL");
    let kubeconfig = serving.kubeconfig();
    assert_eq!(fs::metadata(&kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
    fs::read_to_string(kubeconfig).unwrap()
}

/// Returns the kubeconfig without the address, whose port changes, and the versions.
fn identity(kubeconfig: &str) -> Vec<&str> {
    let changes = |line: &str| line.contains("server: ") || line.contains("resourceVersions");
    kubeconfig.lines().filter(|line| !changes(line)).collect()
}

/// Returns the line that starts with this name.
fn line<'a>(kubeconfig: &'a str, name: &str) -> Option<&'a str> {
    kubeconfig.lines().find(|line| line.trim_start().starts_with(name))
}

#[test]
fn a_server_that_is_started_again_is_the_same() {
    let directory = directory("kubeconfig-again");
    fs::write(directory.join("kubeconfig"), "").unwrap();
    let first = left(&directory, &[]);
    let second = left(&directory, &[]);
    assert_eq!(identity(&first), identity(&second));
    assert_ne!(first, second);

    // A given token takes precedence; the certificate stays the same.
    let third = left(&directory, &["--token", "given"]);
    assert_eq!(line(&third, "token:"), Some(r#"    token: "given""#));
    for name in ["certificate-authority-data:", "certificate:", "key:"] {
        assert!(line(&first, name).is_some());
        assert_eq!(line(&first, name), line(&third, name));
    }
    // Without TLS, only the token is preserved.
    let fourth = left(&directory, &["--plain"]);
    assert_eq!(line(&fourth, "token:"), line(&third, "token:"));
    assert_eq!(line(&fourth, "key:"), None);
    assert_eq!(identity(&fourth), identity(&left(&directory, &["--plain"])));
}

/// The first server is killed, and cannot record its last version.
#[test]
fn versions_of_an_earlier_run_have_expired() {
    let directory = directory("versions-again");
    let plain = ["--plain", "--pods-run"];
    let mut last = 0;
    for _ in 0..2 {
        let mut serving = Serving::start_in(directory.clone(), &plain);
        if last > 0 {
            let path = format!("/api/v1/pods?watch=1&resourceVersion={last}");
            let line = first_line(&serving, &path);
            assert!(line.contains(r#""code":410"#), "{line}");
        }
        let answer = get(&serving, "/api/v1/pods", "");
        let (_, rest) = answer.split_once(r#""resourceVersion":""#).unwrap();
        let now: u64 = rest.split_once('"').unwrap().0.parse().unwrap();
        // The last version that the kubeconfig reserves, which no server reaches.
        assert!(now > last);
        last = now + (1 << 36) - 1_000;
        serving.end("KILL");
    }
}

#[test]
fn a_kubeconfig_that_is_damaged_or_open_to_others_is_replaced() {
    let directory = directory("kubeconfig-damaged");
    let file = directory.join("kubeconfig");
    let first = left(&directory, &[]);
    let all_new = |why: &str| {
        let now = left(&directory, &[]);
        for name in ["certificate-authority-data:", "certificate:", "key:", "token:"] {
            assert!(line(&now, name).is_some(), "{why}");
            assert_ne!(line(&now, name), line(&first, name), "{why}");
        }
    };
    let replace = |text: &[u8], mode: u32| {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    };
    replace(&first.as_bytes()[..first.len() / 2], 0o600);
    all_new("cut off");
    replace(&[first.as_bytes(), b"\xff"].concat(), 0o600);
    all_new("no text");
    replace(first.replace("key: ", "old: ").as_bytes(), 0o600);
    all_new("of an older form");
    for mode in [0o640, 0o602, 0o604] {
        replace(first.as_bytes(), mode);
        all_new("others may have read or written it");
    }
    replace(first.as_bytes(), 0o600);
    assert_eq!(identity(&left(&directory, &[])), identity(&first));
    // Only the superuser can change the owner of a file, and read another user's file.
    replace(first.as_bytes(), 0o600);
    if std::os::unix::fs::chown(&file, Some(12_345), None).is_ok() {
        all_new("it is another user's");
    }
}

#[test]
fn plain_http_asks_for_a_token_only_if_there_is_one() {
    let open = Serving::start("plain-open", &["--plain"]);
    assert!(get(&open, "/api/v1/pods", "").starts_with("HTTP/1.1 200"));

    let closed = Serving::start("plain-token", &["--plain", "--token", "abc"]);
    assert!(get(&closed, "/api/v1/pods", "").starts_with("HTTP/1.1 401"));
    let wrong = "Authorization: Bearer abcd\r\n";
    assert!(get(&closed, "/api/v1/pods", wrong).starts_with("HTTP/1.1 401"));
    let right = "Authorization: Bearer abc\r\n";
    assert!(get(&closed, "/api/v1/pods", right).starts_with("HTTP/1.1 200"));
}

#[test]
fn faults_hold_from_the_start() {
    let faults =
        ["--fault", "list pods status=429 retry-after=7", "--fault", "list nodes html=502"];
    let serving = Serving::start("faults", &[&["--plain"][..], &faults].concat());
    let refused = get(&serving, "/api/v1/pods", "");
    assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("retry-after: 7"), "{refused}");
    assert!(get(&serving, "/api/v1/nodes", "").starts_with("HTTP/1.1 502"));
    assert!(get(&serving, "/api/v1/pods", "").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_fault_that_is_none_is_named() {
    let directory = directory("faults-bad");
    for (fault, part) in
        [("watch pods half-opne", "half-open"), ("", "any"), ("list status=x", "429")]
    {
        let problem = refused(&directory, &["--fault", fault]);
        assert!(problem.contains(&format!("--fault '{fault}'")), "{problem}");
        assert!(problem.contains(part), "{problem}");
    }
    assert!(!directory.join("kubeconfig").exists());
}

#[test]
fn who_comes_without_a_token_cannot_break_it() {
    let path = "/embedded/faults";
    let open = Serving::start("control-open", &["--plain"]);
    assert!(get(&open, path, "").starts_with("HTTP/1.1 403"));
    let closed = Serving::start("control-token", &["--plain", "--token", "abc"]);
    assert!(get(&closed, path, "").starts_with("HTTP/1.1 401"));
    let right = "Authorization: Bearer abc\r\n";
    assert!(get(&closed, path, right).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_token_that_no_header_can_hold_is_refused_and_not_shown() {
    let directory = directory("tokens");
    for token in ["", "se cret", "secr\u{e9}t"] {
        let problem = refused(&directory, &["--token", token]);
        assert!(problem.contains("--token"), "{problem}");
        assert!(token.is_empty() || !problem.contains(token), "{problem}");
    }
}

#[test]
fn arguments_are_checked() {
    let directory = directory("arguments");
    assert!(refused(&directory, &["--nonsense"]).contains("--nonsense"));
    assert!(refused(&directory, &["--data"]).contains("--data <FILE>"));
}
