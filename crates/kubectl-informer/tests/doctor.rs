//! `doctor` as a process: what it reports, and that it changes nothing.
#![cfg(unix)]

#[allow(dead_code, reason = "not every test needs all of it")]
#[path = "shared/support.rs"]
mod support;
#[allow(dead_code, reason = "not every test needs all of it")]
#[path = "watch/terminal.rs"]
mod terminal;
#[allow(dead_code, reason = "not every test needs all of it")]
#[path = "shared/tool.rs"]
mod tool;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use embedded_apiserver::{ApiServer, Denial, Fault, Verb};
use serde_json::{Value, json};

use support::PATIENCE;
use terminal::Terminal;
use tool::{Cluster, tells_of_a_full_disk, with_nobody_to_read};

const MAP: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {password: hunter2}
";

/// The shortest possible watch, which ends before the first bookmark.
const SHORT: [&str; 2] = ["--for", "10ms"];

/// Runs the doctor. A busy machine may exceed the time limit for a streamed list, as if the server
/// had ignored the request for it. Then the doctor is run again.
fn doctor(cluster: &Cluster, arguments: &[&str]) -> tool::Ran {
    const IGNORED: [&str; 2] = ["lists come in pages instead;", r#""streamsLists": false"#];
    let words: Vec<_> = ["doctor"].iter().chain(arguments).chain(&SHORT).copied().collect();
    let end = Instant::now() + PATIENCE;
    loop {
        let ran = cluster.run(&words);
        if !IGNORED.iter().any(|text| ran.out.contains(text)) || Instant::now() > end {
            return ran;
        }
    }
}

fn report(cluster: &Cluster, arguments: &[&str]) -> (Option<i32>, Value) {
    let words: Vec<_> = arguments.iter().chain(&["-o", "json"]).copied().collect();
    let ran = doctor(cluster, &words);
    assert_eq!(ran.err, "");
    (ran.code, serde_json::from_str(&ran.out).unwrap())
}

/// Starts a server that tries to take over the terminal with every response.
fn hostile_server() -> std::net::SocketAddr {
    const STEERING: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\rover";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = |path: &str| match path {
        "/version" => (200, json!({"gitVersion": STEERING})),
        "/api" => (200, json!({"kind": "APIVersions", "versions": ["v1"]})),
        "/apis" => (200, json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})),
        "/api/v1" => {
            let pods = json!({"name": "pods", "singularName": "pod", "namespaced": true,
                              "kind": "Pod", "verbs": ["get", "list", "watch"]});
            (200, json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [pods]}))
        }
        _ => (
            403,
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                          "message": STEERING, "reason": "Forbidden", "code": 403}),
        ),
    };
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while reader.read_line(&mut head).unwrap() > 2 {}
            let path = head.split(' ').nth(1).unwrap_or_default();
            let (code, body) = answer(path.split('?').next().unwrap_or_default());
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 {code} x\r\nContent-Type: application/json\r\nConnection: close\r\n\
                 Date: Fri, 31 Dec 9999 23:59:59 GMT\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            // The client may close the connection early.
            let _ =
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        }
    });
    address
}

#[test]
fn a_server_does_not_steer_the_terminal() {
    let cluster = Cluster::new("doctor-hostile", "");
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: \"http://{}\"}}}}]\n\
         users: [{{name: u, user: {{}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n",
        hostile_server()
    );
    std::fs::write(cluster.directory.join("kubeconfig"), kubeconfig).unwrap();
    for (words, said) in [
        (&["doctor", "pods", "--for", "10ms"][..], "server        \\u{1b}[2J"),
        (&["get", "pods"], "\\u{202e}"),
        (&["watch", "pods", "--until", "count>=1", "--timeout", "1s"], ""),
    ] {
        let ran = cluster.run(words);
        for text in [&ran.out, &ran.err] {
            let steering = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!text.contains(steering), "{words:?}: {text:?}");
        }
        assert!(format!("{}{}", ran.out, ran.err).contains(said), "{words:?}: {ran:?}");
    }
}

#[test]
fn it_tells_what_works_and_what_it_costs() {
    let cluster = Cluster::new("doctor-well", MAP);
    let ran = doctor(&cluster, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    for part in [
        "server        v1.",
        "round trip    ",
        "clock         the same as here",
        "versions      numbers",
        "list streams  yes",
        "bookmarks     none of pods in ",
        "--for 75s",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let row = ran.out.lines().find(|line| line.starts_with("configmaps ")).unwrap();
    let words: Vec<_> = row.split_whitespace().take(5).collect();
    assert_eq!(words, ["configmaps", "yes", "yes", "yes", "1"]);
    assert!(ran.out.lines().any(|line| line.starts_with("all of them ")));
    assert!(!ran.out.contains("hunter2"));
    let reads = |verb| matches!(verb, Verb::Get | Verb::List | Verb::Watch);
    assert!(cluster.server.requests().iter().all(|request| request.verb.is_none_or(reads)));
}

#[test]
fn programs_get_json() {
    let cluster = Cluster::new("doctor-json", MAP);
    for n in 0..40 {
        let name = format!("map-{n}");
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"k": "v".repeat(1000)}});
        cluster.server.create(map).unwrap();
    }
    let (code, report) = report(&cluster, &["cm,namespaces", "-n", "default"]);
    assert_eq!(code, Some(0));
    assert!(report["server"]["version"].as_str().unwrap().starts_with("v1."));
    assert_eq!(report["namespace"], "default");
    let [maps, namespaces] = report["types"].as_array().unwrap().as_slice() else {
        panic!("{report}");
    };
    assert_eq!((&maps["type"], &namespaces["type"]), (&json!("configmaps"), &json!("namespaces")));
    assert_eq!(maps["objects"], 41);
    assert_eq!(maps["sampled"], 41);
    for (field, least, most) in [
        ("jsonBytesEach", 1000, 1500),
        ("cachedBytesEach", 1000, 2000),
        ("cacheBytes", 41_000, 82_000),
        ("metadataCacheBytes", 41 * 100, 41 * 900),
    ] {
        let bytes = maps[field].as_u64().unwrap();
        assert!((least..most).contains(&bytes), "{field}: {bytes}");
    }
    for verdict in ["list", "watch", "streamsLists", "decimalVersions"] {
        assert_eq!(maps[verdict], true, "{verdict}");
    }
    assert_eq!(maps["listProblem"], Value::Null);
}

#[test]
fn what_may_not_be_done_is_said_with_what_to_grant() {
    let cluster = Cluster::new("doctor-forbidden", MAP);
    let access = cluster.server.access();
    access.deny(Denial::verbs([Verb::List]).resource("secrets"));
    access.deny(Denial::verbs([Verb::Watch]).resource("configmaps"));
    access.deny(Denial::verbs([Verb::List, Verb::Watch]).resource("nodes"));
    let ran = doctor(&cluster, &["pods,secrets", "configmaps", "nodes", "-n", "shop"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    let row = |name: &str| {
        let line = ran.out.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().skip(1).take(3).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("pods "), "yes yes yes");
    assert_eq!(row("secrets "), "403 yes -");
    assert_eq!(row("configmaps "), "yes 403 -");
    assert_eq!(row("nodes "), "403 403 -");
    for part in [
        "you may not list and watch secrets, configmaps: ",
        "kubectl create role informer -n shop --verb=get,list,watch --resource=secrets,configmaps",
        "you may not list and watch nodes: ",
        "kubectl create clusterrole informer --verb=get,list,watch --resource=nodes",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let (code, report) = report(&cluster, &["secrets"]);
    assert_eq!((code, &report["types"][0]["list"]), (Some(1), &json!(false)));
    assert!(report["types"][0]["listProblem"].as_str().unwrap().contains("403"));
    assert_eq!(report["types"][0]["streamsLists"], Value::Null);
}

#[test]
fn a_server_that_does_not_stream_lists_is_no_problem() {
    let cluster = Cluster::new("doctor-paged", MAP);
    // The first watch of the type is the plain one.
    cluster.server.faults().on(Verb::Watch).resource("pods").nth(2).inject(Fault::status(422));
    let ran = doctor(&cluster, &["nodes", "pods"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("list streams  no, lists come in pages instead"), "{}", ran.out);
    assert!(ran.out.contains("WatchList") && ran.out.contains("1.34"), "{}", ran.out);
}

#[test]
fn it_fits_eighty_columns() {
    let cluster = Cluster::new("doctor-narrow", MAP);
    let mut terminal = Terminal::start(cluster.command(&["doctor", "--for", "10ms"]), 80);
    terminal.shows("by a sample of up to 500 objects.");
    assert_eq!(terminal.wait().code(), Some(0));
    let rows = terminal.seen.lines().skip_while(|line| !line.starts_with("TYPE"));
    let rows: Vec<_> = rows.map(str::trim_end).collect();
    assert!(rows[0].ends_with("METADATA") && rows.len() > 16, "{rows:?}");
    assert!(rows.iter().all(|row| row.chars().count() <= 80), "{rows:?}");
}

#[test]
fn bookmarks_are_counted() {
    let often = ApiServer::builder().bookmark_interval(Duration::from_millis(20));
    let cluster = Cluster::of("doctor-bookmarks", often, MAP);
    let json = with_bookmarks(&cluster, &["-o", "json"], |out| {
        let report: Value = serde_json::from_str(out).unwrap();
        report["bookmarks"]["afterSeconds"].as_array().unwrap().len() > 1
    });
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["bookmarks"]["type"], "pods");
    let last = report["bookmarks"]["afterSeconds"].as_array().unwrap().last().unwrap();
    assert!(last.as_f64() <= report["bookmarks"]["watchedSeconds"].as_f64(), "{report}");

    let text = with_bookmarks(&cluster, &[], |out| out.contains(" s, one every "));
    let line = text.lines().find_map(|line| line.strip_prefix("bookmarks ")).unwrap().trim();
    let numbers = line.split(' ').filter_map(|word| word.parse().ok()).collect::<Vec<f64>>();
    let [count, watched, interval] = numbers[..] else { panic!("{line}") };
    assert!(line.contains(" of pods in ") && count > 1.0, "{line}");
    // Both times are rounded to a tenth.
    assert!(interval * (count - 1.0) <= watched + 0.05 * count, "{line}");
}

/// Watches for ever longer times, until enough bookmarks have arrived on this machine.
fn with_bookmarks(cluster: &Cluster, arguments: &[&str], enough: fn(&str) -> bool) -> String {
    let outs = ["300ms", "3s", "30s"].map(|length| {
        let words = [&["doctor", "pods", "--for", length][..], arguments].concat();
        move || cluster.prints(&words)
    });
    outs.into_iter().map(|out| out()).find(|out| enough(out)).expect("one comes every 20 ms")
}

#[test]
fn errors_are_errors() {
    let cluster = Cluster::new("doctor-errors", MAP);
    let problem = cluster.fails(&["doctor", "podss"]);
    assert!(problem.contains("did you mean \"pods\"?"), "{problem}");
    assert!(cluster.fails(&["doctor", "pods", "--all"]).contains("--all"));
    cluster.refuse_connections();
    let problem = cluster.fails(&["doctor"]);
    assert!(problem.contains("nobody listens at https://127.0.0.1:"), "{problem}");
}

#[test]
fn nobody_to_read_it_is_no_error() {
    let cluster = Cluster::new("doctor-pipe", MAP);
    let ran = with_nobody_to_read(&mut cluster.command(&["doctor", "pods", "--for", "10ms"]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn what_could_not_be_written_is_told() {
    let cluster = Cluster::new("doctor-full", MAP);
    tells_of_a_full_disk(&mut cluster.command(&["doctor", "pods", "--for", "10ms"]));
}
