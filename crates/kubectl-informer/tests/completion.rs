//! Completion, the manual page and help, which are generated from the table of commands.
#![cfg(unix)]

#[allow(dead_code, reason = "not every test needs all of it")]
#[path = "shared/support.rs"]
mod support;
#[allow(dead_code, reason = "not every test needs all of it")]
#[path = "shared/tool.rs"]
mod tool;

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::Instant;

use embedded_apiserver::Denial;

use support::PATIENCE;
use tool::{Cluster, ran, tells_of_a_full_disk, with_nobody_to_read};

const SHOP: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop}
spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-2, namespace: shop}
spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: other}
spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: events.example.com}
spec:
  group: example.com
  names: {kind: Event, plural: events, singular: event}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

const COMMANDS: [&str; 7] = ["watch", "get", "doctor", "top", "serve", "completion", "man"];

/// Returns the candidates for the last word of a line, without their descriptions, and the
/// directive.
fn complete(cluster: &Cluster, line: &str) -> (Vec<String>, String) {
    let words: Vec<_> = ["__complete"].into_iter().chain(line.split(' ')).collect();
    let out = cluster.prints(&words);
    let mut lines: Vec<_> =
        out.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect();
    let directive = lines.pop().unwrap();
    (lines, directive)
}

/// Like `complete`, for a line that has candidates. On a busy machine the search may exceed its
/// time limit and return none, so it is repeated, as a user would press Tab again.
fn candidates(cluster: &Cluster, line: &str) -> (Vec<String>, String) {
    let end = Instant::now() + PATIENCE;
    loop {
        let (words, directive) = complete(cluster, line);
        if !words.is_empty() {
            return (words, directive);
        }
        assert!(Instant::now() < end, "{line:?} has no candidates");
    }
}

#[test]
fn every_word_is_completed() {
    let cluster = Cluster::new("completion-words", SHOP);
    for (line, expected) in [
        ("wa", "watch"),
        ("get pods -n shop ", "web-1 web-2"),
        ("get -n shop pods web-1 w", "web-2"),
        ("get po -n shop web", "web-1 web-2"),
        ("get pods ", "other"),
        ("get pods -A web", "web-1 web-2"),
        ("get -n shop pods/", "pods/web-1 pods/web-2"),
        ("watch po", "pods podtemplates poddisruptionbudgets"),
        ("watch pods,st", "pods,statefulsets pods,sts pods,storageclasses"),
        ("watch pods,depl", "pods,deployments"),
        ("doctor pods,depl", "pods,deployments"),
        ("doctor pods depl", "deployments"),
        ("top lea", "leases"),
        ("watch events", "events events.events.k8s.io events.example.com"),
        ("get -n s", "shop"),
        ("get pods --namespace=s", "shop"),
        ("get -n default,s", "default,shop"),
        ("get --context ", "embedded-apiserver"),
        ("get --cluster ", "embedded-apiserver"),
        ("get pods -o y", "yaml"),
        ("get pods --output=n", "name"),
        ("doctor -o ", "text json"),
        ("watch --color a", "auto always"),
        ("watch --kubec", "--kubeconfig"),
        ("watch pods --all-names", "--all-namespaces"),
        ("completion z", "zsh"),
        ("man d", "doctor"),
        ("nonsense x", ""),
        ("get nonsense x", ""),
        ("get --kubeconfig /nowhere po", ""),
        ("get --context nowhere po", ""),
    ] {
        let ask = if expected.is_empty() { complete } else { candidates };
        let (words, directive) = ask(&cluster, line);
        assert_eq!(words.join(" "), expected, "{line:?}");
        assert_eq!(directive, ":4", "{line:?}");
    }
    let (words, _) = candidates(&cluster, "");
    assert_eq!(words[..COMMANDS.len()], COMMANDS);
    assert!(words.iter().all(|word| !word.starts_with('_')));
    // The shell completes file names itself.
    assert_eq!(complete(&cluster, "get --kubeconfig "), (Vec::new(), ":0".to_owned()));
    // A candidate that is to be continued gets no space.
    assert_eq!(candidates(&cluster, "get -o j").1, ":4");
    let columns = (vec!["custom-columns=".to_owned()], ":6".to_owned());
    assert_eq!(candidates(&cluster, "get -o c"), columns);
    // A flag that was given is not offered again.
    assert!(!candidates(&cluster, "get -A --").0.contains(&"--all-namespaces".to_owned()));
    let (flags, _) = candidates(&cluster, "get -");
    assert!(flags.contains(&"--selector".to_owned()) && flags.contains(&"-l".to_owned()));
}

#[test]
fn who_may_not_ask_gets_no_candidates_and_no_error() {
    let cluster = Cluster::new("completion-forbidden", SHOP);
    cluster.server.access().deny(Denial::all());
    for line in ["get pods ", "get -n "] {
        let (words, directive) = complete(&cluster, line);
        assert_eq!((words.join(" ").as_str(), directive.as_str()), ("", ":4"), "{line:?}");
    }
    let (words, _) = candidates(&cluster, "get --sel");
    assert_eq!(words, ["--selector"]);
}

#[test]
fn a_server_that_does_not_answer_is_not_waited_for() {
    let cluster = Cluster::new("completion-silent", SHOP);
    // Accepts connections, and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
         clusters: [{{name: x, cluster: {{server: 'http://{address}'}}}}]\n\
         contexts: [{{name: x, context: {{cluster: x, user: x}}}}]\n\
         users: [{{name: x, user: {{}}}}]\n"
    );
    fs::write(cluster.directory.join("kubeconfig"), kubeconfig).unwrap();
    // The duration is tested elsewhere, in paused time.
    assert_eq!(complete(&cluster, "watch po"), (Vec::new(), ":4".to_owned()));
}

#[test]
fn kubectl_asks_the_script_that_is_printed() {
    if Command::new("kubectl").arg("help").output().is_err() {
        println!("not run, because there is no kubectl on the PATH");
        return;
    }
    let cluster = Cluster::new("completion-kubectl", SHOP);
    let bin = cluster.directory.join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_kubectl-informer"), bin.join("kubectl-informer")).unwrap();
    let script = bin.join("kubectl_complete-informer");
    // A shell writes it: what this process has open for writing is for a moment also open in the
    // processes that other tests start, and a file that is open for writing cannot be run.
    let write = r#"printf %s "$2" >"$1" && chmod 755 "$1""#;
    let text = cluster.prints(&["completion", "kubectl"]);
    let written = Command::new("sh").args(["-c", write, "sh"]).arg(&script).arg(text).status();
    assert!(written.unwrap().success());
    let mut path = bin.into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let ask = |words: &[&str]| {
        let mut kubectl = Command::new("kubectl");
        kubectl.arg("__complete").args(words).env("PATH", &path);
        kubectl.env("KUBECONFIG", cluster.directory.join("kubeconfig"));
        kubectl.env("HOME", &cluster.directory);
        let end = Instant::now() + PATIENCE;
        let outs = std::iter::repeat_with(|| ran(kubectl.output().unwrap()).out);
        // Repeated, as in `candidates`.
        outs.take_while(|_| Instant::now() < end).find(|out| out != ":4\n").expect("candidates")
    };
    let out = ask(&["informer", "watch", "depl"]);
    assert_eq!(out, "deployments\tDeployment apps/v1\n:4\n");
    assert_eq!(ask(&["informer", "get", "pods", "-n", "shop", ""]), "web-1\nweb-2\n:4\n");
    assert!(ask(&["informer", ""]).starts_with("watch\t"));
}

#[test]
fn scripts_are_what_their_shells_read() {
    let cluster = Cluster::new("completion-scripts", SHOP);
    for (shell, mark) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef kubectl-informer"),
        ("fish", "complete -c kubectl-informer"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion:arg-completer"),
    ] {
        let script = cluster.prints(&["completion", shell]);
        assert!(script.contains(mark), "{shell}: {script}");
        assert!(!script.contains("__complete"), "{shell}");
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
        // If the shell is installed, it checks the syntax.
        let mut check = Command::new(shell);
        check.arg("-n").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Ok(mut child) = check.spawn() {
            child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
            let checked = ran(child.wait_with_output().unwrap());
            assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""), "{shell}");
        }
    }
    let script =
        format!("{}\ncomplete -p kubectl-informer", cluster.prints(&["completion", "bash"]));
    let bash = ran(Command::new("bash").args(["-c", &script]).output().unwrap());
    assert!(bash.out.ends_with(" kubectl-informer\n"), "{} {}", bash.out, bash.err);

    // Runs the function that bash calls when the user presses Tab.
    for (words, current, candidate) in [
        ("kubectl-informer watch --ou", 2, "--output"),
        ("kubectl-informer completion f", 2, "fish"),
    ] {
        let script = format!(
            "{}\nCOMP_WORDS=({words})\nCOMP_CWORD={current}\n\
             _kubectl__informer kubectl-informer \"${{COMP_WORDS[{current}]}}\" \"\"\n\
             echo \"${{COMPREPLY[@]}}\"",
            cluster.prints(&["completion", "bash"])
        );
        let bash = ran(Command::new("bash").args(["-c", &script]).output().unwrap());
        assert!(
            bash.out.split_whitespace().any(|each| each == candidate),
            "{} {}",
            bash.out,
            bash.err
        );
    }
    assert!(cluster.fails(&["completion", "cmd"]).contains("powershell"));
}

/// Examples are on one line each, at 80 columns as well, with the characters that were written.
#[test]
fn examples_in_manual_pages_can_be_copied() {
    let cluster = Cluster::new("completion-man-copy", SHOP);
    for command in COMMANDS {
        let help = cluster.prints(&[command, "--help"]);
        // `serve` has its examples in its description.
        let text = match help.split_once("Examples:\n") {
            Some((_, text)) => text.lines().take_while(|line| !line.ends_with(':')).collect(),
            None => help.lines().take_while(|line| !line.starts_with("Usage:")).collect::<Vec<_>>(),
        };
        let examples: Vec<_> = text.iter().filter(|line| line.starts_with("  ")).collect();
        assert!(!examples.is_empty(), "{command}");
        let source = cluster.directory.join(format!("{command}.1"));
        std::fs::write(&source, cluster.prints(&["man", command])).unwrap();
        for (formatter, arguments) in
            [("man", &["-l"][..]), ("groff", &["-man", "-Tutf8", "-P-cbou"]), ("mandoc", &[])]
        {
            let mut show = Command::new(formatter);
            show.args(arguments).arg(&source).env("MANWIDTH", "80").env("LC_ALL", "C.UTF-8");
            let Ok(output) = show.env("MAN_KEEP_FORMATTING", "").stdin(Stdio::null()).output()
            else {
                println!("not tried with {formatter}, which is not installed");
                continue;
            };
            let page = ran(output).out;
            for example in &examples {
                let shown = page.lines().any(|line| line.trim() == example.trim());
                assert!(shown, "{formatter} {command}: {example}\n{page}");
            }
            assert!(!page.contains('\u{2010}'), "{formatter} {command}: {page}");
        }
    }
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let cluster = Cluster::new("completion-man", SHOP);
    let whole = cluster.prints(&["man"]);
    assert!(whole.contains(".TH kubectl-informer 1"), "{whole}");
    for command in COMMANDS {
        assert!(
            whole.contains(&format!("kubectl\\-informer\\-{command}(1)")),
            "{command}: {whole}"
        );
        let page = cluster.prints(&["man", command]);
        assert!(page.contains(&format!(".TH kubectl-informer-{command} 1")), "{page}");
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
        check_page(&page);
    }
    let problem = cluster.fails(&["man", "nonsense"]);
    assert!(problem.contains("\"nonsense\"") && problem.contains("doctor"), "{problem}");
}

/// Checks that groff, if it is installed, reports no problem with the page.
fn check_page(page: &str) {
    let mut groff = Command::new("groff");
    groff.args(["-man", "-Tutf8", "-ww", "-Kutf8"]);
    groff.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    if let Ok(mut child) = groff.spawn() {
        child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
        let checked = ran(child.wait_with_output().unwrap());
        assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""), "{page}");
    }
}

#[test]
fn help_fits_and_has_examples() {
    let cluster = Cluster::new("completion-help", SHOP);
    for command in COMMANDS {
        for flag in ["--help", "-h"] {
            let help = cluster.prints(&[command, flag]);
            for line in help.lines() {
                assert!(line.chars().count() <= 100, "{command} {flag}: {line}");
            }
            if flag == "--help" {
                assert!(help.contains("kubectl-informer") || help.contains("Examples:"), "{help}");
            }
        }
    }
    let help = cluster.prints(&["--help"]);
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    assert!(help.contains("Examples:"), "{help}");
}

#[test]
fn nobody_to_read_it_is_no_error() {
    let cluster = Cluster::new("completion-pipe", SHOP);
    for words in [&["completion", "bash"][..], &["man"], &["__complete", ""]] {
        let ran = with_nobody_to_read(&mut cluster.command(words));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{words:?}");
    }
}

#[test]
fn what_could_not_be_written_is_told() {
    let cluster = Cluster::new("completion-full", SHOP);
    for words in [&["completion", "bash"][..], &["man"]] {
        tells_of_a_full_disk(&mut cluster.command(words));
    }
}
