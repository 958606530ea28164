//! The cost of connections: `kube_informer::client` over HTTP/2 beside kube's own client over HTTP/1, on the
//! embedded server over TLS: `cargo bench -p kube-informer --bench client`.
//!
//! The server is a process of its own, and so is each measurement, in turns: the CPU time and the memory are
//! the client's. `-- --quick` has less of everything; `-- informers` runs what has that in its name.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use std::{env, fs};

use embedded_apiserver::ApiServer;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kube_informer::{KubeListWatch, SharedInformer};
use serde_json::json;
use tokio::runtime::Builder;

#[derive(Clone, Copy)]
struct Size {
    /// In the one large list.
    objects: usize,
    informers: usize,
    runs: usize,
}

const FULL: Size = Size { objects: 3_000, informers: 1_000, runs: 5 };
const QUICK: Size = Size { objects: 300, informers: 100, runs: 1 };

/// Bytes of each object of the large list.
const OBJECT_BYTES: usize = 100_000;

const CASES: [&str; 3] = ["list, read only", "list, by an informer", "informers"];
const CLIENTS: [&str; 2] = ["kube", "ours"];

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("--serve") => serve(number(&args[1]), number(&args[2])),
        Some("--case") => measure(number(&args[1]), &args[2], &args[3], number(&args[4])),
        _ => compare(&args),
    }
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}

fn compare(args: &[String]) {
    let (flags, wanted): (Vec<_>, Vec<_>) = args.iter().partition(|arg| arg.starts_with('-'));
    let size = if flags.iter().any(|flag| *flag == "--quick") { QUICK } else { FULL };
    let server = Server::start(size);
    println!("{} objects of {OBJECT_BYTES} bytes, {} runs", size.objects, size.runs);
    println!("{:<52}{:>26}{:>26}{:>8}", "what", "kube, HTTP/1", "ours, HTTP/2", "times");
    for (case, name) in CASES.iter().enumerate() {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| name.contains(wanted.as_str())) {
            continue;
        }
        let mut runs = [Vec::new(), Vec::new()];
        for _ in 0..size.runs {
            for (client, runs) in CLIENTS.iter().zip(&mut runs) {
                runs.push(server.measured(case, client, size.informers));
            }
        }
        for row in 0..runs[0][0].len() {
            let what = &runs[0][0][row].0;
            let [kube, ours] = runs.each_ref().map(|runs| {
                let mut values: Vec<f64> = runs.iter().map(|run| run[row].1).collect();
                values.sort_by(f64::total_cmp);
                (values[values.len() / 2], values[0], values[values.len() - 1])
            });
            let shown =
                |(mid, least, most): (f64, f64, f64)| format!("{mid:.2} ({least:.2}–{most:.2})");
            let (name, ratio) = (format!("{name}: {what}"), kube.0 / ours.0);
            println!("{name:<52}{:>26}{:>26}{ratio:>8.2}", shown(kube), shown(ours));
        }
    }
}

/// The server, as a process.
struct Server {
    process: Child,
    kubeconfig: String,
}

impl Server {
    fn start(size: Size) -> Self {
        let mut process = Command::new(env::current_exe().expect("a program"))
            .args(["--serve", &size.objects.to_string(), &size.informers.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut kubeconfig = String::new();
        let mut lines = BufReader::new(process.stdout.take().expect("piped"));
        lines.read_line(&mut kubeconfig).expect("it says where it listens");
        Self { process, kubeconfig: kubeconfig.trim().to_owned() }
    }

    fn measured(&self, case: usize, client: &str, informers: usize) -> Vec<(String, f64)> {
        let output = Command::new(env::current_exe().expect("a program"))
            .args(["--case", &case.to_string(), client, &self.kubeconfig, &informers.to_string()])
            .stderr(Stdio::inherit())
            .output()
            .expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let values = text.lines().map(|line| {
            let (what, value) = line.split_once('=').expect("what=value");
            (what.to_owned(), value.parse().expect("a number"))
        });
        values.collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends with its standard input.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.kubeconfig);
    }
}

fn serve(objects: usize, informers: usize) {
    let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let server = ApiServer::start();
    let create = |object| server.create(object).expect("it is valid");
    let map = |namespace: &str, name: &str, bytes: usize| {
        let metadata = json!({"namespace": namespace, "name": name});
        let data = json!({"key": "x".repeat(bytes)});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    };
    for number in 0..informers {
        let namespace = format!("n{number}");
        let metadata = json!({"name": namespace});
        create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
        create(map(&namespace, "only", 100));
    }
    for number in 0..objects {
        create(map("default", &format!("large-{number}"), OBJECT_BYTES));
    }
    let listening = runtime.block_on(server.listen("127.0.0.1:0")).expect("a free port");
    let file = env::temp_dir().join(format!("bench-client-{}", std::process::id()));
    listening.write_kubeconfig(&file).expect("it can be written");
    println!("{}", file.display());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn measure(case: usize, client: &str, kubeconfig: &str, informers: usize) {
    let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let kubeconfig = Kubeconfig::read_from(Path::new(kubeconfig)).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("it is one");
        let port = config.cluster_url.port_u16().expect("not the default");
        let client = match client {
            "kube" => Client::try_from(config),
            _ => kube_informer::client(config),
        };
        let client = client.expect("a client");
        let (began, resident) = (Instant::now(), resident());
        match case {
            0 => read(&client).await,
            1 => drop(synced(&client, ["default".to_owned()]).await),
            _ => {
                let caches = synced(&client, (0..informers).map(|n| format!("n{n}"))).await;
                println!("seconds={}", began.elapsed().as_secs_f64());
                println!("CPU seconds={}", cpu_seconds());
                println!("KiB each={}", (self::resident() - resident) / 1024. / informers as f64);
                println!("connections={}", connections(port));
                return drop(caches);
            }
        }
        println!("seconds={}", began.elapsed().as_secs_f64());
        println!("CPU seconds={}", cpu_seconds());
    });
}

/// All of the list, thrown away.
async fn read(client: &Client) {
    let request = http::Request::get("/api/v1/namespaces/default/configmaps");
    let response = client.send(request.body(Body::empty()).expect("a request")).await;
    let mut body = response.expect("an answer").into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.expect("it does not break").data_ref().map_or(0, bytes::Bytes::len);
    }
    assert!(bytes > OBJECT_BYTES, "{bytes}");
}

/// An informer for each of the namespaces, in sync.
async fn synced(
    client: &Client,
    namespaces: impl IntoIterator<Item = String>,
) -> Vec<SharedInformer<ConfigMap>> {
    let sources = namespaces
        .into_iter()
        .map(|namespace| KubeListWatch::of::<ConfigMap>(client.clone()).namespace(&namespace));
    let informers: Vec<_> = sources.map(|each| SharedInformer::from_source(each).build()).collect();
    informers.iter().for_each(SharedInformer::start);
    for informer in &informers {
        informer.wait_for_sync().await.expect("nothing is wrong");
    }
    informers
}

/// Bytes that the process has from the kernel.
fn resident() -> f64 {
    let pages = fs::read_to_string("/proc/self/statm").expect("Linux");
    pages.split(' ').nth(1).expect("resident").parse::<f64>().expect("a number") * 4096.
}

/// In user and kernel, of all threads.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields = stat.rsplit(") ").next().expect("after the name").split(' ');
    let ticks = fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("a number"));
    ticks.sum::<f64>() / 100.
}

/// Open to that port.
fn connections(port: u16) -> usize {
    let port = format!(":{port:04X}");
    let sockets = fs::read_to_string("/proc/self/net/tcp").expect("Linux");
    let open = sockets.lines().filter(|line| {
        let mut fields = line.split_whitespace().skip(2);
        fields.next().is_some_and(|remote| remote.ends_with(&port)) && fields.next() == Some("01")
    });
    open.count()
}
